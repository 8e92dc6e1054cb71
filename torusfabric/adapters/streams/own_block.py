"""`OwnBlock`: the memory for words that a node sends to itself, and the source of `tdata`.

The words that a node sends to itself are its *own block*. They do not pass through the core: the
loader of the node writes them into this memory when it takes the message from the user, and the
unloader reads them when it sends the received packets to the user. An own word is thus stored
longer than a word in a memory of the core. The memories of the core are divided into sections, one
for each of two (or four) consecutive runs, so the memory here has twice as many sections.

`tdata` is the data of the node's AXI4-Stream for received words.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Member, Out

from ...rtl.memories import ReadPort, WritePort, add_memory, memory_cell
from ...rtl.modules import Leaf
from .engine import EngineShape
from .sections import address_in_section, section_bits

__all__ = ["OwnBlock"]


class OwnBlock(Leaf):
    """Module that stores the words that a node sends to itself, and drives `tdata` of its stream.

    These *own words* do not pass through the core: the loader of the node writes them here, and the
    unloader reads them. `tdata` is an own word or a word from the memories of the core.

    Parameters
    ----------
    shape : EngineShape
        Parameters of the unloaders.
    keeps : bool
        True if the node sends words to itself. If False, there is no memory, and `tdata` is always
        a word from the memories of the core.

    Members
    -------
    own_enable, own_index, write_data, write_section : In
        Write of a word, from the loader: enable, number of the word in its packet, data, section.
    read_advance, read_own, read_index, read_section : In
        Read of a word, from the unloader, in the cycle in which the unloader addresses the memories
        of the core: enable, high for an own word, number of the word in its packet, and section.
    read_data : In
        The word that was read from the memories of the core.
    tkeep : In
        Bytes of the word that are part of the packet; all others are 0 in `tdata`.
    tdata : Out
        Data of the stream.
    """

    def __init__(self, shape: EngineShape, *, keeps: bool) -> None:
        self._shape, self._keeps = shape, keeps
        index, number = shape.word_shape.index_bits, shape.facts.sections.message_number_bits
        width = shape.memory_port.width
        members: dict[str, Member] = {"read_data": In(width), "tdata": Out(shape.data_bits)}
        members["tkeep"] = In(shape.keep_bits)
        if keeps:
            members |= {"own_enable": In(1), "own_index": In(index), "write_data": In(width)}
            members |= {"write_section": In(number), "read_section": In(number)}
            members |= {"read_advance": In(1), "read_own": In(1), "read_index": In(index)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        """Build the memory, and select `tdata`: a word of the node itself, or a received word."""
        m, word = Module(), self.input_value("read_data")
        if self._keeps:
            own, kept = self._read_own_word(m)
            word = Mux(own, kept, word)
        if self._shape.flit_bits:
            width = self._shape.core.width
            flits = range(0, len(self.input_value("tkeep")), width // 8)
            full = Cat(self.input_value("tkeep")[k].replicate(width) for k in flits)
            word &= full
        m.d.comb += self.tdata.eq(Cat(word, Const(0, len(self.tdata) - len(word))))
        return m

    def _read_own_word(self, m: Module) -> tuple[Value, Value]:
        """Add the memory of own words; return two signals: high for an own word, and this word.

        An own word is one that the node has sent to itself. Its read is delayed to take as many
        cycles as a read of the core's memories, so that both words arrive in the same cycle.
        """
        most, advance = self._shape.word_shape.most, self.input_value("read_advance")
        sections = 2 * self._shape.facts.sections.n_sections
        address = address_in_section(
            self.input_value("read_index"), most, self.input_value("read_section")
        )
        asked = Cat(self.input_value("read_own"), address)
        for stage in range(self._shape.memory_port.read_cycles - 1):
            later = Signal(len(asked), name=f"asked_{stage}", reset_less=True)
            with m.If(advance):
                m.d.sync += later.eq(asked)
            asked = later
        own = Signal(name="own", reset_less=True)
        with m.If(advance):
            m.d.sync += own.eq(asked[0])
        kept = add_memory(
            m,
            "kept",
            memory_cell(
                "kept",
                width=self._shape.memory_port.width,
                depth=most + ((sections - 1) << section_bits(most)),
            ),
            write=WritePort(
                address_in_section(
                    self.input_value("own_index"), most, self.input_value("write_section")
                ),
                self.input_value("write_data"),
                self.input_value("own_enable"),
            ),
            read=ReadPort(asked[1:], advance),
        )
        return own, kept
