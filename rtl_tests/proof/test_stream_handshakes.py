"""Handshakes of streams are proved by induction. For other mutants see `test_mutants.py`."""

import hardware_mutants as mutants
import pytest
from netlist_mutants import INVERTED, LATE, with_netlist

from torusfabric.adapters.streams.claims import stream_harnesses
from torusfabric.proof.solver import prove_harness
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache

pytestmark = pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")


def harnesses(kind, fabric=None):
    """Return the harnesses of the stream modules of a fabric of a kind, by name."""
    design = mutants.design_of(fabric or mutants.hardware(kind))
    return {each.name: each for each in stream_harnesses(mutants.hardware(kind), design)}


@pytest.mark.parametrize("module", ["loader", "unloader"])
def test_both_ends_of_three_modes_are_proved(module):
    """Loader and unloader of three modes are proved; a fourth encodable mode is excluded."""
    assert prove_harness(harnesses("barriers")[module], Cache()).failed is None


@pytest.mark.long
@pytest.mark.parametrize("kind", ["streams", "commands", "barriers", "clocks", "streams of beats"])
def test_all_handshakes_are_proved(kind):
    for harness in harnesses(kind).values():
        assert prove_harness(harness, Cache()).failed is None


@pytest.mark.parametrize("module", ["loader", "unloader", "stream_control"])
@pytest.mark.parametrize("kind", [INVERTED, LATE])
def test_a_mutant_of_a_handshake_is_refuted(kind, module):
    """A mutant of a handshake is refuted with the name of the failed claim and waves."""
    fabric = mutants.hardware("streams")
    every = mutants.sampled(fabric.netlist, 40, 2, of=module)
    mutation = next(each for each in every if each.kind == kind)
    found = prove_harness(
        harnesses("streams", with_netlist(fabric, mutation.change))[module]
    ).failed
    assert found is not None
    assert found.signal
    assert found.wave
