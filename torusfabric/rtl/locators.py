"""Locators: where a node stores a flit, for the host that asks by origin.

Nodes store what arrives in the order in which it arrives. A locator turns (node, origin, chunk,
flit) into a memory and an address, once for the whole fabric: no flit carries a header, and no node
translates anything. There is one for each form of address map; as these do, locators know nodes by
their positions in their group.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out

from ..collective import Layout
from ..program import AddressMap, Form, Program
from ..program.fields import number_equal
from ..program.timing import chunk_cycles, direct_write_delay, part_cycles
from ..topology import IntArray
from .memories import Columns, address_width, constant_at, memories_of
from .modules import delayed

__all__ = ["HostLayout", "Locator", "MapLocator", "locator_of"]


class HostLayout:
    """Where the host finds what a node sends, and what it has received.

    Parameters
    ----------
    flits : int
        Of the longest message.
    form : Form, optional
        By which words are found that are not in the order of addresses.
    in_turn : bool
        Whether the words of a message go to its chunks in turn.
    words : int, optional
        The most words that a node sends or receives in any form.
    beat : int
        Flits of a word of the host.
    image_words : int
        Of the longest image, where tables are loaded.

    Attributes
    ----------
    chunks : int
        Of a message.
    flits, block_flits, part_flits : int
        Words of a message, of a block, and of a part of a node's memory.
    send_base, recv_base : int
        First addresses, which count words.
    send_words, recv_words : int
    address_bits : int
    memory_by_chunk : bool
        Whether each chunk of what a node sends has a memory of its own.
    part_is_root : bool
        Whether where a node keeps what it has received depends on which node is the root.
    positions : ndarray of int or None
        The position of each node in its group; None where it is its number.

    Examples
    --------
    >>> import torusfabric as tf
    >>> layout = HostLayout.of(tf.compile(tf.plan(tf.Torus(3, 3), "allgather"), flits=4))
    >>> layout.send_words, layout.recv_words, layout.recv_base
    (4, 36, 64)
    """

    send_base = 0

    def __init__(
        self, layout: Layout, flits: int, form: Form | None = None, *, in_turn: bool = False,
        words: int = 0, beat: int = 1, image_words: int = 0,
    ) -> None:  # fmt: skip
        self._layout, self.in_turn, self.beat = layout, in_turn, beat
        self.memory_by_chunk = form is not None and form.send_map.by_chunk
        self.part_is_root = form is not None and form.part_is_root
        self.image_words = image_words
        self.chunks, self.part_chunks = layout.blocks.chunks, layout.part_chunks
        self.send_parts, self.recv_parts = layout.send_parts, layout.recv_parts
        self.flits = -(-flits // beat)
        self.block_flits = layout.block_flits(self.flits)
        self.part_flits = layout.part_flits(self.flits)
        self.send_words = layout.send_words(self.flits)
        self.recv_words = layout.recv_words(self.flits)
        # A power of two, so that one address bit chooses and no subtraction is needed.
        words = words or max(self.send_words, self.recv_words)
        self.recv_base = 1 << (words - 1).bit_length()
        self.address_bits = address_width(2 * self.recv_base)
        position = layout.blocks.groups.position
        self.nodes = len(position)
        self.positions = position if (position != np.arange(self.nodes)).any() else None

    @classmethod
    def of(cls, program: Program, words: int = 0, beat: int = 1) -> HostLayout:
        """That of a program of one form."""
        return cls(
            program.layout, program.flits, program.form, in_turn=program.any_length, words=words,
            beat=beat,
        )  # fmt: skip

    @property
    def root_bits(self) -> int:
        """Bits of the number of a root: of a position in a group."""
        return address_width(self._layout.blocks.groups.size)

    @property
    def position_bits(self) -> int:
        """Bits of the ROM of positions."""
        if self.positions is None:
            return 0
        return self.nodes * address_width(int(self.positions.max()) + 1)

    def first_flit(self, word: Value) -> Value:
        """The number of the first flit of a word."""
        return Cat(Const(0, self.beat.bit_length() - 1), word)

    def block_cycles(self, parts: int) -> int:
        """Cycles to find out in which block, of so many parts, an address lies."""
        return self.part_cycles(parts) + self.chunk_cycles

    def part_cycles(self, parts: int) -> int:
        """Cycles to find out in which of so many parts it lies."""
        return part_cycles(self._layout, parts, self.flits, any_length=self.in_turn)

    @property
    def chunk_cycles(self) -> int:
        """Cycles to find out in which chunk of a part it lies."""
        return chunk_cycles(self._layout, self.flits, any_length=self.in_turn)


class Locator(wiring.Component):
    """What every locator has.

    Parameters
    ----------
    given : mapping of str to Member
        Members that it has besides, as the host that has it: what is looked up elsewhere.

    Attributes
    ----------
    latency : int
        Cycles from a question to its answer; a question may be put in every cycle.

    Members
    -------
    node, origin, chunk, flit : In
        The question: node and origin are positions in a group, or the origin the number of an
        offset; a flit counts within its chunk.
    bank, address : Out
        The answer.
    """

    latency: int

    def __init__(
        self, *, nodes: int, chunks: int, flits: int, memories: int, depth: int, parts: int = 0,
        given: Mapping[str, Member] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        self.given = given
        super().__init__(
            {
                "node": In(address_width(nodes)),
                "origin": In(address_width(max(nodes, parts))),
                "chunk": In(address_width(chunks)),
                "flit": In(address_width(flits)),
                "bank": Out(address_width(memories)),
                "address": Out(address_width(depth)),
                **given,
            }
        )

    def rom_bits(self) -> int:
        """Bits of all its ROMs."""
        return sum(shape.width * shape.depth for shape in memories_of(self))


def locator_of(program: Program, form: int, *, received: bool) -> Callable[[], Locator] | None:
    """Return how to make the locator of what nodes have received in a form, or of what they send.

    None for what they send where the order of the host is that of memory.
    """
    part = program.part(form)
    sent = part.form.send_map
    late = direct_write_delay(part.layout, part.flits, any_length=part.any_length)
    direct = sent.by_chunk or (sent.is_in_sequence(part.block_flits) and not late)
    if direct and not received:
        return None
    return partial(MapLocator, program, form, received=received)


class MapLocator(Locator):
    """Finds blocks by the address map of a form: makes the key, and reads a table of the key.

    ===============  =============================================================================
    cycles           what they are for
    ===============  =============================================================================
    2                the key, where it is a difference: to read both numbers, and to subtract them
    1                to read memory and base; none where they depend on nothing but the chunk
    1                to choose the way that has the block, where there are several
    1                to add base and flit
    ===============  =============================================================================

    Parameters
    ----------
    program : Program
    form : int
        The number of the form.
    received : bool
        True for the blocks that nodes have received, which lie in any memory. The memories of those
        that they send are counted from the first one that the host writes.
    """

    def __init__(self, program: Program, form: int, *, received: bool) -> None:
        part = program.part(form)
        its = program.forms[form] if received else part.form
        own = [number for number, memory in enumerate(part.memories) if memory.own]
        mapped, self._first, self._parts = its.send_map, own[0], part.layout.send_parts
        if received:
            mapped, self._first, self._parts = its.receive_map, 0, part.layout.recv_parts
        self._ways, self._flits = [*mapped.ways], part.block_flits
        #: From a flit of a block to the next, in the memories of each way.
        self._pitches = [max(map(its.loop.pitch_of, np.unique(way.memory).tolist()))
                         for way in self._ways]  # fmt: skip
        #: Low bits of addresses that are those of a flit.
        self._flit_bits = (self._flits - 1).bit_length()
        bases = (way.base[way.base >= 0] & ((1 << self._flit_bits) - 1) for way in self._ways)
        if max(self._pitches) > 1 or any(base.any() for base in bases):
            self._flit_bits = 0
        self._making = 2 * any(way.coordinates for way in self._ways)
        self._reading = int(any(table.shape[:2] != (1, 1) for way in self._ways
                                for table in (way.memory, way.base)))  # fmt: skip
        self.latency = self._making + self._reading + (len(self._ways) > 1) + 1
        super().__init__(
            nodes=part.groups.size,
            parts=self._parts,
            chunks=part.layout.part_chunks,
            flits=self._flits,
            memories=len(program.memories) if received else len(own),
            depth=max(int(way.base.max()) + (self._flits - 1) * pitch + 1
                      for way, pitch in zip(self._ways, self._pitches, strict=True)),
        )  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        """Build the ways, the choice of one, and the sum."""
        m = Module()
        roms = _Roms(m, self._reading)
        *ways, found = [
            self._find(m, roms, *way) for way in zip(self._ways, self._pitches, strict=True)
        ]
        roms.build()
        for way in reversed(ways):
            each = zip(way, found, strict=True)
            found = _Found(*(Mux(way.hit, mine, other) for mine, other in each))
        _, bank, base, words = (delayed(m, value, int(len(ways) > 0)) for value in found)
        address = Cat(words[: self._flit_bits], base) if self._flit_bits else base + words
        m.d.sync += [self.bank.eq(bank), self.address.eq(address)]
        return m

    def _find(self, m: Module, roms: _Roms, way: AddressMap, pitch: int) -> _Found:
        """Find a block in the tables of one way."""
        row, part, chunk = (delayed(m, value, self._making)
                            for value in (self.node, self.origin, self.chunk))  # fmt: skip
        key, sides, known = [part], [self._parts], list[Value]()
        if way.row_of is not None:
            row = delayed(m, roms.read(way.row_of[:, None], [self.node], self.chunk), 1)
        if way.coordinates:
            key, sides = [], []
        for at, of, side in way.coordinates:
            if side == 1:
                continue
            both = (at, self.node), (of, self.origin)
            here, there = (roms.read(np.maximum(values, 0), [index], self.chunk)
                           for values, index in both)  # fmt: skip
            known += [delayed(m, roms.read((values >= 0).astype(int), [index], self.chunk), 2)
                      for values, index in both]  # fmt: skip
            difference = here - there
            offset = Signal(range(side), reset_less=True, name="offset")
            m.d.sync += offset.eq(Mux(difference < 0, difference + side, difference))
            key.append(offset)
            sides.append(side)

        def read(values: IntArray) -> Value:
            rows, keys, chunks = values.shape
            shape = rows, *(sides if keys > 1 else [1] * len(sides)), chunks
            return roms.read(values.reshape(shape), [row, *key], chunk)

        there = way.base >= 0
        hit = Cat(read(there.astype(int)), *known).all() if way.otherwise else Const(1)
        words = delayed(m, self.flit, self._making + self._reading)
        return _Found(
            hit,
            read(np.maximum(way.memory - self._first, 0)),
            read(np.where(there, way.base, 0) >> self._flit_bits),
            words * pitch if pitch > 1 and self._flits > 1 else words,
        )


class _Found(NamedTuple):
    """Whether a way has a block, and its memory, base, and distance of a flit from the base."""

    hit: Value
    bank: Value
    base: Value
    words: Value


class _Roms:
    """Tables of a module; those with the same index are one ROM.

    Parameters
    ----------
    reading : int
        Cycles to read a table.
    """

    def __init__(self, m: Module, reading: int) -> None:
        self._m, self._reading = m, reading
        self._roms: dict[tuple[Hashable, ...], Columns] = {}

    def read(self, values: IntArray, index: list[Value], chunk: Value) -> Value:
        """Return the entry of a table, whose last axis is that of chunks, some cycles later.

        An axis along which nothing changes does not matter.
        """
        every = range(len(index))
        kept = [axis for axis in every if (values != values.take([0], axis)).any()]
        values = values[tuple(slice(None) if axis in kept else 0 for axis in every)]
        index = [index[axis] for axis in kept]
        if not index:
            return constant_at(values.tolist(), delayed(self._m, chunk, self._reading))
        number, first = number_equal(each.tobytes() for each in np.moveaxis(values, -1, 0))
        values, key = values[..., first], (*map(id, index), number.tobytes())
        if len(first) > 1:
            index.append(
                chunk if len(first) == len(number) else constant_at(number.tolist(), chunk)
            )
        else:
            values = values[..., 0]
        if len(index) == 1 and (values == np.arange(len(values))).all():
            return delayed(self._m, index[0], 1)
        # Of the first index, what is past its end is never asked for.
        pads = [(0, (1 << len(each)) - size) for each, size in
                zip(index[1:], values.shape[1:], strict=True)]  # fmt: skip
        if key not in self._roms:
            self._roms[key] = Columns(Cat(*reversed(index)))
        return self._roms[key].read(np.pad(values, [(0, 0), *pads], mode="edge").ravel())

    def build(self) -> None:
        """Add the ROMs, once all that is read from them is known."""
        for number, rom in enumerate(self._roms.values()):
            rom.build(self._m, f"table_{number}")
