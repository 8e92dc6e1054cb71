"""Traces against the hardware: every flit is on the link to its node in the cycle of the trace."""

import json

import numpy as np
import pytest
from helpers import fabric_of, few, plan, program_of, random_messages
from host_driver import HostDriver

import torusfabric as tf
from torusfabric.adapters.host.drive.words import RunWords
from torusfabric.collective import random_messages as draw_messages
from torusfabric.errors import InputError
from torusfabric.program.execute import Machine
from torusfabric.program.follow import follow_readers
from torusfabric.program.host_words import word_addresses
from torusfabric.program.trace import list_arrivals, write_trace
from torusfabric.simulation.engines import AmaranthEngine, Job

CASES = [
    ("3x4", "allgather", "hamiltonian", 4),
    ("3x3", "allgather", "bufferless", 1),
    ("3x3", "allgather", "bufferless", 3),
    ("3x3", "allgather", "matching", 2),
    ("3x4", "allgather", "one-packet", 2),
    ("3x3", "scatter", "matching", 2),
    ("arrowhead:1", "broadcast", "wormhole-forest", 3),
    ("2x3", "reduce-scatter", "matching", 1),
    ("2x2", "reduce-scatter", "hamiltonian", 2),
    ("2x3", "allreduce", "matching", 2),
    ("2x3", "allreduce", "matching", 7),
    ("4x4", "reduce", "max-flow", 3),
    ("3x4", "allgather@1", "hamiltonian", 2),
    ("3x3", "reduce@0", "max-flow", 1),
]


def links(fabric, messages, mode=None):
    """Return the words on each node's out-ports after each clock edge of a run."""
    engine = AmaranthEngine(fabric, gated=False)
    design, width, seen = engine.design, fabric.width, []
    mask = (1 << width) - 1

    async def testbench(ctx):
        driver = HostDriver(ctx, fabric, design)
        clock = driver.clock
        await driver.load(RunWords(fabric, messages, Job(mode=mode)))
        for name, value in (
            {"mode": mode, "length": fabric.flits}.items() if mode is not None else ()
        ):
            ctx.set(getattr(design, name), value)
        ctx.set(design.start, 1)
        await clock.tick()
        ctx.set(design.start, 0)
        while True:
            whole = [ctx.get(design.signal_of_net(f"tx_{node}")) for node in range(fabric.nodes)]
            seen.append([[w >> p * width & mask for p in range(fabric.ports)] for w in whole])
            if ctx.get(design.done):
                return
            await clock.tick()

    engine.run_testbench(testbench)
    return seen


@pytest.mark.parametrize(("topology", "kind", "algorithm", "flits"), few(4, CASES))
def test_every_flit_is_there_when_the_trace_says(topology, kind, algorithm, flits):
    chunks = plan(topology, kind, algorithm).chunks
    fabric = fabric_of(topology, kind, algorithm, width=48, flits=flits * chunks)
    program = fabric.program
    messages = random_messages(fabric, 5).astype(np.int64)
    sent = messages.reshape(fabric.nodes, program.layout.send_blocks, flits)
    compare(fabric, program, links(fabric, messages), sent)


@pytest.mark.parametrize("mode", few(2, [*range(3)], tuples=True))
def test_modes(mode):
    """The trace of one mode of an engine has the times of that mode within the engine."""
    plans = [tf.plan("2x3", name) for name in ("allgather", "alltoall", "broadcast")]
    chunks, flits = plans[mode].chunks, 2
    fabric = tf.Fabric(tf.compile(plans, max_flits=flits * chunks), width=48)
    program = fabric.program.alone(mode)
    assert program.cycles() == fabric.program.cycles(mode=mode) > tf.compile(plans[mode]).cycles()
    messages = draw_messages(program.layout, fabric.flits, width=fabric.width, seed=5)
    messages = messages.astype(np.int64)
    # Flit f lies in chunk f % chunks.
    sent = messages.reshape(fabric.nodes, -1, flits, chunks).swapaxes(2, 3)
    sent = sent.reshape(fabric.nodes, -1, flits)
    compare(fabric, program, links(fabric, messages, mode), sent)


def compare(fabric, program, seen, sent):
    """Compare a trace with the words seen on links, given the words of each block of each node."""
    blocks, chunks, flits = program.blocks, program.schedule.chunks, sent.shape[-1]
    count = 0
    for arrival in list_arrivals(program):
        ids = np.array(arrival.blocks)
        place = blocks.chunk(ids)
        if blocks.collective.personal:
            place = place + blocks.destination(ids) * chunks
        origin = blocks.groups.node_in_same_group(
            arrival.node, np.broadcast_to(blocks.origin(ids), ids.shape)
        )
        words = sent[origin, place]
        if blocks.collective.reducing:
            # A sum for each chunk, of the contributions so far.
            chunk = blocks.chunk(ids)
            words = np.array([words[chunk == c].sum(axis=0) for c in np.unique(chunk)])
        wanted = (words & (1 << fabric.width) - 1).tolist()
        near = int(program.topology.neighbours[arrival.node, arrival.port])
        port = int(program.topology.opposite[arrival.port])
        cycles = [arrival.cycle + k * arrival.stride for k in range(arrival.flits)]
        words = [seen[cycle][near][port] for cycle in cycles]
        got = [words[k : k + flits] for k in range(0, len(words), flits)]
        assert sorted(got) == sorted(wanted)
        assert arrival.path[-1] == arrival.node
        assert arrival.path[-2] == near
        assert cycles[-1] < program.cycles()
        count += 1
    assert count == sum(map(len, program.schedule.rounds()))


def test_file(tmp_path):
    program = program_of("3x4", "allgather", "hamiltonian", flits=2)
    write_trace(program, tmp_path / "trace.jsonl")
    head, *lines = map(json.loads, (tmp_path / "trace.jsonl").read_text().splitlines())
    assert head["format"] == "torusfabric-trace"
    assert head["cycles"] == program.cycles()
    assert head["topology"] == {"kind": "torus", "sides": [3, 4]}
    assert len(lines) == sum(map(len, program.schedule.rounds()))
    assert {line["port"] for line in lines} == {"+0", "-0", "+1", "-1"}
    assert lines[0]["blocks"] == [[lines[0]["path"][0], lines[0]["blocks"][0][1]]]
    received = {(line["node"], *block) for line in lines for block in line["blocks"]}
    chunks = program.schedule.chunks
    assert received >= {
        (n, o, c) for n in range(12) for o in range(12) for c in range(chunks) if n != o
    }
    assert [path.name for path in tmp_path.iterdir()] == ["trace.jsonl"]


def test_file_of_several_collectives(tmp_path):
    """A trace of several collectives holds one after another, headed by its mode number."""
    plans = [tf.plan("2x3", name) for name in ("allgather", "alltoall")]
    program = tf.compile(plans, max_flits=4)
    write_trace(program, tmp_path / "trace.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text().splitlines()]
    heads = [line for line in lines if "format" in line]
    assert [head["mode"] for head in heads] == [0, 1]
    assert [head["cycles"] for head in heads] == [program.cycles(mode=mode) for mode in (0, 1)]
    assert len(lines) == 2 + sum(len(r) for plan in plans for r in plan.rounds())


def test_file_that_cannot_be_written(tmp_path):
    program = program_of("3x3", "allgather", "hamiltonian", flits=2)
    with pytest.raises(InputError, match=r"^File .*nowhere.* cannot be written"):
        write_trace(program, tmp_path / "nowhere" / "trace.jsonl")


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "flits"),
    [
        # Row by row, over several hops in a row, and from memory to memory.
        ("5x5", "broadcast", "diagonal", 40),
        ("4", "broadcast", "spanning-tree", 8),
        # Flit by flit.
        ("3x3", "alltoall", "matching", 4),
    ],
)
def test_blocks_tell_their_reader(topology, collective, algorithm, flits, monkeypatch):
    """The mark of a block is that of its first reader; long blocks are not executed as a whole."""
    program = tf.compile(tf.plan(topology, collective, algorithm=algorithm), flits=flits)
    memory, base = word_addresses(program, received=True)
    flit = program.locate(np.arange(memory.shape[1]), flits)[2]
    base = np.where(base < 0, 0, base - program.within_blocks(0, memory, flit))
    nodes = np.arange(len(memory))
    marks = np.zeros((len(nodes), program.loop.sources.n_readers), int)
    senders = nodes if collective == "alltoall" else nodes[:1]
    marks[senders] = 1 + np.arange(marks.shape[1])

    def follow():
        return follow_readers(program, 0, 0, marks, memory, base, nodes=nodes)

    short = follow()
    monkeypatch.setattr(Machine, "shorten_blocks", lambda machine: None)
    assert (short == follow()).all()
    own = np.array([each.own for each in program.memories])
    assert (short[~own[memory]] > 0).all()
