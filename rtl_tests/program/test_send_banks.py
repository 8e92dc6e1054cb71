"""A memory for each reader of what a node sends."""

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.program import Action, Loop, Order, Sources
from torusfabric.program.any_root import send_banks
from torusfabric.program.fields import fields_of


def loop_of(bursts, blocks):
    """Rows of so many blocks; each of some readers reads a burst of a memory in some: (memory,
    first block), or nothing."""
    memory, base = np.array(bursts).transpose(2, 1, 0)[:, :, None]
    rows = len(blocks)
    return Loop(
        order=Order.ROW,
        flits=4,
        pause=np.ones(rows, int),
        blocks=np.array(blocks),
        sources=Sources(4, injections=tuple((k,) for k in range(len(bursts)))),
        fields=(
            *fields_of(Action.MEMORY, memory, 3),
            *fields_of(Action.READ, np.where(base >= 0, base * 4, -1), 3),
        ),
        departure=np.zeros((rows, 4), int),
    )


@pytest.mark.parametrize(
    ("bursts", "blocks"),
    [
        ([[(3, 0)], [(3, 1)]], [2]),
        ([[(3, 0), (3, 0)]], [1, 1]),
        ([[(2, 0)]], [1]),
    ],
)
def test_where_there_is_no_way(bursts, blocks):
    """A block that is read twice cannot be in two memories, and what nobody reads needs none."""
    assert send_banks(loop_of(bursts, blocks), 3, blocks=3) is None


def test_bursts_stay_bursts():
    """Blocks that follow one another still do."""
    banks = send_banks(loop_of([[(1, 4), (0, 1), (1, 0)]], [2, 3, 3]), 1, blocks=6)
    assert banks is not None
    assert banks.slot.tolist() == [2, 3, 4, 5, 0, 1]
    assert [field.values[:, 0].tolist() for field in banks.fields] == [[1, 0, 1], [0, 4, 8]]
    assert banks.depth == (6,)


@pytest.mark.parametrize("topology", ["3x4", "5", "arrowhead:1"])
def test_a_scatter_from_any_root_keeps_no_copies(topology):
    """Each memory of what a node sends has one reader, and all hold it once."""
    program = tf.compile(tf.plan(topology, "scatter"), flits=4, root="any")
    own = [number for number, memory in enumerate(program.memories) if memory.own]
    readers = [f for f in program.loop.of(Action.MEMORY) if np.isin(f.values, own).any()]
    assert len(own) == len(readers) > 1
    assert int(program.depth[0, own].sum()) == program.send_words
