"""Nodes that only relay have no streams; those of all other nodes work as without relays."""

import json

import pytest
from helpers import few
from make_bench import have_bench, run_bench

import torusfabric as tf
from torusfabric.adapters.streams.drive.simulate import draw_jobs, simulate_streams
from torusfabric.proof import prove
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache

#: The relays of a network of nine nodes; node 0 is one, and the last node, too.
RELAYS = (0, 4, 8)


def make(*kinds, lengths=None, barrier=False, **options):
    """Return a fabric with streams on a torus with relays, with a mode for each collective."""
    schedules = [tf.plan("3x3", kind, relays=RELAYS) for kind in kinds]
    program = tf.compile(schedules, **lengths or {"max_flits": 4}, barrier=barrier)
    return tf.Fabric(program, **{"width": 16, "top": "stream"} | options)


def test_ports_and_modules_of_relays(tmp_path):
    """A relay has neither ports nor loader nor unloader, and the manifest lists it."""
    fabric = make("allgather", clocks="per-node")
    tf.emit(fabric).write(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["relays"] == list(RELAYS)
    ports = {port["node"] for port in manifest["ports"].values() if port.get("node") is not None}
    assert ports == {*range(9)} - {*RELAYS}
    for name in ("loader", "unloader"):
        (engines,) = (array for array in fabric.netlist.arrays if array.module == name)
        assert engines.nodes.tolist() == [1, 2, 3, 5, 6, 7]


@pytest.mark.parametrize(
    "options",
    few(
        4,
        [
            {"lengths": {"flits": 4}},
            {"beat": 2},
            {"tables": "ram"},
            {"clocks": "per-node", "timeout": 300},
            {"barrier": True},
        ],
    ),
)
def test_all_other_nodes_send_and_receive(options):
    """Every word arrives, also with stalls and after runs with a fault."""
    fabric = make("allgather", "alltoall", **options)
    report = simulate_streams(fabric, jobs=draw_jobs(fabric, 8), stall=0.2, faults=0.3)
    assert report.passed, report.first_wrong
    assert report.words_checked


def test_a_pattern_beside_relays():
    messages = [(1, 2), (7, (3, 5)), (2, 6)]
    schedule = tf.plan("3x3", "pattern", relays=RELAYS, traffic=messages)
    for tables in ("rom", "ram"):
        fabric = tf.Fabric(tf.compile(schedule, max_flits=4), width=16, top="stream", tables=tables)
        report = simulate_streams(fabric, jobs=draw_jobs(fabric, 12), stall=0.2, faults=0.3)
        assert report.passed, report.first_wrong


@pytest.mark.skipif(not have_bench(), reason="cocotb, make or Icarus is not installed")
def test_the_bench_drives_the_other_nodes(tmp_path):
    fabric = make("allgather", "alltoall", barrier=True)
    tf.emit(fabric).write(tmp_path)
    passed, text = run_bench(tmp_path, STALL=0.3, FAULTS=1, RUNS=3)
    assert passed, text[-3000:]


@pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")
@pytest.mark.parametrize("tables", ["rom", pytest.param("ram", marks=pytest.mark.long)])
def test_the_proof_includes_idle_ports(tables):
    fabric = make("allgather", lengths={"max_flits": 2}, width=4, tables=tables)
    assert prove(fabric, cache=Cache()).proved
