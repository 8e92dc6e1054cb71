"""Where address maps say that blocks lie, one by one, and by what programs with them do."""

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.program.address_map import DirectMap, NodeMap, OffsetMap, RenumberedMap, RouteMap
from torusfabric.topology import Torus


def located(mapped, node, part, chunk):
    """Memory and base of a block, as integers."""
    memory, base = mapped.locate(node, part, chunk)
    return int(memory), int(base)


def test_blocks_of_a_memory_follow_one_another():
    mapped = DirectMap(3, chunks=2, flits=5, base=7)
    bases = [located(mapped, 0, part, chunk) for part in range(3) for chunk in range(2)]
    assert bases == [(3, 7 + 5 * block) for block in range(6)]
    assert mapped.memories(np.arange(4)) == {3}


def test_each_chunk_may_have_a_memory():
    mapped = DirectMap(3, chunks=2, flits=5, by_chunk=True, base=7)
    for part in range(3):
        for chunk in range(2):
            assert located(mapped, 0, part, chunk) == (3 + chunk, 7 + 5 * part)
    assert mapped.memories(np.arange(4)) == {3, 4}


@pytest.mark.parametrize("ahead", [False, True])
def test_offsets(ahead):
    torus, base = Torus(5), np.arange(10).reshape(5, 2)
    mapped = OffsetMap(torus, memory=100 + base, base=base, ahead=ahead)
    for node in range(5):
        for part in range(5):
            offset = (part - node if ahead else node - part) % 5
            expected = 2 * offset + 1
            assert located(mapped, node, part, 1) == (100 + expected, expected)
    one = OffsetMap(torus, memory=np.array([[8, 9]]), base=np.array([[3, 4]]))
    assert located(one, 2, 4, 1) == (9, 4)


def test_other_maps():
    base = np.arange(12).reshape(2, 3, 2)
    nodes = NodeMap(memory=20 + base, base=base, variant_of=np.zeros(2, int))
    assert located(nodes, 1, 2, 0) == (30, 10)
    renumbered = RenumberedMap(DirectMap(1, chunks=1, flits=4), np.array([9, 5]))
    assert located(renumbered, 0, 2, 0) == (5, 8)
    nowhere = RouteMap(routes=(), steps=3, own=4)
    assert [located(nowhere, 1, part, 1) for part in range(3)] == [(0, -1), (5, 0), (0, -1)]


@pytest.mark.parametrize("collective", ["reduce-scatter", "scatter", "alltoall", "gather"])
@pytest.mark.parametrize("topology", ["3", "2x3"])
@pytest.mark.parametrize("chunks", [1, 2])
@pytest.mark.parametrize("lengths", [{"flits": 2}, {"flits": 4}, {"max_flits": 4}])
def test_no_two_blocks_lie_in_one_place(topology, collective, chunks, lengths):
    """Different words of all nodes come to where they are wanted."""
    schedule = tf.plan(topology, collective, algorithm="matching", chunks=chunks)
    program = tf.compile(schedule, **lengths)
    shape = program.topology.nodes, program.send_words
    words = np.random.default_rng(1).integers(0, 1 << 60, shape, np.uint64)
    wanted, receives = program.delivered(words)
    assert (program.execute(words) == wanted)[receives].all()


@pytest.mark.parametrize(
    ("lengths", "chunks", "flits"),
    [
        ({"flits": 4}, [0, 0, 1, 1], [0, 1, 0, 1]),
        ({"max_flits": 4}, [0, 1, 0, 1], [0, 0, 1, 1]),
    ],
)
def test_words_of_a_message_lie_in_its_chunks(lengths, chunks, flits):
    """Those of a fixed length one chunk after another, others in turn."""
    program = tf.compile(tf.plan("4", "alltoall", algorithm="matching", chunks=2), **lengths)
    part, chunk, flit = program.locate(np.arange(16), 4)
    assert part.tolist() == np.repeat(np.arange(4), 4).tolist()
    assert chunk.tolist() == 4 * chunks
    assert flit.tolist() == 4 * flits
