"""Public values can be pickled, copied, compared and printed, and their arrays are read-only."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.algorithms import find_algorithm

NETWORKS = ("3x3", "mesh:2x3", "4x2~1", "arrowhead:1", "circulant:5:1,2", "cube:3", "3x3!0:+0")

#: A plan of each form.
PLANS = [
    ("3x3", "allgather", {}),
    ("3x3", "alltoall", {"algorithm": "matching"}),
    ("3x4", "allgather@1", {}),
    ("mesh:2x3", "alltoall", {}),
    ("3x3", "reduce", {"algorithm": "spanning-tree"}),
]

FABRICS = [{}, {"top": "stream"}, {"bus": "axi4"}, {"tables": "ram"}, {"prefix": "mine_"}]


def again(value):
    """Return the value after a round trip through a pickle."""
    return pickle.loads(pickle.dumps(value))


def arrays(value):
    """Return the arrays among the attributes and public properties of a value."""
    names = [name for name in dir(type(value)) if not name.startswith("_")] + [*vars(value)]
    found = [getattr(value, name) for name in names if name != "all_distances"]
    return [one for one in found if isinstance(one, np.ndarray)]


@pytest.mark.parametrize("copied", [again, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("options", FABRICS, ids=str)
def test_fabrics(options, copied):
    """A copy of a fabric gives the same Verilog, and a copy of a design equals the design."""
    program = tf.compile(tf.plan("2x2", "allreduce"), max_flits=4, operators="add,max")
    fabric = tf.Fabric(program, width=8, **options)
    design = tf.emit(fabric)
    assert tf.emit(copied(fabric)).text == design.text
    assert copied(design) == design


def test_a_fabric_from_a_pickle_runs():
    """A fabric that was pickled for another process can be simulated."""
    fabric = tf.Fabric(tf.compile(tf.plan("3", "allgather"), max_flits=2), width=8)
    assert tf.simulate(again(fabric)).cycles == tf.simulate(fabric).cycles


@pytest.mark.parametrize("name", ["matching", "spanning-tree"])
def test_algorithms(name):
    """A pickled algorithm of the catalogue is restored as the same object."""
    algorithm = find_algorithm(name)
    assert again(algorithm) is copy.deepcopy(algorithm) is algorithm
    other = replace(algorithm, summary="another")
    assert copy.copy(other) is not algorithm
    assert copy.copy(other).summary == "another"


@pytest.mark.parametrize("copied", [again, copy.copy, copy.deepcopy])
@pytest.mark.parametrize(("network", "collective", "options"), PLANS)
def test_equal_plans(network, collective, options, copied):
    """Plans and programs of one selection are equal; those of other selections differ."""
    plan = tf.plan(network, collective, **options)
    program = tf.compile(plan, max_flits=plan.chunks)
    same = copied(plan), tf.plan(network, collective, **options)
    assert {plan, *same} == {plan}
    assert {program, copied(program), tf.compile(plan, max_flits=plan.chunks)} == {program}
    assert plan != tf.plan(network, "broadcast")
    assert program != tf.compile(plan, max_flits=plan.chunks * 2)
    assert plan != program


def test_a_plan_from_a_file_is_equal(tmp_path):
    """A plan that is read from a file equals the plan that was saved."""
    plan = tf.plan("3x3", "alltoall")
    plan.save(tmp_path / "plan.json")
    assert tf.load(tmp_path / "plan.json") == plan


@pytest.mark.parametrize("copied", [lambda value: value, again])
@pytest.mark.parametrize("network", NETWORKS)
def test_arrays_of_networks(network, copied):
    """Writing to any array of a network cannot change its table of neighbours."""
    topology = tf.parse_topology(network)
    assert topology.neighbours.shape == topology.linked.shape
    found = arrays(copied(topology))
    assert len(found) > 2
    kept = [one for one in found if one.flags.writeable and one is not topology.all_distances]
    before = topology.neighbours.copy()
    for array in kept:
        array[...] = 0
    assert (topology.neighbours == before).all(), "an array that is made anew"
    with pytest.raises(ValueError, match="read-only"):
        copied(topology).neighbours[0] = 0


@pytest.mark.parametrize("copied", [lambda value: value, again])
@pytest.mark.parametrize(("network", "collective", "options"), PLANS)
def test_arrays_of_plans(network, collective, options, copied):
    """Arrays of a plan are read-only."""
    plan = copied(tf.plan(network, collective, **options))
    for transfers in plan.rounds():
        for array in (transfers.source, transfers.hops, *vars(transfers.payload).values()):
            assert not array.flags.writeable
    assert not any(array.flags.writeable for array in vars(plan).values()
                   if isinstance(array, np.ndarray))  # fmt: skip


def test_values_are_printed_in_short():
    """The printed form of a value with long texts or tables is short."""
    loaded = tf.Fabric(tf.compile(tf.plan("3x3", "allgather"), max_flits=4), tables="ram")
    for value in (tf.emit(loaded), tf.image(loaded, "alltoall"), tf.plan("mesh:3x3", "alltoall")):
        assert len(repr(value)) < 300
