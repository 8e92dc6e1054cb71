"""The example that solves a Poisson problem by conjugate gradients on a torus of elements."""

import itertools

import numpy as np
import pytest
from amaranth.sim import Simulator
from applications import (
    change_job,
    check_files,
    check_refusal,
    flip_lowest_bit,
    page_has_output,
    report_of,
    simulate_in_icarus,
)
from conjugate_gradient import arithmetic, element, model, run
from conjugate_gradient.element import Sizes
from vectors import needs_icarus

#: The smallest job, with several points in an element.
SMALL = ("--torus", "2x2", "--points", "4x6", "--iterations", "2")


@pytest.mark.parametrize(
    "words",
    [
        SMALL,
        ("--torus", "2x2", "--points", "2"),
        ("--torus", "2x3", "--points", "4x9", "--seed", "2"),
        pytest.param(("--torus", "3x2", "--points", "3x16"), marks=pytest.mark.long),
        pytest.param(("--torus", "4x8", "--points", "64"), marks=pytest.mark.long),
        pytest.param(("--torus", "8x8", "--points", "64"), marks=pytest.mark.long),
        pytest.param(("--torus", "4x4", "--points", "64"), marks=pytest.mark.long),
    ],
)
def test_solutions_and_cycles(capsys, words):
    """All points are those of the model, and each iteration takes the forecast cycles."""
    found = report_of(capsys, run, *words)
    assert found["points_wrong"] == 0
    assert found["cycles"] == found["forecast"]
    assert found["iteration_cycles"] == found["iteration_forecast"]
    if "--iterations" not in words:
        assert found["residual"] <= run.REDUCTION
        assert found["error"] < run.LARGEST_ERROR


def test_both_simulators_agree(capsys):
    """The compiled model and Amaranth's simulator find the same words and cycles."""
    words = ("--torus", "2x2", "--points", "2", "--iterations", "1")
    assert report_of(capsys, run, *words) == report_of(capsys, run, *words, "--engine", "amaranth")


@pytest.mark.long
def test_the_page_shows_the_output(capsys):
    """The command of the page prints what the page shows."""
    page_has_output(capsys, run, "conjugate-gradient.md")


@needs_icarus
def test_the_emitted_verilog_solves(tmp_path):
    """In Icarus Verilog, the emitted file gives the words of the model in the forecast cycles."""
    sizes = Sizes((2, 2), 2, 3, 2)
    program = run.make_program(sizes)
    grid = np.random.default_rng(3).normal(size=(4, 6)).astype(np.float32)
    blocks = model.split_grid(grid, sizes.sides)
    solution = model.iterate(blocks, sizes.sides, run.reduction_of(program), lambda r: len(r) <= 2)
    system = run.make_system(program, sizes)
    cycles, words = simulate_in_icarus(system, blocks.view(np.uint32).reshape(4, -1), tmp_path)
    assert cycles == run.forecast_cycles(system, sizes)
    assert (words == solution.x.view(np.uint32).reshape(4, -1)).all()


@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (8, 4)])
def test_the_model_solves(shape):
    """The model approaches the solution of the linear system, which the direct method finds."""
    grid = np.random.default_rng(5).normal(size=shape)
    size = grid.size
    place = {index: k for k, index in enumerate(itertools.product(*map(range, shape)))}
    matrix = 4 * np.eye(size)
    for (i, j), k in place.items():
        for other in ((i + 1, j), (i, j + 1)):
            if other in place:
                matrix[k, place[other]] = matrix[place[other], k] = -1
    exact = np.linalg.solve(matrix, grid.ravel()).reshape(shape)
    assert np.allclose(model.solve_directly(grid), exact)
    single = grid.astype(np.float32)[None]
    solution = model.iterate(single, (1, 1), lambda sums: sums, lambda r: len(r) <= size + 2)
    assert np.allclose(solution.x[0], exact, rtol=1e-4, atol=1e-5)


def test_further_iterations_change_nothing():
    """After the residual has become zero, the solution stays: a quotient by zero is zero."""
    grid = np.zeros((1, 2, 2), np.float32)
    grid[0, 0, 0] = 1
    few, many = (
        model.iterate(grid, (1, 1), lambda sums: sums, lambda r, most=most: len(r) <= most)
        for most in (20, 40)
    )
    assert (few.x == many.x).all()


def random_words(count):
    """Return words with all exponents, with close ones, near limits of the format, and special."""
    random = np.random.default_rng(1)
    words = random.integers(0, 1 << 32, count).astype(np.uint32)
    special = [0, 1 << 31, 1, 0x7FFFFF, 0x800000, 0xFFFFFF, 0x3F7FFFFF, 0x3F800000, 0xBF800000,
               0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000]  # fmt: skip
    exponents = [random.integers(*limits, count) << 23 for limits in ((100, 150), (60, 70))]
    near = [words & 0x807FFFFF | each.astype(np.uint32) for each in exponents]
    kinds = np.stack([words, *near, random.choice(np.array(special, np.uint32), count)])
    return kinds[random.integers(0, 4, count), np.arange(count)]


def simulate(design, testbench):
    """Run a testbench."""
    simulator = Simulator(design)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()


def assert_same_numbers(words, numbers):
    """Check that words are those of numbers, where these are not NaN."""
    found = np.array(words, np.uint32)
    nan = np.isnan(numbers)
    assert (found[~nan] == numbers.view(np.uint32)[~nan]).all()
    assert np.isnan(found[nan].view(np.float32)).all()


@pytest.mark.parametrize("count", [1500, pytest.param(100_000, marks=pytest.mark.long)])
def test_products(count):
    """Products are those of NumPy, but for results and operands below the normal numbers."""
    multiplier, found = arithmetic.Multiplier(), []
    a, b = random_words(2 * count).reshape(2, count)

    async def testbench(ctx):
        for number in range(count + arithmetic.MULTIPLY_CYCLES):
            if number < count:
                ctx.set(multiplier.a, int(a[number]))
                ctx.set(multiplier.b, int(b[number]))
            if number >= arithmetic.MULTIPLY_CYCLES:
                found.append(ctx.get(multiplier.product))
            await ctx.tick()

    simulate(multiplier, testbench)
    with np.errstate(all="ignore"):
        expected, plain = (multiply(a.view(np.float32), b.view(np.float32))
                           for multiply in (model.multiply, np.multiply))  # fmt: skip
    assert_same_numbers(found, expected)
    normal = [(abs(each.view(np.float32)) >= model.SMALLEST) for each in (a, b)]
    normal = normal[0] & normal[1] & (abs(plain) > model.SMALLEST)
    assert normal.sum() > count // 4
    assert (expected[normal] == plain[normal]).all()


@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=pytest.mark.long)])
def test_quotients(count):
    """Quotients are those of the model, and appear after the declared cycles."""
    divider, found = arithmetic.Divider(), []
    a, b = random_words(2 * count).reshape(2, count)

    async def testbench(ctx):
        for pair in zip(a.tolist(), b.tolist(), strict=True):
            ctx.set(divider.a, pair[0])
            ctx.set(divider.b, pair[1])
            ctx.set(divider.start, 1)
            await ctx.tick()
            ctx.set(divider.start, 0)
            for _ in range(arithmetic.DIVIDE_CYCLES - 1):
                assert not ctx.get(divider.done)
                await ctx.tick()
            assert ctx.get(divider.done)
            found.append(ctx.get(divider.quotient))

    simulate(divider, testbench)
    with np.errstate(all="ignore"):
        expected = model.divide(a.view(np.float32), b.view(np.float32))
    assert_same_numbers(found, expected)


@pytest.mark.parametrize("count", [1, 2, 5, 6, 7, 13, 40])
def test_sums_of_products(count):
    """Sums are formed in the order of the model, for any number of products, one after another."""
    unit, random = arithmetic.ProductSum(), np.random.default_rng(count)
    products = random.normal(size=(2, count)).astype(np.float32)

    async def testbench(ctx):
        for row in products:
            for number, word in enumerate(row.view(np.uint32).tolist()):
                ctx.set(unit.valid, 1)
                ctx.set(unit.product, word)
                ctx.set(unit.last, number == count - 1)
                await ctx.tick()
            ctx.set(unit.valid, 0)
            for _ in range(arithmetic.SUM_CYCLES - 1):
                assert not ctx.get(unit.done)
                await ctx.tick()
            assert ctx.get(unit.done)
            assert_same_numbers([ctx.get(unit.total)], model.add_products(row[None]))

    simulate(unit, testbench)


def test_a_wrong_word_is_found(capsys, monkeypatch):
    """The lowest bit of one point makes the command fail."""
    flip_lowest_bit(monkeypatch, run, 2, 3)
    assert run.main([*SMALL]) == 2
    assert "1 of 24 points are not what the numpy model computes" in capsys.readouterr().err


@pytest.mark.parametrize("late", ["job", "iteration"])
def test_a_wrong_cycle_is_found(capsys, monkeypatch, late):
    """A job and an iteration that take a cycle more than forecast make the command fail."""

    def delay(job):
        if late == "job":
            return job._replace(cycles=job.cycles + 1)
        return job._replace(ends=[end + (number == 3) for number, end in enumerate(job.ends)])

    change_job(monkeypatch, run, delay)
    assert run.main([*SMALL]) == 2
    assert "as forecast" in capsys.readouterr().err


@pytest.mark.parametrize("fault", ["sides", "borders", "sum", "stencil"])
def test_faults_are_found(capsys, monkeypatch, fault):
    """Sides for the wrong neighbours, values outside, and another order of sums are found."""
    if fault == "sides":
        right = Sizes.side_addresses
        monkeypatch.setattr(
            Sizes,
            "side_addresses",
            property(lambda self: [right.fget(self)[k] for k in (1, 0, 2, 3)]),
        )
    elif fault == "borders":
        monkeypatch.setattr(Sizes, "borders", property(lambda self: [0] * 4))
    elif fault == "sum":
        monkeypatch.setattr(model, "add_products", lambda products: products.sum(-1, np.float32))
    else:
        monkeypatch.setattr(element, "quadruple", lambda word: word)
    assert run.main([*SMALL]) == 2
    assert "numpy model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--torus", "4x4x4"), "a torus, such as 4x4, not 4x4x4"),
        (("--torus", "mesh:4x4"), "a torus, such as 4x4, not mesh"),
        (("--points", "30"), "such as 32x32, not 30"),
        (("--points", "8x8x8"), "multiples of the sides"),
        (("--points", "8xa"), "multiples of the sides"),
        (("--points", "0"), "multiples of the sides"),
        (("--iterations", "0"), "--iterations must be from 1 to 20000"),
    ],
)
def test_sizes_that_do_not_fit(capsys, words, message):
    """A bad size is refused in one line that says what to choose."""
    check_refusal(capsys, run, message, *words)


def test_files(tmp_path, capsys):
    """The design and the picture are written."""
    check_files(capsys, run, tmp_path, *SMALL)
