"""Programs of all-gathers on tori of many sizes: each node finds each block."""

from itertools import product

import numpy as np
import pytest
from helpers import fabric_of, few, program_of

from torusfabric.errors import InputError

SIZES_3D = ["3x3x3", "3x3x4", "4x3x3", "3x5x3", "3x6x4", "6x6x3", "6x6x4", "6x6x6", "6x9x5"]
SIZES_4D = ["4x4x2x4", "4x4x4x4", "4x4x4x5", "4x6x4x4"]


def received(program):
    """The block at each in-port in each step, -1 for none: an array (nodes, ports, steps)."""
    topology = program.topology
    blocks = np.full((topology.nodes, topology.ports, program.loop.n_rows), -1)
    for step, transfers in enumerate(program.schedule.rounds()):
        port = transfers.hops[:, 0]
        there = topology.neighbours[transfers.source, port], topology.opposite[port]
        blocks[(*there, step)] = transfers.payload.ids
    return blocks


def check_words(program):
    """Check that every node receives the different words of all nodes."""
    shape = program.topology.nodes, program.send_words
    words = np.random.default_rng(1).permutation(shape[0] * shape[1]).reshape(shape)
    assert (program.execute(words) == words.ravel()).all()


@pytest.mark.parametrize("sides", few(32, [*product(range(2, 10), repeat=2)], tuples=True))
def test_one_packet_on_two_axes(sides):
    """One-packet all-gathers on two axes deliver every message, also those that pass through nodes
    beside a cycle.
    """
    check_words(program_of("x".join(map(str, sides)), "allgather", "one-packet"))


@pytest.mark.parametrize("name", few(7, [*SIZES_3D, *SIZES_4D], tuples=True))
def test_one_packet_on_more_axes(name):
    """One-packet all-gathers on three and four axes deliver every message."""
    check_words(program_of(name, "allgather", "one-packet"))


@pytest.mark.parametrize(
    "name", ["2x2", "5", "5x5", "6x7", "8x8", "9x5", "3x4x5", "4x4x4", "3x3x3x3", "4x4x4x4"]
)
def test_hamiltonian(name):
    """All-gathers along Hamiltonian cycles deliver every message."""
    check_words(program_of(name, "allgather", "hamiltonian"))


ALL = [
    ("4x6", "hamiltonian"),
    ("3x3x3", "hamiltonian"),
    ("3x3", "one-packet"),
    ("4x4", "one-packet"),
    ("5x5", "one-packet"),
    ("7x5", "one-packet"),
    ("3x3x4", "one-packet"),
    ("4x4x2x4", "one-packet"),
]


@pytest.mark.parametrize(("topology", "algorithm"), few(4, [*ALL]))
def test_a_core_names_each_block_once(topology, algorithm):
    """The address map has one entry for each block at a node; repeated arrivals are null."""
    fabric = fabric_of(topology, "allgather", algorithm, top="core")
    program, arrivals = fabric.program, fabric.address_map()["arrivals"]
    arrived, chunks, nodes = received(program), program.schedule.chunks, fabric.nodes
    repeats = 0
    for node in range(nodes):
        had = {(node, chunk) for chunk in range(chunks)}
        for step, port in product(range(program.loop.n_rows), range(fabric.ports)):
            block = arrived[node, port, step]
            name = program.blocks.block_entry(block) if block >= 0 else None
            repeats += name in had
            assert arrivals[node][port][step] == (None if name in had else name)
            had |= {name} - {None}
        assert len(had) == nodes * chunks
    if algorithm == "hamiltonian":
        # Blocks that travel both ways around an even cycle meet in the last step.
        assert repeats == (0 if nodes % 2 else nodes * chunks)
    else:
        assert repeats == (arrived >= 0).sum() - nodes * (nodes - 1)


@pytest.mark.parametrize("name", ["3x4x5", "4x4x4", "3x3x3x3"])
def test_where_one_packet_does_not_apply(name):
    """Sizes that one-packet cannot serve are refused."""
    with pytest.raises(InputError, match="Algorithm one-packet needs "):
        program_of(name, "allgather", "one-packet")
