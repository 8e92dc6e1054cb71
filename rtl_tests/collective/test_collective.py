"""Collectives and their blocks, and the operators that combine words."""

import functools
from typing import Any

import numpy as np
import pytest
from helpers import NAMED_COLLECTIVES
from hypothesis import given, settings
from hypothesis import strategies as st

from torusfabric.collective import (
    COLLECTIVES,
    EVERY_NODE,
    OPERATORS,
    SIGNED,
    Collective,
    Operator,
    expected_words,
    parse_collective,
    random_messages,
)
from torusfabric.errors import InputError
from torusfabric.topology import Arrowhead, Torus

TORUS = Torus([2, 3])
NODES = range(6)


@pytest.mark.parametrize("kind", COLLECTIVES)
def test_aliases(kind):
    """Each alias of a collective is parsed, in any case and with blanks for hyphens."""
    for alias in COLLECTIVES[kind].aliases:
        traffic = [(0, 1)] if kind == "pattern" else None
        name = alias.upper().replace("-", " ")
        assert parse_collective(name, traffic=traffic).kind == kind


def test_eight_of_nine_combinations_of_content_and_target_and_three_local():
    """The collectives are eight combinations of content and target, and three local ones."""
    entries = [COLLECTIVES[kind] for kind in NAMED_COLLECTIVES]
    assert len({(entry.content, entry.target, entry.local) for entry in entries}) == 10
    local = [kind for kind, entry in COLLECTIVES.items() if entry.local]
    assert local == ["exchange", "halo", "pattern"]


def delivered(kind, sent, root, chunks):
    """Return the words that each node must receive, or None for a node that receives none."""
    total = [sum(column) for column in zip(*sent, strict=True)]
    everything = [word for words in sent for word in words]
    share = len(sent[0]) // len(NODES)

    def part(words, node):
        return words[node * share : (node + 1) * share]

    match kind:
        case "broadcast":
            return [sent[root] for _ in NODES]
        case "allgather":
            return [everything for _ in NODES]
        case "gather":
            return [everything if node == root else None for node in NODES]
        case "scatter":
            return [part(sent[root], node) for node in NODES]
        case "alltoall":
            return [[word for words in sent for word in part(words, node)] for node in NODES]
        case "reduce":
            return [total if node == root else None for node in NODES]
        case "reduce-scatter":
            return [part(total, node) for node in NODES]
        case "allreduce":
            return [total for _ in NODES]
        case "halo":
            return [[word for at in _sources(node) for word in sent[at]] for node in NODES]
        case "exchange":
            parts = [np.split(np.array(words), 4) for words in sent]
            return [
                [word for k, at in enumerate(_sources(node)) for word in parts[at][k].tolist()]
                for node in NODES
            ]


def _sources(node):
    """Return the nodes from which a node of 2x3 receives the messages by +0, -0, +1 and -1."""
    row, column = divmod(node, 3)
    sides = (1 - row, column), (1 - row, column), (row, (column - 1) % 3), (row, (column + 1) % 3)
    return [3 * x + y for x, y in sides]


@pytest.mark.parametrize("chunks", [1, 2, 6])
@pytest.mark.parametrize("kind", NAMED_COLLECTIVES)
def test_expected_words(kind, chunks):
    """Expected words of each collective are those of a plain definition."""
    collective = parse_collective(kind, root=4 if Collective(kind).rooted else None)
    layout = collective.layout(TORUS, chunks)
    assert layout.send_blocks == layout.send_parts * layout.part_chunks
    messages = random_messages(layout, 2 * chunks, width=20, seed=3)
    assert messages.shape == (6, layout.send_blocks * 2)
    wanted = delivered(kind, messages.tolist(), 4, chunks)
    words, receives = expected_words(layout, messages, operator=Operator.parse("add"), width=64)
    assert words.shape == (6, layout.recv_blocks * 2)
    for node in NODES:
        assert receives[node].tolist() == [wanted[node] is not None] * words.shape[1]
        if receives[node].all():
            assert words[node].tolist() == wanted[node]


@pytest.mark.parametrize("kind", ["broadcast", "scatter", "gather", "reduce"])
def test_another_root(kind):
    """A root that is given later leads to the same words as a root of the collective."""
    messages = random_messages(parse_collective(kind).layout(TORUS, 1), flits=3, width=70, seed=1)
    here = expected_words(parse_collective(kind).layout(TORUS, 1), messages, width=80, root=5)
    there = expected_words(parse_collective(kind, root=5).layout(TORUS, 1), messages, width=80)
    assert all((a == b).all() for a, b in zip(here, there, strict=True))


@pytest.mark.parametrize("kind", NAMED_COLLECTIVES)
def test_conditions(kind):
    """Every block starts at its origin, and its destinations are those of the collective."""
    blocks = parse_collective(kind).blocks(TORUS, 2)
    for block in range(blocks.n_blocks):
        name = blocks.block_entry(block)
        assert blocks.parse_entry(list(name)) == block
        assert blocks.precondition(block) == name[0]
        node, same = blocks.required_copies(np.array([block]))
        assert set(same.tolist()) == {block}
        if blocks.collective.local:
            goals = [goal for goal in NODES for k, at in enumerate(_sources(goal))
                     if at == name[0] and name[1:-1] in ((), (k,))]  # fmt: skip
            assert sorted(node.tolist()) == goals
            continue
        goal = name[1] if len(name) == 3 else 0 if Collective(kind).to_root else EVERY_NODE
        assert blocks.postcondition(block) == goal
        assert node.tolist() == ([*NODES] if goal == EVERY_NODE else [goal])


def test_received_blocks_are_those_that_must_be_delivered():
    """The received blocks of a node are those for this node or for every node."""
    for kind in ("broadcast", "allgather", "scatter", "alltoall"):
        layout = parse_collective(kind).layout(TORUS, 2)
        for node in NODES:
            found = layout.received_block(node, np.arange(layout.recv_blocks)).tolist()
            goal = layout.blocks.postcondition(np.arange(layout.blocks.n_blocks))
            assert found == np.flatnonzero((goal == node) | (goal == EVERY_NODE)).tolist()


def test_axes():
    """A list of all axes means no groups, and other axes are sorted."""
    cube = Torus(2, 3, 4)
    for axes in (None, [2, 0, 1], (0, 1, 2)):
        assert parse_collective("allgather", axes=axes, topology=cube) == Collective("allgather")
    groups = Collective("broadcast", 7, (0, 2))
    assert parse_collective("broadcast", root=7, axes=[2, 0], topology=cube) == groups
    assert parse_collective("One to all@2+0", root=7, topology=cube) == groups
    assert (groups.name, str(groups)) == ("broadcast@0+2", "broadcast@0+2 from 7")
    assert groups.in_one_group == Collective("broadcast", 7)
    several: list[Any] = ["2+0", np.array([2, 0])]
    for axes in several:
        assert parse_collective("broadcast", root="7", axes=axes, topology=cube) == groups
    assert parse_collective("broadcast", axes=1, topology=cube) == Collective("broadcast", 0, (1,))
    assert parse_collective("allgather@0+1+2", topology=cube) == Collective("allgather")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"axes": [0, 0]}, "Axes must be some of the axes 0, 1 of 2x3, each once, not .0, 0.$"),
        ({"axes": [2]}, "Axes must be some of the axes 0, 1 of 2x3, each once, not .2.$"),
        ({"axes": [-1]}, "Axes must be some of the axes 0, 1"),
        ({"axes": []}, "Axes must be some of the axes 0, 1 of 2x3, each once, not ..$"),
        ({"axes": [0], "topology": Arrowhead(2)}, "arrowhead:2 has no axes; leave the axes"),
        ({"axes": 0.0}, "Axes must be a list of axis numbers, not 0.0"),
        ({"axes": "0,1"}, "Axes must be numbers joined by .*, as in broadcast@0.2, not '0,1'$"),
        ({"axes": [0.5]}, "Axes must be a list of axis numbers"),
        ({"axes": [True]}, "Axes must be a list of axis numbers"),
        ({"name": "broadcast@"}, "Axes must be numbers joined by .*, as in broadcast@0.2, not ''$"),
        ({"name": "broadcast@x"}, "Axes must be numbers joined by"),
        ({"name": "broadcast@0,1"}, "Axes must be numbers joined by"),
        ({"name": "broadcast@0", "axes": [1]}, "Axes must be given once, not by 'broadcast@0' and"),
        ({"name": "chatter@0"}, "Collective must be one of .*, not 'chatter'"),
        ({"axes": [1], "root": 3}, "Root must be a position in a group from 0 to 2, not 3"),
        ({"axes": [1], "root": "x"}, "Root must be a position in a group, not 'x'"),
        ({"root": 6}, "Root must be a node from 0 to 5, not 6"),
    ],
)
def test_axes_that_do_not_fit(words, message):
    """Axes and roots that do not fit are refused in one line."""
    given: dict[str, Any] = {"name": "broadcast", "topology": TORUS} | words
    with pytest.raises(InputError, match=f"^{message}"):
        parse_collective(given.pop("name"), **given)


@pytest.mark.parametrize("kind", NAMED_COLLECTIVES)
def test_words_in_groups_are_those_of_each_group(kind):
    """In groups the words are those of each group alone, with positions in place of nodes."""
    cube, axes = Torus(2, 3, 2), (0, 2)
    root = 3 if Collective(kind).rooted else None
    whole = parse_collective(kind, root=root, axes=axes, topology=cube).layout(cube, 4)
    one = parse_collective(kind, root=root).layout(Torus(2, 2), 4)
    assert (whole.send_blocks, whole.recv_blocks) == (one.send_blocks, one.recv_blocks)
    messages = random_messages(whole, 1, width=16, seed=2)
    words, receives = expected_words(whole, messages, width=16)
    for middle in range(3):
        nodes = [6 * x + 2 * middle + z for x in (0, 1) for z in (0, 1)]
        part, there = expected_words(one, messages[nodes], width=16)
        assert (words[nodes] == part).all()
        assert (receives[nodes] == there).all()


def signed(word, width):
    """Return the value of a word in two's complement."""
    return word - (word >> (width - 1) << width)


EVERY = (*OPERATORS, *SIGNED)


def by_hand(name, a, b, width):
    """Return the result of an operator, computed with Python integers."""
    name, _, is_signed = name.partition(":")
    value = (lambda w: signed(w, width)) if is_signed else (lambda w: w)
    return {
        "add": (a + b) % (1 << width),
        "and": a & b,
        "or": a | b,
        "xor": a ^ b,
        "min": min(a, b, key=value),
        "max": max(a, b, key=value),
    }[name]


@settings(deadline=None)
@given(st.sampled_from(EVERY), st.integers(1, 80), st.data())
def test_combine(name, width, data):
    """Operators combine words of any width element by element, modulo the width."""
    word = st.integers(0, (1 << width) - 1)
    pairs = data.draw(st.lists(st.tuples(word, word), min_size=1, max_size=5))
    dtype = np.uint64 if width <= 64 else object
    a, b = np.array(pairs, dtype).T
    got = Operator.parse(name).combine(a, b, width)
    assert got.tolist() == [by_hand(name, x, y, width) for x, y in pairs]


@settings(deadline=None)
@given(st.sampled_from(EVERY), st.integers(1, 70), st.data())
def test_identity(name, width, data):
    """The neutral word changes no word."""
    operator, dtype = Operator.parse(name), np.uint64 if width <= 64 else object
    words = np.array([data.draw(st.integers(0, (1 << width) - 1))], dtype)
    neutral = np.array([operator.identity(width)], dtype)
    assert operator.combine(words, neutral, width).tolist() == words.tolist()
    assert operator.combine(neutral, words, width).tolist() == words.tolist()


@pytest.mark.parametrize("name", OPERATORS)
def test_reduce(name):
    """Rows are combined column by column."""
    rows = np.random.default_rng(1).integers(0, 1 << 16, (7, 3), np.uint64)
    got = Operator.parse(name).reduce(rows, 16).tolist()
    for column, value in zip(rows.T.tolist(), got, strict=True):
        assert value == functools.reduce(lambda a, b: by_hand(name, a, b, 16), column)


def test_operators_by_name():
    """Operators are found by name, and other names are refused."""
    assert [Operator.parse(name).name for name in EVERY] == [*EVERY]
    assert str(Operator.parse("min:signed")) == "signed min"
    for name in ("sum", "add:signed", "max:unsigned", "max:", "max:signed:signed", ""):
        with pytest.raises(InputError, match=r"^Operator must be one of add, min, .*, not '"):
            Operator.parse(name)
