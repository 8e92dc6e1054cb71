"""Which memories are block RAM on a device."""

from dataclasses import replace

import pytest

import torusfabric as tf
from torusfabric.fpga.synthesis.memory_choice import block_share, fitting_rule
from torusfabric.fpga.synthesis.target import find_target


def rule(brams: int, most: int = 16) -> str:
    """The rule for an all-gather on four nodes, on a device with so many block RAMs."""
    program = tf.compile(tf.plan("2x2", "allgather"), max_flits=most)
    device = find_target("ecp5-85k")
    device = replace(device, capacity=device.capacity | {"brams": brams})
    return fitting_rule(tf.Fabric(program, width=32), device)


@pytest.mark.parametrize("most", [8, 16, 64])
def test_all_memories_are_block_ram_where_they_fit(most):
    """However short messages are, so that they take no more tables than longer ones."""
    assert rule(208, most) == "auto:2,block"


def test_the_deepest_come_first():
    """A message is shallower than what is received of all; none is block RAM on its own."""
    rules = [rule(brams) for brams in range(0, 40, 4)]
    assert rules[0] == "auto"
    assert rules[-1] == "auto:2,block"
    assert len(dict.fromkeys(rules)) == 3
    assert rules == sorted(rules, key=[*dict.fromkeys(rules)].index)


@pytest.mark.parametrize("most", [4, 8, 16])
def test_too_small_a_device_has_the_same_memories_in_block_ram(most):
    """However short messages are, so that they take no more tables than longer ones."""
    program = tf.compile(tf.plan("2x2", "alltoall"), max_flits=most)
    small = replace(find_target("ecp5-85k"), capacity={"brams": 1, "luts": 100})
    assert fitting_rule(tf.Fabric(program, width=32), small) == f"auto:{most},block"


def test_wide_words_take_several_blocks():
    family = find_target("ecp5-85k").tools
    assert [family.blocks(*shape) for shape in ((36, 512), (37, 512), (36, 513), (1, 9999))] == [
        1, 2, 2, 1,
    ]  # fmt: skip


def test_share_of_block_rams_counts_the_words_of_memories():
    """Two nodes with four words of 32 bits to send and eight to receive, in four block RAMs."""
    fabric = tf.Fabric(tf.compile(tf.plan("2", "allgather"), flits=4), width=32)
    device = find_target("ecp5-85k")
    share = block_share(fabric, device, "block", 4)
    assert share == 2 * (4 + 8) * 32 / (4 * 512 * 36)
    assert block_share(fabric, device, "auto", 4) is None
    assert block_share(fabric, device, "block", 0) is None
    assert block_share(fabric, find_target("xilinx-7"), "block", 4) is None
