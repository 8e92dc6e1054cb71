"""Streams on a core: every word at every node, with random stalls, and the rate of runs."""

import pytest
from stream_bench import check, streams

import torusfabric as tf
from torusfabric.adapters.streams.front import StreamFront
from torusfabric.toolchain import cxx

COLLECTIVES = ["allgather", "alltoall", "reduce-scatter", "allreduce", "scatter", "broadcast"]


@pytest.mark.parametrize("stall", [(0, 0), (0.3, 0.5)])
@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize(
    ("topology", "flits"), [("2x3", 12), pytest.param("4x4", 16, marks=pytest.mark.long)]
)
def test_words_and_cycles(topology, collective, flits, stall):
    """Every word is right, with and without stalls."""
    fabric = streams(topology, collective, flits=flits)
    assert fabric.core is not None
    check(fabric, 6, stall)


@pytest.mark.skipif(not cxx.has_compiler(), reason="needs a C++ compiler")
@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("side", [4, pytest.param(8, marks=pytest.mark.long)])
def test_runs_follow_one_another(side, collective):
    """Runs follow at the rate of runs, or of ports if a port moves fewer flits than the links."""
    nodes = side * side
    program = tf.compile(tf.plan(f"{side}x{side}", collective, flits=16), flits=16)
    fabric = tf.Fabric(program, width=8, top="stream")
    report = tf.simulate(fabric, jobs=[tf.Job()] * 8, engine="compiled")
    assert report.passed, report.first_wrong
    rate = report.rate
    period, ports = rate.cycles / rate.runs, max(rate.load_cycles, rate.unload_cycles) / rate.runs
    run = fabric.predicted_cycles
    assert period <= max(1.05 * nodes / (nodes - 1) * run, ports)


def test_the_core_knows_no_streams():
    """The core has a memory port per node and a run port, and no memory for own blocks."""
    fabric = streams("3x3", "allgather", flits=4)
    core = StreamFront(fabric.program, fabric.width, fabric.beat).core
    names = {name.rpartition("_")[0] for name in core.netlist.node_ports}
    assert names == {*core.memory_port.inputs, "read_data"}
    assert not any(core.rows.memories[k].own for kind in core.kinds.received_memories for k in kind)
