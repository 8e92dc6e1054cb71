"""The example that multiplies matrices on a torus of elements."""

import re

import numpy as np
import pytest
from applications import change_job, check_files, check_refusal, page_has_output, report_of
from matmul import run
from matmul.element import MultiplierElement


@pytest.mark.parametrize(
    "words",
    [
        ("--torus", "2x2", "--block", "4", "--multipliers", "1"),
        ("--torus", "3x3", "--block", "8", "--multipliers", "2"),
        ("--torus", "2x2", "--block", "8", "--multipliers", "4", "--panel", "4"),
        pytest.param(("--torus", "8x8"), marks=pytest.mark.long),
        pytest.param(("--torus", "4x4", "--block", "32", "--multipliers", "8"),
                     marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_products_and_cycles(capsys, words):
    """The product is right, and takes the forecast cycles."""
    found = report_of(capsys, run, *words)
    assert found["cycles"] == found["forecast"]


def test_the_page_shows_the_output(capsys):
    """The command of the page prints what the page shows; nine tenths of the cycles multiply."""
    printed = page_has_output(capsys, run, "matrix-product.md", "--torus", "4x4")
    assert float(re.search(r"use +([0-9.]+)", printed)[1]) >= 0.9


def test_a_wrong_sum_is_found(capsys, monkeypatch):
    """A product of one element that is off by one makes the command fail."""

    def add_one(job):
        job.words[2, 5] += 1
        return job

    change_job(monkeypatch, run, add_one)
    assert run.main(["--torus", "2x2", "--block", "4", "--multipliers", "1"]) == 2
    assert "must be what numpy computes" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["blocks", "buffers"])
def test_faults_are_found(capsys, monkeypatch, name):
    """Blocks at the wrong elements, and reads of the other buffer, are found."""
    if name == "blocks":
        monkeypatch.setattr(run, "blocks_of", _transposed)
    else:
        address = MultiplierElement.panel_address
        monkeypatch.setattr(
            MultiplierElement, "panel_address",
            lambda self, buffer, *where: address(self, ~buffer, *where),
        )  # fmt: skip
    assert run.main(["--torus", "2x2", "--block", "4", "--multipliers", "1"]) == 2
    assert "numpy" in capsys.readouterr().err


def _transposed(matrix, side):
    block = len(matrix) // side
    parts = matrix.reshape(side, block, side, block).swapaxes(1, 2).swapaxes(0, 1)
    return np.ascontiguousarray(parts).reshape(side * side, block, block)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--torus", "4x5"), "equal sides, such as 4x4,"),
        (("--block", "12"), "power of two"),
        (("--block", "8", "--multipliers", "8"), "twice --multipliers"),
        (("--block", "16", "--panel", "32"), "at most --block"),
        (("--torus", "9x9", "--block", "64"), "fewer than 512 rows"),
        (("--torus", "2x2", "--block", "4", "--multipliers", "2"), "larger --block"),
    ],
)
def test_sizes_that_do_not_fit(capsys, words, message):
    """A bad size is refused in one line that says what to choose."""
    check_refusal(capsys, run, message, *words)


def test_files(tmp_path, capsys):
    """The design and the picture are written."""
    check_files(capsys, run, tmp_path, "--torus", "2x2", "--block", "4", "--multipliers", "1")
