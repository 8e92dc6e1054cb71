"""Fabrics in Amaranth's simulator equal the executed program in words and cycles."""

import pytest
from helpers import (
    check_run,
    delay_end,
    fabric_of,
    misrouted,
    program_of,
)

from torusfabric import Fabric
from torusfabric.errors import InputError, WorkFailed
from torusfabric.simulation.simulate import simulate


@pytest.mark.parametrize("gated", [True, False])
def test_resting_clocks_change_nothing(gated):
    """Stopped clocks of idle nodes change neither words nor cycles."""
    check_run(fabric_of("3x4", "allgather", "hamiltonian", flits=4), gated=gated)
    check_run(fabric_of("arrowhead:2", "broadcast", "spanning-tree", flits=2), gated=gated)
    check_run(fabric_of("3x3", "alltoall", "necklace", flits=3), gated=gated)


@pytest.mark.parametrize(("width", "wanted"), [(0, 0), (1025, 1025)])
def test_width_out_of_range(width, wanted):
    """A width out of range is refused with one line."""
    program = program_of("4x4", "allgather", "hamiltonian")
    with pytest.raises(InputError, match=rf"^Width must be from 1 to 1024 bits, not {wanted}$"):
        Fabric(program, width=width)


@pytest.mark.parametrize("algorithm", ["hamiltonian", "matching"])
def test_flipped_crossbar_setting_is_seen(algorithm):
    """A single wrong crossbar setting makes words wrong, and the report names the first."""
    report = simulate(fabric_of("4x4", "allgather", algorithm, flits=2, fault=misrouted))
    assert report.words_wrong > 0
    assert not report.passed
    fault = report.first_wrong
    assert fault.expected != fault.got
    assert f"node {fault.node} holds" in str(fault)


def test_fabric_that_never_ends_is_given_up():
    """A fabric that takes longer than predicted is a failure, not a hang."""
    fabric = fabric_of("3x3", "allgather", "hamiltonian", flits=4)
    delay_end(fabric)
    with pytest.raises(
        WorkFailed, match=r"^The fabric was busy .* but runs of this length end after 13"
    ):
        simulate(fabric)
