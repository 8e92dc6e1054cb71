"""Fabrics with streams: every word at every node, whatever rests in between."""

import pytest
from helpers import few
from stream_bench import StreamBench, check, messages_of, streams

import torusfabric as tf
from torusfabric.rtl.netlist import Role
from torusfabric.rtl.streams import stream_ports

#: Waves, a table, groups, sums by flits and by rows, rounds; one and several packets each way.
NAMED = {
    "waves": ("3x3", "allgather", {"flits": 3}),
    "waves of any length": ("2x3", "allgather", {"max_flits": 7, "algorithm": "one-packet"}),
    "table": ("2x2", "alltoall", {"flits": 3}),
    "table of any length": ("3", "alltoall", {"max_flits": 4}),
    "choice among many memories": ("3x3", "allgather", {"flits": 1}),
    "groups": ("2x3", "alltoall@1", {"flits": 1}),
    "scatter": ("2x2", "scatter", {"max_flits": 6}),
    "gather": ("2x2", "gather", {"flits": 3}),
    "broadcast": ("2x3", "broadcast", {"max_flits": 9}),
    "sums": ("2x2", "reduce-scatter", {"max_flits": 4}),
    "sums in shares": ("2x2", "allreduce", {"flits": 4}),
    "sums in shares of any length": ("2x2", "allreduce", {"max_flits": 9}),
    "rounds of sums": ("2x2", "reduce", {"flits": 2}),
}


@pytest.mark.parametrize("name", few(3, [*NAMED]))
def test_words_and_cycles(name):
    topology, collective, options = NAMED[name]
    check(streams(topology, collective, **options), 4, stall=0.3)


@pytest.mark.parametrize("stall", few(1, [0.4, 0.0]))
@pytest.mark.parametrize("collective", ["allgather", "alltoall"])
def test_clocks_of_nodes_have_periods_with_nothing_in_common(collective, stall):
    fabric = streams("3", collective, max_flits=4, clocks="per-node")
    check(fabric, 6, stall, seed=len(collective))


def test_clocks_of_nodes_need_streams():
    program = tf.compile(tf.plan("2", "allgather"))
    with pytest.raises(tf.InputError, match="must be stream for clocks of the nodes, not host"):
        tf.Fabric(program, clocks="per-node")


@pytest.mark.parametrize("width", [1, 70])
def test_widths(width):
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


@pytest.mark.parametrize("edges", few(2, [5, 23, 40], tuples=True))
def test_a_reset_at_any_time(edges):
    fabric = streams("2", "alltoall", max_flits=3)
    bench = StreamBench(fabric, stall=0.3)
    bench.interrupt(messages_of(fabric, 6, seed=2), edges)
    assert bench.run(messages_of(fabric, 3)) == []


def test_nothing_is_read_at_a_port_of_a_host():
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
    """Nodes that get nothing from themselves have no memory for it."""
    fabric = tf.Fabric(tf.compile(tf.plan("3", collective), flits=2), width=8, top="stream", beat=1)
    endpoints = fabric.netlist.having(Role.ENDPOINT)
    assert [int("write_kept" in endpoint.inputs) for endpoint in endpoints] == keeping
