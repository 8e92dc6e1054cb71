"""Simulations drawn at random: whatever is not refused in a line is right, to the word."""

import random

import pytest

from torusfabric.cli import main

TOPOLOGIES = [
    "2",
    "3",
    "4",
    "5",
    "7",
    "2x2",
    "2x3",
    "3x3",
    "4x2",
    "4x4",
    "5x3",
    "2x2x2",
    "mesh:3",
    "mesh:3x3",
    "4|x3",
    "cube:3",
    "circulant:8:1,3",
    "4x2~1",
    "complete:5",
]
KINDS = [
    "broadcast",
    "scatter",
    "gather",
    "allgather",
    "alltoall",
    "reduce",
    "reduce-scatter",
    "allreduce",
    "exchange",
    "halo",
]

#: Options, and how likely each is.
OPTIONS = [
    (0.3, "--width", "1 3 8 16 64"),
    (0.1, "--root", "0 1 any"),
    (0.2, "--broken-link", "0:+0 1:-0 2:+1"),
    (0.1, "--broken-node", "0 1 3"),
    (0.3, "--link-latency", "2 3 0:2 5 2,1:+0=6"),
    (0.1, "--forms", "short long all"),
    (0.2, "--beat", "1 2 4 auto"),
    (0.2, "--chunks", "1 2 3 4"),
    (0.3, "--jobs", "3 10"),
]


def drawn(seed):
    """A command."""
    draw = random.Random(seed)
    kinds = draw.sample(KINDS, draw.choice([1, 1, 2, 2, 3]))
    words = ["simulate", draw.choice(TOPOLOGIES), ",".join(kinds)]
    words += ["--max-flits", draw.choice(["1", "2", "3", "5", "8", "13"])]
    tops = ["--top stream", "--top stream", "--tables ram", "--top stream --tables ram", ""]
    words += draw.choice(tops).split()
    for likely, name, values in OPTIONS:
        if draw.random() < likely:
            words += [name, draw.choice(values.split())]
    return words


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200))
def test_nothing_is_wrong(seed, capsys):
    words = drawn(seed)
    status, said = main([*words, "--quiet"]), capsys.readouterr()
    assert status == 0 or (status == 1 and said.err.startswith("torusfabric: ")), said.err
