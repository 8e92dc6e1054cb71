"""Fabrics of tables: planned for one node, simulated for all, with the right words and cycles."""

import numpy as np
import pytest
from helpers import (
    expected_words,
    fabric_of,
    plan,
    program_of,
)

import torusfabric as tf
from torusfabric import verilog
from torusfabric.errors import InputError
from torusfabric.fpga.synthesis.synthesize import synthesize
from torusfabric.program import IDLE, Action, Order
from torusfabric.program.timing import MEMORY_AGE

SCHEDULES = [
    *((name, "allgather", "matching", {}) for name in ("3x3", "4x4", "5x5", "4x6", "3x3x3")),
    ("4x4", "allgather", "matching", {"chunks": 4}),
    ("5x5", "allgather", "matching", {"latency": 3}),
    ("8x8", "allgather", "matching", {}),
    ("arrowhead:1", "allgather", "matching", {}),
    ("arrowhead:2", "allgather", "matching", {"latency": 2}),
    ("2", "allgather", "matching", {}),
    ("5x5", "allgather", "bufferless", {}),
    ("4x4", "allgather", "bufferless", {"chunks": 2}),
    ("3x4x5", "allgather", "bufferless", {}),
    ("3x3", "allgather", "necklace", {}),
    ("5x5", "allgather", "necklace", {"latency": 3}),
    ("2x2x2x2", "allgather", "necklace", {}),
    *((name, "alltoall", "matching", {}) for name in ("3x3", "4x4", "4x6", "3x3x3", "arrowhead:2")),
    ("8x8", "alltoall", "matching", {}),
    ("4x4", "alltoall", "matching", {"chunks": 2, "latency": 2}),
    ("5x5", "alltoall", "necklace", {}),
    ("2x2x2x2", "alltoall", "necklace", {}),
]


@pytest.mark.parametrize("flits", [1, 2, 5])
@pytest.mark.parametrize(("topology", "collective", "algorithm", "options"), SCHEDULES)
def test_plan_is_what_a_node_can_do(topology, collective, algorithm, options, flits):
    """A word is read after it was written and before its address is reused.

    For each length every node receives all its words, whatever the order in which they are sent.
    """
    schedule = plan(topology, collective, algorithm, **options)
    program = tf.compile(schedule, flits=flits * schedule.chunks)
    assert program.loop.n_variants == 1
    size = program.topology.nodes, program.send_words
    messages = np.random.default_rng(1).integers(0, 1 << 30, size)
    assert (program.execute(messages) == expected_words(program, messages)[0]).all()
    loop, block = program.loop, program.block_flits
    cycles = 1 if loop.order is Order.FLIT else block
    for number, memory in enumerate(program.memories):
        if memory.own:
            continue
        written: dict[int, list[int]] = {}
        for step, address in enumerate(loop.point_values(Action.WRITE, number)[:, 0].tolist()):
            if address >= 0:
                written.setdefault(address, []).append(step)
        for reader in range(loop.sources.n_readers):
            there = loop.point_values(Action.MEMORY, reader)[:, 0] == number
            read = loop.point_values(Action.READ, reader)[:, 0]
            for step in np.flatnonzero(there & (read >= 0)).tolist():
                before = [w for w in written[read[step]] if w < step]
                assert (step - max(before)) * cycles >= MEMORY_AGE
                assert not any((step - w) * cycles in (1, 2) for w in written[read[step]])
        assert program.depth[0, number] == len(written) * block
    layout = program.layout
    part, chunk = np.mgrid[: layout.recv_parts, : layout.part_chunks]
    memory, base = program.form.receive_map.locate(0, part, chunk)
    assert (base >= 0).all()
    for number, address in zip(memory.ravel().tolist(), base.ravel().tolist(), strict=True):
        if not program.memories[number].own:
            assert (loop.point_values(Action.WRITE, number) == address).any()


@pytest.mark.parametrize("topology", ["4x4", "5x5", "8x8", "3x4x5"])
@pytest.mark.parametrize("flits", [1, 4])
def test_bufferless_router_has_no_memory(topology, flits):
    """A bufferless table reads no memory but the send memory."""
    program = program_of(topology, "allgather", "bufferless", flits=flits)
    loop = program.loop
    assert loop.sources.delayed == ()
    assert loop.order is Order.FLIT
    assert [memory.own for memory in program.memories] == [False] * program.ports + [True]
    (read,) = loop.fields_of_action(Action.MEMORY)
    assert set(read.values.ravel().tolist()) <= {IDLE, program.ports}


@pytest.mark.parametrize(("flits", "inputs"), [(3, 4), (8, 4)])
def test_long_blocks_need_no_bypass(flits, inputs):
    """From three flits a block on, words wait in memory, and an out-port has at most 4 inputs."""
    loop = program_of("5x5", "allgather", "necklace", flits=flits).loop
    assert loop.order is Order.ROW
    assert loop.sources.delayed == ()
    assert loop.selected_sources.min() >= loop.n_ports
    assert all(len(np.unique(column)) <= inputs for column in loop.selected_sources[:, 0].T)


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "flits", "cycles"),
    [
        # One cycle for each step and flit, and five more.
        ("8x8", "allgather", "matching", 1, 16 + 5),
        ("8x8", "allgather", "matching", 9, 9 * 16 + 5),
        ("5x5", "allgather", "bufferless", 4, 4 * 6 + 5),
        ("4x4", "allgather", "hamiltonian", 2, 8 + 5),
        ("4x4", "alltoall", "matching", 3, 3 * 8 + 5),
        ("8x8", "alltoall", "matching", 1, 64 + 5),
    ],
)
def test_cycles_in_figures(topology, collective, algorithm, flits, cycles):
    assert program_of(topology, collective, algorithm, flits=flits).cycles() == cycles


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "options"),
    [
        pytest.param("8x8", "allgather", "bufferless", {}, marks=pytest.mark.long),
        pytest.param("5x5", "allgather", "necklace", {"flits": 3}, marks=pytest.mark.long),
        ("4x4", "alltoall", "necklace", {}),
        ("5x5", "allgather", "matching", {"latency": 3}),
    ],
)
def test_router_is_two_tables_a_bit(topology, collective, algorithm, options):
    """An out-port with four inputs takes two 4-input LUTs a bit and little besides.

    Every half of a word has select registers of its own.
    """
    fabric = fabric_of(topology, collective, algorithm, width=32, **options)
    design = verilog.emit(fabric, command="").routers()
    for target in ("ecp5-25k", "ice40-hx8k") if algorithm == "bufferless" else ("ecp5-25k",):
        (router,) = synthesize(design, target).to_json()["classes"]
        assert 4 * 2 * 32 - 64 <= router["luts"] <= 4 * 2 * 32 + 8
        assert router["ffs"] <= 4 * 32 + 32


def test_a_single_node_is_refused():
    """A network of a single node is refused."""
    with pytest.raises(InputError, match=r"^Hardware needs at least 2 nodes and something to send"):
        program_of("arrowhead:0", "allgather", "matching")
