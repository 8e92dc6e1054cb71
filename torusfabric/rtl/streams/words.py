"""Counting the words of a packet, and what chunk of it each belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Const, Module, Mux, Signal, Value

from ..memories import address_width, choose

__all__ = ["WordCounter", "WordShape", "by_mode"]


def by_mode(values: Sequence[int], mode: Value) -> Value:
    """The constant of a mode."""
    width = max(max(values).bit_length(), 1)
    if len(set(values)) == 1:
        return Const(values[0], width)
    return choose([Const(value, width) for value in values], mode)


@dataclass(frozen=True)
class WordShape:
    """How the words of a packet are divided into chunks.

    Parameters
    ----------
    most : int
        Words of the longest packet.
    chunks : tuple of int
        Of each mode.
    block : int
        Words of a chunk of the longest packet, of the mode that has most.
    in_turn : bool
        Whether words go to the chunks in turn; else chunks follow one another.
    pitch : tuple of int
        Of each mode, from the address of a word of a chunk to that of the next.
    """

    most: int
    chunks: tuple[int, ...] = (1,)
    block: int = 1
    in_turn: bool = False
    pitch: tuple[int, ...] = (1,)

    @property
    def index_bits(self) -> int:
        """Bits of the number of a word."""
        return address_width(self.most)

    @property
    def chunk_bits(self) -> int:
        """Bits of the number of a chunk; 0 if there is only one."""
        return (max(self.chunks) - 1).bit_length()

    @property
    def within_bits(self) -> int:
        """Bits of the address of a word, counted from that of the first of its chunk."""
        words = self.most if max(self.chunks) == 1 else self.block
        return address_width((words - 1) * max(self.pitch) + 1)


class WordCounter:
    """Counts words.

    Parameters
    ----------
    m : Module
    shape : WordShape
    mode : Value
        Whose packet it is.
    beat : Value
        Whether a word passes.
    restart : Value
        Whether it is the last of its packet.

    Attributes
    ----------
    index : Signal
        The number of the word.
    chunk : Value
        That of its chunk.
    within : Value
        Its address, counted from that of the first word of the chunk.
    """

    def __init__(
        self, m: Module, shape: WordShape, mode: Value, *, beat: Value, restart: Value
    ) -> None:
        self._m, self._shape, self._beat, self._restart = m, shape, beat, restart
        self._pitch = by_mode(shape.pitch, mode)
        self.index = Signal(shape.index_bits, name="index")
        self._count(self.index, Const(1), beat, restart)
        self.chunk: Value = Const(0, 1)
        self.within: Value = self.index
        if shape.chunk_bits:
            self._divide(mode)
        elif max(shape.pitch) > 1:
            self.within = Signal(shape.within_bits, name="within")
            self._count(self.within, self._pitch, beat, restart)

    def _count(self, count: Signal, step: Value, passes: Value, restart: Value) -> None:
        with self._m.If(passes):
            self._m.d.sync += count.eq(Mux(restart, 0, count + step))

    def _divide(self, mode: Value) -> None:
        """Count chunks, and words within them."""
        shape, m, restart = self._shape, self._m, self._restart
        chunk = Signal(shape.chunk_bits, name="chunk")
        within = Signal(shape.within_bits, name="within")
        ends = Signal(name="ends_chunks" if shape.in_turn else "ends_chunk")
        following = Signal.like(chunk, name="next_chunk")
        self.chunk, self.within = chunk, within
        if shape.in_turn:
            m.d.comb += ends.eq(chunk == by_mode([chunks - 1 for chunks in shape.chunks], mode))
            m.d.comb += following.eq(Mux(ends | restart, 0, chunk + 1))
            self._count(within, self._pitch, self._beat & (ends | restart), restart)
        else:
            m.d.comb += ends.eq(within == (shape.block - 1) * shape.pitch[0])
            m.d.comb += following.eq(Mux(restart, 0, chunk + ends))
            self._count(within, self._pitch, self._beat, restart | ends)
        with m.If(self._beat):
            m.d.sync += chunk.eq(following)
