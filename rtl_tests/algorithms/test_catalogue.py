"""The catalogue: look-up by name, choice of an algorithm, and algorithms of other packages."""

import re
from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.algorithms import CATALOGUE, Catalogue, Options, choose_algorithm, find_algorithm
from torusfabric.collective import COLLECTIVES, parse_collective
from torusfabric.errors import InputError
from torusfabric.topology import parse_topology

#: The object that an entry point in a test names.
MINE = replace(find_algorithm("matching"), name="mine")
NO_ALGORITHM = "matching"


def names(catalogue):
    return [algorithm.name for algorithm in catalogue]


def test_names_are_unique_and_collectives_known():
    """Each name is unique, and each collective of an algorithm is known."""
    assert len(set(names(CATALOGUE))) == len(CATALOGUE)
    for algorithm in CATALOGUE:
        assert set(algorithm.collectives) <= set(COLLECTIVES)
        assert find_algorithm(algorithm.name) is algorithm


def test_an_unknown_name_is_refused_with_the_nearest():
    """An unknown name is refused, with the nearest name."""
    with pytest.raises(InputError, match=r"^Algorithm must be one of .*, not 'neclace' \(did"):
        find_algorithm("neclace")


def test_what_is_no_name_is_refused():
    """A value that is no name is refused."""
    with pytest.raises(InputError, match=r"^Algorithm must be one of "):
        find_algorithm(np.array(["matching", "necklace"]))  # type: ignore[arg-type]


@pytest.mark.parametrize("planned", [None, 7])
def test_an_algorithm_must_plan_a_schedule(planned):
    """An algorithm whose plan is no schedule is refused in one line."""
    mine = replace(MINE, plan=lambda *_: planned)
    with pytest.raises(
        InputError, match=r"^Algorithm mine failed, because its plan returns (None|7),"
    ):
        tf.plan("4x4", "allgather", algorithm=mine)


def test_a_plan_has_the_name_of_its_algorithm():
    """A plan has the name of its algorithm, unless it names another one."""
    assert tf.plan("4x4", "allgather", algorithm=MINE).algorithm == "mine"


def test_choice_names_what_each_algorithm_needs():
    """A failed choice names the requirement of each algorithm."""
    torus, collective = parse_topology("3x3"), parse_collective("allreduce")
    with pytest.raises(
        InputError,
        match=r"^No algorithm fits 3x3 allreduce: spanning-tree needs --ports 4, .*; matc",
    ):
        choose_algorithm(torus, collective, Options(ports=3))


def test_a_registered_algorithm_comes_last_or_where_it_is_put():
    """A registered algorithm comes last, or before the algorithm that the caller names."""
    catalogue = Catalogue([find_algorithm("hamiltonian"), find_algorithm("matching")])
    catalogue.register(MINE)
    catalogue.register(replace(MINE, name="first"), before="hamiltonian")
    assert names(catalogue) == ["first", "hamiltonian", "matching", "mine"]
    chosen = catalogue.choose(parse_topology("4x4"), parse_collective("allgather"))
    assert chosen.name == "first"


def test_a_name_is_registered_once():
    """A name can be registered once, and only for an Algorithm."""
    catalogue = Catalogue([MINE])
    message = "Algorithm must have a name of its own, not 'mine'"
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        catalogue.register(MINE)
    with pytest.raises(InputError, match=r"^Algorithm must be an Algorithm, not 'matching'$"):
        catalogue.register("matching")  # type: ignore[arg-type]


def entry(value):
    return lambda group: [EntryPoint("mine", f"{__name__}:{value}", group)]


def test_entry_points_are_read_when_the_catalogue_is(monkeypatch):
    """The catalogue reads entry points when it is first used."""
    monkeypatch.setattr("importlib.metadata.entry_points", entry("MINE"))
    catalogue = Catalogue([find_algorithm("matching")], group="some.group")
    assert catalogue.find("mine").name == "mine"
    assert names(catalogue) == ["matching", "mine"]


@pytest.mark.parametrize("value", ["NO_ALGORITHM", "NOTHING"])
def test_an_entry_point_must_name_an_algorithm(monkeypatch, caplog, value):
    """An entry point that names no algorithm is left out with a warning."""
    monkeypatch.setattr("importlib.metadata.entry_points", entry(value))
    assert names(Catalogue([MINE], group="some.group")) == ["mine"]
    assert "Entry point mine of some.group must name an algorithm, not" in caplog.text
