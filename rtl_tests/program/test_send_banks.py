"""A memory for each reader of what a node sends."""

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.program import Action


@pytest.mark.parametrize("topology", ["3x4", "5", "arrowhead:1"])
def test_a_scatter_from_any_root_keeps_no_copies(topology):
    """Each memory of what a node sends has one reader, and all hold it once."""
    program = tf.compile(tf.plan(topology, "scatter"), flits=4, root="any")
    own = [number for number, memory in enumerate(program.memories) if memory.own]
    readers = [f for f in program.loop.of(Action.MEMORY) if np.isin(f.values, own).any()]
    assert len(own) == len(readers) > 1
    assert int(program.depth[0, own].sum()) == program.send_words
