"""Traffic: its files, its numbers, its sources."""

import json
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import torusfabric as tf

MESSAGE = st.tuples(
    st.integers(0, 9), st.sets(st.integers(0, 9), min_size=1, max_size=4), st.integers(1, 9)
).filter(lambda one: one[0] not in one[1])


@settings(deadline=None)
@given(st.lists(MESSAGE, min_size=1, max_size=60))
def test_numbers_differ_at_each_node(messages):
    """No two messages of a node, and no two for a node, have the same number."""
    traffic = tf.Traffic((source, sorted(goals), words) for source, goals, words in messages)
    places = Counter[tuple[str, int, int]]()
    for message, number in zip(traffic.messages, traffic.message_numbers, strict=True):
        places["from", message.source, number] += 1
        places.update(("to", node, number) for node in message.destinations)
    assert max(places.values()) == 1


@settings(deadline=None)
@given(st.lists(MESSAGE.filter(lambda one: len(one[1]) == 1), min_size=1, max_size=80))
def test_numbers_are_few(messages):
    """Messages with one destination need as many numbers as the busiest node has messages."""
    traffic = tf.Traffic((source, min(goals), words) for source, goals, words in messages)
    sent = Counter(message.source for message in traffic.messages)
    received = Counter(message.destinations[0] for message in traffic.messages)
    assert max(traffic.message_numbers) + 1 == max(*sent.values(), *received.values())


@pytest.mark.parametrize("seed", range(20))
def test_numbers_of_dense_traffic(seed):
    """Among many messages, numbers along paths are swapped, and remain different and few."""
    random = np.random.default_rng(seed)
    ends = random.integers(0, 8, (120, 2))
    traffic = tf.Traffic(map(tuple, ends[ends[:, 0] != ends[:, 1]].tolist()))
    places = Counter[tuple[str, int, int]]()
    for message, number in zip(traffic.messages, traffic.message_numbers, strict=True):
        places["from", message.source, number] += 1
        places["to", message.destinations[0], number] += 1
    sent = Counter(message.source for message in traffic.messages)
    received = Counter(message.destinations[0] for message in traffic.messages)
    assert max(places.values()) == 1
    assert max(traffic.message_numbers) + 1 == max(*sent.values(), *received.values())


def test_files(tmp_path):
    """CSV and JSON lines give the same messages, whatever the order of columns and blanks."""
    expected = tf.Traffic([(0, 5, 8), (3, (1, 2), 4, "both")])
    table = tmp_path / "a.csv"
    table.write_text("destinations, source,words,tag\n5,0,8,\n\n1 2, 3 ,4,both\n")
    assert tf.Traffic.read(table) == expected
    lines = tmp_path / "a.jsonl"
    entries = [{"source": 0, "destinations": 5, "words": 8},
               {"source": 3, "destinations": [1, 2], "words": 4, "tag": "both"}]  # fmt: skip
    lines.write_text("\n".join(map(json.dumps, entries)))
    assert tf.Traffic.read(lines) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must begin with the line source,destinations"),
        ("a,b\n1,2\n", "must begin with the line source,destinations"),
        ("source,destinations\n1\n", "Line 2 of the traffic file must have 2 values, not 1"),
        ("source,destinations\n1,x\n", "Line 2: nodes must be numbers"),
        ("source,destinations,words\n1,2,many\n", "Line 2: words must be"),
        ("source,destinations\n", "at least one message"),
        ('{"source": 1}\n', "Line 1 must have a source and destinations"),
        ('{"source": 1,\n', "Line 1 of the traffic file must be a JSON object"),
        ("[1, 2, 3, 4, 5]\n", "Line 1 must be"),
    ],
)
def test_damaged_files(tmp_path, text, message):
    """The message names the line and what it must have."""
    file = tmp_path / "bad"
    file.write_text(text)
    with pytest.raises(tf.InputError, match=message):
        tf.Traffic.read(file)


def test_graphs_and_matrices():
    """Edges of a graph and entries of a matrix are messages."""
    graph = nx.DiGraph([(0, 1, {"weight": 3}), (1, 2)])
    assert tf.Traffic.from_graph(graph) == tf.Traffic([(0, 1, 3), (1, 2, 1)])
    assert len(tf.Traffic.from_graph(nx.path_graph(3)).messages) == 4
    matrix = np.array([[0, 2], [1, 0]])
    assert tf.Traffic.from_matrix(matrix) == tf.Traffic([(0, 1, 2), (1, 0, 1)])
    with pytest.raises(tf.InputError, match="square"):
        tf.Traffic.from_matrix([[1, 2]])
