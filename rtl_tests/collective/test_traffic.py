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
        ("source,destinations,words,words\n0,1,2,3\n", "must begin with the line source,dest"),
        ("source,destinations\n1\n", "Line 2 of the traffic file must have 2 values, not 1"),
        ("source,destinations\n1,x\n", "Line 2: nodes must be numbers"),
        ("source,destinations,words\n1,2,many\n", "Line 2: words must be"),
        ("source,destinations\n", "at least one message"),
        ('{"source": 1}\n', "Line 1 must have a source and destinations"),
        ('{"source": 1,\n', "Line 1 of the traffic file must be a JSON object"),
        ("[1, 2, 3, 4, 5]\n", "Line 1 must be"),
        ('{"source": 1, "source": 2, "destinations": 3}\n', 'has the key "source" twice'),
        ('{"source": 1, "destinations": 2, "tag": []}\n', "the tag must be a text"),
        ('{"source": 1, "destinations": [[2]]}\n', "Line 1: nodes must be numbers"),
        ('[{"source": 1,\n', "must be a JSON object of its own"),
    ],
)
def test_damaged_files(tmp_path, text, message):
    """The message names the line and what it must have."""
    file = tmp_path / "bad"
    file.write_text(text)
    with pytest.raises(tf.InputError, match=message):
        tf.Traffic.read(file)


LABELS = ["hub", "a", "b b", "7", "c", "3"]


@pytest.fixture
def star():
    """A hub with five leaves, two of which have numbers as names."""
    return tf.Graph(nx.Graph([("hub", leaf) for leaf in LABELS[1:]]))


def test_files_name_nodes(tmp_path, star):
    """Files of messages may call nodes by name, also with blanks, byte-order mark and CRLF."""
    expected = tf.Traffic([(0, (1, 4), 3), (1, 0, 2), (2, 0, 1)])
    table = tmp_path / "a.csv"
    table.write_bytes(
        b"\xef\xbb\xbfsource,destinations,words,\r\nhub,a c,3,\r\n"
        b' a ,hub,2,\r\n"b b", (hub) ,1,\r\n'
    )
    assert tf.Traffic.read(table, star) == expected
    lines = tmp_path / "a.jsonl"
    lines.write_text(
        '{"source": "hub", "destinations": ["a", 4], "words": 3}\n'
        '{"source": "a", "destinations": "hub", "words": 2}\n'
        '{"source": "b b", "destinations": 0}\n'
    )
    assert tf.Traffic.read(lines, star) == expected
    assert tf.plan(star, "pattern", traffic=lines).collective.traffic == expected
    assert tf.Traffic([("hub", ["a", "c"], 3), ("a", 0, 2), ("b b", "hub")], star) == expected
    weights = nx.DiGraph([("hub", "a", {"weight": 3})])
    assert tf.Traffic.from_graph(weights, topology=star) == tf.Traffic([(0, 1, 3)])
    table.write_text("source,destinations\nhub,b b\n")
    assert tf.Traffic.read(table, star).messages[0].destinations == (2,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "hub,3",
            r"3 is the number of node 3 and the name of node 5; write \(3\) for the name, and",
        ),
        (
            "hub,x",
            r"Line 2: destination must be a node from 0 to 5 or a name such as \(hub\), not 'x'",
        ),
        ("hub,9", "Line 2: destination must be a node from 0 to 5, not 9"),
    ],
)
def test_refused_names(tmp_path, star, text, message):
    """A name that does not exist is refused, and so is a number that is another node's name."""
    file = tmp_path / "a.csv"
    file.write_text(f"source,destinations\n{text}\n")
    with pytest.raises(tf.InputError, match=message):
        tf.Traffic.read(file, star)


def test_names_need_a_network(tmp_path):
    """Without a network names have no meaning; a list of names that is also a name is refused."""
    with pytest.raises(tf.InputError, match="names with topology="):
        tf.Traffic([("hub", "a")])
    with pytest.raises(tf.InputError, match="Topology must be"):
        tf.Traffic([("hub", "a")], "4x4")  # type: ignore[arg-type]
    network = tf.Graph(nx.path_graph(["a", "b", "a b", "c"]))
    file = tmp_path / "a.csv"
    file.write_text("source,destinations\nc,a b\n")
    with pytest.raises(tf.InputError, match="the name of one node, and a list of others"):
        tf.Traffic.read(file, network)


MATRIX = [[*range(k, k + 6)] for k in range(6)]


def table(columns, rows, order=range(6)):
    """Return the text of `MATRIX` with labels of columns and of rows, which come in an order."""
    lines = [[*rows[:1], *(columns[k] for k in order)]] if columns else []
    lines += [[*rows[k + 1 : k + 2], *(str(MATRIX[k][m]) for m in order)] for k in order]
    return "\n".join(map(",".join, lines))


NAMES = ["hub", "a", "b b", "(7)", "c", "(3)"]


@pytest.mark.parametrize(
    ("kind", "text", "lengths"),
    [
        ("allgather", "1,2,3,4,5,6,\n", [[1], [2], [3], [4], [5], [6]]),
        ("allgather", "1\r\n2\r\n3\r\n4\r\n5\r\n6", [[1], [2], [3], [4], [5], [6]]),
        ("gather", "hub,c,(3),a,(7),b b\n1,2,3,4,5,6", [[1], [4], [6], [5], [2], [3]]),
        ("scatter", "c,2\nhub,1\n(3),6\na,4\n(7),5\nb b,0", [[1, 4, 0, 5, 2, 6]]),
        ("scatter", 'node,flits\nc,2\nhub,1\n(3),6\na,4\n(7),5\n"b b",0', [[1, 4, 0, 5, 2, 6]]),
        ("alltoall", table([], ["", *NAMES]), MATRIX),
        ("alltoall", table(NAMES, ["to", *NAMES], [3, 5, 0, 1, 4, 2]), MATRIX),
        ("alltoall", table(NAMES, ["", *NAMES], [5, 4, 3, 2, 1, 0]), MATRIX),
        ("alltoall", table(NAMES, []), MATRIX),
        ("alltoall", table(["0", "1", "2", "(7)", "4", "(3)"], ["", *NAMES]), MATRIX),
    ],
)
def test_counts_with_names(tmp_path, star, kind, text, lengths):
    """Names in the first line, in the first column or in both give the order of the counts."""
    file = tmp_path / "counts.csv"
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())
    found = tf.parse_collective(kind, counts=file, topology=star)
    assert [list(row) for row in found.lengths] == lengths


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("allgather", "", "must have a row of numbers"),
        ("allgather", "hub,a,c\n", "equally many numbers"),
        ("allgather", "1;2;3", "must have numbers, with commas"),
        ("allgather", "1 2 3 4 5 -6", "non-negative integer, not '-6'"),
        ("allgather", "hub,a,c,c\n1,2,3,4", "each node once, not c twice"),
        ("allgather", "hub,a,c,x\n1,2,3,4", "Label of counts must be a node from 0 to 5"),
        ("allgather", "hub,a\n1,2", "must be 6 numbers, not 2"),
        ("allgather", "c,a\n1,2", "each node once, not 2 nodes only"),
        ("allgather", "3,1\nhub,2", "non-negative integer, not 'hub'"),
        (
            "alltoall",
            table(["0", "1", "2", "(7)", "4", "3"], ["", *NAMES]),
            "name of node 5; write",
        ),
        ("allgather@{hub,a}", "hub 1\nc 2", "must be a node of the group, not c"),
        ("allgather@{hub,a}{b b,c}", "hub 1\nc 2", "for positions; leave the labels"),
    ],
)
def test_refused_counts(tmp_path, star, name, text, message):
    """Files of counts that are damaged or ambiguous are refused with the reason."""
    file = tmp_path / "counts.csv"
    file.write_text(text)
    with pytest.raises(tf.InputError, match=message):
        tf.parse_collective(name, counts=file, topology=star)


def test_counts_of_a_group_with_names(tmp_path, star):
    """Names of counts are those of the nodes of a group; without a network they are refused."""
    file = tmp_path / "counts.csv"
    file.write_text("c 2\nhub 1\na 0\n")
    found = tf.parse_collective("allgather@{hub,a,c}", counts=file, topology=star)
    assert found.lengths == ((1,), (0,), (2,))
    with pytest.raises(tf.InputError, match="give the network"):
        tf.parse_collective("allgather", counts=file)


def test_graphs_and_matrices():
    """Edges of a graph and entries of a matrix are messages."""
    graph = nx.DiGraph([(0, 1, {"weight": 3}), (1, 2)])
    assert tf.Traffic.from_graph(graph) == tf.Traffic([(0, 1, 3), (1, 2, 1)])
    assert len(tf.Traffic.from_graph(nx.path_graph(3)).messages) == 4
    matrix = np.array([[0, 2], [1, 0]])
    assert tf.Traffic.from_matrix(matrix) == tf.Traffic([(0, 1, 2), (1, 0, 1)])
    with pytest.raises(tf.InputError, match="square"):
        tf.Traffic.from_matrix([[1, 2]])
