"""Cores: every node has a port of its own, and the address map lists the address of each block."""

import pytest
from core_bench import read_as_early_as_may_be
from helpers import fabric_of, random_messages
from verilog_bench import check_silent

from torusfabric import verilog


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


@pytest.mark.parametrize(
    ("collective", "algorithm", "options"),
    [("allgather", "matching", {}), ("alltoall", "matching", {"flits": 2}),
     ("allreduce", "matching", {"flits": 9}), ("broadcast", "max-flow", {"flits": 4})],
)  # fmt: skip
def test_words_are_read_in_the_cycle_of_done_and_in_that_of_a_start(collective, algorithm, options):
    """Received words can be read in the cycle of `done` and in the cycle of the next start."""
    fabric = fabric_of("3x3", collective, algorithm, top="core", **options)
    messages = random_messages(fabric, 1)
    words, receives = fabric.delivered(messages)
    for found in read_as_early_as_may_be(fabric, messages):
        assert (found[receives] == words[receives]).all()


def test_numbers_of_what_arrives_fit():
    """The arrival number of a core without memories counts through all steps and flits."""
    outputs = fabric_of("3x3", "allgather", "hamiltonian", flits=6, top="core").netlist.outputs
    assert (outputs["tx_address"], outputs["rx_address"]) == (2, (4 * 3 - 1).bit_length())
