"""Cores: every node has a port of its own, and the address map lists where each block lies."""

import pytest
from core_bench import check_core
from helpers import fabric_of, few
from verilog_bench import check_silent

from torusfabric import verilog
from torusfabric.collective import Operator

CASES = [
    ("3x3", "allgather", "matching", 1, {}),
    ("3x4", "allgather", "matching", 4, {"chunks": 2}),
    ("3x3", "alltoall", "matching", 3, {}),
    ("3x3", "allgather", "bufferless", 2, {}),
    ("3x3", "broadcast", "max-flow", 2, {"root": 4}),
    ("3x3", "scatter", "matching", 2, {}),
    ("3x3", "gather", "matching", 1, {}),
    ("3x3", "reduce", "max-flow", 3, {}),
    ("3x3", "reduce-scatter", "matching", 1, {}),
    ("3x3", "reduce-scatter", "matching", 5, {}),
    ("2x3", "allreduce", "matching", 12, {}),
]


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "flits", "options"), few(5, [*CASES])
)
def test_core(topology, collective, algorithm, flits, options):
    """What is written where the address map says comes out where it says, run after run."""
    sums = (
        {"operator": Operator.parse("min")}
        if collective.startswith(("reduce", "allreduce"))
        else {}
    )
    fabric = fabric_of(topology, collective, algorithm, width=7, flits=flits, top="core",
                       **sums, **options)  # fmt: skip
    check_core(fabric)


@pytest.mark.parametrize(
    ("collective", "algorithm", "sent", "received"),
    [
        ("allgather", "matching", 1, 9),
        ("alltoall", "matching", 9, 9),
        ("reduce", "max-flow", 1, 1),
        ("reduce-scatter", "matching", 9, 1),
        ("allreduce", "matching", 9, 9),
    ],
)
def test_linters_accept_a_core_and_its_address_map_lists_all_blocks(
    tmp_path, collective, algorithm, sent, received
):
    fabric = fabric_of("3x3", collective, algorithm, top="core")
    verilog.write(fabric, tmp_path, command="torusfabric verilog ..")
    check_silent(tmp_path)
    blocks = fabric.address_map()
    assert [len(row) for row in blocks["sent"]] == [sent] * 9
    for row in blocks["received"]:
        assert len({entry and tuple(entry) for entry in row}) == len(row) == received


@pytest.mark.parametrize("root", [0, 3])
@pytest.mark.parametrize(
    ("topology", "algorithm", "flits"),
    [("3x3", "max-flow", 2), ("arrowhead:1", "wormhole-forest", 4)],
)
def test_core_of_any_root(topology, algorithm, flits, root):
    """The root is sampled at the start; a node has one bank for each chunk."""
    fabric = fabric_of(topology, "broadcast", algorithm, width=7, flits=flits, root="any",
                       top="core")  # fmt: skip
    check_core(fabric, root=root)


def test_numbers_of_what_arrives_fit():
    """Where all in-ports store at once, what arrives is counted through all steps of all flits."""
    outputs = fabric_of("3x3", "allgather", "hamiltonian", flits=6, top="core").netlist.outputs
    assert (outputs["tx_address"], outputs["rx_address"]) == (2, (4 * 3 - 1).bit_length())
