"""Fabrics of tables: planned for one node, simulated for all, to the word and to the cycle."""

import math

import numpy as np
import pytest
from helpers import (
    check_run,
    expected_words,
    fabric_of,
    few,
    plan,
    program_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from verilog_bench import check_in_icarus

import torusfabric as tf
from torusfabric import verilog
from torusfabric.collective import OPERATORS, SIGNED, Operator
from torusfabric.errors import InputError
from torusfabric.fpga.synthesis.synthesize import synthesize
from torusfabric.program import IDLE, Action, Order
from torusfabric.program.timing import MEMORY_AGE
from torusfabric.rtl.netlist import Role

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


@pytest.mark.parametrize("flits", [1, 2, 3])
@pytest.mark.parametrize(("topology", "collective", "algorithm", "options"), SCHEDULES)
def test_executed_program(topology, collective, algorithm, options, flits):
    """In whatever order words are sent for a length, every node receives all that it must."""
    schedule = plan(topology, collective, algorithm, **options)
    program = tf.compile(schedule, flits=flits * schedule.chunks)
    assert program.loop.variants == 1
    size = program.topology.nodes, program.send_words
    messages = np.random.default_rng(1).integers(0, 1 << 30, size)
    assert (program.execute(messages) == expected_words(program, messages)[0]).all()


@pytest.mark.parametrize("flits", [1, 2, 5])
@pytest.mark.parametrize(("topology", "collective", "algorithm", "options"), SCHEDULES)
def test_plan_is_what_a_node_can_do(topology, collective, algorithm, options, flits):
    """A word is read after it was written and before its slot is reused, once a memory and step."""
    schedule = plan(topology, collective, algorithm, **options)
    program = tf.compile(schedule, flits=flits * schedule.chunks)
    loop, block = program.loop, program.block_flits
    cycles = 1 if loop.order is Order.FLIT else block
    for number, memory in enumerate(program.memories):
        if memory.own:
            continue
        written: dict[int, list[int]] = {}
        for step, address in enumerate(loop.values(Action.WRITE, number)[:, 0].tolist()):
            if address >= 0:
                written.setdefault(address, []).append(step)
        for reader in range(loop.sources.readers):
            there = loop.values(Action.MEMORY, reader)[:, 0] == number
            read = loop.values(Action.READ, reader)[:, 0]
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
            assert (loop.values(Action.WRITE, number) == address).any()


@pytest.mark.parametrize("topology", ["4x4", "5x5", "8x8", "3x4x5"])
@pytest.mark.parametrize("flits", [1, 4])
def test_bufferless_router_has_no_memory(topology, flits):
    """A bufferless table feeds out-ports from in-ports, and reads nothing but what a node sends."""
    program = program_of(topology, "allgather", "bufferless", flits=flits)
    loop = program.loop
    assert loop.sources.delayed == ()
    assert loop.order is Order.FLIT
    assert [memory.own for memory in program.memories] == [False] * program.ports + [True]
    (read,) = loop.of(Action.MEMORY)
    assert set(read.values.ravel().tolist()) <= {IDLE, program.ports}


@pytest.mark.parametrize(("flits", "inputs"), [(3, 4), (8, 4)])
def test_long_blocks_need_no_bypass(flits, inputs):
    """From three flits a block on, words rest in memory, and an out-port has four inputs in 2-D."""
    loop = program_of("5x5", "allgather", "necklace", flits=flits).loop
    assert loop.order is Order.ROW
    assert loop.sources.delayed == ()
    assert loop.select.min() >= loop.ports
    assert all(len(np.unique(column)) <= inputs for column in loop.select[:, 0].T)


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "width", "flits", "options"),
    few(
        5,
        [
            ("3x3", "allgather", "matching", 8, 1, {}),
            ("2x4", "allgather", "matching", 33, 2, {}),
            pytest.param("5x5", "allgather", "matching", 1, 3, {}, marks=pytest.mark.long),
            ("3x4", "allgather", "matching", 8, 4, {"chunks": 4}),
            pytest.param(
                "3x3x3", "allgather", "matching", 8, 1, {"latency": 2}, marks=pytest.mark.long
            ),
            pytest.param("arrowhead:2", "allgather", "matching", 8, 2, {}, marks=pytest.mark.long),
            ("2", "allgather", "matching", 4, 1, {}),
            pytest.param("5x5", "allgather", "bufferless", 8, 1, {}, marks=pytest.mark.long),
            ("3x4", "allgather", "bufferless", 8, 6, {"chunks": 2}),
            ("3x3", "allgather", "necklace", 33, 3, {}),
            pytest.param("2x2x2x2", "allgather", "necklace", 8, 8, {}, marks=pytest.mark.long),
            ("3x3", "alltoall", "matching", 8, 1, {}),
            pytest.param("4x4", "alltoall", "matching", 8, 2, {}, marks=pytest.mark.long),
            ("2x3", "alltoall", "matching", 33, 3, {}),
            ("4x3", "alltoall", "matching", 8, 6, {"chunks": 2}),
            ("arrowhead:1", "alltoall", "matching", 1, 5, {}),
            ("2x2", "alltoall", "necklace", 8, 4, {}),
            pytest.param("2x2x2x2", "alltoall", "necklace", 8, 4, {}, marks=pytest.mark.long),
        ],
    ),
)
def test_fabric(topology, collective, algorithm, width, flits, options):
    """Every word arrives; a step takes a cycle a flit."""
    fabric = fabric_of(topology, collective, algorithm, width=width, flits=flits, **options)
    check_run(fabric)
    program = fabric.program
    steps = flits // program.schedule.chunks * program.schedule.round_count
    assert fabric.predicted_cycles == steps + 5


def test_cycles_in_figures():
    """8x8 gathers in 16 steps a flit and 5 cycles; no run waits for words of the host."""

    def cycles(*names, lengths):
        schedule = plan(*names)
        return [tf.compile(schedule, flits=flits).cycles() for flits in lengths]

    assert cycles("8x8", "allgather", "matching", lengths=(1, 2, 9)) == [21, 37, 149]
    assert cycles("5x5", "allgather", "bufferless", lengths=(1, 4)) == [11, 29]
    assert cycles("4x4", "alltoall", "matching", lengths=(1, 2, 3)) == [13, 21, 29]


@pytest.mark.parametrize(
    "collectives", [("allgather", "alltoall"), ("reduce-scatter", "allreduce")]
)
@settings(derandomize=True, deadline=None, max_examples=2)
@given(st.data())
def test_any_size_width_and_length(collectives, data):
    """Fabrics of random tori, widths, lengths and operators agree with the executed program."""
    sides = data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=2))
    collective = data.draw(st.sampled_from(collectives))
    chunks = data.draw(st.integers(1, 2)) * (math.prod(sides) if collective == "allreduce" else 1)
    operators = st.sampled_from((*OPERATORS, *SIGNED)).map(Operator.parse)
    fabric = fabric_of(
        "x".join(map(str, sides)),
        collective,
        "matching",
        chunks=chunks,
        latency=data.draw(st.integers(1, 4)),
        width=data.draw(st.integers(1, 40)),
        flits=data.draw(st.integers(1, 6)) * chunks,
        operator=data.draw(operators) if "reduce" in collective else None,
    )
    check_run(fabric)


FABRICS = [
    ("3x3", "allgather", "matching", 33, 1, {}),
    ("4x4", "allgather", "matching", 8, 4, {"chunks": 2}),
    pytest.param("5x5", "allgather", "bufferless", 16, 2, {}, marks=pytest.mark.long),
    ("3x3", "alltoall", "matching", 8, 3, {}),
    pytest.param("2x2x2x2", "alltoall", "necklace", 1, 4, {}, marks=pytest.mark.long),
]


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "width", "flits", "options"), few(2, [*FABRICS])
)
def test_verilog_agrees(tmp_path, topology, collective, algorithm, width, flits, options):
    """The linters are silent, and Icarus reads the same words after the same cycles, twice."""
    fabric = fabric_of(topology, collective, algorithm, width=width, flits=flits, **options)
    check_in_icarus(tmp_path, fabric)


@pytest.mark.parametrize("topology", ["3x3", pytest.param("8x8", marks=pytest.mark.long)])
def test_one_router_and_one_endpoint(topology):
    """However large the torus, there is one router module, and one endpoint module."""
    for collective in ("allgather", "alltoall"):
        roles = [*fabric_of(topology, collective, "matching").netlist.roles.values()]
        assert roles.count(Role.ROUTER) == roles.count(Role.ENDPOINT) == 1


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
    """With four inputs an out-port, synthesis needs two 4-input tables a bit and little besides.

    Every half of a word has select registers of its own.
    """
    fabric = fabric_of(topology, collective, algorithm, width=32, **options)
    design = verilog.emit(fabric, command="").routers()
    for target in ("ecp5-25k", "ice40-hx8k") if algorithm == "bufferless" else ("ecp5-25k",):
        (router,) = synthesize(design, target).to_json()["classes"]
        assert 4 * 2 * 32 - 64 <= router["luts"] <= 4 * 2 * 32 + 8
        assert router["ffs"] <= 4 * 32 + 32


def test_a_single_node_is_refused():
    """With nobody to talk to there is nothing to build."""
    with pytest.raises(InputError, match=r"^Nodes must be at least 2 for hardware, not the one of"):
        program_of("arrowhead:0", "allgather", "matching")
