"""How much of the links is used: counted from the transfers, whatever the form of a schedule."""

import json
from collections import Counter

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.analysis.facts import in_words, schedule_facts
from torusfabric.analysis.link_use import busy_arcs, link_use
from torusfabric.cli import main
from torusfabric.draw import heat_map

SELECTIONS = [
    ("4x4", "allgather", "hamiltonian", "pattern"),
    ("3x3", "alltoall", "matching", "table"),
    ("2x3", "allreduce", "matching", "table"),
    ("3x4", "scatter", "matching", "rounds"),
    ("5x5", "broadcast", "lee-code", "rounds"),
    ("3x4", "alltoall@1", None, "table"),
    ("4x4", "allgather@0", "hamiltonian", "pattern"),
    ("2x2x3", "broadcast@0+2", "max-flow", "rounds"),
    ("2x2x3", "broadcast@0+2", None, "pattern"),
]


def counted(schedule):
    """The arcs of all paths, round by round."""
    for transfers in schedule.rounds():
        nodes = transfers.walk(schedule.topology)
        yield Counter(
            (int(nodes[k, hop]), int(port))
            for k, ports in enumerate(transfers.hops)
            for hop, port in enumerate(ports)
            if port >= 0
        )


@pytest.mark.parametrize(("topology", "collective", "algorithm", "form"), SELECTIONS)
def test_all_forms(topology, collective, algorithm, form):
    """Each arc counts once a round."""
    schedule = tf.plan(topology, collective, algorithm=algorithm)
    assert schedule.form == form
    rounds = list(counted(schedule))
    use = link_use(schedule)
    assert use.of_round.tolist() == [len(arcs) for arcs in rounds]
    total: Counter[tuple[int, int]] = sum(rounds, Counter())
    assert {arc: int(use.of_arc[arc]) for arc in total} == dict(total)
    assert use.of_arc.sum() == sum(total.values())
    assert use.unused == use.of_arc.size - len(total)
    for busy, arcs in zip(busy_arcs(schedule), rounds, strict=True):
        assert set(zip(*map(np.ndarray.tolist, np.nonzero(busy)), strict=True)) == set(arcs)


def test_in_words():
    """What stands in the report."""
    schedule = tf.plan("4x4", "reduce-scatter", algorithm="matching")
    facts = schedule_facts(schedule) | {"links": link_use(schedule).to_json()}
    assert facts["links"]["by_round"] == [48, 64, 64, 64]
    assert in_words(facts)["links"] == "93.8 % of their time used, most idle in step 1: 16 arcs"
    schedule = tf.plan("3x4", "alltoall@1", algorithm="matching")
    facts = schedule_facts(schedule) | {"links": link_use(schedule).to_json()}
    assert facts["links"]["use"] == 0.3333
    assert ", 24 of 48 arcs never" in in_words(facts)["links"]


def test_heat_map(tmp_path, capsys):
    """The picture shows what is idle; too large a one is refused."""
    path = tmp_path / "links.svg"
    assert main(["draw", "3x4", "alltoall@1", "--links", "-o", str(path), "--json"]) == 0
    links = json.loads(capsys.readouterr().out)["links"]
    assert links["unused"] == 24
    text = path.read_text()
    assert text.startswith("<svg")
    assert "24 of 48 arcs never" in text
    with pytest.raises(tf.InputError, match="Arcs times steps must be at most 1048576 for a heat"):
        heat_map(tf.plan("32x32", "allgather", algorithm="hamiltonian"))
