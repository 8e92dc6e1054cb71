"""Packet tables of nodes: the words that a table names, and the bits for which it needs a ROM."""

import numpy as np
import pytest
from fabrics import build_fabric

import torusfabric as tf
from torusfabric.adapters.streams.front import StreamFront
from torusfabric.adapters.streams.hardware import StreamTop
from torusfabric.adapters.streams.options import Clocks
from torusfabric.adapters.streams.packets import OWN_BLOCK, packets_received, packets_sent
from torusfabric.rtl.core import Core


def tables(topology, collectives, **options):
    """Return the packet tables of the loader and of the unloader of a fabric."""
    fabric = build_fabric(topology, collectives, **{"top": "stream", "beat": 1} | options)
    top = StreamTop(StreamFront(fabric.program, fabric.width, fabric.beat).core, Clocks.ONE, 0)
    return top.loader.packet_table, top.unloader.packet_table


@pytest.mark.parametrize(
    ("topology", "collective", "options"),
    [
        ("4x4", "scatter", {"flits": 4}),
        ("4x4", "allgather", {"max_flits": 8}),
        ("3x3", "broadcast", {"flits": 5}),
    ],
)
def test_words_that_are_sent_need_no_rom(topology, collective, options):
    """Sent packets need no ROM: they lie at multiples of a power of two, in one bank."""
    assert tables(topology, collective, **options)[0].rom_bits == 0


def test_nodes_without_packets_have_an_empty_table():
    """Nodes that send no packets have an empty row in the table."""
    rows = tables("3x3", "scatter", flits=3)[0].rom_rows
    assert rows[0].any()
    assert not rows[1:].any()


def test_forms_of_which_one_needs_a_rom_take_no_more_bits():
    """A ROM that serves two modes has no more bits than the ROM of the larger mode alone."""
    alone = [tables("4x4", each, max_flits=8)[1].rom_bits for each in ("allgather", "alltoall")]
    assert tables("4x4", "allgather,alltoall", max_flits=8)[1].rom_bits <= max(alone)


@pytest.mark.parametrize("beat", [1, 2])
@pytest.mark.parametrize(
    ("topology", "collective", "options"),
    [
        ("3x3", "allgather", {"flits": 4}),
        ("2x3", "alltoall:matching", {"max_flits": 8}),
        ("2x2", "reduce-scatter", {"flits": 16}),
        ("2x3", "broadcast", {"max_flits": 8}),
    ],
)
def test_tables_name_every_word_of_the_memory_port(topology, collective, options, beat):
    """A packet table names the bank and address that the core gives for each word of each block."""
    kind, _, algorithm = collective.partition(":")
    plan = tf.plan(topology, kind, **({"algorithm": algorithm} if algorithm else {}))
    program = tf.compile(plan, **options).by_beats(beat)
    core = Core(program, 8, beat=beat, sections=2, concurrent=True)
    flits = program.flits
    for received, find in ((False, packets_sent), (True, packets_received)):
        packets = find(core, 0)
        bank, address = core.locate_words(received=received)
        nodes = np.arange(len(bank))[:, None, None]
        packet, word = np.ogrid[: packets.most_packets, : flits // beat]
        blocks = packets.n_blocks
        if program.any_length:
            block, turn = word % blocks, word // blocks
        else:
            block, turn = word // packets.words if blocks > 1 else 0 * word, word
            turn = word % packets.words if blocks > 1 else word
        found = packets.base[nodes, packet, block] + turn * packets.pitch
        bank, address = (each.reshape(len(each), packets.most_packets, flits)[..., ::beat]
                         for each in (bank, address))  # fmt: skip
        at = packets.bank[nodes, packet, block]
        mine = (at != OWN_BLOCK) & (address >= 0) & packets.has_packets[:, None, None]
        assert mine.any()
        assert (at == bank)[mine].all()
        assert (found == address)[mine].all()
