"""Streams whose packets have planned lengths: each node sends exactly its messages."""

import numpy as np
import pytest
from helpers import few
from make_bench import have_bench, run_bench

import torusfabric as tf
from torusfabric.adapters.streams.claims import stream_harnesses
from torusfabric.adapters.streams.claims.tables import check_tables
from torusfabric.adapters.streams.drive.messages import random_run_packets
from torusfabric.adapters.streams.drive.simulate import draw_jobs, simulate_streams
from torusfabric.adapters.streams.engine import EngineShape
from torusfabric.adapters.streams.loader import Loader
from torusfabric.adapters.streams.sections import port_cycles
from torusfabric.proof.solver import prove_harness
from torusfabric.toolchain import tools

RANDOM = np.random.default_rng(7)

#: The counts of each collective; some are 0, and node 2 of the all-to-all receives nothing.
COUNTS = {
    "allgather": [3, 0, 5, 1, 2, 5],
    "gather": [0, 4, 1, 3, 7, 2],
    "scatter": [2, 6, 0, 1, 3, 4],
    "reduce-scatter": [1, 0, 3, 2, 5, 4],
    "alltoall": RANDOM.integers(0, 6, (6, 6)) * (np.arange(6) != 2),
}

#: Messages of a pattern: several from a node, several destinations, a node that only receives.
MESSAGES = [(0, 5, 4), (0, (1, 2, 4), 2), (0, 3, 7), (3, 5, 4), (4, 0, 1), (5, 0, 3), (5, 4, 3)]

#: The same messages with one length.
EVEN = [message[:2] for message in MESSAGES]


def counted(kind, chunks=None, **options):
    """Return a fabric with streams whose messages have the lengths `COUNTS`."""
    root = 1 if kind in ("gather", "scatter") else None
    schedule = tf.plan("2x3", kind, counts=COUNTS[kind], root=root, chunks=chunks)
    return tf.Fabric(tf.compile(schedule), **{"width": 8, "top": "stream"} | options)


def listed(messages, lengths=None, **options):
    """Return a fabric with streams for a pattern."""
    schedule = tf.plan("2x3", "pattern", traffic=messages)
    program = tf.compile(schedule, **lengths or {})
    return tf.Fabric(program, **{"width": 8, "top": "stream"} | options)


def simulate(fabric, runs, **options):
    """Return the report of random runs of a fabric."""
    return simulate_streams(fabric, jobs=draw_jobs(fabric, runs), **options)


@pytest.mark.parametrize("beat", [1, 2])
@pytest.mark.parametrize("kind", few(2, list(COUNTS)))
def test_unequal_messages(kind, beat):
    """All words of packets of unequal lengths arrive, and runs with faults change nothing."""
    # Blocks of two flits consist of whole beats.
    fabric = counted(kind, -(-np.max(COUNTS[kind]) // 2), beat=beat)
    report = simulate(fabric, 10, stall=0.3, faults=0.4)
    assert report.passed, report.first_wrong
    assert report.words_checked
    assert report.dropped


@pytest.mark.parametrize(
    ("messages", "lengths"),
    [(MESSAGES, {}), (EVEN, {"flits": 3}), (EVEN, {"max_flits": 5})],
    ids=["own lengths", "one length", "any length"],
)
@pytest.mark.parametrize("clocks", ["one", "per-node"])
def test_patterns(messages, lengths, clocks):
    """A node sends the messages that it has in the pattern, and no others."""
    fabric = listed(messages, lengths, clocks=clocks)
    sent = random_run_packets(fabric, tf.Job(length=lengths.get("max_flits")), seed=1).sent
    assert [len(packets) for packets in sent] == [3, 0, 0, 1, 1, 2]
    report = simulate(fabric, 30, stall=0.2, faults=0.5)
    assert report.passed, report.first_wrong
    assert set(report.dropped) == {6, 7}


def test_a_pattern_is_one_of_several_modes():
    """The numbers of packets of a pattern hold for its runs only."""
    modes = [tf.plan("2x3", "pattern", traffic=EVEN), tf.plan("2x3", "alltoall")]
    fabric = tf.Fabric(tf.compile(modes, max_flits=4), width=8, top="stream")
    report = simulate(fabric, 12, stall=0.2, faults=0.3)
    assert report.passed, report.first_wrong


@pytest.mark.parametrize("kind", list(COUNTS))
def test_packet_tables_are_checked_up_to_the_planned_lengths(kind):
    """The check of packet tables asks for no word beyond the end of a packet."""
    fabric = counted(kind, beat=1)
    loader, unloader = (fabric.netlist.modules[name]().shape for name in ("loader", "unloader"))
    blocks = fabric.program.layout.blocks
    assert (blocks.has_message == (blocks.sent_lengths > 0)[blocks.groups.position_of_node]).all()
    assert check_tables(fabric.core, loader) == blocks.sent_lengths.sum()
    words = check_tables(fabric.core, unloader)
    assert words == sum(len(packet.words) for node in random_run_packets(
        fabric, tf.Job(), seed=1).received for packet in node)  # fmt: skip


@pytest.mark.parametrize("top", ["host", "stream"])
def test_an_engine_of_unequal_messages(top):
    """Modes with unequal lengths, of different blocks, are modes beside others of one length."""
    plans = [
        tf.plan("2x3", "alltoall", counts=np.minimum(COUNTS["alltoall"], 5)),
        tf.plan("2x3", "allgather", counts=COUNTS["allgather"]),
        tf.plan("2x3", "allreduce", chunks=6),
        tf.plan("2x3", "broadcast"),
    ]
    program = tf.compile(plans)
    assert program.flits == 5
    fabric = tf.Fabric(program, width=8, top=top, beat=1)
    report = tf.simulate(fabric, jobs=12)
    assert report.passed
    assert {job.mode for job in report.jobs} == {0, 1, 2, 3}
    if top == "stream":
        report = simulate(fabric, 12, stall=0.2, faults=0.5)
        assert report.passed, report.first_wrong
        assert 6 in report.dropped


def test_modes_of_different_longest_messages_are_refused():
    """Modes with unequal lengths must have one longest length."""
    plans = [tf.plan("2x3", kind, counts=COUNTS[kind]) for kind in ("allgather", "gather")]
    with pytest.raises(tf.InputError, match="not 5 and 7 flits; lengthen"):
        tf.compile(plans)
    with pytest.raises(tf.InputError, match="leave flits and max_flits out"):
        tf.compile([plans[0], tf.plan("2x3", "allreduce")], max_flits=8)


@pytest.mark.skipif(not have_bench(), reason="cocotb, make or Icarus is not installed")
@pytest.mark.parametrize("bus", [None, pytest.param("axi-lite", marks=pytest.mark.long)])
def test_the_bench_sends_what_is_planned(tmp_path, bus):
    """The emitted bench takes the lengths of packets from the manifest."""
    for number, fabric in enumerate([
        counted("alltoall", width=16, bus=bus),
        listed(MESSAGES, width=16, bus=bus),
        listed(EVEN, {"max_flits": 3}, width=16, bus=bus),
    ]):  # fmt: skip
        tf.emit(fabric).write(tmp_path / str(number))
        passed, text = run_bench(tmp_path / str(number), STALL=0.3, FAULTS=1, RUNS=4)
        assert passed, text[-3000:]


def equal_lengths(shape, lengths, packet, form):
    """Return the length of packet 0, as a fault would."""
    return lengths[: shape.planned_length_bits]


def late_packets(loader):
    """Return the number of the packet after the last one, as a fault would."""
    return loader.input_value("own_last")[: loader.shape.packet_bits] + 1


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [(EngineShape, "planned_length", equal_lengths), (Loader, "_last_packet", late_packets)],
)
def test_faults_of_the_hardware_are_found(monkeypatch, owner, name, fault):
    """Simulation finds packets that are taken, or sent, with the length of another one."""
    monkeypatch.setattr(owner, name, fault)
    fabric = counted("alltoall")
    with pytest.raises((tf.WorkFailed, AssertionError)):
        assert simulate(fabric, 4).passed


@pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")
@pytest.mark.parametrize("engine", ["loader", "unloader"])
def test_lengths_are_proved(monkeypatch, engine):
    """Loader and unloader are proved for all planned lengths, and a fault in them is refuted."""
    fabric = listed(MESSAGES)

    def proof(fabric):
        harnesses = {each.name: each for each in stream_harnesses(fabric, tf.emit(fabric))}
        return prove_harness(harnesses[engine])

    assert proof(fabric).failed is None
    monkeypatch.setattr(EngineShape, "planned_length", equal_lengths)
    assert proof(listed(MESSAGES)).failed


def test_any_length_of_a_pattern_is_proved():
    """The loader of a pattern whose runs choose their length is proved."""
    if tools.find("z3") is None:
        pytest.skip("needs z3")
    fabric = listed(EVEN, {"max_flits": 3})
    for harness in stream_harnesses(fabric, tf.emit(fabric)):
        if harness.name == "loader":
            assert prove_harness(harness).failed is None


def test_cycles_of_ports():
    """The busiest node decides how long loading and unloading take."""
    program = counted("gather").program
    assert port_cycles(program, 0, 1) == (7, 17)
    assert port_cycles(program, 0, 4) == (2, 6)
