"""Arithmetic in binary32: an adder, a multiplier, a divider, and a unit that adds up products.

The adder is that of the package (`add_float_adder`), with a register behind each step. A product or
quotient is rounded to nearest, ties to even, as NumPy does it. A result below the smallest normal
number is zero, and an operand below it counts as zero. A quotient by zero is zero. The functions of
`model` compute the same words.
"""

from __future__ import annotations

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from torusfabric.collective.float_adder import add_float_adder
from torusfabric.collective.floats import FORMATS

__all__ = ["ADD_CYCLES", "DIVIDE_CYCLES", "MULTIPLY_CYCLES", "SUM_CYCLES", "WORD_BITS", "Adder",
           "DelayLine", "Divider", "Multiplier", "ProductSum", "quadruple"]  # fmt: skip

#: Bits of a word, of its fraction and of its exponent, and the exponent of the number 1.
WORD_BITS, FRACTION_BITS, EXPONENT_BITS, BIAS = 32, 23, 8, 127

#: Digits of a quotient, of two bits each.
DIGITS = 14

#: Cycles from the operands to the result.
ADD_CYCLES, MULTIPLY_CYCLES, DIVIDE_CYCLES = 6, 5, DIGITS + 3

#: Cycles from the last product of a sum to the sum: three levels of additions, and the last
#: additions of a level begin when their operands have left the adder one after another.
SUM_CYCLES = 3 * ADD_CYCLES + 5


class Number:
    """The parts of a word: sign, exponent and significand, and a bit for each special kind.

    Parameters
    ----------
    word : Value
        A word.
    """

    def __init__(self, word: Value) -> None:
        fraction, self.exponent = word[:FRACTION_BITS], word[FRACTION_BITS:-1]
        self.sign, self.significand = word[-1], Cat(fraction, C(1))
        self.is_zero = ~self.exponent.any()
        self.is_infinite = self.exponent.all() & ~fraction.any()
        self.is_nan = self.exponent.all() & fraction.any()


def delay(m: Module, value: Value, cycles: int = 1) -> Value:
    """Return a value some cycles later."""
    for _ in range(cycles):
        later = Signal(value.shape())
        m.d.sync += later.eq(value)
        value = later
    return value


def quadruple(word: Value) -> Value:
    """Return four times a number, or zero for a number below the smallest normal one."""
    fraction, exponent, sign = word[:FRACTION_BITS], word[FRACTION_BITS:-1], word[-1]
    ones = C((1 << EXPONENT_BITS) - 1, EXPONENT_BITS)
    larger = Cat(fraction, (exponent + 2)[:EXPONENT_BITS])
    infinite = Cat(Mux(exponent.all(), fraction, 0), ones)
    size = Mux(exponent >= ones.value - 2, infinite, Mux(exponent.any(), larger, 0))
    return Cat(size, sign)


def round_number(m: Module, kind: Value, exponent: Value, bits: Value) -> Signal:
    """Return the word of a result two cycles later.

    Parameters
    ----------
    m : Module
        The module that takes the registers.
    kind : Value
        Four bits: the sign, and if the result is zero, infinite, or not a number.
    exponent : Value
        The exponent of a result with 0 in its highest bit.
    bits : Value
        The bits of the result. The highest is 1, or the one below it. The lowest bits may say only
        that further bits are not all 0.
    """
    top, low = bits[-1], len(bits) - FRACTION_BITS - 3
    rest = bits[:low].any() | (top & bits[low])
    normal = delay(m, Cat(rest, Mux(top, bits[low + 1 :], bits[low:-1])))
    kind, exponent = delay(m, kind), delay(m, exponent + top)
    sticky, guard, odd = normal[:3]
    significand, power = Signal(FRACTION_BITS + 2), Signal(signed(EXPONENT_BITS + 3))
    m.d.comb += [significand.eq(normal[2:] + (guard & (sticky | odd))),
                 power.eq(exponent + significand[-1])]  # fmt: skip
    sign, is_zero, is_infinite, is_nan = kind
    ones, size = (1 << EXPONENT_BITS) - 1, Signal(WORD_BITS - 1)
    with m.If(is_nan):
        m.d.sync += size.eq(FORMATS["fp32"].nan_word)
    with m.Elif(is_zero | (~is_infinite & (power < 1))):
        m.d.sync += size.eq(0)
    with m.Elif(is_infinite | (power >= ones)):
        m.d.sync += size.eq(FORMATS["fp32"].infinity_word)
    with m.Else():
        m.d.sync += size.eq(Cat(significand[:FRACTION_BITS], power[:EXPONENT_BITS]))
    word = Signal(WORD_BITS)
    m.d.comb += word.eq(Cat(size, delay(m, sign & ~is_nan)))
    return word


class Adder(wiring.Component):
    """Adder that begins a sum in each cycle, and ends it `ADD_CYCLES` later."""

    def __init__(self) -> None:
        super().__init__({"a": In(WORD_BITS), "b": In(WORD_BITS), "sum": Out(WORD_BITS)})

    def elaborate(self, platform: object) -> Module:
        """Build the adder of the package."""
        m = Module()
        steps = range(ADD_CYCLES)
        m.d.comb += self.sum.eq(add_float_adder(m, FORMATS["fp32"], steps, self.a, self.b))
        return m


class Multiplier(wiring.Component):
    """Multiplier that begins a product in each cycle, and ends it `MULTIPLY_CYCLES` later.

    Significands of 24 bits are multiplied in halves, by four multipliers of 12 x 12 bits.
    """

    def __init__(self) -> None:
        super().__init__({"a": In(WORD_BITS), "b": In(WORD_BITS), "product": Out(WORD_BITS)})

    def elaborate(self, platform: object) -> Module:
        """Build the pipeline: partial products, two additions, and two steps of rounding."""
        m, a, b = Module(), Number(self.a), Number(self.b)
        is_nan = a.is_nan | b.is_nan | (a.is_zero & b.is_infinite) | (a.is_infinite & b.is_zero)
        kind = Cat(a.sign ^ b.sign, a.is_zero | b.is_zero, a.is_infinite | b.is_infinite, is_nan)
        half = (FRACTION_BITS + 1) // 2
        halves = [(number.significand[:half], number.significand[half:]) for number in (a, b)]
        low, middle_a, middle_b, high = (
            delay(m, x * y) for y in halves[1] for x in halves[0])  # fmt: skip
        outer, middle = delay(m, Cat(low, high)), delay(m, middle_a + middle_b)
        product = delay(m, (outer + (middle << half))[: len(outer)])
        exponent = delay(m, a.exponent + b.exponent - BIAS, 3)
        m.d.comb += self.product.eq(round_number(m, delay(m, kind, 3), exponent, product))
        return m


class Divider(wiring.Component):
    """Divider with one quotient at a time, two bits of it in each cycle.

    Members
    -------
    start : In(1)
        High for a cycle with the operands.
    a, b : In
        Dividend and divisor.
    done : Out(1)
        High for a cycle, `DIVIDE_CYCLES` after `start`, with the quotient.
    quotient : Out
        The result.
    """

    def __init__(self) -> None:
        super().__init__({"start": In(1), "a": In(WORD_BITS), "b": In(WORD_BITS),
                          "done": Out(1), "quotient": Out(WORD_BITS)})  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        """Build the subtractors and the register of digits."""
        m, a, b = Module(), Number(self.a), Number(self.b)
        is_nan = a.is_nan | b.is_nan | (a.is_infinite & b.is_infinite)
        is_zero = a.is_zero | b.is_zero | b.is_infinite
        bits = FRACTION_BITS + 3
        kind, exponent = Signal(4), Signal(signed(EXPONENT_BITS + 3))
        rest, digits, left = Signal(bits), Signal(2 * DIGITS), Signal(range(DIGITS + 1))
        multiples = [Signal(bits, name=f"times_{k}") for k in (1, 2, 3)]
        digit, remainder = Signal(2), Signal(bits)
        m.d.comb += remainder.eq(rest)
        for number, multiple in enumerate(multiples, 1):
            difference = (rest - multiple)[: bits + 1]
            # A negative difference has a 1 in its highest bit.
            with m.If(~difference[-1]):
                m.d.comb += [digit.eq(number), remainder.eq(difference)]
        with m.If(self.start):
            m.d.sync += [kind.eq(Cat(a.sign ^ b.sign, is_zero, a.is_infinite, is_nan)),
                         exponent.eq(a.exponent - b.exponent + (BIAS - 1)),
                         rest.eq(a.significand), left.eq(DIGITS)]  # fmt: skip
            once, twice = b.significand, b.significand << 1
            m.d.sync += [multiple.eq(product) for multiple, product in
                         zip(multiples, (once, twice, once + twice), strict=True)]  # fmt: skip
        with m.Elif(left != 0):
            m.d.sync += [rest.eq(remainder << 2), digits.eq(Cat(digit, digits)), left.eq(left - 1)]
        m.d.comb += self.quotient.eq(
            round_number(m, kind, exponent, Cat(rest.any(), digits[: FRACTION_BITS + 4]))
        )
        m.d.comb += self.done.eq(delay(m, left == 1, 3))
        return m


class DelayLine(wiring.Component):
    """Small memory that outputs each word some cycles after it has entered.

    Parameters
    ----------
    cycles : int
        The number of cycles, from 2 on.
    """

    def __init__(self, cycles: int) -> None:
        self._cycles = cycles
        super().__init__({"word": In(WORD_BITS), "later": Out(WORD_BITS)})

    def elaborate(self, platform: object) -> Module:
        """Build the memory, with a write and a read in each cycle."""
        m = Module()
        depth = 1 << (self._cycles - 1).bit_length()
        m.submodules.words = words = Memory(shape=WORD_BITS, depth=depth, init=[])
        write, read, place = words.write_port(), words.read_port(), Signal(range(depth))
        m.d.sync += place.eq(place + 1)
        m.d.comb += [write.addr.eq(place), write.data.eq(self.word), write.en.eq(1)]
        m.d.comb += [read.addr.eq(place - (self._cycles - 1)), self.later.eq(read.data)]
        return m


class ProductSum(wiring.Component):
    """Unit that adds up products, of which one may enter in each cycle, in a fixed order.

    A sum takes `ADD_CYCLES` in the adder. So there are as many partial sums, and product k is added
    to partial sum k modulo their number. After the last product, sums that leave the adder are
    added in pairs, until one is left.

    Members
    -------
    valid, product : In
        A product, if valid.
    last : In(1)
        High with the last product. Products enter again when `done` has been high.
    done : Out(1)
        High for a cycle, `SUM_CYCLES` after the last product. From then on, `total` is the sum.
    total : Out
        The sum.
    """

    def __init__(self) -> None:
        super().__init__({"valid": In(1), "product": In(WORD_BITS), "last": In(1),
                          "done": Out(1), "total": Out(WORD_BITS)})  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        """Build the adder, and the register that keeps the first sum of a pair."""
        m = Module()
        m.submodules.adder = adder = Adder()
        # A bit for each step of the adder: the step has a sum.
        steps = Signal(ADD_CYCLES)
        # Cycles in which partial sums leave the adder, and additions of pairs that are left.
        leaving, left = Signal(range(ADD_CYCLES + 1)), Signal(range(ADD_CYCLES))
        first, waits, pairs = Signal(WORD_BITS), Signal(), Signal()
        found, word, adds, ends = Signal(), Signal(WORD_BITS), Signal(), Signal()
        m.d.comb += [
            word.eq(Mux(steps[-1], adder.sum, 0)),
            found.eq(pairs & (steps[-1] | (leaving != 0))),
            ends.eq(found & (left == 0)),
            adds.eq(found & waits),
            adder.a.eq(word),
            adder.b.eq(Mux(pairs, first, self.product)),
        ]
        m.d.sync += [steps.eq(Cat(self.valid | adds, steps)), self.done.eq(ends),
                     leaving.eq(leaving - (leaving != 0))]  # fmt: skip
        with m.If(found):
            m.d.sync += [waits.eq(~waits), first.eq(word), left.eq(left - waits)]
        with m.If(self.valid & self.last):
            m.d.sync += [pairs.eq(1), waits.eq(0), leaving.eq(ADD_CYCLES), left.eq(ADD_CYCLES - 1)]
        with m.If(ends):
            m.d.sync += [pairs.eq(0), self.total.eq(word)]
        return m
