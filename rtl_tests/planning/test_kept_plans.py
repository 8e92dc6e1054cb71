"""Plans in the cache: an equal request reads the plan, and any other request plans anew."""

import pytest

import torusfabric as tf
from torusfabric.planning import make_selection, selection_schedule
from torusfabric.planning.selection_schedule import schedule_of_selection
from torusfabric.toolchain.cache import Cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache, with every network treated as a large one."""
    monkeypatch.setenv("TORUSFABRIC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(selection_schedule, "LARGE_NETWORK_CELLS", 0)
    return tmp_path / "cache"


def plan(collective="allgather", topology="4x4!0:+0", **options):
    """Return a plan by the planner for any network."""
    return schedule_of_selection(
        make_selection(topology, collective, algorithm="any-network", **options)
    )


@pytest.mark.parametrize(
    "kind", ["allgather", "reduce-scatter", "scatter", "alltoall", "allreduce"]
)
def test_kept(folder, monkeypatch, kind):
    """A plan that is read from the cache equals the plan that was written."""
    options = {"link_latency": 2, **({"trees": 3, "chunks": 6} if kind == "allreduce" else {})}
    first = plan(kind, **options)
    monkeypatch.setattr(Cache, "put", None)
    again = plan(kind, **options)
    tf.check(again)
    assert again.digest == first.digest
    assert again.topology == first.topology
    with pytest.raises(TypeError):
        plan(kind)  # another link latency makes another network


def test_others_are_planned(folder, monkeypatch):
    """Other options and other faults have entries of their own.

    Plans that are too large have none.
    """
    written = []
    monkeypatch.setattr(Cache, "put", lambda self, key, *_: written.append(key))
    for options in ({}, {"seed": 1}, {"chunks": 2}, {"topology": "4x4!0:+1"}):
        plan(**options)
    monkeypatch.setattr(selection_schedule, "MOST_BLOCKS", 10)
    plan()
    assert len(set(written)) == len(written) == 4


def test_damage_is_planned_anew(folder):
    """A damaged cache entry is ignored, and the plan is made anew."""
    first = plan()
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:100])
    assert plan().digest == first.digest
