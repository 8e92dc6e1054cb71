"""Locators: where a node stores a flit, for the host that asks by origin.

Nodes store what arrives in the order in which it arrives. A locator turns (node, origin, chunk,
flit) into a memory and an address, once for the whole fabric: no flit carries a header, and no node
translates anything. There is one for each form of address map; as these do, locators know nodes by
their positions in their group.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Member, Out

from ...collective import Layout
from ...program import DirectMap, Form, Program, RouteMap
from ...program.address_map import Route
from ...program.fields import Order
from ...program.timing import chunk_cycles, part_cycles
from ...topology import IntArray
from ..memories import Columns, address_width, memories_of
from ..modules import delayed

__all__ = ["ChunkLocator", "HostLayout", "Locator", "RouteLocator", "affine"]


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
        send = form.send_map if form else None
        self.memory_by_chunk = isinstance(send, DirectMap) and send.by_chunk
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


class ChunkLocator(Locator):
    """Finds chunks, each in a memory of its own: the memory is the chunk, the address the flit.

    Parameters
    ----------
    program : Program
        With a `DirectMap` by chunk.
    """

    latency = 1

    def __init__(self, program: Program) -> None:
        nodes, chunks = program.groups.size, program.schedule.chunks
        flits = program.block_flits
        super().__init__(nodes=nodes, chunks=chunks, flits=flits, memories=chunks, depth=flits)

    def elaborate(self, platform: object) -> Module:
        """Register the answer."""
        m = Module()
        m.d.sync += [self.bank.eq(self.chunk), self.address.eq(self.flit)]
        return m


class Affine(NamedTuple):
    """How values follow from others: ``sign * base + offset``."""

    sign: int
    offset: int


class Numbering(NamedTuple):
    """Numbers of nodes and origins, the difference of which gives the step.

    The step less one is ``sign * (nodes[node] - origins[origin]) + offset`` modulo the length of
    the flow; the offset is 0 or -1.
    """

    nodes: IntArray
    origins: IntArray
    sign: int
    offset: int


def affine(base: IntArray, values: IntArray, modulus: int) -> Affine | None:
    """Sign and offset by which values follow from others.

    Parameters
    ----------
    base, values : ndarray of int
        Numbers below the modulus; negative where absent.

    Returns
    -------
    Affine or None
        Such that ``values = sign * base + offset`` modulo the modulus wherever values are present.
    """
    there = values >= 0
    if not there.any() or (base[there] < 0).any():
        return None
    for sign in (1, -1):
        offset = (values[there] - sign * base[there]) % modulus
        if (offset == offset[0]).all():
            return Affine(sign, int(offset[0]))
    return None


class _Found(NamedTuple):
    """Whether a route holds the answer, in which memory, and the step less one."""

    hit: Value
    port: Value
    near: Value


class RouteLocator(Locator):
    """Finds blocks by the positions of in-arcs and origins on their flows.

    Each route compares two numbers, one read from a ROM of the nodes and one from a ROM of the
    origins; the two directions of a cycle share their numbering.

    Parameters
    ----------
    program : Program
        With a `RouteMap`.
    """

    latency = 8

    def __init__(self, program: Program) -> None:
        mapped = program.form.receive_map
        assert isinstance(mapped, RouteMap)
        self._program, self._map = program, mapped
        waves = program.block_flits
        #: From a flit of a block to the next.
        self._pitch = self._map.steps if program.loop.order is Order.FLIT else 1
        super().__init__(
            nodes=program.groups.size,
            chunks=program.schedule.chunks,
            flits=waves,
            memories=len(program.memories),
            depth=self._map.steps * waves,
        )

    def elaborate(self, platform: object) -> Module:
        """Build the search of all routes, and choose the one that holds the answer."""
        m = Module()
        by_node, by_origin = Columns(self.node), Columns(self.origin)
        chunk = delayed(m, self.chunk, 4)
        numberings: list[IntArray] = []
        found = []
        for route in self._map.routes:
            numbering = _common_numbering(numberings, route)
            found.append(self._search(m, route, numbering, by_node, by_origin, chunk))
        by_node.build(m, "nodes")
        by_origin.build(m, "origins")
        own = delayed(m, self.node == self.origin, 5)
        bank, step = self._first(
            m, [_Found(own, self._map.own + delayed(m, chunk, 1), Const(0)), *found]
        )
        flit, apart = delayed(m, self.flit, 6), self._map.apart
        waves = Signal(len(self.address), reset_less=True, name="waves")
        m.d.sync += [
            # What is a node's own is not stored wave by wave.
            waves.eq(Mux(delayed(m, own, 1), flit, flit * self._pitch)),
            self.bank.eq(bank),
            self.address.eq(waves + (step * apart if apart > 1 else step)),
        ]
        return m

    @staticmethod
    def _first(m: Module, found: list[_Found]) -> tuple[Value, Value]:
        """Memory, and step less one, of the first that holds the answer, after two cycles."""
        hits = [candidate.hit for candidate in found]
        bank: Value = Const(0)
        step: Value = Const(0)
        for number, (hit, port, near) in enumerate(found):
            first = delayed(m, hit & ~Cat(*hits[:number]).any() if number else hit, 1)
            bank |= Mux(first, delayed(m, port, 1), 0)
            step |= Mux(first, delayed(m, near, 1), 0)
        return delayed(m, bank, 1), delayed(m, step, 1)

    def _search(
        self,
        m: Module,
        route: Route,
        numbering: Numbering,
        by_node: Columns,
        by_origin: Columns,
        chunk: Value,
    ) -> _Found:
        """What a route has.

        It takes five cycles: to look up both numbers, for their difference, for its sign, for the
        distance that follows, and to compare that.
        """
        at_values, of_values, sign, offset = numbering
        modulus, steps = route.length or 2 * (at_values.max() + 1), self._map.steps
        at, of = by_node.read(np.maximum(at_values, 0)), by_origin.read(np.maximum(of_values, 0))
        exact = at - of if sign > 0 else of - at
        difference = Signal(exact.shape(), reset_less=True, name="difference")
        m.d.sync += difference.eq(exact)
        # The offset is added together with the length of the flow, so that one adder does.
        wraps = delayed(m, difference < -offset, 1)
        further = Mux(wraps, int(modulus) + offset, offset)
        late = Signal(difference.shape(), reset_less=True, name="late")
        m.d.sync += late.eq(difference)
        distance = delayed(m, (late + further)[: len(difference) + 1], 1)
        there = by_node.read(np.where(route.position >= 0, 1, 0))
        enters = by_origin.read(np.where(route.entry >= 0, 1, 0))
        hits = [delayed(m, there, 3), delayed(m, enters, 3)]
        if not route.length:
            hits.append(delayed(m, ~wraps, 1))
        if steps < modulus:
            hits.append(distance < steps)
        if (route.tail > 0).any():
            tail = by_node.read(np.maximum(route.tail, 0))
            hits.append(distance >= delayed(m, tail, 3))
        if self._program.schedule.chunks > 1:
            hits.append(chunk == route.chunk)
        hit = Signal(reset_less=True, name="hit")
        near = Signal(range(max(steps, 2)), reset_less=True, name="near")
        m.d.sync += [hit.eq(Cat(*hits).all()), near.eq(distance)]
        return _Found(hit, delayed(m, by_node.read(route.port), 4), near)


def _common_numbering(known: list[IntArray], route: Route) -> Numbering:
    """Write both numbers of a route in one numbering: of those in use, or one more of these."""
    modulus = route.length
    for base in [*known, route.position] if modulus else []:
        at, of = affine(base, route.position, modulus), affine(base, route.entry, modulus)
        if at and of and at.sign == of.sign and (of.offset - at.offset) % modulus in (0, 1):
            if not any(base is other for other in known):
                known.append(base)
            return Numbering(base, base, at.sign, -int((of.offset - at.offset) % modulus))
    return Numbering(route.position, route.entry, 1, 0)
