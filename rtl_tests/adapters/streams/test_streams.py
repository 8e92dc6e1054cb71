"""Fabrics with streams: every word arrives, with any stalls, and faulty messages are dropped."""

from contextlib import nullcontext

import pytest
from helpers import few
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_bench import StreamBench, check, messages_of, streams
from stream_sections import forced

import torusfabric as tf
from torusfabric.adapters.streams.drive.simulate import simulate_streams
from torusfabric.adapters.streams.ports import stream_ports
from torusfabric.adapters.streams.sections import choose_sections
from torusfabric.simulation.engines import Job
from torusfabric.simulation.jobs import random_jobs

#: Patterns, tables, groups, sums and rounds; one or several packets for each node; runs with
#: choices.
STREAMS = [
    ("3x3", "allgather", {"flits": 3}),
    ("2x2", "alltoall", {"flits": 3}),
    ("2x2", "allgather,alltoall,allreduce", {"max_flits": 5}),
    ("2x3", "broadcast", {"max_flits": 4, "root": "any"}),
    ("2x2", "allreduce", {"flits": 4}),
    ("2x3", "allgather:one-packet", {"max_flits": 7}),
    ("3", "alltoall", {"max_flits": 4}),
    ("3x3", "allgather", {"flits": 1}),
    ("2x3", "alltoall@1", {"flits": 1}),
    ("2x2", "scatter", {"max_flits": 6}),
    ("2x2", "gather", {"flits": 3}),
    ("2x3", "broadcast", {"max_flits": 9}),
    ("2x2", "reduce-scatter", {"max_flits": 4}),
    ("2x2", "allreduce", {"max_flits": 9}),
    ("2x2", "reduce", {"flits": 2}),
    ("2x3", "alltoall@1,allgather@0,scatter", {"max_flits": 3}),
    ("2x2", "scatter", {"flits": 3, "root": "any"}),
    ("2x2", "reduce", {"max_flits": 3, "root": "any", "operators": ["add", "max"]}),
    ("2x2", "allgather,broadcast,scatter,gather,reduce",
     {"max_flits": 4, "root": "any", "operators": ["add", "max:signed", "xor"]}),
]  # fmt: skip


def streams_of(buffers, topology, collectives, **options):
    """Return a fabric whose nodes hold `buffers` messages each way, or as many as they need."""
    with forced(buffers=buffers) if buffers else nullcontext():
        return streams(topology, collectives, **options)


@pytest.mark.parametrize("stall", few(1, [(0.3, 0.3), (0, 0.7), (0.7, 0)], tuples=True))
@pytest.mark.parametrize("buffers", [None, 3])
@pytest.mark.parametrize(("topology", "collectives", "options"), few(4, STREAMS))
def test_words_and_cycles(topology, collectives, options, buffers, stall):
    """Words and cycles are right with the fabric's own sections and with four, under any stalls."""
    fabric = streams_of(buffers, topology, collectives, **options)
    bench = check(fabric, random_jobs(fabric, 6, seed=2), stall)
    if bench.statuses:
        assert bench.statuses == [[k, 0, count] for k, count in enumerate(bench.runs)]


COLLECTIVES = ["allgather", "alltoall", "broadcast", "scatter", "gather", "reduce",
               "reduce-scatter", "allreduce"]  # fmt: skip

#: Probability that a port stalls in a cycle.
RESTS = st.sampled_from([0, 0.2, 0.7])


@pytest.mark.long
@settings(max_examples=80, deadline=None)
@given(st.data())
def test_any(data):
    """Random fabrics with streams deliver every word."""
    several = data.draw(st.lists(st.sampled_from(COLLECTIVES), min_size=1, max_size=4))
    fabric = streams_of(
        data.draw(st.sampled_from([None, 3])),
        data.draw(st.sampled_from(["2", "3", "2x2", "2x3", "5", "2x2x2"])),
        ",".join(several),
        max_flits=data.draw(st.integers(1, 9)),
        width=data.draw(st.integers(1, 70)),
        root=data.draw(st.sampled_from([None, "any"])) if len(several) > 1 else None,
    )
    seed = data.draw(st.integers(0, 99))
    check(fabric, random_jobs(fabric, 6, seed=seed), data.draw(st.tuples(RESTS, RESTS)), seed)


@pytest.mark.parametrize("edges", few(2, [9, 30, 5, 23, 40, 47], tuples=True))
@pytest.mark.parametrize("buffers", [None, 3])
def test_a_reset_at_any_time(buffers, edges):
    """After a reset at any time, all later messages arrive."""
    fabric = streams_of(buffers, "2", "alltoall", flits=4)
    bench = StreamBench(fabric, stall=0.3)
    bench.interrupt(messages_of(fabric, 8, seed=2), edges)
    assert bench.run(messages_of(fabric, 5)) == []


@pytest.mark.parametrize("stall", few(1, [0.4, 0.0]))
@pytest.mark.parametrize("collective", ["allgather", "alltoall"])
def test_clocks_of_nodes_have_periods_with_nothing_in_common(collective, stall):
    """Every word arrives if fabric and nodes have clocks of unrelated periods."""
    fabric = streams("3", collective, max_flits=4, clocks="per-node")
    check(fabric, 6, stall, seed=len(collective))


def test_clocks_of_nodes_need_streams():
    """Clocks of nodes need a stream top."""
    program = tf.compile(tf.plan("2", "allgather"))
    with pytest.raises(tf.InputError, match="must be stream for clocks of the nodes, not host"):
        tf.Fabric(program, clocks="per-node")


@pytest.mark.parametrize("width", [1, 70])
def test_widths(width):
    """Flits of 1 and of 70 bits arrive."""
    fabric = streams("2x2", "allgather", flits=2, width=width)
    assert StreamBench(fabric, stall=0.5).run(messages_of(fabric, 3)) == []


@pytest.mark.parametrize(
    ("topology", "collectives", "options"),
    [
        ("2x3", "allgather", {"max_flits": 4, "width": 12}),
        ("2x3", "alltoall", {"max_flits": 4, "width": 12}),
        ("2x2", "allgather,scatter", {"max_flits": 4}),
        ("2x2", "alltoall", {"flits": 2, "clocks": "per-node"}),
    ],
)
def test_ports_are_those_that_are_listed(topology, collectives, options):
    """The signals of a fabric are those that `stream_ports` lists, with width, node and clock."""
    fabric = streams(topology, collectives, **options)
    listed = stream_ports(fabric.program, fabric.width, fabric.clocks)
    net = fabric.netlist
    assert net.inputs == {name: port.width for name, port in listed.items() if not port.output}
    assert net.outputs == {name: port.width for name, port in listed.items() if port.output}
    nodes = {name: port.node for name, port in net.node_ports.items()}
    assert nodes == {name: port.node for name, port in listed.items() if port.node is not None}
    clocks = {name: port.clock for name, port in listed.items()}
    own = "clk_3" if "clocks" in options else "clk"
    assert (clocks["m_axis_3_tdata"], clocks.get("rst_3", own), clocks["busy"]) == (own, own, "clk")


def test_nothing_is_read_at_a_port_of_a_host():
    """A fabric with streams has no host port, so its read latency is 0."""
    assert streams("2", "allgather", flits=1).read_latency == 0


@pytest.mark.parametrize(
    ("collective", "keeping"),
    [
        ("broadcast", [1, 0, 0]),
        ("allreduce", [0] * 3),
        ("allgather", [1] * 3),
        ("gather", [1, 0, 0]),
    ],
)
def test_what_a_node_gets_from_itself_is_kept_there_only(collective, keeping):
    """Only nodes that receive their own block have a memory for it."""
    fabric = tf.Fabric(tf.compile(tf.plan("3", collective), flits=2), width=8, top="stream", beat=1)
    nodes = {each.node for each in fabric.netlist.instances if each.module == "own_block"}
    assert [int(node in nodes) for node in range(3)] == keeping


@pytest.mark.parametrize("buffers", [2, 3])
@pytest.mark.parametrize("edges", few(1, [40, 41, 42], tuples=True))
def test_a_reset_of_nodes_that_are_full(buffers, edges):
    """After a reset of full nodes the next word begins a message, and no message is lost."""
    with forced(buffers=buffers):
        bench = StreamBench(streams("2", "allgather", flits=1), stall=(0, 0.9))
    bench.interrupt(messages_of(bench.fabric, 30, seed=2), edges)
    assert bench.run(messages_of(bench.fabric, 4)) == []


@pytest.mark.parametrize("collectives", ["alltoall", "allgather,gather,reduce"])
def test_messages_that_are_no_good(collectives):
    """Dropped messages leave all others unchanged."""
    with forced(buffers=3):
        fabric = streams("3", collectives, max_flits=3)
    jobs = random_jobs(fabric, 12, seed=2)
    report = simulate_streams(fabric, jobs=jobs, stall=0.3, faults=0.4)
    assert report.passed, report.first_wrong
    assert report.dropped


def test_nodes_of_four_sections_with_clocks_of_their_own():
    """Nodes with four sections and clocks of their own deliver every word."""
    fabric = streams("2", "allgather", flits=4, clocks="per-node")
    assert choose_sections(fabric.program).n_sections == 4
    report = tf.simulate(fabric, jobs=[tf.Job()] * 8, stall=0.2)
    assert report.passed, report.first_wrong


#: Words that the busiest node loads, and unloads, for each flit of a message.
PORTS = {"allgather": (1, 4), "broadcast": (1, 1), "scatter": (4, 1), "gather": (1, 4)}

#: Runs of about nine cycles, in which every node sends and receives fewer words.
SHORT = [("2", "allgather", 1), ("2x2", "scatter", 1), ("2x3", "broadcast", 2)]


@pytest.mark.parametrize("collective", few(2, [*PORTS], tuples=True))
def test_runs_follow_one_another_without_a_pause(collective):
    """Runs follow one another at 95 % of the possible rate."""
    fabric = streams("2x2", collective, flits=24)
    bench = check(fabric, 6)
    period = (bench.ends[-1] - bench.ends[2]) / 3
    most = max(fabric.predicted_cycles, *(24 * words for words in PORTS[collective]))
    assert period <= most / 0.95


@pytest.mark.parametrize(("topology", "collective", "flits"), few(2, [*SHORT]))
def test_short_runs_follow_one_another_without_a_pause(topology, collective, flits):
    """If runs limit the rate, each run begins in the last cycle of the previous run."""
    fabric = streams(topology, collective, flits=flits)
    bench = check(fabric, 6)
    assert bench.ends[-1] - bench.ends[2] == 3 * fabric.predicted_cycles


@pytest.mark.parametrize("stall", [(0.0, 0.8), (0.8, 0.0)])
@pytest.mark.parametrize("flits", [2, 4])
def test_a_run_that_is_no_good_disturbs_no_other(flits, stall):
    """A dropped message leaves other runs unchanged, with slow receivers or senders."""
    fabric = streams("2", "allgather", flits=flits)
    bench, messages = StreamBench(fabric, stall), messages_of(fabric, 8)
    messages[2].sent[1][0] = 0, [1]
    messages[2].fails(6)
    assert bench.run(messages) == []
    assert {*bench.runs} == {fabric.predicted_cycles}


def shorter(sent, node):
    dest, words = sent[node][0]
    sent[node][0] = dest, words[:-1]


def longer(sent, node):
    dest, words = sent[node][0]
    sent[node][0] = dest, [*words, 1, 2, 3]


def renamed(sent, node, dest):
    sent[node][0] = dest, sent[node][0][1]


def twice(sent, node):
    sent[node][0] = sent[node][1][0], sent[node][0][1]


#: Changes of a message between four nodes, and the error number of each.
FAULTS = {
    "shorter": ("allgather", {"flits": 3}, lambda sent: shorter(sent, 2), 6),
    "longer": ("allgather", {"flits": 3}, lambda sent: longer(sent, 1), 6),
    "unequal": ("allgather", {"max_flits": 6}, lambda sent: shorter(sent, 3), 6),
    "too long": ("allgather", {"max_flits": 3}, lambda sent: longer(sent, 0), 6),
    "unequal to others": ("alltoall", {"max_flits": 6}, lambda sent: shorter(sent, 3), 6),
    "the same destination": ("alltoall", {"flits": 2}, lambda sent: twice(sent, 0), 7),
    "of a root": ("scatter", {"flits": 2}, lambda sent: longer(sent, 0), 6),
}


@pytest.mark.parametrize("name", few(3, [*FAULTS], tuples=True))
def test_a_message_is_dropped(name):
    """Faulty messages are dropped: alone, two in a row, and between others."""
    collective, options, spoil, error = FAULTS[name]
    fabric = streams("2x2", collective, **options)
    length = None if "flits" in options else 3
    messages = messages_of(fabric, [Job(length=length)] * 7)
    # message 0 is alone; messages 3 and 4 follow each other
    for number in (0, 3, 4):
        spoil(messages[number].sent)
        messages[number].fails(error)
    bench = StreamBench(fabric, 0.2)
    assert bench.run(messages) == []
    assert bench.runs == [fabric.program.cycles(length)] * 4


def test_a_destination_that_does_not_exist():
    """A message to a destination that does not exist is dropped with error 7."""
    fabric = streams("3", "alltoall", flits=2)
    messages = messages_of(fabric, 3)
    renamed(messages[1].sent, 0, 3)
    messages[1].fails(7)
    assert StreamBench(fabric, 0.2).run(messages) == []


def test_statuses_say_why():
    """The status of a dropped message has its error number and its tag."""
    fabric = streams("2x2", "allgather,alltoall", max_flits=4)
    jobs = [Job(mode=mode, length=3) for mode in (0, 1, 1, 0, 0, 1)]
    messages = messages_of(fabric, jobs)
    shorter(messages[0].sent, 1)
    twice(messages[1].sent, 2)
    longer(messages[3].sent, 2)
    for number, error in ((0, 6), (1, 7), (3, 6)):
        messages[number].fails(error)
    commands = [(job.mode, 3 * (k < 4), 0, 0, 10 + k) for k, job in enumerate(jobs)]
    # The command says two flits, but the packets have three.
    commands[4] = (0, 2, 0, 0, 14)
    messages[4].fails(6)
    bench = StreamBench(fabric, 0.3)
    assert bench.run(messages, commands) == []
    cycles = [fabric.program.cycles(3, mode=1)] * 2
    assert bench.statuses == [
        [10, 6, 0], [11, 7, 0], [12, 0, cycles[0]], [13, 6, 0], [14, 6, 0], [15, 0, cycles[1]]
    ]  # fmt: skip


@pytest.mark.parametrize("between", ["a dropped message", "a reduce"])
def test_the_last_word_waits_for_a_slow_receiver(between):
    """The last word waits for a slow receiver, even if the next run brings this node nothing."""
    dropped = between == "a dropped message"
    fabric = streams("3", "allgather,reduce", max_flits=2)
    jobs = [Job(mode=k % 2 * (not dropped), length=2 - k % 2) for k in range(12)]
    messages = messages_of(fabric, jobs)
    for message in messages[1::2] if dropped else []:
        longer(message.sent, 0)
        message.fails(6)
    assert StreamBench(fabric, (0.0, 0.8), seed=2).run(messages) == []
