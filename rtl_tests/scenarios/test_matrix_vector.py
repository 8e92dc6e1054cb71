"""Examples: matrix-vector products by all-gather and all-reduce, and Jacobi iterations."""

import importlib.util
import re
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "matrix_vector.py"
PAGE = ROOT / "docs" / "tutorials" / "matrix-vector.md"


@pytest.fixture
def example(monkeypatch):
    """The example as a module, on a torus of four nodes."""
    spec = importlib.util.spec_from_file_location("matrix_vector", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "TORUS", "2x2")
    return module


def run_example(example, monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["matrix_vector.py", *words])
    example.main()
    return capsys.readouterr().out


def test_it_computes_what_numpy_computes(example, monkeypatch, capsys):
    """The example finds numpy's eigenvector, and reports its cycles."""
    printed = run_example(example, monkeypatch, capsys, "--iterations", "2")
    assert "all-gather: " in printed
    assert float(re.search(r"eigenvector of numpy: (\S+)", printed)[1]) > 0.99
    assert re.search(r"\d+ cycles for 2 iterations; in 16 of each", printed)


def test_a_wrong_word_is_found(example, monkeypatch, capsys):
    """A wrong start vector makes the example fail."""
    right = example.problem

    def other(seed):
        matrix, start = right(seed)
        return matrix, start + (np.arange(len(start)) == 5)

    expected = example.expected_vector
    monkeypatch.setattr(example, "expected_vector", lambda m, _, **o: expected(*other(1), **o))
    with pytest.raises(AssertionError, match="x must be what numpy computes"):
        run_example(example, monkeypatch, capsys, "--iterations", "1")


@pytest.mark.long
def test_sixteen_elements(example, monkeypatch, capsys):
    """The page shows the output of the example."""
    monkeypatch.setattr(example, "TORUS", "4x4")
    printed = run_example(example, monkeypatch, capsys)
    assert textwrap.indent(printed, " " * 4) in PAGE.read_text(encoding="utf-8")


JACOBI = ROOT / "examples" / "jacobi.py"


@pytest.fixture(scope="module")
def jacobi():
    """The Jacobi example as a module."""
    spec = importlib.util.spec_from_file_location("jacobi", JACOBI)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("way", "cycles"), [("exchange", (11, 16)), ("halo", (23, 16)), ("allgather", (71, 16))]
)
def test_jacobi_computes_what_numpy_computes(jacobi, way, cycles):
    squares, heat = jacobi.problem(seed=3)
    iteration = jacobi.Iteration(way)
    found, change = iteration.run(squares, heat, 2)
    assert (found == jacobi.expected(squares, heat, 2)).all()
    before, _ = iteration.run(squares, heat, 1)
    assert change == np.abs(found - before).max()
    assert iteration.predicted == cycles


def test_it_takes_the_predicted_cycles_in_hardware(jacobi, monkeypatch):
    """A 2x2 simulation takes the predicted cycles, though both ports of an axis reach one node."""
    monkeypatch.setattr(jacobi, "TORUS", (2, 2))
    iteration = jacobi.Iteration("exchange")
    squares, heat = np.arange(64).reshape(4, 4, 4), np.zeros((4, 4, 4), int)
    found, _ = iteration.run(squares, heat, 2)
    assert (found == jacobi.expected(squares, heat, 2)).all()
    assert iteration.simulate() == iteration.predicted
