"""The example that transforms a cube of points on a torus of elements."""

import numpy as np
import pytest
from applications import (
    change_job,
    check_files,
    check_refusal,
    flip_lowest_bit,
    page_has_output,
    report_of,
    simulate_in_icarus,
)
from fft3d import element, model, run
from fft3d.layout import Layout, place_points
from vectors import needs_icarus

import torusfabric as tf

#: The smallest transform.
SMALL = ("--points", "8", "--torus", "2x2x2")


@pytest.mark.parametrize(
    "words",
    [
        (*SMALL, "--pieces", "1"),
        (*SMALL, "--lanes", "4", "--seed", "2"),
        ("--points", "16", "--torus", "4x4x4"),
        pytest.param(("--points", "32", "--lanes", "4"), marks=pytest.mark.long),
        pytest.param(("--points", "32", "--lanes", "8"), marks=pytest.mark.long),
    ],
)
def test_transforms_and_cycles(capsys, words):
    """All points are those of the model, and the transform takes the forecast cycles."""
    found = report_of(capsys, run, *words)
    assert found["points_wrong"] == 0
    assert found["cycles"] == found["forecast"]


@pytest.mark.long
@pytest.mark.parametrize(("points", "torus", "goal"), [(32, "4x4x4", 1365), (64, "8x8x8", 2380)])
def test_published_times(capsys, points, torus, goal):
    """At 250 MHz, a transform takes less than the published time."""
    found = report_of(capsys, run, "--points", str(points), "--torus", torus)
    assert found["cycles"] == found["forecast"] <= goal
    assert found["microseconds"] < found["published_microseconds"]


@pytest.mark.long
def test_the_page_shows_the_output(capsys):
    """The command of the page prints what the page shows."""
    page_has_output(capsys, run, "fft.md", "--points", "32", "--torus", "4x4x4")


def test_elements_that_wait(capsys):
    """If sending takes longer than runs, the forecast is a lower bound."""
    found = report_of(capsys, run, "--points", "16", "--torus", "2x2x2", "--pieces", "2")
    assert not found["forecast_exact"]
    assert found["cycles"] > found["forecast"]


@pytest.mark.long
def test_both_simulators_agree(capsys):
    """Amaranth's simulator finds the same words and cycles."""
    assert report_of(capsys, run, *SMALL) == report_of(capsys, run, *SMALL, "--engine", "amaranth")


@pytest.mark.parametrize("points", [2, 4, 8, 64])
def test_the_model_is_a_transform(points):
    """The fixed-point transform is that of numpy, but for roundings."""
    row = np.random.default_rng(3).integers(-23000, 23000, (2, 5, points))
    found, exact = model.transform_rows(row), np.fft.fft(row[0] + 1j * row[1]) / points
    assert abs(found[0] + 1j * found[1] - exact).max() < 4


def test_an_impulse_becomes_constant():
    """The transform of an impulse at the origin has the same value everywhere."""
    cube = np.zeros((2, 8, 8, 8), int)
    cube[0, 0, 0, 0] = 512 * 30
    found = model.transform_cube(cube)
    assert (found[0] == 30).all()
    assert (found[1] == 0).all()


@pytest.mark.parametrize("layout", [Layout(8, 2, 2, 2), Layout(32, 4, 2, 4), Layout(64, 8, 4, 2)])
def test_every_point_has_a_place(layout):
    """Each point of the cube is in one place of one memory, before and after the transform."""
    for places in place_points(layout):
        numbers = (places.x * layout.points + places.y) * layout.points + places.z
        assert (np.sort(numbers, axis=None) == np.arange(layout.points**3)).all()


def test_a_wrong_word_is_found(capsys, monkeypatch):
    """One wrong bit of one point makes the command fail."""
    flip_lowest_bit(monkeypatch, run, 2, 5)
    assert run.main([*SMALL]) == 2
    assert "1 of 512 points are not" in capsys.readouterr().err


def test_a_wrong_factor_is_found(capsys, monkeypatch):
    """Elements with one wrong twiddle factor give wrong points."""

    def other_factors(points):
        real, imaginary = model.twiddles(points)
        return real + 8 * (np.arange(len(real)) == 1), imaginary

    monkeypatch.setattr(element, "twiddles", other_factors)
    assert run.main([*SMALL]) == 2
    assert "points are not what" in capsys.readouterr().err


def test_a_wrong_cycle_is_found(capsys, monkeypatch):
    """A transform that takes a cycle more than forecast makes the command fail."""
    change_job(monkeypatch, run, lambda job: job._replace(cycles=job.cycles + 1))
    assert run.main([*SMALL]) == 2
    assert "takes 201 cycles, not 200 as forecast" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--torus", "4x4"), "equal sides, such as 4x4x4,"),
        (("--torus", "3x3x3"), "powers of two"),
        (("--points", "24"), "power of two"),
        (("--points", "16", "--torus", "8x8x8"), "at least 64"),
        (("--points", "4", "--torus", "2x2x2"), "at least 8"),
        (("--lanes", "1"), "at least 2"),
        (("--lanes", "4", "--pieces", "4"), "at most 8"),
    ],
)
def test_sizes_that_do_not_fit(capsys, words, message):
    """A bad size is refused in one line that says what to choose."""
    check_refusal(capsys, run, message, *words)


def test_files(tmp_path, capsys):
    """The design and the picture are written."""
    check_files(capsys, run, tmp_path, *SMALL)


@pytest.mark.parametrize("side", [8, 32, pytest.param(512, marks=pytest.mark.long)])
def test_exchanges_of_a_larger_cube(side):
    """A whole row of points at each node is exchanged along an axis at 5 cycles above the limit."""
    exchange = tf.plan(f"{side}x{side}", "alltoall@0", algorithm="necklace")
    assert tf.compile(exchange, flits=2).cycles() == side**2 // 4 + 5


@needs_icarus
def test_the_emitted_verilog_transforms(tmp_path):
    """In Icarus Verilog, the emitted file gives the words of the model in the forecast cycles."""
    layout = Layout(8, 2, 2, 2)
    system, (before, after) = run.make_system(layout), place_points(layout)
    cube = np.random.default_rng(5).integers(-23000, 23000, (2, 8, 8, 8))
    cycles, words = simulate_in_icarus(system, run.pack_words(cube, before), tmp_path)
    assert cycles == run.forecast_cycles(system, layout)
    assert (words == run.pack_words(model.transform_cube(cube), after)).all()
