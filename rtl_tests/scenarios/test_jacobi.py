"""The example of a Jacobi iteration by an exchange, a halo and an all-gather."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "jacobi.py"


@pytest.fixture(scope="module")
def example():
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("jacobi", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("way", "cycles"), [("exchange", (11, 16)), ("halo", (23, 16)), ("allgather", (71, 16))]
)
def test_it_computes_what_numpy_computes(example, way, cycles):
    squares, heat = example.problem(seed=3)
    iteration = example.Iteration(way)
    found, change = iteration.run(squares, heat, 2)
    assert (found == example.expected(squares, heat, 2)).all()
    before, _ = iteration.run(squares, heat, 1)
    assert change == np.abs(found - before).max()
    assert iteration.predicted == cycles


def test_it_takes_the_predicted_cycles_in_hardware(example, monkeypatch):
    """On a torus of four nodes, where both ports of an axis lead to the same neighbour."""
    monkeypatch.setattr(example, "TORUS", (2, 2))
    iteration = example.Iteration("exchange")
    squares, heat = np.arange(64).reshape(4, 4, 4), np.zeros((4, 4, 4), int)
    found, _ = iteration.run(squares, heat, 2)
    assert (found == example.expected(squares, heat, 2)).all()
    assert iteration.simulate() == iteration.predicted
