"""Streams of nodes in clock domains of their own, with periods that have nothing in common."""

import pytest
from helpers import few
from stream_bench import StreamBench, messages_of

import torusfabric as tf
from torusfabric.rtl.streams import stream_ports


def apart(topology, collective, **lengths):
    """A fabric whose nodes have clocks of their own."""
    program = tf.compile(tf.plan(topology, collective), **lengths)
    return tf.Fabric(program, width=8, top="stream", beat=1, clocks="per-node")


@pytest.mark.parametrize("stall", few(1, [0.4, 0.0]))
@pytest.mark.parametrize("collective", ["allgather", "alltoall"])
def test_words_and_cycles(collective, stall):
    fabric = apart("3", collective, max_flits=4)
    messages = messages_of(fabric, 6)
    bench = StreamBench(fabric, stall, seed=len(collective))
    assert bench.run(messages) == []
    assert bench.runs == [fabric.program.cycles(message.job.length) for message in messages]


def test_ports_are_those_that_are_listed():
    fabric = apart("2x2", "alltoall", flits=2)
    listed = stream_ports(fabric.program, 8, "per-node")
    net = fabric.netlist
    assert net.inputs == {port.name: port.width for port in listed if port.direction == "in"}
    assert net.outputs == {port.name: port.width for port in listed if port.direction == "out"}
    clocks = {port.name: port.clock for port in listed}
    assert clocks["m_axis_3_tdata"] == clocks["rst_3"] == "clk_3"
    assert clocks["busy"] == "clk"


def test_clocks_of_nodes_need_streams():
    program = tf.compile(tf.plan("2", "allgather"))
    with pytest.raises(tf.InputError, match="must be stream for clocks of the nodes, not host"):
        tf.Fabric(program, clocks="per-node")
