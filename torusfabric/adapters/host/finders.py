"""Finders: the memory and the address of each word that the host writes or reads.

The host sees the words of a node as one range of addresses: parts, chunks and flits (`HostLayout`).
A finder divides an address, and looks up where the block lies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Member
from typing_extensions import override

from ...collective import Layout
from ...program import AddressMap, Program
from ...program.fields import number_equal
from ...rtl.memories import TABLE_BITS, Columns, address_width, constant_at, fitting, memories_of
from ...rtl.modules import delayed
from ...rtl.netlist import Leaf
from ...topology import IntArray

__all__ = ["ENTRY", "DirectFinder", "Finder", "HostLayout", "MapFinder", "divide",
           "division_cycles", "finder_of", "host_layouts", "sent_finders"]  # fmt: skip

#: Cycles from a write to its leaving for the nodes, where its address needs no look-up.
ENTRY = 1


class HostLayout:
    """Where the host finds what a node sends, and what it has received.

    Parameters
    ----------
    flits : int
        Of the longest message.
    in_turn : bool
        Whether the words of a message go to its chunks in turn.
    words : int, optional
        The most words that a node sends or receives in any form.
    beat : int
        Flits of a word of the host.

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
        self, layout: Layout, flits: int, *, in_turn: bool = False, words: int = 0, beat: int = 1,
    ) -> None:  # fmt: skip
        self._layout, self.in_turn, self.beat = layout, in_turn, beat
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
            program.layout, program.flits, in_turn=program.any_length, words=words, beat=beat
        )  # fmt: skip

    @property
    def root_bits(self) -> int:
        """Bits of the number of a root: of a position in a group."""
        return address_width(self._layout.blocks.groups.size)

    def first_flit(self, word: Value) -> Value:
        """The number of the first flit of a word."""
        return Cat(Const(0, self.beat.bit_length() - 1), word)

    def part_cycles(self, parts: int) -> int:
        """Cycles to find out in which of so many parts it lies."""
        if self.in_turn and self._layout.in_shares:
            # Parts follow from chunks.
            return division_cycles(self.chunks, self.part_chunks)
        return division_cycles(parts * self.part_flits, self.part_flits)

    @property
    def chunk_cycles(self) -> int:
        """Cycles to find out in which chunk of a part it lies."""
        if self.in_turn:
            return division_cycles(self.flits, self.chunks)
        return division_cycles(self.part_chunks * self.block_flits, self.block_flits)


def host_layouts(program: Program, words: int = 0, beat: int = 1) -> tuple[HostLayout, ...]:
    """Return the order of the words of messages for each form of a program.

    Addresses are the same in all forms.

    Parameters
    ----------
    words : int
        Words that there is room for, by default those of the longest message.
    beat : int
        Flits of a word.
    """
    parts = [program.part(form) for form in range(len(program.forms))]
    found = [HostLayout.of(part, beat=beat) for part in parts]
    words = words or max(max(each.send_words, each.recv_words) for each in found)
    return tuple(HostLayout.of(part, words, beat) for part in parts)


class Finder(ABC):
    """Finds a word of the host: the memory and the address of a word of a node.

    Nodes store what arrives in the order in which it arrives. A finder knows where, once for the
    whole fabric: no flit carries a header, and no node translates anything. A word can be asked for
    in every cycle. Finders know nodes by their positions in their group.

    Parameters
    ----------
    parts : int
        Parts of what a node sends, or receives.
    bank_bits : int
        Bits of the number of a memory.
    cycles : int
        Cycles of `look_up`.

    Attributes
    ----------
    latency : int
        Cycles to find the memory and the address, the input register included.
    by_root : bool
        True if the root of the last run says where its words lie.
    members : mapping of str to Member
        Members of the host port for what is looked up elsewhere.
    """

    by_root = part_is_root = False
    members: Mapping[str, Member] = MappingProxyType({})

    def __init__(self, layout: HostLayout, parts: int, bank_bits: int, cycles: int) -> None:
        self.layout, self.parts, self.bank_bits = layout, parts, bank_bits
        self._dividing = layout.part_cycles(parts) + layout.chunk_cycles
        self.latency = ENTRY + self._dividing + cycles

    def rom_bits(self) -> int:
        """Return the bits of the ROMs with which blocks are found, besides those that divide."""
        return 0

    def find(
        self, m: Module, host: Leaf, name: str, address: Value, node: Value
    ) -> tuple[Value, Value]:
        """Return the memory and the address of a word, after `latency` cycles."""
        part, chunk, flit = self.divide(m, name, delayed(m, address, ENTRY))
        part = host.value("sampled_root") if self.part_is_root else part
        return self.look_up(m, host, name, node, part, chunk, self.layout.first_flit(flit))

    def position(self, m: Module, name: str, node: Value) -> Value:
        """Return the position of a node in its group, when its address has been divided."""
        position = delayed(m, node, ENTRY)
        if self.layout.positions is not None:
            table = Columns(node)
            position = table.read(self.layout.positions)
            table.build(m, f"{name}_positions")
        return delayed(m, position, self._dividing)

    def divide(self, m: Module, name: str, address: Value) -> tuple[Value, Value, Value]:
        """Return the part, the chunk and the flit within it of an address."""
        layout, parts = self.layout, self.parts
        chunks, flits = layout.chunks, layout.flits
        if layout.in_turn and layout.part_chunks < chunks:
            within, block = divide(m, f"{name}_chunk", address, chunks, count=flits)
            part, chunk = divide(m, f"{name}_part", block, layout.part_chunks, count=chunks)
            return part, chunk, delayed(m, within, layout.part_cycles(parts))
        size = layout.part_flits
        part, flit = divide(m, f"{name}_part", address, size, count=parts * size)
        if layout.in_turn:
            within, chunk = divide(m, f"{name}_chunk", flit, chunks, count=flits)
        else:
            block = layout.block_flits
            count = layout.part_chunks * block
            chunk, within = divide(m, f"{name}_chunk", flit, block, count=count)
        return delayed(m, part, layout.chunk_cycles), chunk, within

    @abstractmethod
    def look_up(
        self, m: Module, host: Leaf, name: str, node: Value, part: Value, chunk: Value, flit: Value
    ) -> tuple[Value, Value]:
        """Return the memory and the address of a flit of a chunk, some cycles later.

        The node is that of the question, which is older; see `position`.
        """


class DirectFinder(Finder):
    """Finds words in the order of the host: in one memory, or in a memory for each chunk."""

    def __init__(self, layout: HostLayout, *, by_chunk: bool) -> None:
        super().__init__(layout, 1, address_width(layout.part_chunks), cycles=0)
        self._by_chunk = by_chunk
        self.latency = ENTRY + layout.chunk_cycles * by_chunk

    @override
    def divide(self, m: Module, name: str, address: Value) -> tuple[Value, Value, Value]:
        if self._by_chunk:
            return super().divide(m, name, address)
        return Const(0), Const(0), address

    @override
    def look_up(
        self, m: Module, host: Leaf, name: str, node: Value, part: Value, chunk: Value, flit: Value
    ) -> tuple[Value, Value]:
        return chunk, flit


def finder_of(layout: HostLayout, program: Program, form: int, *, received: bool) -> Finder:
    """Return the finder of what nodes have received in a form, or of what they send."""
    part = program.part(form)
    by_chunk = _is_by_chunk(part.form.send_map)
    if not received and (by_chunk or _is_in_order(part)):
        return DirectFinder(layout, by_chunk=by_chunk)
    return MapFinder(layout, program, form, received=received)


def _is_by_chunk(sent: AddressMap) -> bool:
    """Return True if each chunk of a message has a memory of its own, in the order of the host."""
    return (
        sent.memory.shape[:2] == (1, 1)
        and sent.base.size == 1
        and not sent.base.any()
        and bool((np.diff(sent.memory.ravel()) == 1).all())
    )


def _is_in_order(part: Program) -> bool:
    """Return True if addresses of the host are those of one memory of what nodes send.

    There are no flits between the blocks that a message does not fill, and which the host never
    sees; and the flits of a message do not go to its chunks in turn.
    """
    sent, layout = part.form.send_map, part.layout
    base, in_turn = sent.base.ravel(), part.any_length and layout.blocks.chunks > 1
    return (
        not (in_turn or sent.coordinates or len(sent.base) > 1)
        and (layout.send_parts == 1 or not layout.is_padded(part.flits))
        and bool((sent.memory == sent.memory[0, 0, 0]).all())
        and np.array_equal(base, part.block_flits * np.arange(len(base)))
    )


def sent_finders(program: Program, layouts: Sequence[HostLayout]) -> list[Finder]:
    """Return the finder of what nodes send by each send map of a program."""
    numbers = [form.layout for form in program.forms]
    first = [numbers.index(layout) for layout in sorted({*numbers})]
    return [finder_of(layouts[form], program, form, received=False) for form in first]


class MapFinder(Finder):
    """Finds blocks by the address map of a form: makes the key, and reads a table of the key.

    ===============  =============================================================================
    cycles           what they are for
    ===============  =============================================================================
    2                the key, where it is a difference: to read both numbers, and to subtract them
    1                to wrap the difference, where there are several ways
    1                to read memory and base; none where they depend on nothing but the chunk
    2                where there are several ways, to see which have the block, and to choose one
    1                to add base and flit
    ===============  =============================================================================

    Parameters
    ----------
    received : bool
        True for the blocks that nodes have received, which lie in any memory. The memories of those
        that they send are counted from the first one that the host writes. Received words of a
        broadcast from any root lie in the upper half; the root shows what it sends in the lower.
    """

    def __init__(self, layout: HostLayout, program: Program, form: int, *, received: bool) -> None:
        part, merged = program.part(form), program.forms[form]
        own = [number for number, memory in enumerate(part.memories) if memory.own]
        if received:
            mapped, loop, self._first = merged.receive_map, merged.loop, 0
            parts, memories = part.layout.recv_parts, len(program.memories)
        else:
            mapped, loop, self._first = part.form.send_map, part.loop, own[0]
            parts, memories = part.layout.send_parts, len(own)
        self._ways, flits = [*mapped.ways], part.block_flits
        tables = [table for way in self._ways for table in (way.memory, way.base)]
        keys = any(way.coordinates for way in self._ways)
        #: Cycles of each step by which a way is chosen, to make a key, to look up memory and base,
        #: and of all this together.
        self._choosing = int(len(self._ways) > 1)
        self._keying = (2 + self._choosing) * keys
        self._reading = int(any(table.shape[:2] != (1, 1) for table in tables))
        self._cycles = self._keying + self._reading + 2 * self._choosing + 1
        #: From a flit of a block to the next, in the memories of each way.
        self._pitches = [max(map(loop.pitch_of, np.unique(way.memory).tolist()))
                         for way in self._ways]  # fmt: skip
        #: Low bits of addresses that are those of a flit.
        self._flit_bits = (flits - 1).bit_length()
        bases = (way.base[way.base >= 0] & ((1 << self._flit_bits) - 1) for way in self._ways)
        if max(self._pitches) > 1 or any(base.any() for base in bases):
            self._flit_bits = 0
        self.part_is_root = received and merged.part_is_root
        #: Where the upper half begins.
        self._half = merged.upper_half if received else 0
        self.by_root = self.part_is_root or bool(self._half)
        nodes, chunks = part.groups.size, part.layout.part_chunks
        #: Bits of node, part, chunk and flit.
        self._bits = [*map(address_width, (nodes, max(nodes, parts), chunks, flits))]
        super().__init__(layout, parts, address_width(memories), self._cycles)

    @override
    def rom_bits(self) -> int:
        m, root = Module(), {"sampled_root": In(self.layout.root_bits)}
        self.look_up(m, Leaf(root), "", *map(Signal, self._bits))
        return sum(shape.width * shape.depth for shape in memories_of(m))

    @override
    def look_up(
        self, m: Module, host: Leaf, name: str, node: Value, part: Value, chunk: Value, flit: Value
    ) -> tuple[Value, Value]:
        asked = self.position(m, name, node), part, chunk, flit
        node, part, chunk, flit = map(fitting, asked, self._bits)
        choosing = self._choosing
        tables = _Tables(m, chunk, self._reading, wrapping=choosing)
        flit = delayed(m, flit, self._keying + self._reading)
        found = tuple[Value, ...]()
        for way, pitch in reversed([*zip(self._ways, self._pitches, strict=True)]):
            hit, *values = self._find(m, tables, way, node, part)
            values.append(flit * pitch if pitch > 1 else flit)
            hit, *values = (delayed(m, each, choosing) for each in (hit, *values))
            found = tuple(map(partial(Mux, hit), values, found)) if found else tuple(values)
        tables.build(f"blocks_{name}")
        bank, base, words = (delayed(m, value, choosing) for value in found)
        address = Cat(words[: self._flit_bits], base) if self._flit_bits else base + words
        address = delayed(m, address, 1)
        if self._half:
            received = asked[0] != host.value("sampled_root")
            low = fitting(address, (self._half - 1).bit_length())
            address = Cat(low, delayed(m, received, self._cycles, f"{name}_received"))
        return delayed(m, bank, 1), address

    def _find(
        self, m: Module, tables: _Tables, way: AddressMap, node: Value, part: Value
    ) -> tuple[Value, Value, Value]:
        """Return whether a block is in the tables of one way, its memory, and its base."""
        making, known = self._keying, list[Value]()
        row, key, sides = delayed(m, node, making), [delayed(m, part, making)], [self.parts]
        if way.row_of is not None:
            row = delayed(m, tables.read(way.row_of[:, None], [node]), making - 1)
        if way.coordinates:
            key, sides = [], [each.modulus for each in way.coordinates]
        for at, of, side in way.coordinates:
            both = (at, node), (of, part)
            here, there = (tables.read(np.maximum(values, 0), [index]) for values, index in both)
            known += [delayed(m, tables.read((values >= 0).astype(int), [index]), making)
                      for values, index in both]  # fmt: skip
            key.append(tables.subtract(here, there, side))

        def read(values: IntArray) -> Value:
            rows, keys, chunks = values.shape
            shape = rows, *(sides if keys > 1 else [1] * len(sides)), chunks
            return tables.read(values.reshape(shape), [row, *key], making)

        there = way.base >= 0
        hit = Const(1) if way.otherwise is None else Cat(read(there.astype(int)), *known).all()
        # What is read where there is no block is what is read most easily.
        memory, base = (np.where(there, table, table[there].min(initial=max(table.max(), 0)))
                        if table.shape == there.shape else table
                        for table in (way.memory, way.base))  # fmt: skip
        return hit, read(memory - self._first), read(base >> self._flit_bits)


class _Tables:
    """Tables of a look-up, of which those with one index are one ROM, and differences.

    Parameters
    ----------
    reading : int
        Cycles to read a table.
    wrapping : int
        Cycles to wrap a difference, besides that in which it is made.
    """

    def __init__(self, m: Module, chunk: Value, reading: int, wrapping: int) -> None:
        self._m, self._chunk, self._reading, self._wrapping = m, chunk, reading, wrapping
        self._roms: dict[tuple[object, ...], Columns] = {}
        self._differences: dict[tuple[int, int], Signal] = {}

    def subtract(self, here: Value, there: Value, modulus: int) -> Value:
        """Return the difference of two numbers, wrapped, `wrapping` + 1 cycles later."""
        key, difference = (id(here), id(there)), here - there
        if key not in self._differences:
            if self._wrapping:
                difference = delayed(self._m, difference, self._wrapping).as_signed()
            offset = Signal(range(max(modulus, 2)), reset_less=True, name="offset")
            wrapped = Mux(difference < 0, difference + modulus, difference)
            self._m.d.sync += offset.eq(wrapped)
            self._differences[key] = offset
        return self._differences[key]

    def read(self, values: IntArray, index: list[Value], late: int = 0) -> Value:
        """Return the entry of a table at an index that is there some cycles after the chunk.

        The last axis is that of chunks. An axis along which nothing changes does not matter.
        """
        every, chunk = range(len(index)), delayed(self._m, self._chunk, late)
        kept = [axis for axis in every if (values != values.take([0], axis)).any()]
        values = values[tuple(slice(None) if axis in kept else 0 for axis in every)]
        index = [index[axis] for axis in kept]
        if not index:
            return constant_at(values.tolist(), delayed(self._m, chunk, self._reading))
        number, first = number_equal(each.tobytes() for each in np.moveaxis(values, -1, 0))
        values, key = values[..., first], (*map(id, index), number.tobytes())
        if len(first) == 1:
            values = values[..., 0]
        elif len(first) == len(number):
            index.append(chunk)
        else:
            index.append(constant_at(number.tolist(), chunk))
        if len(index) == 1 and (values == np.arange(len(values))).all():
            return delayed(self._m, index[0], 1)
        # Of the first index, what is past its end is never asked for.
        pads = [(0, (1 << len(each)) - size) for each, size in
                zip(index[1:], values.shape[1:], strict=True)]  # fmt: skip
        rom = self._roms.setdefault(key, Columns(Cat(*reversed(index))))
        return rom.read(np.pad(values, [(0, 0), *pads], mode="edge").ravel())

    def build(self, name: str) -> None:
        """Add the ROMs, once all that is read from them is known."""
        for number, rom in enumerate(self._roms.values()):
            rom.build(self._m, f"{name}_{number}")


def division_cycles(count: int, divisor: int) -> int:
    """Cycles to divide one of so many numbers, from 0, by a constant.

    None for a power of two, which divides the bits. Else one for each digit that a table finds, or
    for each bit of the quotient by subtraction, whichever are fewer.

    Examples
    --------
    >>> [division_cycles(64, divisor) for divisor in (4, 3, 25, 100)]
    [0, 1, 1, 0]
    >>> division_cycles(1024, 3), division_cycles(1024, 100)
    (2, 4)
    """
    if count <= divisor or not divisor & (divisor - 1):
        return 0
    return len(table_digits(count, divisor)) or _quotient_bits(count, divisor)


def table_digits(count: int, divisor: int) -> tuple[int, ...]:
    """Bits of a number that each table takes, the upper ones first; none where subtraction does.

    The key of a table is what the one before has left, and the bits that it takes.

    Examples
    --------
    >>> table_digits(1024, 3), table_digits(48, 24)
    ((6, 4), ())
    """
    bits, rest = (count - 1).bit_length(), (divisor - 1).bit_length()
    if rest >= TABLE_BITS:
        return ()
    digits = [min(bits, TABLE_BITS)]
    while sum(digits) < bits:
        digits.append(min(bits - sum(digits), TABLE_BITS - rest))
    return tuple(digits) if len(digits) < _quotient_bits(count, divisor) else ()


def _quotient_bits(count: int, divisor: int) -> int:
    """Bits of the largest quotient."""
    return ((count - 1) // divisor).bit_length()


def divide(m: Module, name: str, value: Value, divisor: int, *, count: int) -> tuple[Value, Value]:
    """Quotient and remainder of one of so many numbers, after `division_cycles`.

    Parameters
    ----------
    name : str
        Of its tables.
    value : Value
        A number from 0 to ``count - 1``.
    """
    bits = max((count - 1).bit_length(), 1)
    value = value[:bits]
    if count <= divisor:
        return Const(0), value
    if not divisor & (divisor - 1):
        shift = divisor.bit_length() - 1
        return value[shift:], value[:shift] if shift else Const(0)
    if digits := table_digits(count, divisor):
        return _by_tables(m, name, value, divisor, digits)
    return _by_subtraction(m, value, divisor, (count - 1) // divisor)


def _by_tables(
    m: Module, name: str, value: Value, divisor: int, digits: tuple[int, ...]
) -> tuple[Value, Value]:
    """Find a digit of the quotient, and what is left, in each cycle."""
    quotient: Value = Const(0, 0)
    left: Value = Const(0, 0)
    lower = sum(digits)
    for number, bits in enumerate(digits):
        lower -= bits
        table = Columns(Cat(value[lower:][:bits], left))
        key = np.arange(1 << (bits + len(left)))
        # What is left of the digits before is below the divisor.
        digit = table.read(np.minimum(key // divisor, (1 << bits) - 1))
        left = table.read(key % divisor)
        table.build(m, f"{name}_{number}")
        filled = Cat(digit, Const(0, max(bits - len(digit), 0)))[:bits]
        quotient = Cat(filled, delayed(m, quotient, 1))
        value = delayed(m, value[: max(lower, 1)], 1)
    return quotient, left


def _by_subtraction(m: Module, value: Value, divisor: int, most: int) -> tuple[Value, Value]:
    """Find a bit of the quotient in each cycle."""
    quotient: list[Value] = []
    rest = value
    for k in reversed(range(most.bit_length())):
        fits = rest >= divisor << k
        quotient = [delayed(m, bit, 1) for bit in quotient]
        taken = Signal(reset_less=True, name="taken")
        remaining = Signal(len(value), reset_less=True, name="remaining")
        m.d.sync += [taken.eq(fits), remaining.eq(Mux(fits, rest - (divisor << k), rest))]
        quotient.insert(0, taken)
        rest = remaining
    return Cat(*quotient), rest[: max((divisor - 1).bit_length(), 1)]
