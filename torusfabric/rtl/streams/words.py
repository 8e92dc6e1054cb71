"""Counting the words of a packet, and what chunk of it each belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Const, Module, Mux, Signal, Value

from ..memories import address_width

__all__ = ["WordCounter", "WordShape"]


@dataclass(frozen=True)
class WordShape:
    """How the words of a packet are divided into chunks.

    Parameters
    ----------
    most : int
        Words of the longest packet.
    chunks : int
    block : int
        Words of a chunk of the longest packet.
    in_turn : bool
        Whether words go to the chunks in turn; else chunks follow one another.
    pitch : int
        From the address of a word of a chunk to that of the next.
    """

    most: int
    chunks: int = 1
    block: int = 1
    in_turn: bool = False
    pitch: int = 1

    @property
    def index_bits(self) -> int:
        """Bits of the number of a word."""
        return address_width(self.most)

    @property
    def chunk_bits(self) -> int:
        """Bits of the number of a chunk; 0 if there is only one."""
        return (self.chunks - 1).bit_length()

    @property
    def within_bits(self) -> int:
        """Bits of the address of a word, counted from that of the first of its chunk."""
        words = self.most if self.chunks == 1 else self.block
        return address_width((words - 1) * self.pitch + 1)


class WordCounter:
    """Counts words.

    Parameters
    ----------
    m : Module
    shape : WordShape
    beat : Value
        Whether a word passes.
    restart : Value
        Whether it is the last of its packet.
    name : str

    Attributes
    ----------
    index : Signal
        The number of the word.
    chunk : Value
        That of its chunk.
    within : Value
        Its address, counted from that of the first word of the chunk.
    next_chunk : Value
        The chunk of the next word, or of this one if it does not pass.
    """

    def __init__(self, m: Module, shape: WordShape, beat: Value, *, restart: Value) -> None:
        self._m, self._shape, self._beat, self._restart = m, shape, beat, restart
        self.index = Signal(shape.index_bits, name="index")
        self._count(self.index, 1, beat, restart)
        self.chunk: Value = Const(0, 1)
        self.next_chunk: Value = Const(0, 1)
        self.within: Value = self.index
        if shape.chunks > 1:
            self._divide()
        elif shape.pitch > 1:
            self.within = Signal(shape.within_bits, name="within")
            self._count(self.within, shape.pitch, beat, restart)

    def _count(self, count: Signal, step: int, passes: Value, restart: Value) -> None:
        with self._m.If(passes):
            self._m.d.sync += count.eq(Mux(restart, 0, count + step))

    def _divide(self) -> None:
        """Count chunks, and words within them."""
        shape, m, restart = self._shape, self._m, self._restart
        chunk = Signal(range(shape.chunks), name="chunk")
        within = Signal(shape.within_bits, name="within")
        ends = Signal(name="ends_chunks" if shape.in_turn else "ends_chunk")
        following = Signal.like(chunk, name="next_chunk")
        self.chunk, self.within, self.next_chunk = chunk, within, following
        if shape.in_turn:
            m.d.comb += ends.eq(chunk == shape.chunks - 1)
            m.d.comb += following.eq(Mux(ends | restart, 0, chunk + 1))
            self._count(within, shape.pitch, self._beat & (ends | restart), restart)
        else:
            m.d.comb += ends.eq(within == (shape.block - 1) * shape.pitch)
            m.d.comb += following.eq(Mux(restart, 0, chunk + ends))
            self._count(within, shape.pitch, self._beat, restart | ends)
        with m.If(self._beat):
            m.d.sync += chunk.eq(following)
        self.next_chunk = Mux(self._beat, following, chunk)
