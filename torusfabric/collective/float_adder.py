"""The hardware of floating-point addition: a pipelined adder of any binary format.

The operators ``add:fp32``, ``add:bf16`` and ``add:fp16`` of `float_operators` use it. A pair of
words enters in every cycle. Subnormal numbers are kept, and the sum is rounded to nearest even. The
*first operand* is the one with the larger magnitude. There may be registers behind any step of the
table:

    step  work
    0     exchange the operands, so that the first has the larger magnitude
    1     shift the significand of the second operand right, to the exponent of the first
    2     add the significands, or subtract the second
    3     count the leading zeros of the sum
    4     shift them out
    5     round, and pack sign, exponent and fraction

Significands have three more bits than the format keeps: guard, round and sticky bit. The sticky bit
is the disjunction of all bits that were shifted out.

Infinities and NaNs take the same way. With such a first operand the second significand is replaced
by 0, so that the first operand arrives at the end unchanged. Only infinity minus infinity is made a
NaN, by a bit of its fraction.

Why own hardware: the engines, the writer of Verilog and the proof read one netlist, made from
Amaranth. A Verilog unit of others would be a black box for all three.
"""

from __future__ import annotations

from collections.abc import Collection

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from .floats import FloatFormat

__all__ = ["add_float_adder"]

#: Bits of a significand below those that the format keeps: guard, round and sticky bit.
EXTRA_BITS = 3


def add_float_adder(
    m: Module, number_format: FloatFormat, registered: Collection[int], a: Value, b: Value
) -> Value:
    """Add a floating-point adder to a module, and return its sum.

    Parameters
    ----------
    m : Module
        The module that takes the adder.
    number_format : FloatFormat
        Format of the operands and of the sum.
    registered : collection of int
        Steps, 0 to 5, behind which there are registers. The sum appears as many cycles after the
        operands as there are such steps.
    a, b : Value
        Operands.
    """
    fraction_bits, exponent_bits = number_format.fraction_bits, number_format.exponent_bits
    top = fraction_bits + EXTRA_BITS  # number of the bit that is 1 in a normal significand
    step = 0

    def finish_step(**values: Value) -> list[Signal]:
        """Give the results of a step names, behind registers if the step has them."""
        nonlocal step
        found = []
        for name, value in values.items():
            signal = Signal(len(value), name=f"{name}_{step}")
            domain = m.d.sync if step in registered else m.d.comb
            domain += signal.eq(value)
            found.append(signal)
        step += 1
        return found

    def unpack_word(word: Value) -> tuple[Value, Value]:
        """Return the exponent of a word, at least 1, and its significand."""
        fraction, exponent = word[:fraction_bits], word[fraction_bits:]
        normal = exponent.any()
        return Cat(exponent[0] | ~normal, exponent[1:]), Cat(fraction, normal)

    # Step 0. All else is computed beside the comparison, which takes the longest.
    size_a, size_b, differ = a[:-1], b[:-1], a[-1] ^ b[-1]
    exchanged = size_b > size_a
    (exponent_a, whole_a), (exponent_b, whole_b) = unpack_word(size_a), unpack_word(size_b)
    distances = exponent_b - exponent_a, exponent_a - exponent_b
    infinite = [size == number_format.infinity_word for size in (size_a, size_b)]
    first, second, exponent, distance, sign, differ, cancels, undefined, special = finish_step(
        first=Mux(exchanged, whole_b, whole_a),
        second=Mux(exchanged, whole_a, whole_b),
        exponent=Mux(exchanged, exponent_b, exponent_a),
        distance=Mux(exchanged, *distances)[:exponent_bits],
        sign=Mux(exchanged, b[-1], a[-1]),
        differ=differ,
        cancels=differ & (size_a == size_b),
        undefined=differ & infinite[0] & infinite[1],
        special=exponent_a.all() | exponent_b.all(),
    )
    # Step 1
    quiet = Cat(Const(0, fraction_bits - 1), undefined, special)
    second = Mux(special, 0, second)
    first, second, exponent, sign, subtracts, special = finish_step(
        first=first | quiet,
        second=_shift_right_sticky(m, Cat(Const(0, EXTRA_BITS), second), distance),
        exponent=exponent,
        # Opposite numbers make plus zero.
        sign=sign & ~cancels,
        subtracts=differ & ~special,
        special=special,
    )
    # Step 2. The mark is a 1 below which no leading zero is shifted out, because the exponent
    # would become less than 1. It is at the top for the exponent 1.
    aligned = Cat(Const(0, EXTRA_BITS), first)
    inverted = second ^ subtracts.replicate(len(second))
    total = (Cat(1, aligned) + Cat(subtracts, inverted))[1:]
    total = Cat(total[: top + 1], total[top + 1] & ~subtracts)
    mark = Cat(*(exponent == top + 1 - k for k in range(top + 1)))
    total, mark, exponent, sign, special = finish_step(
        total=total, mark=mark, exponent=exponent, sign=sign, special=special
    )
    # Step 3
    zeros, total, exponent, sign, special = finish_step(
        zeros=_count_leading_zeros(m, total[: top + 1] | mark),
        total=total,
        exponent=exponent,
        sign=sign,
        special=special,
    )
    # Step 4
    carry = total[top + 1]
    shifted = (total[: top + 1] << zeros)[: top + 1]
    word, power, sign, special = finish_step(
        word=Mux(carry, Cat(total[0] | total[1], total[2:]), shifted),
        power=Mux(carry, exponent + 1, exponent - zeros)[:exponent_bits],
        sign=sign,
        special=special,
    )
    # Step 5. A carry of the fraction increases the exponent, up to infinity.
    guard, rest, odd = word[2], word[:2].any(), word[EXTRA_BITS]
    exact = Cat(word[EXTRA_BITS:top], Mux(word[top], power, 0))
    rounded = (exact + (guard & (rest | odd)))[: len(exact)]
    overflows = rounded[fraction_bits:].all() & ~special
    fraction = Mux(overflows, 0, rounded[:fraction_bits])
    (result,) = finish_step(result=Cat(fraction, rounded[fraction_bits:], sign))
    return result


def _shift_right_sticky(m: Module, word: Value, distance: Value) -> Value:
    """Return a word shifted right by `distance`, with bits that fall out collected in its bit 0."""
    stages = (len(word) - 1).bit_length()
    for k in reversed(range(min(stages, len(distance)))):
        by = 1 << k
        lost = word[: by + 1].any()
        word = _name_value(m, Mux(distance[k], Cat(lost, word[by + 1 :], Const(0, by)), word))
    if len(distance) <= stages:
        return word
    return Mux(distance[stages:].any(), Cat(word.any(), Const(0, len(word) - 1)), word)


def _count_leading_zeros(m: Module, word: Value) -> Value:
    """Return the number of zeros above the highest 1 of a word that is not 0.

    Both halves of the word are counted at once, so that the depth is logarithmic.
    """
    size = 1 << (len(word) - 1).bit_length()
    return _count_zeros(m, Cat(Const(0, size - len(word)), word))[:-1]


def _count_zeros(m: Module, word: Value) -> Value:
    """Return the number of zeros above the highest 1 of a word of 2, 4, 8, .. bits."""
    if len(word) == 1:
        return ~word
    half = len(word) // 2
    low, high = (_count_zeros(m, each) for each in (word[:half], word[half:]))
    # The highest bit of a count says that its half is empty. The lower bits are then 0.
    count = Mux(high[-1], low[:-1], high[:-1])
    return _name_value(m, Cat(count, high[-1] & ~low[-1], high[-1] & low[-1]))


def _name_value(m: Module, value: Value) -> Value:
    """Return a signal with a value. Why: an expression used twice is copied with all its parts."""
    signal = Signal(len(value))
    m.d.comb += signal.eq(value)
    return signal
