"""A memory for each reader of what a node sends."""

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.program.send_banks import send_banks
from torusfabric.program.values import Reads, Run


@pytest.mark.parametrize(
    "readers",
    [
        [[(Run(3, 0, 2),)], [(Run(3, 4, 1),)]],
        [[(Run(3, 0, 1), Run(3, 0, 1))]],
        [[(Run(2, 0, 1),)]],
    ],
)
def test_where_there_is_no_way(readers):
    """A block that is read twice cannot be in two memories, and what nobody reads needs none."""
    reads = tuple(Reads.of_lists([runs]) for runs in readers)
    assert send_banks(reads, 3, blocks=3, flits=4) is None


def test_runs_stay_runs():
    """Blocks that follow one another still do."""
    reads = Reads.of_lists([[(Run(1, 20, 2), Run(0, 5, 3))], [(Run(1, 0, 3),)]])
    banks = send_banks((reads,), 1, blocks=6, flits=5)
    assert banks is not None
    assert banks.slot.tolist() == [2, 3, 4, 5, 0, 1]
    assert banks.reads[0].base.tolist() == [0, 5, 10]
    assert banks.depth == (6,)


@pytest.mark.parametrize("topology", ["3x4", "5", "arrowhead:1"])
def test_a_scatter_from_any_root_keeps_no_copies(topology):
    """Each memory of what a node sends has one reader, and all hold it once."""
    program = tf.compile(tf.plan(topology, "scatter"), flits=3, root="any")
    own = [number for number, memory in enumerate(program.memories) if memory.own]
    readers = [reads for reads in program.loop.reads if np.isin(reads.memory, own).any()]
    assert len(own) == len(readers) > 1
    assert int(program.depth[0, own].sum()) == program.send_words
