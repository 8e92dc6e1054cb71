"""Where the words of hosts lie in the memories of nodes, by what programs with them do."""

import numpy as np
import pytest

import torusfabric as tf


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
