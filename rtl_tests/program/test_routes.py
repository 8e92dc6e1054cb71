"""Where waves put blocks, against what each in-port receives in each step."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from helpers import fabric_of, few, program_of

from torusfabric.errors import InputError
from torusfabric.program import RouteMap

SIZES_3D = ["3x3x3", "3x3x4", "4x3x3", "3x5x3", "3x6x4", "6x6x3", "6x6x4", "6x6x6", "6x9x5"]
SIZES_4D = ["4x4x2x4", "4x4x4x4", "4x4x4x5", "4x6x4x4"]


def received(program):
    """The block at each in-port in each step, -1 for none: an array (nodes, ports, steps)."""
    topology = program.topology
    blocks = np.full((topology.nodes, topology.ports, program.loop.rows), -1)
    for step, transfers in enumerate(program.schedule.rounds()):
        port = transfers.hops[:, 0]
        there = topology.neighbours[transfers.source, port], topology.opposite[port]
        blocks[(*there, step)] = transfers.payload.ids
    return blocks


def located(program, mapped=None):
    """Of every block that nodes receive: its number, and its memory and base in each node."""
    layout, nodes = program.layout, np.arange(program.topology.nodes)[:, None]
    index = np.arange(layout.recv_blocks)[None, :]
    mapped = mapped or program.form.receive_map
    memory, base = mapped.locate(nodes, *divmod(index, layout.part_chunks))
    return layout.received_block(nodes, index), memory, base


def check_places(program, mapped=None):
    """Every node finds every block where that block is what arrives there."""
    nodes = np.arange(program.topology.nodes)[:, None]
    blocks, memory, base = located(program, mapped)
    assert (base >= 0).all()
    own = program.blocks.origin(blocks) == nodes
    assert ((memory >= program.ports) == own).all()
    port = np.where(own, 0, memory)
    held = received(program)[np.broadcast_to(nodes, port.shape), port, base]
    assert (held == blocks)[~own].all()
    assert (memory - program.ports == program.blocks.chunk(blocks))[own].all()
    if mapped is None:
        check_first(program, memory, base)


def check_first(program, memory, base):
    """Of several routes by which a block comes to a node, the map names the first."""
    mapped = program.form.receive_map
    if not isinstance(mapped, RouteMap):
        return
    nodes, index = np.indices(base.shape)
    part, chunk = np.divmod(index, program.layout.part_chunks)
    first, port = np.where(nodes == part, 1, 0), memory
    for route in reversed(mapped.routes):
        step = np.where(chunk == route.chunk, route.step(nodes, part), 0)
        comes = (nodes != part) & (step >= 1) & (step <= mapped.steps)
        first, port = np.where(comes, step, first), np.where(comes, route.port[nodes], port)
    assert (base == first - 1).all()
    assert (memory == port).all()


@pytest.mark.parametrize("sides", few(32, [*product(range(2, 10), repeat=2)], tuples=True))
def test_one_packet_on_two_axes(sides):
    """Messages that pass through nodes beside a cycle are found as well, and nothing is lost."""
    program = program_of("x".join(map(str, sides)), "allgather", "one-packet")
    check_places(program)
    # Nodes are passed through only where special columns were put in, for want of an even side.
    tails = max(int(route.tail.max()) for route in program.form.receive_map.routes)
    assert tails in (0, 3)
    assert not tails or any(side % 2 and side >= 5 for side in sides)


@pytest.mark.parametrize("name", few(7, [*SIZES_3D, *SIZES_4D], tuples=True))
def test_one_packet_on_more_axes(name):
    """The same on three and four axes."""
    check_places(program_of(name, "allgather", "one-packet"))


@pytest.mark.parametrize(
    "name", ["2x2", "5", "5x5", "6x7", "8x8", "9x5", "3x4x5", "4x4x4", "3x3x3x3", "4x4x4x4"]
)
def test_hamiltonian(name):
    """Cycles through all nodes: no tails, two routes a chunk."""
    program = program_of(name, "allgather", "hamiltonian")
    check_places(program)
    assert len(program.form.receive_map.routes) == program.ports
    assert not any(route.tail.any() for route in program.form.receive_map.routes)


def test_a_place_that_is_off_by_one_is_seen():
    """The comparison is not blind."""
    program = program_of("5x5", "allgather", "one-packet")
    intact = program.form.receive_map
    assert isinstance(intact, RouteMap)
    first, *others = intact.routes
    later = replace(first, entry=first.entry + (first.entry >= 0))
    with pytest.raises(AssertionError):
        check_places(program, replace(intact, routes=(later, *others)))


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
    """Each node has one entry for each block of others, its first arrival; repeats are null."""
    fabric = fabric_of(topology, "allgather", algorithm, top="core")
    program, arrivals = fabric.program, fabric.address_map()["arrivals"]
    arrived, chunks, nodes = received(program), program.schedule.chunks, fabric.nodes
    repeats = 0
    for node in range(nodes):
        had = {(node, chunk) for chunk in range(chunks)}
        for step, port in product(range(program.loop.rows), range(fabric.ports)):
            block = arrived[node, port, step]
            name = program.blocks.name(block) if block >= 0 else None
            repeats += name in had
            assert arrivals[node][port][step] == (None if name in had else name)
            had |= {name} - {None}
        assert len(had) == nodes * chunks
    if algorithm == "hamiltonian":
        # What runs either way round an even cycle meets in the last step.
        assert repeats == (0 if nodes % 2 else nodes * chunks)
    else:
        assert repeats == (arrived >= 0).sum() - nodes * (nodes - 1)


@pytest.mark.parametrize(("topology", "algorithm"), ALL)
def test_a_host_reads_each_block_from_one_place(topology, algorithm):
    """No two blocks of a node share a place."""
    program = program_of(topology, "allgather", algorithm)
    _, memory, base = located(program)
    for row in np.stack([memory, base], axis=-1):
        assert len(np.unique(row, axis=0)) == program.layout.recv_blocks


@pytest.mark.parametrize("name", ["3x4x5", "4x4x4", "3x3x3x3"])
def test_where_one_packet_does_not_apply(name):
    """These sizes are refused, not served badly."""
    with pytest.raises(InputError, match="Algorithm one-packet needs "):
        program_of(name, "allgather", "one-packet")
