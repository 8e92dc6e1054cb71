"""Floating-point and saturating operators: model, hardware, numpy and sums by hand agree."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from amaranth.hdl import Module, Signal, Value
from amaranth.sim import Simulator

import torusfabric as tf
from torusfabric.collective import FLOATS, SATURATING, Operator
from torusfabric.collective.float_adder import add_float_adder
from torusfabric.collective.floats import FORMATS, FloatFormat, add_floats, choose_float

#: Small formats, for which all pairs of words are tested.
SMALL = [FloatFormat("small", *bits) for bits in ((3, 2), (2, 2), (2, 3), (4, 2))]

ALL_STEPS = frozenset(range(6))


def all_pairs(number_format: FloatFormat) -> tuple[np.ndarray, np.ndarray]:
    words = np.arange(1 << number_format.width, dtype=np.uint64)
    a, b = np.meshgrid(words, words)
    return a.ravel(), b.ravel()


def corner_words(number_format: FloatFormat) -> list[int]:
    """Return words of both signs: zero, subnormals, normal ones beside limits, infinity, NaNs."""
    one, infinity = (
        number_format.exponent_bias << number_format.fraction_bits,
        number_format.infinity_word,
    )
    least = 1 << number_format.fraction_bits
    sizes = [0, 1, 2, least - 1, least, least + 1, 2 * least - 1, 2 * least, one - 1, one, one + 1]
    sizes += [infinity - 1, infinity - least, infinity, infinity + 1, number_format.nan_word]
    sizes += [number_format.sign_word - 1]
    return [size | sign for size in sizes for sign in (0, number_format.sign_word)]


def pairs_to_test(number_format: FloatFormat, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of corner words, and random ones of any, of close and of equal exponents."""
    corners = np.array([*product(corner_words(number_format), repeat=2)], np.uint64).T
    random = np.random.default_rng(number_format.width)
    top = 1 << number_format.width
    a, any_b = random.integers(0, top, (2, count), np.uint64)
    close = a ^ random.integers(0, 8 << number_format.fraction_bits, count, np.uint64)
    equal = a ^ random.integers(0, 1 << number_format.fraction_bits, count, np.uint64)
    sign = np.uint64(number_format.sign_word)
    b = [any_b, close, close ^ sign, equal ^ sign, a ^ sign]
    return np.concatenate([corners[0], np.tile(a, len(b))]), np.concatenate([corners[1], *b])


def exact_value(number_format: FloatFormat, word: int) -> Fraction | str:
    """Return the number of a word, by the definition of IEEE 754; texts for what is no number."""
    fraction = word & (1 << number_format.fraction_bits) - 1
    exponent = word >> number_format.fraction_bits & (1 << number_format.exponent_bits) - 1
    negative = word >> number_format.width - 1
    if exponent == (1 << number_format.exponent_bits) - 1:
        return "nan" if fraction else "-inf" if negative else "inf"
    unit = Fraction(2) ** (
        max(exponent, 1) - number_format.exponent_bias - number_format.fraction_bits
    )
    size = unit * (fraction + (1 << number_format.fraction_bits) * (exponent > 0))
    return -size if negative else size


def nearest_word(number_format: FloatFormat, value: Fraction) -> int:
    """Return the word nearest to a number that is not 0, of two the even one, by trying all words.

    Infinity stands for the power of two above the largest number.
    """
    sizes = range(number_format.infinity_word + 1)
    limit = Fraction(2) ** ((1 << number_format.exponent_bits) - 1 - number_format.exponent_bias)

    def distance(size: int) -> tuple[Fraction, int]:
        number = limit if size == number_format.infinity_word else exact_value(number_format, size)
        assert isinstance(number, Fraction)
        return abs(abs(value) - number), size & 1

    return min(sizes, key=distance) | (value < 0) * number_format.sign_word


@pytest.mark.parametrize("number_format", SMALL, ids=str)
def test_every_sum_of_a_small_format_is_the_nearest_word(number_format: FloatFormat) -> None:
    """Sums of all pairs are those of exact rationals, rounded once."""
    a, b = all_pairs(number_format)
    got = add_floats(number_format, a, b, number_format.width).tolist()
    nearest: dict[Fraction, int] = {}
    for x, y, word in zip(a.tolist(), b.tolist(), got, strict=True):
        one, other = exact_value(number_format, x), exact_value(number_format, y)
        if "nan" in (one, other):
            assert word in {w for w, v in ((x, one), (y, other)) if v == "nan"} | {x & y}
        elif {one, other} == {"inf", "-inf"}:
            assert word == number_format.nan_word
        elif isinstance(one, str) or isinstance(other, str):
            assert word == (x if isinstance(one, str) else y)
        elif one + other == 0:
            assert word == (number_format.sign_word if x == y != 0 else 0)
        else:
            total = one + other
            if total not in nearest:
                nearest[total] = nearest_word(number_format, total)
            assert word == nearest[total]


@pytest.mark.parametrize(("name", "kind"), [("fp32", np.float32), ("fp16", np.float16)])
def test_sums_are_those_of_numpy(name: str, kind: type) -> None:
    number_format = FORMATS[name]
    a, b = pairs_to_test(number_format, 50_000)
    integer = {16: np.uint16, 32: np.uint32}[number_format.width]
    with np.errstate(all="ignore"):
        total: np.ndarray = a.astype(integer).view(kind) + b.astype(integer).view(kind)
    got = add_floats(number_format, a, b, number_format.width)
    nan = np.isnan(total)
    assert (got[~nan] == total.view(integer)[~nan]).all()
    assert (number_format.is_nan(got) == nan).all()


def test_bfloat_sums_are_rounded_sums_of_binary32() -> None:
    """A sum of two bfloat16 numbers is their binary32 sum, whose lower half is rounded off."""
    a, b = pairs_to_test(FORMATS["bf16"], 50_000)
    with np.errstate(all="ignore"):
        wide = [(word << 16).astype(np.uint32).view(np.float32) for word in (a, b)]
        total = (wide[0] + wide[1]).view(np.uint32).astype(np.uint64)
    rounded = total + 0x7FFF + (total >> 16 & 1) >> 16
    nan = (total & 0x7FFFFFFF) > 0x7F800000
    got = add_floats(FORMATS["bf16"], a, b, 16)
    assert (got[~nan] == rounded[~nan]).all()
    assert (FORMATS["bf16"].is_nan(got) == nan).all()


@pytest.mark.parametrize("name", FORMATS)
def test_minimum_and_maximum_are_those_of_numpy(name: str) -> None:
    """The smaller and the larger number; a NaN wins; minus zero is less than plus zero."""
    number_format = FORMATS[name]
    a, b = pairs_to_test(number_format, 5_000)
    numbers = number_format.decode(a), number_format.decode(b)
    for least, choose in ((True, np.minimum), (False, np.maximum)):
        got = choose_float(number_format, a, b, number_format.width, least=least)
        assert ((got == a) | (got == b)).all()
        np.testing.assert_array_equal(number_format.decode(got), choose(*numbers))
        zeros = (number_format.decode(a) == 0) & (number_format.decode(b) == 0) & (a != b)
        assert (got[zeros] == (number_format.sign_word if least else 0)).all()


def test_a_number_survives_its_word() -> None:
    """`encode` returns the word that `decode` was given, for all numbers of a format."""
    for number_format in (*SMALL, FORMATS["bf16"], FORMATS["fp16"]):
        words = np.arange(1 << number_format.width, dtype=np.uint64)
        words = words[~number_format.is_nan(words)]
        assert (number_format.encode(number_format.decode(words)) == words).all()


def hardware_results(make, latency: int, a: np.ndarray, b: np.ndarray, width: int) -> np.ndarray:
    """Return the results of hardware for pairs of words, a new pair in each cycle.

    `make` is a function from a module and two signals to the result, as in `tf.Operator`.
    """
    m, left, right, result = Module(), Signal(width), Signal(width), Signal(width)
    m.d.comb += result.eq(make(m, left, right))
    m.d.sync += Signal().eq(1)  # so that there is a clock
    found = []

    async def testbench(ctx) -> None:
        pairs = [*zip(a.tolist(), b.tolist(), strict=True)]
        for x, y in pairs + [(0, 0)] * latency:
            ctx.set(left, x)
            ctx.set(right, y)
            if latency == 0:
                found.append(ctx.get(result))
            await ctx.tick()
            if latency:
                found.append(ctx.get(result))

    simulator = Simulator(m)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()
    return np.array(found[max(latency - 1, 0) :][: len(a)], np.uint64)


def adder_results(number_format: FloatFormat, registered: frozenset[int], a, b) -> np.ndarray:
    def make(m: Module, left: Value, right: Value) -> Value:
        return add_float_adder(m, number_format, registered, left, right)

    return hardware_results(make, len(registered), a, b, number_format.width)


@pytest.mark.parametrize("number_format", SMALL, ids=str)
def test_every_sum_of_a_small_adder(number_format: FloatFormat) -> None:
    a, b = all_pairs(number_format)
    got = adder_results(number_format, ALL_STEPS, a, b)
    assert (got == add_floats(number_format, a, b, number_format.width)).all()


@pytest.mark.parametrize("registered", [(), (2,), (0, 3), (1, 2, 4), (5,)], ids=str)
def test_registers_anywhere(registered: tuple[int, ...]) -> None:
    """Registers behind any steps change the latency only."""
    a, b = pairs_to_test(SMALL[0], 100)
    got = adder_results(SMALL[0], frozenset(registered), a, b)
    assert (got == add_floats(SMALL[0], a, b, SMALL[0].width)).all()


@pytest.mark.parametrize("name", [*FLOATS, *SATURATING])
def test_hardware_has_the_words_of_the_model(name: str) -> None:
    operator = Operator.parse(name)
    kind = FORMATS.get(name.partition(":")[2], FORMATS["fp16"])
    a, b = pairs_to_test(kind, 80)
    got = hardware_results(operator.hardware, operator.latency, a, b, kind.width)
    assert (got == operator.combine(a, b, kind.width)).all()


def by_hand(a: int, b: int, width: int, *, signed: bool) -> int:
    """Return a saturating sum, computed with Python integers."""
    top = 1 << (width - 1)
    if not signed:
        return min(a + b, 2 * top - 1)
    total: int = sum((word ^ top) - top for word in (a, b))
    return max(-top, min(top - 1, total)) % (2 * top)


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("name", SATURATING)
def test_every_saturating_sum(name: str, width: int) -> None:
    operator, words = Operator.parse(name), np.arange(1 << width, dtype=np.uint64)
    a, b = (each.ravel() for each in np.meshgrid(words, words))
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    wanted = [by_hand(x, y, width, signed=operator.signed) for x, y in pairs]
    assert operator.combine(a, b, width).tolist() == wanted
    wide = operator.combine(a.astype(object), b.astype(object), width)
    assert wide.tolist() == wanted
    assert hardware_results(operator.hardware, 0, a, b, width).tolist() == wanted


def test_saturating_sums_of_widest_words() -> None:
    ends = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)
    for operator in map(Operator.parse, SATURATING):
        for shift in range(len(ends)):
            other = np.roll(ends, shift)
            pairs = zip(ends.tolist(), other.tolist(), strict=True)
            wanted = [by_hand(x, y, 64, signed=operator.signed) for x, y in pairs]
            assert operator.combine(ends, other, 64).tolist() == wanted


def test_operators_take_the_width_of_their_format() -> None:
    for name, width in (("add:fp32", 32), ("min:bf16", 16), ("max:fp16", 16)):
        program = tf.compile(tf.plan("3", "reduce"), operators=[name])
        tf.Fabric(program, width=width)
        with pytest.raises(tf.InputError, match=f"^Width must be {width} for operator {name}, n"):
            tf.Fabric(program, width=8)
