"""Endpoints of oblivious fabrics: two memories a node, and nothing that decides.

All in-ports of all nodes store what arrives at the same place in the same cycle, so one counter in
the sequencer addresses every memory.
"""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out

from .memories import add_memory, address_width, choose
from .netlist import Leaf

__all__ = ["WaveEndpoint"]


class WaveEndpoint(Leaf):
    """Holds what a node sends, and what it has received.

    Parameters
    ----------
    ports : int
    chunks : int
        Banks of the send memory.
    waves : int
        Words of each bank of the send memory.
    steps : int
        Words that an in-port receives in a wave.
    width : int
        Bits of a word.
    nodes : int
        Number of nodes of the fabric.

    Members
    -------
    rx : In(ports * width)
        A word from each in-port, stored at `rx_address` while `rx_enable`.
    inject : Out(chunks * width)
        A word of each chunk, one cycle after its `tx_address` and `tx_enable`.
    write_node, write_chunk, write_address, write_data, write_enable : In
        Writes a word into the send memory of the node whose number is `node`.
    read_node, read_bank, read_address : In
        Reads a word, two cycles later; `read_bank`, given one cycle after the address, chooses the
        bank: that of an in-port, or, numbered after those, a chunk of the send memory (which is
        addressed by `tx_address`).
    node : In
        The number of this node.
    read_data : Out(width)
    """

    def __init__(self, *, ports, chunks, waves, steps, width, nodes):
        self._ports, self._chunks, self._waves, self._depth = ports, chunks, waves, waves * steps
        self._width = width
        super().__init__(
            {
                "rx": In(ports * width),
                "rx_address": In(address_width(self._depth)),
                "rx_enable": In(1),
                "tx_address": In(address_width(waves)),
                "tx_enable": In(1),
                "inject": Out(chunks * width),
                "node": In(address_width(nodes)),
                "write_node": In(address_width(nodes)),
                "write_chunk": In(address_width(chunks)),
                "write_address": In(address_width(waves)),
                "write_data": In(width),
                "write_enable": In(1),
                "read_node": In(address_width(nodes)),
                "read_bank": In(address_width(ports + chunks)),
                "read_address": In(address_width(self._depth)),
                "read_data": Out(width),
            }
        )
        self.read_data = Signal(width, reset_less=True)

    def elaborate(self, platform):
        m = Module()
        ports, chunks, width = self._ports, self._chunks, self._width
        node = self.value("node")
        chosen = self.value("write_enable") & (self.value("write_node") == node)
        chunk = self.value("write_chunk")
        reading = self.value("read_node") == node
        local = add_memory(
            m,
            "send",
            width=chunks * width,
            depth=self._waves,
            granularity=width,
            write=(
                self.value("write_address"),
                Cat(*[self.value("write_data")] * chunks),
                Cat(*(chosen & (chunk == c) for c in range(chunks))),
            ),
            read=(self.value("tx_address"), self.value("tx_enable") | reading),
        )
        received = add_memory(
            m,
            "receive",
            width=ports * width,
            depth=self._depth,
            write=(
                self.value("rx_address"),
                Cat(*self.words("rx", width)),
                self.value("rx_enable"),
            ),
            read=(self.value("read_address"), reading),
        )
        banks = [
            word
            for bank in (received, local)
            for word in (bank[k : k + width] for k in range(0, len(bank), width))
        ]
        m.d.comb += self.inject.eq(local)
        m.d.sync += self.read_data.eq(choose(banks, self.value("read_bank")))
        return m
