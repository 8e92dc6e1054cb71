"""The way of a word: cycles are those of the program, stages are in the code that they name."""

from itertools import pairwise
from pathlib import Path

import pytest

import torusfabric as tf
from torusfabric.program.trace import arrivals
from torusfabric.rtl.word_path import word_path

ROOT = Path(tf.__file__).parents[1]


@pytest.mark.parametrize(
    ("topology", "collective", "flits"),
    [("3x3", "allgather", 3), ("4x4", "broadcast", 2), ("2x3", "allreduce", 6), ("4", "reduce", 1)],
)
def test_every_word(topology, collective, flits):
    program = tf.compile(tf.plan(topology, collective), flits=flits)
    last = 0
    for arrival in arrivals(program):
        for flit in (0, arrival.flits - 1):
            path = word_path(program, arrival, flit)
            assert all(0 < b.cycle - a.cycle <= 1 for a, b in pairwise(path)), "no cycle left out"
            there = arrival.cycle + flit * arrival.stride
            (on_last_link,) = (s for s in path if s.cycle == there)
            assert "out-port" in on_last_link.what
            assert path[0].cycle >= program.timing.wait
            last = max(last, path[-1].cycle)
    # A root that adds up in rounds takes one of its own, in which nothing arrives.
    alone = program.loop.rows - program.schedule.round_count if collective == "reduce" else 0
    assert (last == program.cycles()) is (alone == 0)


def test_stages_are_where_they_say():
    program = tf.compile(tf.plan("3x3", "reduce-scatter"))
    for stage in word_path(program, next(arrivals(program))):
        line = (ROOT / stage.file).read_text().splitlines()[stage.line - 1]
        assert line.strip().startswith("def "), line
