"""Schedule files: a written schedule is read again."""

import json
import os
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from schedules_by_hand import (
    SCHEDULES,
    content,
    explicit,
    moves,
    parallel,
    pieces,
    ring,
    written,
)

import torusfabric as tf
from torusfabric.analysis.check import check
from torusfabric.collective import Collective
from torusfabric.errors import InputError, ScheduleError
from torusfabric.schedule import (
    Everything,
    Grouped,
    Listed,
    Rounds,
    Switching,
    writing,
)
from torusfabric.schedule.file import load, save
from torusfabric.schedule.schema import schema
from torusfabric.topology import Torus


def listed(schedule):
    """Yield sources, hops and blocks of each round, as plain values."""
    for transfers in schedule.rounds():
        hops = [[int(p) for p in row if p >= 0] for row in transfers.hops]
        payload = transfers.payload
        if isinstance(payload, Everything):
            blocks: Any = "all"
        else:
            blocks = [b.tolist() for b in np.split(payload.ids, payload.indptr[1:-1])]
        yield transfers.source.tolist(), hops, blocks if len(hops) else "all"


def ids(schedule: Rounds, number: int) -> list[int]:
    """The numbers of the blocks that a round lists."""
    payload = schedule.transfers[number].payload
    assert isinstance(payload, Listed)
    return payload.ids.tolist()


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.algorithm + str(s.collective))
@pytest.mark.parametrize("name", ["a.json", "a.json.gz", "plain"])
def test_round_trip(schedule, name, tmp_path):
    """A schedule that is read equals the written one, with the same report or fault."""
    save(schedule, tmp_path / name)
    again = load(tmp_path / name)
    for field in ("topology", "collective", "algorithm", "switching", "ports", "chunks", "duplex"):
        assert getattr(again, field) == getattr(schedule, field)
    if not any(isinstance(t.payload, Grouped) for t in schedule.rounds()):
        assert list(listed(again)) == list(listed(schedule))
    assert outcome(again) == outcome(schedule)
    assert os.listdir(tmp_path) == [name], "nothing else is left behind"


def outcome(schedule):
    """The report of a schedule, or its fault."""
    try:
        return check(schedule)
    except ScheduleError as error:
        return str(error)


def test_digests_tell_schedules_apart():
    """Different schedules have different digests, and equal schedules have equal digests."""
    others = {
        "topology": Torus([2, 3]), "collective": Collective("broadcast"), "algorithm": "other",
        "switching": Switching.CIRCUIT, "ports": 1, "steps": 2, "feed": np.zeros((6, 2), int),
        "inject": np.ones((6, 2), int),
    }  # fmt: skip
    digests = {replace(ring(), **{name: value}).digest for name, value in others.items()}
    assert len(digests | {ring().digest}) == len(others) + 1
    assert replace(ring(), ports=2).digest == ring().digest


@pytest.mark.parametrize("name", ["a.json", "b.json.gz"])
def test_bytes_are_reproducible(name, tmp_path):
    """The bytes of a file depend neither on time nor on folder, and a file read and written again
    is the same.
    """
    (tmp_path / "other").mkdir()
    save(ring(), tmp_path / name)
    first = (tmp_path / name).read_bytes()
    save(ring(), tmp_path / "other" / ("x" + name))
    assert (tmp_path / "other" / ("x" + name)).read_bytes() == first
    save(load(tmp_path / name), tmp_path / name)
    assert (tmp_path / name).read_bytes() == first


def test_the_format(tmp_path):
    """A file has the documented form, one line for each round, without full duplex."""
    save(explicit((3, 3), Collective("broadcast", 4), moves([4], [[0, 2]])), tmp_path / "x")
    assert (tmp_path / "x").read_text() == (
        '{"format": "torusfabric-schedule", "version": 1, "topology": {"kind": "torus", "sides": '
        '[3, 3]}, "collective": {"kind": "broadcast", "root": 4}, "algorithm": "by hand", '
        '"switching": "circuit", "ports": 4, "chunks": 1, "rounds": [\n'
        '[{"path": [4, 7, 8], "blocks": "all"}]\n'
        "]}\n"
    )


def test_nobody_need_say_what_planned_it(tmp_path):
    """Algorithm and ports may be left out; all ports are then used."""
    rounds = explicit((3, 3), Collective("broadcast", 4), moves([4], [[0, 2]]))
    fields = {"topology": rounds.topology, "collective": rounds.collective}
    save(Rounds(**fields, switching=Switching.CIRCUIT, transfers=rounds.transfers), tmp_path / "x")
    read = load(tmp_path / "x")
    assert (read.algorithm, read.ports) == ("unnamed", 4)


def test_parallel_links_and_half_duplex_are_kept(tmp_path):
    """Half duplex is kept, and paths over one of two parallel links name their out-ports."""
    save(parallel(), tmp_path / "x")
    data = json.loads((tmp_path / "x").read_text())
    assert data["duplex"] == "half"
    assert data["rounds"] == [
        [
            {"path": [0, 3], "via": ["+0"], "blocks": [[0, 0], [0, 1]]},
            {"path": [0, 3], "via": ["-0"], "blocks": [[0, 0]]},
        ],
        [],
    ]


@pytest.mark.parametrize("port", [1, "-0", "1"])
def test_via_takes_names_and_numbers(port, tmp_path):
    """A link is named by the name or number of its out-port."""
    rounds = [[{"path": [0, 3, 4], "via": [port, "+1"], "blocks": "all"}]]
    (transfers,) = load(written(tmp_path, content(rounds=rounds))).rounds()
    assert transfers.hops.tolist() == [[1, 2]]


def on_ring(tmp_path, side, kind, rounds) -> Rounds:
    """Rounds on a ring, read from a file."""
    data = content(
        topology={"kind": "torus", "sides": [side]}, collective={"kind": kind}, ports=2,
        rounds=rounds,
    )  # fmt: skip
    schedule = load(written(tmp_path, data))
    assert isinstance(schedule, Rounds)
    return schedule


def test_lists_and_all_may_be_mixed_in_a_round(tmp_path):
    """In a round with lists, "all" is replaced by the blocks that the node holds."""
    rounds = [
        [{"path": [1, 0], "blocks": "all"}],
        [{"path": [0, 2], "blocks": "all"}, {"path": [1, 2], "blocks": [[1, 0]]}],
        [{"path": [2, 1], "blocks": "all"}, {"path": [2, 0], "blocks": [[2, 0]]}],
    ]
    schedule = on_ring(tmp_path, 3, "allgather", rounds)
    assert isinstance(schedule.transfers[0].payload, Everything)
    assert ids(schedule, 1) == [0, 1, 1]
    assert ids(schedule, 2) == [0, 1, 2, 2]
    assert check(schedule).round_blocks == (1, 2, 3)


def test_mixed_rounds_of_a_reduction(tmp_path):
    """In a reduction, "all" means the partial sums that a node has not yet sent."""
    rounds = [
        [{"path": [1, 0], "blocks": "all"}, {"path": [2, 3], "blocks": [[2, 0]]}],
        [{"path": [3, 0], "blocks": "all"}],
        [{"path": [0, 1], "blocks": "all"}, {"path": [0, 3], "blocks": [[i, 0] for i in range(4)]}],
    ]
    schedule = on_ring(tmp_path, 4, "allreduce", rounds)
    assert ids(schedule, 0) == [1, 2]
    assert ids(schedule, 2) == [0, 1, 2, 3] * 2
    with pytest.raises(
        ScheduleError, match=r"^After 3 rounds: node 2 \(2\) ends without block \(0, 0\)$"
    ):
        check(schedule)


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [("reduce", "spanning-tree"), ("reduce-scatter", "matching"), ("allreduce", "necklace"),
     ("allreduce@1", "matching"), ("reduce", "diagonal")],
)  # fmt: skip
def test_many_contributions_are_named_as_sums(kind, algorithm, monkeypatch, tmp_path):
    """A sum of many contributions is written as one entry, and read as its contributions."""
    schedule = tf.plan("3x3", kind, algorithm=algorithm)
    save(schedule, tmp_path / "listed.json")
    monkeypatch.setattr(writing, "MOST_LISTED", 0)
    save(schedule, tmp_path / "named.json")
    text = (tmp_path / "named.json").read_text()
    assert '["*", ' in text
    named, by_one = (list(listed(load(tmp_path / f"{how}.json"))) for how in ("named", "listed"))
    for (*hops, sums), (*expected, contributions) in zip(named, by_one, strict=True):
        assert hops == expected
        assert [*map(sorted, sums)] == [*map(sorted, contributions)]
    check(load(tmp_path / "named.json"))
    Draft202012Validator(schema()).validate(json.loads(text))


def test_sums_that_are_not_whole_stay_listed(monkeypatch, tmp_path):
    """A partial sum stays listed: an entry for the whole sum would hide a wrong schedule."""
    monkeypatch.setattr(writing, "MOST_LISTED", 0)
    four = {"kind": "torus", "sides": [4]}
    rounds = [[{"path": [2, 1], "blocks": [[2, 0]]}], [{"path": [1, 0], "blocks": [[2, 0]]}]]
    wrong = content(topology=four, collective={"kind": "reduce", "root": 0}, ports=2, rounds=rounds)
    save(load(written(tmp_path, wrong)), tmp_path / "b.json")
    assert json.loads((tmp_path / "b.json").read_text())["rounds"][1] == rounds[1]
    with pytest.raises(ScheduleError):
        check(load(tmp_path / "b.json"))


def test_groups_too_many_to_list(monkeypatch, tmp_path):
    """No file is written if the blocks of a group cannot be listed."""
    monkeypatch.setattr("torusfabric.schedule.held_blocks.MOST_BYTES", 15)
    with pytest.raises(InputError, match=r"^Blocks to be listed must be at most 3, not 4$"):
        save(pieces(), tmp_path / "x.json")
    assert os.listdir(tmp_path) == []


def test_a_large_file_is_read_quickly(tmp_path):
    """A pattern with a hundred thousand transfers is read within 15 seconds."""
    path = tmp_path / "large.json"
    save(ring(160), path)
    began = time.perf_counter()
    schedule = load(path)
    assert schedule.form == "pattern"
    assert time.perf_counter() - began < 15
