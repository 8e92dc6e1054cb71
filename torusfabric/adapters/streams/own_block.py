"""`OwnBlock`: the memory for words that a node sends to itself, and the source of `tdata`.

Words of a node to itself do not pass the core. They are kept from the load of the message until the
unload of its run. In this time more messages are under way than memories have sections, so the
memory of the own block has twice as many sections.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Member, Out

from ...rtl.memories import ReadPort, WritePort, add_memory, memory_cell
from ...rtl.modules import Leaf
from .engine import EngineShape
from .sections import in_section, section_bits

__all__ = ["OwnBlock"]


class OwnBlock(Leaf):
    """Module that stores the own block, and drives `tdata` with its word or the received word.

    Parameters
    ----------
    shape : EngineShape
        Parameters of the unloaders.
    keeps : bool
        True if the node sends words to itself. If False, there is no memory, and `tdata` is always
        the word of the memory port.

    Members
    -------
    own_enable, own_index, write_data, write_section : In
        Write of a word, from the loader.
    read_advance, read_own, read_index, read_section : In
        Read of a word, from the unloader, in the cycle in which the unloader drives the memory
        port.
    read_data : In
        The word of the memory port.
    tkeep : In
        Bytes of the word that are part of the packet; all others are 0 in `tdata`.
    tdata : Out
        Data of the stream.
    """

    def __init__(self, shape: EngineShape, *, keeps: bool) -> None:
        self._shape, self._keeps = shape, keeps
        index, number = shape.words.index_bits, shape.facts.sections.number_bits
        width = shape.port.width
        members: dict[str, Member] = {"read_data": In(width), "tdata": Out(shape.data_bits)}
        members["tkeep"] = In(shape.keep_bits)
        if keeps:
            members |= {"own_enable": In(1), "own_index": In(index), "write_data": In(width)}
            members |= {"write_section": In(number), "read_section": In(number)}
            members |= {"read_advance": In(1), "read_own": In(1), "read_index": In(index)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        """Build the memory, and the multiplexer of the word."""
        m, word = Module(), self.value("read_data")
        if self._keeps:
            own, kept = self._read(m)
            word = Mux(own, kept, word)
        if self._shape.flit_bits:
            width = self._shape.core.width
            flits = range(0, len(self.value("tkeep")), width // 8)
            full = Cat(self.value("tkeep")[k].replicate(width) for k in flits)
            word &= full
        m.d.comb += self.tdata.eq(Cat(word, Const(0, len(self.tdata) - len(word))))
        return m

    def _read(self, m: Module) -> tuple[Value, Value]:
        """Return a flag that the word comes from the own block, and the word of the own block.

        Registers delay the read as the memory port delays its own, so that both words coincide.
        """
        most, advance = self._shape.words.most, self.value("read_advance")
        sections = 2 * self._shape.facts.sections.count
        address = in_section(self.value("read_index"), most, self.value("read_section"))
        asked = Cat(self.value("read_own"), address)
        for stage in range(self._shape.port.answer - 1):
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
                width=self._shape.port.width,
                depth=most + ((sections - 1) << section_bits(most)),
            ),
            write=WritePort(
                in_section(self.value("own_index"), most, self.value("write_section")),
                self.value("write_data"),
                self.value("own_enable"),
            ),
            read=ReadPort(asked[1:], advance),
        )
        return own, kept
