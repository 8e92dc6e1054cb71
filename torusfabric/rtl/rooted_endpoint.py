"""The endpoint of a fabric with any root: the same at all nodes."""

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from .crossbar import cascade, keeper, select_bits
from .memories import add_memory, address_width, choose
from .netlist import Leaf

__all__ = ["RootedEndpoint"]


class RootedEndpoint(Leaf):
    """Keeps a message of its own and one received, and sends the one or the other.

    Each chunk has a memory of two halves, the lower for what the node would send as the root.

    Parameters
    ----------
    program : RootedProgram
    block_flits, width, word_bits : int
        Flits of a chunk, bits of a flit, and of the sequencer's word counter.
    private : bool
        Whether every node has a read address of its own, instead of one from the host.

    Members
    -------
    word, busy, arrivals : In
        From the sequencer.
    offset : In
        The offset from the root, one coordinate after the other.
    rx : In(ports * width)
        A word from each in-port.
    inject : Out(chunks * width)
        A word of each chunk, one cycle after its address.
    kind : Out
        What the router does.
    write_node, write_chunk, write_address, write_data, write_enable : In
        Writes a word of the node's own message, while no run is under way.
    read_node, read_bank, read_address : In
        Reads a word of what was broadcast, two cycles later; `read_bank`, given one cycle after the
        address, chooses the chunk.
    read_data : Out(width)
    node : In
        The number of this node.
    """

    def __init__(self, program, *, block_flits, width, word_bits, private=False):
        self._program, self._flits, self._width = program, block_flits, width
        self._private = private
        topology, self._chunks = program.topology, program.schedule.chunks
        nodes, bits = address_width(topology.nodes), address_width(block_flits)
        chunk_bits = address_width(self._chunks)
        super().__init__(
            {
                "word": In(word_bits),
                "busy": In(1),
                "arrivals": In(max(len(program.arrivals), 1)),
                "offset": In(sum(map(address_width, topology.moduli))),
                "rx": In(topology.ports * width),
                "inject": Out(self._chunks * width),
                "kind": Out(address_width(int(program.kind.max()) + 1)),
                "node": In(nodes),
                "write_node": In(nodes),
                "write_chunk": In(chunk_bits),
                "write_address": In(bits),
                "write_data": In(width),
                "write_enable": In(1),
                "read_node": In(nodes),
                "read_bank": In(chunk_bits),
                "read_address": In(bits),
                "read_data": Out(width),
            }
        )
        self.read_data = Signal(width, reset_less=True)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.kind.eq(self._by_offset(self._program.kind, len(self.kind)))
        words = [self._chunk(m, chunk) for chunk in range(self._chunks)]
        m.d.comb += self.inject.eq(Cat(*words))
        word = choose(words, self.value("read_bank")) if len(words) > 1 else words[0]
        m.d.sync += self.read_data.eq(word)
        return m

    def _by_offset(self, values, bits):
        """A value that depends on the offset from the root."""
        if (values == values[0]).all():
            return Const(int(values[0]), bits)
        topology = self._program.topology
        places = topology.coordinates(np.arange(topology.nodes))
        key, shift = np.zeros(topology.nodes, int), 0
        for place, side in zip(places, topology.moduli, strict=True):
            key |= place << shift
            shift += address_width(side)
        table = np.full(1 << shift, values[0])
        table[key] = values
        return choose([Const(int(value), bits) for value in table], self.value("offset"))

    def _held(self, m, name, values, bits):
        """The same in a register: nothing arrives as early as the offset changes.

        Were it not a register, synthesis would work out for every bit of a word what to select.
        """
        held = Signal(bits, name=name, reset_less=True)
        m.d.sync += held.eq(self._by_offset(values, bits))
        return held

    def _chunk(self, m, chunk):
        """The memory of a chunk; returns the word read."""
        program, bits = self._program, (self._flits - 1).bit_length()
        arrivals = [*self.value("arrivals")][: len(program.arrivals)]
        code = self._held(
            m, f"arrival_{chunk}", program.when[:, chunk], address_width(len(arrivals) + 1)
        )
        taken = Signal(name=f"taken_{chunk}", attrs={"keep": 1} if self.alone else {})
        m.d.comb += taken.eq(choose([*arrivals, Const(0, 1)], code))
        pointer = Signal(max(bits, 1), name=f"pointer_{chunk}")
        if self._flits > 1:
            with m.If(~self.value("busy")):
                m.d.sync += pointer.eq(0)
            with m.Elif(taken):
                m.d.sync += pointer.eq(pointer + 1)
        mine = self.value("write_enable") & (self.value("write_node") == self.value("node"))
        if self._chunks > 1:
            mine = mine & (self.value("write_chunk") == chunk)
        write = (
            Cat(Mux(taken, pointer[:bits], self.value("write_address")[:bits]), taken),
            Mux(taken, self._received(m, chunk), self.value("write_data")),
            taken | mine,
        )
        from_host = self.value("read_node") == self.value("node")
        busy, word, received = self.value("busy"), self.value("word"), self.value("offset") != 0
        if self._private:
            word = Mux(busy, word, self.value("read_address"))
        read = Cat(word[:bits], received), busy | from_host
        depth = (1 << bits) + self._flits
        name = f"chunk_{chunk}"
        return add_memory(m, name, width=self._width, depth=depth, write=write, read=read)

    def _received(self, m, chunk):
        """The word at the in-port by which a chunk comes."""
        ports = self._program.port[:, chunk]
        used = sorted({*ports.tolist()} - {-1})
        places = [used.index(port) if port in used else 0 for port in ports.tolist()]
        bits = [select_bits(len(used), place) for place in places]
        codes = np.array([sum(bit << k for k, bit in enumerate(row)) for row in bits])
        words = self.words("rx", self._width)
        select = self._held(m, f"port_{chunk}", codes, max(len(bits[0]), 1))
        # Kept stages would only be more signals for a simulator.
        keep = [keeper(m, self._width)] if self.alone else []
        return cascade([words[port] for port in used], [*select], self._width, *keep)
