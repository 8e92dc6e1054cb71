"""Wrong values in every parameter of the Python interface give a result or a torusfabric error."""

import inspect
import random
from dataclasses import replace

import numpy as np
import pytest
from fuzzing.calls import SLOW, CallFuzzer, wrong_values

import torusfabric as tf
from torusfabric.algorithms import find_algorithm
from torusfabric.algorithms.catalogue import BUILT_IN, Catalogue
from torusfabric.analysis.facts import schedule_facts
from torusfabric.planning import choice

#: Number of wrong values that are tried in each parameter.
SAMPLE = 3


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory):
    """A fuzzer with a valid call of each public name."""
    return CallFuzzer(tmp_path_factory.mktemp("calls"))


def test_every_public_name_is_called(fuzzer):
    """Every public name that can be called is in the table of calls."""
    made = {value for name in tf.__all__ if callable(value := getattr(tf, name))}
    known = {name.partition(".")[0] for name in fuzzer.calls}
    abstract = {value for value in made if inspect.isabstract(value) or value is tf.Program}
    errors = {value for value in made if isinstance(value, type) and issubclass(value, Exception)}
    public = {name for name in tf.__all__ if getattr(tf, name) in made - abstract - errors}
    assert public - known == {"Candidate", "Collision"}, "plain results"


def test_a_wrong_value_in_each_parameter(fuzzer, monkeypatch):
    """Random wrong values in each parameter give a result, or a torusfabric error of one line."""
    monkeypatch.chdir(fuzzer.folder)
    draw = random.Random(5)
    faults = []
    for name, call in fuzzer.calls.items():
        for parameter in call.parameters if name not in SLOW else ():
            for wrong in draw.sample(wrong_values(parameter), SAMPLE):
                try:
                    fuzzer.run((name, parameter, wrong))
                except tf.TorusfabricError as error:
                    if "\n" in str(error) or not str(error):
                        faults.append(f"{name}({parameter}={wrong}): {error}")
                except Exception as error:
                    faults.append(f"{name}({parameter}={wrong}): {error!r}")
    assert faults == []


def small():
    """Return a small fabric."""
    return tf.Fabric(tf.compile(tf.plan("2", "allgather")), width=8)


def table(**values):
    """Return a checked table of an all-gather on a ring of three nodes."""
    usual = {"offset": np.array([[1, 2]]), "chunk": np.array([[0, 0]])}
    ring = {"topology": tf.Torus(3), "collective": tf.Collective("allgather")}
    return tf.check(tf.Table(**ring | usual | values))


#: Wrong calls and their messages.
REFUSED = [
    (lambda: tf.Torus(b"3"), "Sides of a torus must be integers of at least 2, not \"b'3'\""),
    (lambda: tf.Circulant(5, b"\1"), "Offsets of a circulant of 5 nodes must be different"),
    (lambda: tf.Faulty(5, ["0:+0"]), "whole must be a Topology, not 5"),
    (lambda: tf.parse_collective("allgather", offsets=3), "offsets must be a list of texts"),
    (lambda: tf.parse_collective("allgather", topology=3), "Topology must be a Topology, such as"),
    (lambda: tf.emit(small(), ram=None), "ram must be text, not None"),
    (lambda: tf.emit(small(), templates="yes"), "templates must be True or False, not 'yes'"),
    (
        lambda: tf.bound(tf.plan("3", "allgather"), 3),
        "traffic must be a CheckedTraffic or None, not 3",
    ),
    (lambda: tf.check(tf.plan("3", "allgather"), progress=3), "progress must be a function"),
    (lambda: tf.simulate(small(), repeat=10**30), "Results must fit in memory"),
    (lambda: tf.simulate(small(), jobs=10**30), "Results must fit in memory"),
    (lambda: tf.synthesize(small(), "ecp5-25k", seeds=10**30), "Results must fit in memory"),
    (lambda: tf.Fabric(small().program, timeout=2**63 - 1), "Timeout must be at most 4294967295,"),
    (lambda: table(offset=[[1.0, 2.0]]), "Offset must be an array of integers with 2 axes, not"),
    (lambda: table(chunk=[[0], [0, 0]]), "Chunk must be an array of integers with 2 axes, not"),
    (lambda: table(topology="3"), "Topology must be a Topology, such as tf.Torus"),
    (lambda: table(topology=tf.Mesh([3])), "Topology must be a Cayley graph, such as a torus, not"),
    (lambda: table(chunks=10**30), "Chunks must be at most 33554432, not 1000"),
    (lambda: tf.Collective("allgather", root="x"), "Root must be a non-negative integer, not 'x'"),
    (lambda: tf.Collective("exchange", offsets=(3,)), "Offsets must be a list of texts, not 3"),
    (lambda: tf.Torus(3).node_name(10**30), "Nodes of 3 must be from 0 to 2, not 1000"),
    (lambda: tf.Torus(3).arc_name(0, 9), "Port of 3 must be from 0 to 1, not 9"),
    (lambda: tf.Transfers([0], [0]), "Hops must be an array of integers with 2 axes, not"),
    (lambda: schedule_facts(3), "Schedule must be a schedule, as tf.plan"),
    (lambda: small().program.delivered(3), "Words must be integers of shape"),
    (lambda: tf.load("a\0b"), "must be a path without a byte of 0"),
    (
        lambda: tf.register_algorithm(replace(find_algorithm("matching"), name=5)),
        "name of Algorithm must be",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[text for _, text in REFUSED])
def test_a_wrong_value_is_named(call, message):
    """A wrong value is refused with a message that names the parameter and the allowed values."""
    with pytest.raises(tf.InputError) as refused:
        call()
    assert message in str(refused.value)


def test_rounds_of_no_transfers():
    """An invalid round is refused when the schedule is made."""
    head = {"topology": tf.Torus(3), "collective": tf.Collective("allgather")}
    with pytest.raises(tf.InputError, match=r"^Transfers must be a list of Transfers, one a round"):
        tf.Rounds(**head, transfers=(5,))


def test_lists_of_numbers_are_tables():
    """A table accepts lists of numbers."""
    assert table(offset=[[1, 2]], chunk=[[0, 0]]).rounds == 1


def test_errors_of_the_user_stay():
    """An exception of a function that the user passed is raised unchanged."""

    def stop(done, total):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tf.check(tf.plan("3", "allgather"), progress=stop)


@pytest.mark.parametrize("part", ["plan", "misfit", "variants"])
def test_an_algorithm_that_raises(part, monkeypatch, caplog):
    """An algorithm that fails is logged and left out of the choice.

    A plan by the name of this algorithm is refused.
    """

    def fail(*_):
        raise KeyError("boom")

    bad = replace(find_algorithm("matching"), name="bad", **{part: fail})
    monkeypatch.setattr(choice, "CATALOGUE", Catalogue([bad, *BUILT_IN]))
    for options in ({}, {"flits": 8}, {"objective": "time", "costs": {"alpha": 1}}):
        assert (tf.plan("3x3", "alltoall", **options).algorithm != "bad") or part == "variants"
    assert f"Algorithm bad failed, because its {part} raises KeyError: 'boom'" in caplog.text
    if part != "variants":
        with pytest.raises(tf.InputError, match=r"^Algorithm bad (failed|needs another misfit)"):
            tf.plan("3x3", "alltoall", algorithm=bad)
