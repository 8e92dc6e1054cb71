"""A memory for each reader of what a node sends."""

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.program import Action
from torusfabric.program.any_root import send_banks
from torusfabric.program.fields import memories_of
from torusfabric.program.round_plan import Bursts, Receipts, RoundPlan


def plan_of(bursts, blocks):
    """Rounds in which readers of node 0 read: round, reader, memory, first block, and how many.

    A node has two memories, and one of what it sends.
    """
    number, reader, memory, slot, length = np.array(bursts).T
    none = np.zeros_like(number)
    return RoundPlan(
        select=np.zeros((9, 1, 2), np.int16),
        links=np.ones(9, int),
        blocks=np.ones(9, int),
        bursts=Bursts(number, none, reader, none, none, memory, slot, length),
        receipts=Receipts(*np.zeros((7, 0), int)),
        depth=np.array([[1, 1, blocks]]),
        memories=memories_of(range(2), 0),
        memory=np.array([[2]]),
        slot=np.array([[0]]),
    )


@pytest.mark.parametrize(
    "bursts",
    [
        [(0, 0, 2, 0, 2), (0, 1, 2, 1, 2)],
        [(0, 0, 2, 0, 1), (1, 0, 2, 0, 1)],
        [(0, 0, 1, 0, 1)],
    ],
)
def test_where_there_is_no_way(bursts):
    """A block that is read twice cannot be in two memories, and what nobody reads needs none."""
    plan = plan_of(bursts, 3)
    banked, memory, slot = send_banks(plan)
    assert banked is plan
    assert (memory.tolist(), slot.tolist()) == ([2, 2, 2], [0, 1, 2])


def test_bursts_stay_bursts():
    """Blocks that follow one another still do; what nobody reads is behind what the first reads."""
    bursts = [(2, 3, 2, 0, 3), (1, 3, 0, 0, 3), (0, 3, 2, 4, 2), (1, 4, 2, 6, 1)]
    banked, memory, slot = send_banks(plan_of(bursts, 8))
    assert (memory - 2).tolist() == [0, 0, 0, 0, 0, 0, 1, 0]
    assert slot.tolist() == [2, 3, 4, 5, 0, 1, 0, 6]
    assert banked.bursts.memory.tolist() == [2, 0, 2, 3]
    assert banked.bursts.slot.tolist() == [2, 0, 0, 0]
    assert banked.depth.tolist() == [[1, 1, 7, 1]]
    assert (banked.memory.tolist(), banked.slot.tolist()) == ([[2]], [[2]])


@pytest.mark.parametrize("topology", ["3x4", "5", "arrowhead:1"])
def test_a_scatter_from_any_root_keeps_no_copies(topology):
    """Each memory of what a node sends has one reader, and all hold it once."""
    program = tf.compile(tf.plan(topology, "scatter"), flits=4, root="any")
    own = [number for number, memory in enumerate(program.memories) if memory.own]
    readers = [f for f in program.loop.of(Action.MEMORY) if np.isin(f.values, own).any()]
    assert len(own) == len(readers) > 1
    assert int(program.depth[0, own].sum()) == program.send_words
