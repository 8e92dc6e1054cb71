"""Proofs of fabrics of every form, and the output of the command `prove`."""

import json
import sys

import pytest

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.errors import WorkFailed
from torusfabric.proof import prove, solver
from torusfabric.proof.model import HarnessBuilder
from torusfabric.proof.solver import prove_harness
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache

pytestmark = pytest.mark.skipif(tools.find("z3") is None, reason="needs z3")


def proof_of(topology, *collectives, root=None, **options):
    schedules = [tf.plan(topology, collective) for collective in collectives]
    whole = schedules if len(schedules) > 1 else schedules[0]
    program = tf.compile(whole, root=root, **options)
    return prove(tf.Fabric(program, width=2), cache=Cache())


def test_a_claim_of_what_is_not_there_is_refused():
    """A claim about a name that the Verilog lacks is an error, not a claim about a free value."""
    design = tf.emit(tf.Fabric(tf.compile(tf.plan("2x2", "allgather")), width=2))
    model = HarnessBuilder(design, "router_0")
    model.claim("is_0", "absent == 0")
    with pytest.raises(WorkFailed, match="absent"):
        prove_harness(model.make_harness("it is 0"))


def test_what_was_proved_in_another_way_is_proved_anew(monkeypatch):
    """A cached proof by another version of the solver program is not reused."""
    model = HarnessBuilder(
        tf.emit(tf.Fabric(tf.compile(tf.plan("2", "allgather")), width=2)), "router_0"
    )
    model.claim("is_itself", "tx == tx")
    harness, cache = model.make_harness("it is itself"), Cache()
    assert prove_harness(harness, cache).failed is None

    def refuse(*_, **__):
        raise WorkFailed("Solver must be asked once")

    monkeypatch.setattr(tools, "run", refuse)
    assert prove_harness(harness, cache).failed is None
    monkeypatch.setattr(solver, "SOLVER_SOURCE", "another")
    with pytest.raises(WorkFailed, match="Solver must be asked once"):
        prove_harness(harness, cache)


def test_streams_that_count_chunks_are_proved():
    """Streams whose chunks are counted in registers are proved."""
    plans = [tf.plan("2x2", name) for name in ("reduce", "allreduce@1", "reduce-scatter@1")]
    program = tf.compile(plans, max_flits=4, root="any")
    assert prove(tf.Fabric(program, width=2, top="stream", beat=1), cache=Cache()).proved


def test_a_table_is_proved():
    proof = proof_of("3x3", "alltoall")
    assert proof.proved
    assert {module.name for module in proof.modules} >= {"wiring", "router_0", "whole runs"}
    assert all(module.properties for module in proof.modules)


def test_modes_whose_nodes_call_addresses_differently_are_proved():
    """Modes are proved in which the root of a broadcast numbers addresses unlike other nodes."""
    assert proof_of("2x2", "allgather", "broadcast", max_flits=4).proved


def test_strobes_end_with_the_run():
    """No strobe of a run is on its way to nodes when a run of another mode begins."""
    assert proof_of("2x2", "broadcast", "allgather", root="any", flits=2).proved


@pytest.mark.parametrize(
    ("topology", "algorithm"), [("2x4", "max-flow"), ("4x4", "max-flow"), ("4x4", "diagonal")]
)
def test_strobes_of_long_paths_end_with_the_run(topology, algorithm):
    """Broadcasts are proved whose early rounds have longer paths than the last round."""
    schedule = tf.plan(topology, "broadcast", algorithm=algorithm)
    program = tf.compile(schedule, root="any")
    assert prove(tf.Fabric(program, width=1), cache=Cache()).proved


def test_words_that_go_round_at_rest_are_proved():
    """Routers are proved that pass words around a cycle of links while idle."""
    assert proof_of("3x2x2", "alltoall", "reduce-scatter", root="any", flits=2).proved


def test_a_node_that_combines_nothing_is_proved():
    """A node is proved that adds nothing, because it is a leaf of the tree."""
    assert proof_of("2", "allreduce").proved


def test_many_depths_of_a_tree_are_proved():
    """A tree is proved in which nodes choose among many strobes, one for each depth."""
    program = tf.compile(tf.plan("8", "broadcast", trees=1), flits=1, root="any")
    assert prove(tf.Fabric(program, width=1), cache=Cache()).proved


@pytest.mark.long
@pytest.mark.parametrize(
    ("topology", "collectives", "options"),
    [
        ("4x4", ["allgather"], {"flits": 3}),
        ("3x5", ["allgather"], {"flits": 7}),
        ("4x4", ["allreduce"], {"flits": 2}),
        ("4x4", ["reduce-scatter"], {"max_flits": 20}),
        ("3x3x3", ["allgather"], {"flits": 2}),
        ("4x4", ["broadcast"], {"max_flits": 4, "root": "any"}),
        ("4x4", ["gather"], {"flits": 2, "root": "any"}),
        ("3x3", ["scatter"], {"max_flits": 2, "root": "any"}),
        ("3x3", ["allgather", "alltoall", "broadcast"], {"max_flits": 3, "root": "any"}),
    ],
)
def test_every_form_is_proved(topology, collectives, options):
    assert proof_of(topology, *collectives, **options).proved


def test_cores_are_proved_with_memories_and_without():
    for collective, words in (("alltoall", "address map"), ("allgather", "manifest")):
        program = tf.compile(tf.plan("3x3", collective), flits=2)
        proof = prove(tf.Fabric(program, width=2, top="core"), cache=Cache())
        assert proof.proved
        assert words in proof.conclusion


def test_the_smallest_nodes_with_streams_are_proved():
    program = tf.compile(tf.plan("2", "allgather"))
    assert prove(tf.Fabric(program, width=1, top="stream", beat=1), cache=Cache()).proved


def test_streams_of_beats_are_proved_behind_a_bus():
    program = tf.compile(tf.plan("2", "allgather"), max_flits=3)
    fabric = tf.Fabric(program, width=8, top="stream", beat=2, bus="axi-lite")
    proof = prove(fabric, cache=Cache())
    assert proof.proved
    assert {module.name for module in proof.modules} >= {"bus_bridge", "unloader", "whole runs"}


def with_barrier(*collectives):
    schedules = [tf.plan("2", collective) for collective in collectives]
    whole = schedules if len(schedules) > 1 else schedules[0]
    return tf.compile(whole, max_flits=2, barrier=True)


@pytest.mark.long
@pytest.mark.parametrize("collectives", [["allgather"], ["allgather", "alltoall"]])
def test_streams_with_a_barrier_are_proved(collectives):
    fabric = tf.Fabric(with_barrier(*collectives), width=1, top="stream", beat=1)
    assert prove(fabric, cache=Cache()).proved


@pytest.mark.long
@pytest.mark.parametrize(
    ("topology", "collectives", "options"),
    [
        ("3x3", ["allgather"], {"flits": 3}),
        ("2x3", ["allreduce"], {"flits": 6}),
        ("3x3", ["gather"], {"flits": 2, "root": "any"}),
        ("3x3", ["scatter"], {"max_flits": 3, "root": "any"}),
        ("2x3", ["alltoall", "broadcast", "allreduce"], {"max_flits": 4, "root": "any"}),
    ],
)
def test_nodes_with_streams_are_proved(topology, collectives, options):
    schedules = [tf.plan(topology, collective) for collective in collectives]
    program = tf.compile(schedules if len(schedules) > 1 else schedules[0], **options)
    assert prove(tf.Fabric(program, width=2, top="stream", beat=1), cache=Cache()).proved


def test_the_command_says_what_is_proved_and_what_is_assumed(capsys):
    assert main(["prove", "3x3", "alltoall", "--width", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["proved"]
    assert found["assumptions"]
    assert all(module.keys() >= {"name", "properties", "seconds"} for module in found["modules"])


def test_a_missing_solver_is_said_at_once(monkeypatch):
    """A missing solver is reported before any Verilog is emitted."""
    monkeypatch.setenv("Z3", "no-such-program")
    monkeypatch.setattr(sys.modules["torusfabric.proof.prove"], "emit", None)
    with pytest.raises(tf.MissingTool, match="z3"):
        proof_of("2x2", "allgather")
