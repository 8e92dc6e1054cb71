"""Collectives: their names and axes, and the words that they must deliver."""

from typing import Any

import numpy as np
import pytest

from torusfabric.collective import (
    COLLECTIVES,
    EVERY_NODE,
    Collective,
    Operator,
    expected_words,
    parse_collective,
    random_messages,
)
from torusfabric.errors import InputError
from torusfabric.topology import Torus

TORUS = Torus([2, 3])
NODES = range(6)


@pytest.mark.parametrize("kind", COLLECTIVES)
def test_aliases(kind):
    for alias in COLLECTIVES[kind].aliases:
        assert parse_collective(alias.upper().replace("-", " ")).kind == kind


def test_eight_of_nine_combinations_of_content_and_target():
    found = {(entry.content, entry.target) for entry in COLLECTIVES.values()}
    assert len(found) == len(COLLECTIVES) == 8


def delivered(kind, sent, root, chunks):
    """What each node must receive, message by message, or None if nothing."""
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


@pytest.mark.parametrize("chunks", [1, 2, 6])
@pytest.mark.parametrize("kind", COLLECTIVES)
def test_expected_words(kind, chunks):
    collective = parse_collective(kind, root=4 if Collective(kind).rooted else None)
    layout = collective.layout(TORUS, chunks)
    assert layout.send_blocks == layout.send_parts * layout.part_chunks
    messages = random_messages(layout, 2 * chunks, width=20, seed=3)
    assert messages.shape == (6, layout.send_blocks * 2)
    wanted = delivered(kind, messages.tolist(), 4, chunks)
    words, receives = expected_words(layout, messages, operator=Operator("add"), width=64)
    assert words.shape == (6, layout.recv_blocks * 2)
    for node in NODES:
        assert receives[node] == (wanted[node] is not None)
        if receives[node]:
            assert words[node].tolist() == wanted[node]


@pytest.mark.parametrize("kind", ["broadcast", "scatter", "gather", "reduce"])
def test_another_root(kind):
    messages = random_messages(parse_collective(kind).layout(TORUS, 1), flits=3, width=70, seed=1)
    here = expected_words(parse_collective(kind).layout(TORUS, 1), messages, width=80, root=5)
    there = expected_words(parse_collective(kind, root=5).layout(TORUS, 1), messages, width=80)
    assert all((a == b).all() for a, b in zip(here, there, strict=True))


@pytest.mark.parametrize("kind", COLLECTIVES)
def test_conditions(kind):
    """Every block starts at its origin, and its destination is that of the collective."""
    blocks = parse_collective(kind).blocks(TORUS, 2)
    for block in range(blocks.count):
        name = blocks.name(block)
        assert blocks.parse(list(name)) == block
        assert blocks.precondition(block) == name[0]
        goal = name[1] if len(name) == 3 else 0 if Collective(kind).to_root else EVERY_NODE
        assert blocks.postcondition(block) == goal


def test_received_blocks_are_those_that_must_be_delivered():
    for kind in ("broadcast", "allgather", "scatter", "alltoall"):
        layout = parse_collective(kind).layout(TORUS, 2)
        for node in NODES:
            found = layout.received_block(node, np.arange(layout.recv_blocks)).tolist()
            goal = layout.blocks.postcondition(np.arange(layout.blocks.count))
            assert found == np.flatnonzero((goal == node) | (goal == EVERY_NODE)).tolist()


def test_groups_of_nodes_are_refused():
    whole = parse_collective("allgather", axes=[1, 0], dimensions=2)
    assert whole == Collective("allgather")
    for axes, dimensions in [((0,), 2), ([0, 0], 2), ([0, 1], None), ([0, 1], 3)]:
        with pytest.raises(InputError, match="Axes must be left out or be all axes"):
            parse_collective("allgather", axes=axes, dimensions=dimensions)
    wrong: list[Any] = [0, "01", [0.5], [True]]
    for entry in wrong:
        with pytest.raises(InputError, match="Axes must be a list of axis numbers"):
            parse_collective("allgather", axes=entry, dimensions=2)
    assert Collective("broadcast", 2, (0, 2)).to_json() == {
        "kind": "broadcast",
        "root": 2,
        "axes": [0, 2],
    }
