"""Elaborated modules are kept by all that they depend on."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.collective import Operator
from torusfabric.rtl.operator_unit import OperatorUnit
from torusfabric.rtl.router import Router
from torusfabric.simulation.engines.elaborated import Elaborated, elaborated, stated
from torusfabric.toolchain.cache import digest


def test_modules_are_elaborated_once(monkeypatch):
    """Whatever a fabric calls them; the sequencer, which is made of more than plain values, not."""
    fabric = tf.Fabric(tf.compile(tf.plan("4x3", "allreduce"), flits=2), width=8)
    first = {name: elaborated(name, make, 8) for name, make in fabric.netlist.modules.items()}
    again, begin = [], Elaborated.__init__
    monkeypatch.setattr(
        Elaborated, "__init__", lambda self, *given: again.append(given[0]) or begin(self, *given)
    )
    for name, make in fabric.netlist.modules.items():
        kept = elaborated(f"{name}_b", make, 8)
        assert kept.name == f"{name}_b"
        assert kept.pieces == first[name].pieces
        assert [*map(repr, kept.cells)] == [*map(repr, first[name].cells)]
        assert (kept.outputs, kept.banks) == (first[name].outputs, first[name].banks)
    assert not [name for name in again if name.startswith(("router", "endpoint", "combiner"))]


def test_all_values_count():
    """Long arrays to the last entry, and types; of an operator of one's own no more than a name."""

    def key(*given, **others):
        return digest(stated(partial(Router, *given, **others)))

    long = np.zeros(5000, int)
    other = long.copy()
    other[2500] = 1
    assert key(long) == key(long.copy()) != key(other)
    assert key(1) != key(True)
    assert key(()) != key([])
    add = Operator.parse("add")
    assert key(unit=OperatorUnit((add,))) != key(unit=OperatorUnit((Operator.parse("max"),)))
    for unknown in (replace(add, hardware=lambda m, a, b: a), lambda: None, object()):
        with pytest.raises(LookupError):
            key(unknown)
