"""The hardware of floating-point addition: a pipelined adder of any binary format.

The operators ``add:fp32``, ``add:bf16`` and ``add:fp16`` of `float_operators` use it. A pair of
words enters in every cycle. Subnormal numbers are kept, and the sum is rounded to nearest even. The
*first operand* is the one with the larger magnitude. There may be registers behind any step of the
table:

    step  work
    0     exchange the operands, so that the first has the larger magnitude
    1     shift the significand of the second operand right, to the exponent of the first
    2     add the significands, or subtract the second
    3     shift out leading zeros of the sum, by large distances
    4     shift out the other leading zeros
    5     round, and pack sign, exponent and fraction

Significands have three more bits than the format keeps: guard, round and sticky bit. The sticky bit
is the disjunction of all bits that were shifted out.

A sum has a bit above them for the carry. Steps 3 and 4 shift the highest 1 to this bit, but at most
by the exponent, so that the exponent does not become negative. What remains is a subnormal number.

Infinities and NaNs take the same way. With such a first operand the second significand is replaced
by 0, so that the first operand arrives at the end unchanged. Only infinity minus infinity is made a
NaN, by a bit of its fraction.

Why own hardware: the engines, the writer of Verilog and the proof read one netlist, made from
Amaranth. A Verilog unit of others would be a black box for all three.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

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
    size = 1 + fraction_bits + EXTRA_BITS + 1  # bits of a sum, with the carry
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

    # Step 0. All else is computed beside the comparison, which takes the longest. Of opposite
    # numbers the positive one is the first, so that their sum is plus zero.
    size_a, size_b, differ = a[:-1], b[:-1], a[-1] ^ b[-1]
    exchanged = Cat(~b[-1], size_b) > Cat(~a[-1], size_a)
    (exponent_a, whole_a), (exponent_b, whole_b) = unpack_word(size_a), unpack_word(size_b)
    distances = exponent_b - exponent_a, exponent_a - exponent_b
    special_a, special_b = exponent_a.all(), exponent_b.all()
    first, second, exponent, distance, sign, subtracts, opposite = finish_step(
        first=Mux(exchanged, whole_b, whole_a),
        second=Mux(special_a | special_b, 0, Mux(exchanged, whole_a, whole_b)),
        exponent=Mux(exchanged, exponent_b, exponent_a),
        distance=Mux(exchanged, *distances)[:exponent_bits],
        sign=Mux(exchanged, b[-1], a[-1]),
        subtracts=differ & ~special_a & ~special_b,
        opposite=differ & special_a & special_b,
    )
    # Step 1. If the first of two special operands is infinite, so is the second.
    undefined = opposite & ~first[:fraction_bits].any()
    shifted = _shift_right_sticky(m, Cat(Const(0, EXTRA_BITS), second), distance)
    first, second, exponent, sign, subtracts = finish_step(
        first=first | Cat(Const(0, fraction_bits - 1), undefined),
        second=shifted ^ subtracts.replicate(len(shifted)),
        exponent=exponent,
        sign=sign,
        subtracts=subtracts,
    )
    # Step 2. The sum has a bit more, for a carry. A 1 below the operands adds 1 to the complement.
    aligned = Cat(1, Const(0, EXTRA_BITS), first)
    total, exponent, sign, largest = finish_step(
        total=(aligned + Cat(subtracts, second, subtracts))[1 : size + 1],
        exponent=exponent,
        sign=sign,
        largest=exponent == (1 << exponent_bits) - 2,
    )
    # Steps 3 and 4. The exponent becomes at least 0 by the shift.
    stages = range((size - 1).bit_length())
    high, low = stages[len(stages) // 2 + 1 :], stages[: len(stages) // 2 + 1]
    limit = _limit_to_bits(exponent, len(stages))
    word, by_high, free, limit, exponent, sign, overflows = finish_step(
        **_shift_out_zeros(m, total, high, limit, Const(0, 1)),
        limit=limit,
        exponent=exponent,
        sign=sign,
        overflows=total[-1] & largest,
    )
    found = _shift_out_zeros(m, word, low, limit, free)
    word, power, sign = finish_step(
        word=Cat(Mux(overflows, 0, found["word"][:-1]), found["word"][-1]),
        power=(exponent - Cat(found["shift"], by_high))[:exponent_bits],
        sign=sign,
    )
    # Step 5. The highest bit of a normal significand adds 1 to the exponent, which is 0 in other
    # numbers. A carry of the fraction increases the exponent, up to infinity.
    guard, rest, odd = word[EXTRA_BITS], word[:EXTRA_BITS].any(), word[EXTRA_BITS + 1]
    exact = Cat(word[EXTRA_BITS + 1 : -1], Mux(word[-1], power, 0))
    increase = Cat(guard & (rest | odd), Const(0, fraction_bits - 1), word[-1])
    (result,) = finish_step(result=Cat((exact + increase)[: len(exact)], sign))
    return result


def _limit_to_bits(value: Value, bits: int) -> Value:
    """Return a value in at most `bits` bits, the largest such number in place of larger ones."""
    if len(value) <= bits:
        return value
    return value[:bits] | value[bits:].any().replicate(bits)


def _shift_right_sticky(m: Module, word: Value, distance: Value) -> Value:
    """Return a word shifted right by `distance`, with bits that fall out collected in its bit 0."""
    distance = _limit_to_bits(distance, (len(word) - 1).bit_length())
    for k in reversed(range(len(distance))):
        by = 1 << k
        lost = word[: by + 1].any()
        word = _name_value(m, Mux(distance[k], Cat(lost, word[by + 1 :], Const(0, by)), word))
    return word


def _shift_out_zeros(
    m: Module, word: Value, stages: Sequence[int], limit: Value, free: Value
) -> dict[str, Value]:
    """Shift `word` left until its highest bit is 1, by some of the bits of the distance.

    Stage k shifts by 2^k or not at all, the largest k first. If the highest bit stays 0, the
    distance of all stages together is `limit`.

    Parameters
    ----------
    m : Module
        The module that takes the logic.
    stages : sequence of int
        The stages, in ascending order.
    limit : Value
        The largest distance of all stages together.
    free : Value
        1 if an earlier stage did not shift although `limit` allowed it: the limit is then no
        restriction for the stages below.

    Returns
    -------
    dict
        The shifted ``word``, the bits of the distance as ``shift``, and ``free`` for the stages
        below.
    """
    shifts: list[Value] = []
    for k in reversed(stages):
        by = 1 << k
        allowed = limit[k] if k < len(limit) else Const(0, 1)
        shift = _name_value(m, ~word[-by:].any() & (free | allowed))
        word = _name_value(m, Mux(shift, Cat(Const(0, by), word[:-by]), word))
        free = free | (allowed & ~shift)
        shifts.insert(0, shift)
    return {"word": word, "shift": Cat(*shifts), "free": free}


def _name_value(m: Module, value: Value) -> Value:
    """Return a signal with a value. Why: an expression used twice is copied with all its parts."""
    signal = Signal(len(value))
    m.d.comb += signal.eq(value)
    return signal
