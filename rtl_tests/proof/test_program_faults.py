"""Faults in the program are refuted, with waves. For faults in hardware see `test_mutants.py`."""

from dataclasses import replace

import hardware_mutants as mutants
import numpy as np
import pytest
from helpers import misrouted, with_fields

import torusfabric as tf
from torusfabric.program import Action, Point
from torusfabric.proof import prove
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache

pytestmark = pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")


def test_a_refuted_run_has_waves_with_its_words():
    faulty = tf.Fabric(misrouted(mutants.hardware("tables").program), width=3)
    wrong = prove(faulty, cache=Cache()).counterexample
    assert wrong.signal.startswith("received word")
    assert "tx_0_0" in wrong.wave
    assert "word_1" in wrong.wave


def turned(field):
    """Return a field with each positive address reduced by one."""
    return replace(field, values=np.where(field.values > 0, field.values - 1, field.values))


def swapped(field):
    """Return the field of an out-port, moved to another out-port."""
    return replace(field, point=Point(Action.SELECT, 3 - field.point.number))


PROGRAMS = {
    "a setting selects another source": (Action.SELECT, swapped),
    "a reader reads the word before": (Action.READ, turned),
    "memories store a word too low": (Action.WRITE, turned),
    "rows come in another order": (
        Action.SELECT, lambda field: replace(field, values=field.values[::-1].copy())
    ),
    "memories store too early": (
        Action.WRITE, lambda field: replace(field, delay=field.delay - 1)
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("what", PROGRAMS)
def test_a_fault_in_the_program_is_refuted(what):
    program = with_fields(mutants.hardware("tables").program, *PROGRAMS[what])
    assert prove(tf.Fabric(program, width=3), cache=Cache()).counterexample is not None
