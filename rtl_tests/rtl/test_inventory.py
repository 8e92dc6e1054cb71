"""The inventory of a fabric: bits of ROMs, number of memories, bits of memories."""

import pytest
from helpers import fabric_of

from torusfabric.rtl.inventory import take_inventory


@pytest.mark.parametrize(
    ("topology", "collective", "algorithm", "rom_bits", "memories", "memory_bits"),
    [
        # Routers have two settings, one of them in the first row: a ROM of two rows for each.
        # Arriving words share one memory, and the single word that a node sends is a register.
        ("4x4", "allgather", "one-packet", 2 * 16, 1, None),
        # All in-ports store at the same address: one memory, as wide as all of them.
        ("5x5", "allgather", "bufferless", None, 1, 25 * 8 * 24),
        # The root broadcasts one word: no node has a memory.
        ("3x3", "broadcast", "max-flow", None, 0, 0),
    ],
)
def test_inventory(topology, collective, algorithm, rom_bits, memories, memory_bits):
    found = take_inventory(fabric_of(topology, collective, algorithm, width=8).netlist)
    for value, wanted in zip(found, (rom_bits, memories, memory_bits), strict=True):
        assert wanted is None or value == wanted


def test_inventory_counts_rows():
    """Twice as many steps need more ROM bits, and fewer than four times as many."""
    few, many = (
        take_inventory(fabric_of("4x4", "alltoall", "matching", chunks=chunks).netlist).rom_bits
        for chunks in (1, 2)
    )
    assert few < many < 4 * few
