"""Registers of nodes, which are reset together, and what counts with them: the words of a packet,
and what chunk of it each belongs to.

A reset that one register gives to all nodes at once would be the longest wire of a fabric. So the
control passes it on as `clear`, like all that nodes are given; for that one cycle nodes offer and
accept nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from ...rtl.memories import address_width, constant_at, fitting
from ...rtl.modules import Leaf

__all__ = ["WordCount", "WordShape", "cleared", "counted", "registered_outputs", "state", "tally"]


def state(bits: int = 1, *, name: str, init: int = 0) -> Signal:
    """A register that `cleared` sets back, and no other reset."""
    return Signal(bits, name=name, init=init, reset_less=True)


def registered_outputs(leaf: Leaf, *names: str) -> None:
    """Make registers of outputs, as far as a leaf has them, that only `cleared` sets back."""
    for name in names:
        if name in leaf.signature.members:
            setattr(leaf, name, state(leaf.signature.members[name].shape, name=name))


def cleared(m: Module, clear: Value, *registers: Signal) -> None:
    """Let registers go back to their initial values; nothing is assigned to them after this.

    Parameters
    ----------
    clear : Value
        High in the cycle before.

    Examples
    --------
    >>> from amaranth.hdl import Fragment
    >>> m, begun = Module(), state(name="begun")
    >>> cleared(m, Signal(), begun)
    >>> [*Fragment.get(m, None).statements]
    ['sync']
    """
    with m.If(clear):
        m.d.sync += [register.eq(register.init) for register in registers]


def tally(m: Module, *, up: Value, down: Value, clear: Value, name: str) -> tuple[Signal, Signal]:
    """Count from 0 to 3, up and down.

    Each bit follows from four others: one table, where an adder and a subtractor would take two
    levels of them, behind signals that come late.

    Parameters
    ----------
    up, down : Value
        Whether the count grows with the next edge, and whether it shrinks.
    clear : Value
        Whether it is 0 from there on.

    Returns
    -------
    count, following : Signal
        The count, and what it is from the next edge on, but for `clear`.

    Examples
    --------
    >>> from amaranth.hdl import Fragment
    >>> m = Module()
    >>> count, following = tally(m, up=Signal(), down=Signal(), clear=Signal(), name="waiting")
    >>> len(count), len(following), [*Fragment.get(m, None).statements]
    (2, 2, ['comb', 'sync'])
    """
    count, following = state(2, name=name), Signal(2, name=f"{name}_next")
    grows, shrinks = Signal(name=f"{name}_grows"), Signal(name=f"{name}_shrinks")
    m.d.comb += [grows.eq(up), shrinks.eq(down)]
    changes = grows ^ shrinks
    counted = Cat(count[0] ^ changes, count[1] ^ (changes & (count[0] ^ shrinks)))
    m.d.comb += following.eq(counted)
    m.d.sync += count.eq(following)
    cleared(m, clear, count)
    return count, following


@dataclass(frozen=True)
class WordShape:
    """How the words of a packet are divided into chunks.

    Parameters
    ----------
    most : int
        Words of the longest packet.
    chunks : tuple of int
        Of each form.
    block : int
        Words of a chunk of the longest packet, of the form that has most.
    in_turn : bool
        Whether words go to the chunks in turn; else chunks follow one another.
    pitch : tuple of int
        Of each form, from the address of a word of a chunk to that of the next.
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

    @property
    def divisor_bits(self) -> int | None:
        """Bits of the number of a word below the place where a division by a power of two cuts it.

        None where there is nothing to divide, or not by a power of two.

        Examples
        --------
        >>> WordShape(16, chunks=(2,), block=8).divisor_bits
        3
        >>> WordShape(16, chunks=(2, 3), block=8).divisor_bits is None
        True
        """
        divisor = self.chunks[0] if self.in_turn else self.block
        same = len(set(self.chunks)) == len(set(self.pitch)) == 1
        powers = divisor.bit_count() == self.pitch[0].bit_count() == 1
        if not (self.chunk_bits and same and powers):
            return None
        return divisor.bit_length() - 1


class WordCount(NamedTuple):
    """Which word of a packet passes.

    Parameters
    ----------
    index, following : Signal
        Its number, and that of the next.
    chunk, within : Value
        The number of its chunk, and its address, counted from that of the first word of that.
    registers : tuple of Signal
        What the caller sets back with its own `cleared`.
    """

    index: Signal
    following: Signal
    chunk: Value
    within: Value
    registers: tuple[Signal, ...]


def counted(
    m: Module, shape: WordShape, form: Value, *, beat: Value, restart: Value,
    last_chunk: Value | None = None,
) -> WordCount:  # fmt: skip
    """Count the words of packets.

    Parameters
    ----------
    form : Value
        Whose packet it is.
    beat : Value
        Whether a word passes.
    restart : Value
        Whether it is the last of its packet.
    last_chunk : Value, optional
        The number of the last chunk, by default that of the form.
    """
    index, following = (
        state(shape.index_bits, name="index"),
        Signal(shape.index_bits, name="next_index"),
    )
    m.d.comb += following.eq(Mux(restart, 0, index + 1))
    with m.If(beat):
        m.d.sync += index.eq(following)
    if shape.divisor_bits is not None:
        return WordCount(index, following, *_split(shape, shape.divisor_bits, index), (index,))
    if shape.chunk_bits:
        if last_chunk is None:
            last_chunk = constant_at([chunks - 1 for chunks in shape.chunks], form)
        places = _divided(m, shape, form, last_chunk, beat=beat, restart=restart)
        return WordCount(index, following, *places, (index, *places))
    if max(shape.pitch) == 1:
        return WordCount(index, following, Const(0, 1), index, (index,))
    within = state(shape.within_bits, name="within_chunk")
    with m.If(beat):
        m.d.sync += within.eq(Mux(restart, 0, within + constant_at(shape.pitch, form)))
    return WordCount(index, following, Const(0, 1), within, (index, within))


def _split(shape: WordShape, bits: int, index: Signal) -> tuple[Value, Value]:
    """Chunks, and addresses within them, from the bits of the number of a word."""
    low, high = index[:bits], index[bits:]
    chunk, word = (low, high) if shape.in_turn else (high, low)
    apart = Cat(Const(0, shape.pitch[0].bit_length() - 1), word)
    return fitting(chunk, shape.chunk_bits), fitting(apart, shape.within_bits)


def _divided(
    m: Module, shape: WordShape, form: Value, last: Value, *, beat: Value, restart: Value
) -> tuple[Signal, Signal]:
    """Count chunks, and addresses within them."""
    chunk = state(shape.chunk_bits, name="chunk")
    within = state(shape.within_bits, name="within_chunk")
    ends = Signal(name="ends_chunks" if shape.in_turn else "ends_chunk")
    following = Signal.like(chunk, name="next_chunk")
    if shape.in_turn:
        m.d.comb += ends.eq(chunk == last)
        m.d.comb += following.eq(Mux(ends | restart, 0, chunk + 1))
        passes, returns = beat & (ends | restart), restart
    else:
        m.d.comb += ends.eq(within == (shape.block - 1) * shape.pitch[0])
        m.d.comb += following.eq(Mux(restart, 0, chunk + ends))
        passes, returns = beat, restart | ends
    with m.If(passes):
        m.d.sync += within.eq(Mux(returns, 0, within + constant_at(shape.pitch, form)))
    with m.If(beat):
        m.d.sync += chunk.eq(following)
    return chunk, within
