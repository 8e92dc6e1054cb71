"""Reduce-scatters and all-reduces without symmetry, whose adders are at the injection ports."""

from dataclasses import fields
from random import Random

import msccl_generators as generators
import numpy as np
import pytest
from helpers import few
from hypothesis import given, settings
from hypothesis import strategies as st

import torusfabric as tf
from torusfabric.collective import expected_words, random_messages
from torusfabric.schedule import Rounds


def in_rounds(schedule):
    """Return the schedule with its transfers listed, so that the hardware knows no symmetry."""
    common = {f.name: getattr(schedule, f.name) for f in fields(Rounds)
              if f.name not in ("transfers", "broken_links")}  # fmt: skip
    return Rounds(**common, transfers=tuple(schedule.rounds()))


def imported(tmp_path, text, topology, placement="identity"):
    """Import and check a schedule from a text in MSCCL's format."""
    path = tmp_path / "file.xml"
    path.write_text(text)
    schedule = tf.import_schedule(path, topology, placement=placement)
    tf.check(schedule)
    assert schedule.form == "rounds"
    return schedule


@pytest.mark.parametrize("flits", [pytest.param(None, marks=pytest.mark.long), 16])
def test_halving_and_doubling(tmp_path, flits):
    """Recursive halving and doubling runs, although its partners are no translations."""
    text = generators.halving_doubling_allreduce(8)
    program = tf.compile(imported(tmp_path, text, "2x4", "gray"), flits=flits)
    assert tf.simulate(tf.Fabric(program, width=8)).passed


@pytest.mark.parametrize(
    ("topology", "kind", "options"),
    few(
        2,
        [
            ("2x3", "reduce-scatter", {"flits": 4}),
            ("3", "allreduce", {"flits": 7, "operators": ["max"]}),
            ("2x2", "allreduce", {"max_flits": 9}),
            ("3", "reduce-scatter", {"max_flits": 3, "operators": ["add", "xor"]}),
            pytest.param("3x3", "allreduce", {"flits": 9}, marks=pytest.mark.long),
            pytest.param("4x4", "reduce-scatter", {"flits": 2}, marks=pytest.mark.long),
        ],
    ),
)
def test_tables_as_rounds(topology, kind, options):
    """Tables listed as rounds run with any length, several operators, and partial blocks."""
    schedule = in_rounds(tf.plan(topology, kind, algorithm="matching"))
    assert tf.simulate(tf.Fabric(tf.compile(schedule, **options), width=8)).passed


def along_trees(torus, chunks, random):
    """Return an all-reduce of each chunk along a random tree, up to its root and down again."""
    program = generators.Program("trees", "allreduce", torus.nodes, chunks)
    for chunk in range(chunks):
        reached, links = [random.randrange(torus.nodes)], []
        while len(reached) < torus.nodes:
            node = random.choice(reached)
            new = sorted(set(torus.neighbours[node].tolist()) - set(reached))
            if new:
                links.append((random.choice(new), node))
                reached.append(links[-1][0])
        for child, parent in reversed(links):
            program.move(child, parent, chunk, add=True, buffer="i")
        for child, parent in links:
            program.move(parent, child, chunk, buffer="i")
    return program.text()


@settings(max_examples=12, deadline=None)
@given(st.sampled_from([(4,), (2, 3), (3, 3)]), st.integers(1, 3), st.integers(0, 2**16))
def test_any_trees(tmp_path_factory, sides, chunks, seed):
    """Programs of all-reduces along random trees deliver the sums."""
    random, torus = Random(seed), tf.Torus(sides)
    schedule = imported(tmp_path_factory.mktemp("trees"), along_trees(torus, chunks, random), torus)
    program = tf.compile(schedule, flits=2 * chunks)
    messages = random_messages(program.layout, 2 * chunks, width=8, seed=seed)
    wanted, receives = expected_words(program.layout, messages, width=8)
    assert receives.all()
    assert np.array_equal(program.execute(messages, width=8), wanted)


@pytest.mark.parametrize("latency", [9, 12])
def test_the_last_round_is_whole(latency):
    """The last round ends as a whole, even if it waits for its links longer than for its words."""
    schedule = tf.plan("4!0:+0", "reduce-scatter", link_latency=latency)
    alone = tf.compile(schedule, max_flits=6)
    assert sum(alone.timing.drain_cycles_by_purpose.values()) == alone.timing.drain_cycles == 0
    several = tf.compile([schedule, tf.plan(schedule.topology, "scatter")], max_flits=6)
    for program in (alone, several):
        assert tf.simulate(tf.Fabric(program, width=8)).passed
