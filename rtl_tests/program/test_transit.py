"""Nodes that only pass blocks on use the slots of their memories again."""

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.program.fields import make_node_memories
from torusfabric.program.round_follower import Bursts, Receipts, RoundPlan, follow_blocks
from torusfabric.program.sum_follower import follow_sums
from torusfabric.program.transit import reuse_slots


def read_blocks(plan):
    """Return the block of each slot that a burst reads, named by the message that stored it."""
    held, found = {}, []
    for number in range(len(plan.blocks)):
        for k in np.flatnonzero(plan.bursts.round == number):
            _, node, _, _, _, memory, slot, length = (int(column[k]) for column in plan.bursts)
            found.append([held.get((node, memory, slot + i)) for i in range(length)])
        for k in np.flatnonzero(plan.receipts.round == number):
            _, node, memory, _, _, slot, length = (int(column[k]) for column in plan.receipts)
            assert slot + length <= plan.depth[node, memory]
            held |= {(node, memory, slot + i): (int(k), i) for i in range(length)}
    return found


@pytest.mark.parametrize(
    ("network", "name"),
    [
        # Messages of several blocks; the first reads those of several messages in one burst.
        ("3x4", "reduce-scatter:hamiltonian"),
        ("3x4", "allgather:redistribute"),
        ("4x4", "reduce-scatter:necklace"),
        ("4x4", "allgather@{0,1,5,9,11}"),
        ("3x5", "alltoall@{0,7,3}{1,2,9}"),
        ("mesh:3x4", "allreduce@{0,11,5}"),
        ("4x4", "reduce-scatter@{0,6,9,15}"),
        ("3x4", "allgather"),
        ("4x4!0:+0", "alltoall"),
    ],
)
def test_every_read_finds_the_same_block(network, name):
    """At members, too, no word is overwritten before its last read; only results would be."""
    schedule = tf.plan(network, name)
    follow = follow_sums if schedule.collective.reducing else follow_blocks
    plan = follow(schedule, rests=True)
    smaller = reuse_slots(plan, np.arange(schedule.topology.nodes))
    assert read_blocks(smaller) == read_blocks(plan)
    assert (smaller.depth <= plan.depth).all()
    assert (smaller.depth[:, -1] == plan.depth[:, -1]).all()


def test_blocks_that_are_read_together_stay_together():
    """They keep their slots from the arrival of the first to the last read of any."""
    # Of each message: round, node, memory, source, links, slot, length.
    stored = [(0, 0, 0, 0, 1, 0, 1), (1, 0, 0, 0, 1, 1, 1), (2, 0, 0, 0, 1, 2, 1),
              (5, 0, 0, 0, 1, 3, 2)]  # fmt: skip
    # Of each burst: round, node, injection, place, at, memory, slot, length.
    read = [(1, 0, 0, 0, 0, 0, 0, 1), (3, 0, 0, 0, 0, 0, 1, 2), (6, 0, 0, 0, 0, 0, 2, 1),
            (7, 0, 0, 0, 0, 0, 3, 2)]  # fmt: skip
    plan = RoundPlan(
        select=np.zeros((8, 1, 1), np.int16),
        links=np.ones(8, int),
        blocks=np.ones(8, int),
        bursts=Bursts(*np.array(read).T),
        receipts=Receipts(*np.array(stored).T),
        depth=np.array([[5, 0]]),
        memories=make_node_memories([0], 0),
        located=np.full((2, 1, 0), -1),
    )
    found = reuse_slots(plan, np.array([0]))
    assert found.receipts.slot.tolist() == [0, 1, 2, 3]
    assert found.bursts.slot.tolist() == [0, 1, 2, 3]
    late = plan._replace(receipts=plan.receipts._replace(round=np.array([0, 2, 2, 7])))
    assert reuse_slots(late, np.array([0])).receipts.slot.tolist() == [0, 0, 1, 0]


def test_a_relay_of_a_line_holds_few_blocks():
    """Blocks leave soon after their arrival; those of an own message stay."""
    schedule = tf.plan("mesh:3", "allgather", relays=1, chunks=16, link_latency=3)
    program = tf.compile(schedule, flits=16)
    depth = program.depth[program.variant_of]
    assert depth[1].tolist() == [2, 2, 0]
    assert depth[0].sum() == 32


@pytest.mark.parametrize("flits", [1, 16])
@pytest.mark.parametrize("kind", ["allgather", "alltoall", "reduce"])
def test_patterns_and_relays_keep_few_blocks(flits, kind):
    """Relays have no words to send and none to read, and the hardware is right."""
    program = tf.compile(tf.plan("3x4", kind, relays=[1, 6, 7], flits=flits), flits=flits)
    layout = program.layout
    assert not np.isin(layout.receiving_nodes, [1, 6, 7]).any()
    assert not program.depth[program.variant_of][[1, 6, 7], -1].any()
    assert tf.simulate(tf.Fabric(program, width=8)).passed
