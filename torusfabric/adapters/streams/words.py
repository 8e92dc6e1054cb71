"""Registers and counters of the engines.

An *engine* is the loader of a node, which takes packets from the user and writes them into
memories, or the unloader, which reads received words and sends them to the user. The words of a
packet are divided into *chunks*, as the message is.

`add_word_counter` counts the words of packets and of their chunks. The registers of engines that
need a reset are made by `make_register`, and reset by the input `clear` of the engine.
Why not by the reset of the clock domain: a reset from one register to all nodes would be the
longest wire of a fabric. The control sends the reset as `clear` through the registers on the way to
the nodes. In the cycle of `clear`, engines offer and accept nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from ...rtl.memories import address_width, constant_at, resize
from ...rtl.modules import Leaf

__all__ = ["WordPosition", "WordShape", "add_clear", "add_word_counter", "register_outputs",
           "make_register", "add_counter"]  # fmt: skip


def make_register(bits: int = 1, *, name: str, init: int = 0) -> Signal:
    """Return a register of a loader or unloader; only `add_clear` resets it, not the clock domain.

    Parameters
    ----------
    bits : int
        Width of the register.
    name : str
        Name of the signal, for the emitted Verilog.
    init : int
        Value after power-up, and after a reset by `add_clear`.
    """
    return Signal(bits, name=name, init=init, reset_less=True)


def register_outputs(leaf: Leaf, *names: str) -> None:
    """Replace outputs of a module by registers, which only `add_clear` resets.

    `leaf` is the module, and `names` are the outputs; names that it lacks are ignored.
    """
    for name in names:
        if name in leaf.signature.members:
            setattr(leaf, name, make_register(leaf.signature.members[name].shape, name=name))


def add_clear(m: Module, clear: Value, *registers: Signal) -> None:
    """Add the synchronous reset of registers to their initial values.

    Call it after all other assignments to the registers, because the last assignment holds.

    Parameters
    ----------
    m : Module
        The module of the registers.
    clear : Value
        Reset signal; in the cycle after it is high, the registers have their initial values.
    registers : Signal
        Registers made by `make_register`.

    Examples
    --------
    The register is assigned in the clock domain ``sync``.

    >>> from amaranth.hdl import Fragment
    >>> m, begun = Module(), make_register(name="begun")
    >>> add_clear(m, Signal(), begun)
    >>> [*Fragment.get(m, None).statements]
    ['sync']
    """
    with m.If(clear):
        m.d.sync += [register.eq(register.init) for register in registers]


def add_counter(
    m: Module, *, up: Value, down: Value, clear: Value, name: str
) -> tuple[Signal, Signal]:
    """Add a counter from 0 to 3 that counts up and down.

    Why no adder and subtractor: `up` and `down` arrive late. Each bit of this counter is a function
    of four signals, which fits one LUT.

    Parameters
    ----------
    m : Module
        The module of the counter.
    up, down : Value
        High to increase, or to decrease, the count with the next edge. If both are high, the count
        is unchanged.
    clear : Value
        High to reset the count with the next edge.
    name : str
        Name of the counter, and prefix of its signals.

    Returns
    -------
    count, following : Signal
        The count, and its value after the next edge, `clear` not considered.

    Examples
    --------
    Both results have two bits.

    >>> from amaranth.hdl import Fragment
    >>> m = Module()
    >>> up, down, clear = Signal(), Signal(), Signal()
    >>> count, following = add_counter(m, up=up, down=down, clear=clear, name="waiting")
    >>> len(count), len(following), [*Fragment.get(m, None).statements]
    (2, 2, ['comb', 'sync'])
    """
    count, following = make_register(2, name=name), Signal(2, name=f"{name}_next")
    grows, shrinks = Signal(name=f"{name}_grows"), Signal(name=f"{name}_shrinks")
    m.d.comb += [grows.eq(up), shrinks.eq(down)]
    changes = grows ^ shrinks
    counted = Cat(count[0] ^ changes, count[1] ^ (changes & (count[0] ^ shrinks)))
    m.d.comb += following.eq(counted)
    m.d.sync += count.eq(following)
    add_clear(m, clear, count)
    return count, following


@dataclass(frozen=True)
class WordShape:
    """The division of the words of a packet into chunks, and the addresses of the words of a chunk.

    Parameters
    ----------
    most : int
        Words of the longest packet.
    chunks : tuple of int
        Chunks of a packet in each form.
    block : tuple of int
        Words of the longest chunk in each form.
    in_turn : bool
        True if word w belongs to chunk w modulo the number of chunks; False if the words of a chunk
        are consecutive.
    pitch : tuple of int
        Difference between the addresses of consecutive words of a chunk, in each form.
    """

    most: int
    chunks: tuple[int, ...] = (1,)
    block: tuple[int, ...] = (1,)
    in_turn: bool = False
    pitch: tuple[int, ...] = (1,)

    @property
    def index_bits(self) -> int:
        """Bits of the number of a word in its packet."""
        return address_width(self.most)

    @property
    def chunk_bits(self) -> int:
        """Bits of the number of a chunk; 0 for packets of one chunk."""
        return (max(self.chunks) - 1).bit_length()

    @property
    def offset_bits(self) -> int:
        """Bits of the distance of a word: its address minus the first address of its chunk."""
        words = self.most if max(self.chunks) == 1 else max(self.block)
        return address_width((words - 1) * max(self.pitch) + 1)

    @property
    def divisor_bits(self) -> int | None:
        """Number of low bits of a word number that are the remainder of a division, or None.

        To find the chunk of a word, and its number in the chunk, the number of the word in its
        packet is divided: by the number of chunks if `in_turn` is True, else by the number of words
        of a chunk. If the divisor is a power of two, the remainder is the low bits of the number.
        The result is None if a packet has one chunk, or if the divisor is no power of two.

        Examples
        --------
        With chunks of 8 words, the 3 low bits of a word number are the number of the word in its
        chunk. With other numbers of chunks in different forms, there are no such bits.

        >>> WordShape(16, chunks=(2,), block=(8,)).divisor_bits
        3
        >>> WordShape(16, chunks=(2, 3), block=(8, 8)).divisor_bits is None
        True
        """
        divisor = self.chunks[0] if self.in_turn else self.block[0]
        same = len(set(self.chunks)) == len(set(self.pitch)) == 1
        same &= self.in_turn or len(set(self.block)) == 1
        powers = divisor.bit_count() == self.pitch[0].bit_count() == 1
        if not (self.chunk_bits and same and powers):
            return None
        return divisor.bit_length() - 1


class WordPosition(NamedTuple):
    """Position of the current word of a packet.

    Parameters
    ----------
    index, following : Signal
        Number of the word in its packet, and number of the next word.
    chunk, within : Value
        Number of the chunk, and distance of the word from the first address of its chunk.
    registers : tuple of Signal
        Registers that the caller has to reset by `add_clear`.
    """

    index: Signal
    following: Signal
    chunk: Value
    within: Value
    registers: tuple[Signal, ...]


def add_word_counter(
    m: Module, shape: WordShape, form: Value, *, beat: Value, restart: Value,
    last_chunk: Value | None = None,
) -> WordPosition:  # fmt: skip
    """Add counters for the words of packets, and return the position of the current word.

    The chunk of a word, and its distance from the first address of the chunk, are quotient and
    remainder of a division of the word number. If the divisor is a power of two, they are bits of
    the number. Otherwise they have counters of their own.

    Parameters
    ----------
    m : Module
        The module of the counters.
    shape : WordShape
        The division of words into chunks.
    form : Value
        Form of the packet.
    beat : Value
        High in a cycle in which the current word passes.
    restart : Value
        High if the current word is the last of its packet.
    last_chunk : Value, optional
        Number of the last chunk of a packet; by default it follows from `form`.
    """
    index, following = (
        make_register(shape.index_bits, name="index"),
        Signal(shape.index_bits, name="next_index"),
    )
    m.d.comb += following.eq(Mux(restart, 0, index + 1))
    with m.If(beat):
        m.d.sync += index.eq(following)
    if shape.divisor_bits is not None:
        return WordPosition(
            index, following, *_split_index(shape, shape.divisor_bits, index), (index,)
        )
    if shape.chunk_bits:
        if last_chunk is None:
            last_chunk = constant_at([chunks - 1 for chunks in shape.chunks], form)
        places = _count_chunks(m, shape, form, last_chunk, beat=beat, restart=restart)
        return WordPosition(index, following, *places, (index, *places))
    if max(shape.pitch) == 1:
        return WordPosition(index, following, Const(0, 1), index, (index,))
    within = make_register(shape.offset_bits, name="within_chunk")
    with m.If(beat):
        m.d.sync += within.eq(Mux(restart, 0, within + constant_at(shape.pitch, form)))
    return WordPosition(index, following, Const(0, 1), within, (index, within))


def _split_index(shape: WordShape, bits: int, index: Signal) -> tuple[Value, Value]:
    """Return signals with the chunk of a word, and its distance from the chunk's first address.

    `index` is the number of the word in its packet. If words belong to chunks in turn, the `bits`
    low bits of `index` are the chunk, and the high bits the number of the word in the chunk.
    Otherwise the high bits are the chunk. `shape` is the division of packets into chunks.
    """
    low, high = index[:bits], index[bits:]
    chunk, word = (low, high) if shape.in_turn else (high, low)
    apart = Cat(Const(0, shape.pitch[0].bit_length() - 1), word)
    return resize(chunk, shape.chunk_bits), resize(apart, shape.offset_bits)


def _count_chunks(
    m: Module, shape: WordShape, form: Value, last: Value, *, beat: Value, restart: Value
) -> tuple[Signal, Signal]:
    """Add two counters: the chunk of the current word, and its distance; return their registers.

    The distance is the address of the word minus the first address of its chunk. In a cycle in
    which `beat` is high, the two counters go on to the next word, or to 0 if `restart` is high as
    well. `last` is the number of the last chunk of a packet. `shape` is the division of packets
    into chunks, and `form` the form of the packet, which decides the distance of consecutive words.
    """
    chunk = make_register(shape.chunk_bits, name="chunk")
    within = make_register(shape.offset_bits, name="within_chunk")
    ends = Signal(name="ends_chunks" if shape.in_turn else "ends_chunk")
    following = Signal.like(chunk, name="next_chunk")
    if shape.in_turn:
        m.d.comb += ends.eq(chunk == last)
        m.d.comb += following.eq(Mux(ends | restart, 0, chunk + 1))
        passes, returns = beat & (ends | restart), restart
    else:
        each = zip(shape.block, shape.pitch, strict=True)
        m.d.comb += ends.eq(
            within == constant_at([(block - 1) * pitch for block, pitch in each], form)
        )
        m.d.comb += following.eq(Mux(restart, 0, chunk + ends))
        passes, returns = beat, restart | ends
    with m.If(passes):
        m.d.sync += within.eq(Mux(returns, 0, within + constant_at(shape.pitch, form)))
    with m.If(beat):
        m.d.sync += chunk.eq(following)
    return chunk, within
