"""Values of the interface are pickled, copied, compared and printed, and cannot be written."""

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
    """A value that comes out of a pickle."""
    return pickle.loads(pickle.dumps(value))


def arrays(value):
    """The arrays that a value has, those of its public properties too."""
    names = [name for name in dir(type(value)) if not name.startswith("_")] + [*vars(value)]
    found = [getattr(value, name) for name in names if name != "all_distances"]
    return [one for one in found if isinstance(one, np.ndarray)]


@pytest.mark.parametrize("copied", [again, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("options", FABRICS, ids=str)
def test_fabrics(options, copied):
    """A copy of a fabric has the same text; so has one of a design."""
    program = tf.compile(tf.plan("2x2", "allreduce"), max_flits=4, operators="add,max")
    fabric = tf.Fabric(program, width=8, **options)
    design = tf.emit(fabric)
    assert tf.emit(copied(fabric)).text == design.text
    assert copied(design) == design


def test_a_fabric_from_a_pickle_runs():
    """Work of others gets a fabric by a pickle, and simulates it."""
    fabric = tf.Fabric(tf.compile(tf.plan("3", "allgather"), max_flits=2), width=8)
    assert tf.simulate(again(fabric)).cycles == tf.simulate(fabric).cycles


@pytest.mark.parametrize("name", ["matching", "spanning-tree"])
def test_algorithms(name):
    """An algorithm of the catalogue comes out of a pickle as the same entry."""
    algorithm = find_algorithm(name)
    assert again(algorithm) is copy.deepcopy(algorithm) is algorithm
    other = replace(algorithm, summary="another")
    assert copy.copy(other) is not algorithm
    assert copy.copy(other).summary == "another"


@pytest.mark.parametrize("copied", [again, copy.copy, copy.deepcopy])
@pytest.mark.parametrize(("network", "collective", "options"), PLANS)
def test_equal_plans(network, collective, options, copied):
    """Plans and programs of the same are equal, those of something else are not."""
    plan = tf.plan(network, collective, **options)
    program = tf.compile(plan, max_flits=plan.chunks)
    same = copied(plan), tf.plan(network, collective, **options)
    assert {plan, *same} == {plan}
    assert {program, copied(program), tf.compile(plan, max_flits=plan.chunks)} == {program}
    assert plan != tf.plan(network, "broadcast")
    assert program != tf.compile(plan, max_flits=plan.chunks * 2)
    assert plan != program


def test_a_plan_from_a_file_is_equal(tmp_path):
    """A file keeps all that plans are compared by."""
    plan = tf.plan("3x3", "alltoall")
    plan.save(tmp_path / "plan.json")
    assert tf.load(tmp_path / "plan.json") == plan


@pytest.mark.parametrize("copied", [lambda value: value, again])
@pytest.mark.parametrize("network", NETWORKS)
def test_arrays_of_networks(network, copied):
    """No array of a network can be written, since all plans on it rely on it."""
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
    """No array of a plan can be written."""
    plan = copied(tf.plan(network, collective, **options))
    for transfers in plan.rounds():
        for array in (transfers.source, transfers.hops, *vars(transfers.payload).values()):
            assert not array.flags.writeable
    assert not any(array.flags.writeable for array in vars(plan).values()
                   if isinstance(array, np.ndarray))  # fmt: skip


def test_values_are_printed_in_short():
    """What has long texts or tables is printed by what it is."""
    loaded = tf.Fabric(tf.compile(tf.plan("3x3", "allgather"), max_flits=4), tables="ram")
    for value in (tf.emit(loaded), tf.image(loaded, "alltoall"), tf.plan("mesh:3x3", "alltoall")):
        assert len(repr(value)) < 300
