"""Finders: translation of a host address into the memory and the address of a word at a node.

`torusfabric.adapters.host.port` instantiates the finders, and the bus adapter and the loadable
tables use the same addresses. The host sees the words of each node in one order, `HostLayout`,
whichever schedule stored them::

    0             recv_base                       2 * recv_base
    | send words  | receive words                 |
      part 0: chunk 0: flit 0, flit 1, ..  chunk 1: ..   part 1: ..

A *part* is the words for, or from, one other node. A finder divides an address by the constants
part size and chunk size, in a pipeline. It then looks up the block (node, part, chunk) in an
*address map* of the program, which gives the memory of the block and its *base*, the address of its
first flit. Each form has two such maps: the *send map* for words to send, and the receive map.
`DirectFinder` needs no look-up; `MapFinder` has ROMs.

Parameters in all finders: `m` is the module of the host port, to which hardware is added. `name` is
a prefix for the names of the added signals and ROMs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from types import MappingProxyType

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Member
from typing_extensions import override

from ...collective import MemoryLayout
from ...program import AddressMap, Program
from ...program.fields import number_by_value
from ...rtl.memories import (
    QUOTIENT_KEY_BITS,
    RomColumns,
    address_width,
    constant_at,
    memories_of,
    resize,
)
from ...rtl.modules import delay_value
from ...rtl.netlist import Leaf
from ...topology import IntArray

__all__ = ["ENTRY_CYCLES", "DirectFinder", "Finder", "HostLayout", "MapFinder", "add_divider",
           "division_cycles", "make_finder", "host_layouts", "sent_finders"]  # fmt: skip

#: Cycles from a write at the port until it leaves for the nodes, if its address needs no look-up:
#: one input register.
ENTRY_CYCLES = 1


class HostLayout:
    """The host addresses of the words that a node sends, and of those that it has received.

    A *part* is the words for, or from, one other node. Both address ranges begin with part 0.

    Parameters
    ----------
    layout : MemoryLayout
        Number and order of the parts, and the chunks of each part, for one collective.
    flits : int
        Flits of the longest message.
    in_turn : bool
        True if word k of a message belongs to the chunk with number k modulo the number of chunks;
        False if the words of a chunk are consecutive.
    words : int, optional
        Number of words for which each of the two ranges of addresses, send words and receive words,
        has room; by default the larger one of `send_words` and `recv_words`.
    beat : int
        Number of flits in one word of the host port.

    Attributes
    ----------
    chunks, part_chunks : int
        Number of chunks in a message, and in a part.
    flits, block_flits, part_flits : int
        Number of words in a message, in a block, and in a part. The names say flits, but each word
        consists of `beat` flits.
    send_parts, recv_parts : int
        Number of parts that a node sends, and that it receives.
    send_base, recv_base : int
        First address of the words to send, and of the received words. `recv_base` is a power of
        two.
    send_words, recv_words : int
        Number of words that a node sends, and that it receives.
    address_bits : int
        Bits of a host address.
    positions : ndarray of int, shape (nodes,), or None
        Position of each node in its group; None where the position is the node number.

    Examples
    --------
    In an all-gather on nine nodes, a node sends one message of four words, and receives nine parts
    of four words. Their addresses begin at the next power of two.

    >>> import torusfabric as tf
    >>> layout = HostLayout.from_program(tf.compile(tf.plan(tf.Torus(3, 3), "allgather"), flits=4))
    >>> layout.send_words, layout.recv_words, layout.recv_base
    (4, 36, 64)
    """

    send_base = 0

    def __init__(
        self,
        layout: MemoryLayout,
        flits: int,
        *,
        in_turn: bool = False,
        words: int = 0,
        beat: int = 1,
    ) -> None:
        self._layout, self.in_turn, self.beat = layout, in_turn, beat
        self.chunks, self.part_chunks = layout.blocks.chunks, layout.part_chunks
        self.send_parts, self.recv_parts = layout.send_parts, layout.recv_parts
        self.flits = -(-flits // beat)
        self.block_flits = layout.block_flits(self.flits)
        self.part_flits = layout.part_flits(self.flits)
        self.send_words = layout.send_words(self.flits)
        self.recv_words = layout.recv_words(self.flits)
        # A power of two, so that one address bit selects the range, and nothing is subtracted.
        words = words or max(self.send_words, self.recv_words)
        self.recv_base = 1 << (words - 1).bit_length()
        self.address_bits = address_width(2 * self.recv_base)
        position = layout.blocks.groups.map_row_of_node
        self.nodes = len(position)
        self.positions = position if (position != np.arange(self.nodes)).any() else None

    @classmethod
    def from_program(cls, program: Program, words: int = 0, beat: int = 1) -> HostLayout:
        """Return the `HostLayout` of a program with one form.

        `words` (room for words in each address range) and `beat` are parameters of the class.
        """
        return cls(
            program.layout, program.flits, in_turn=program.any_length, words=words, beat=beat
        )  # fmt: skip

    @property
    def root_bits(self) -> int:
        """Bits of the number of a root: its position among the nodes of its group, from 0."""
        return address_width(self._layout.blocks.groups.group_size)

    def first_flit(self, word: Value) -> Value:
        """Return the number of the first flit of a word; both numbers count from 0 within a block.

        The result is `word` times the beat. With a beat of 4, word 2 begins with flit 8.
        """
        return Cat(Const(0, self.beat.bit_length() - 1), word)

    def part_cycles(self, parts: int) -> int:
        """Return the cycles of the divider that finds the part to which a host address belongs.

        A part is the words for, or from, one other node.

        Parameters
        ----------
        parts : int
            Number of parts in the range that the divider serves: the words to send, or the received
            words.
        """
        if self.in_turn and self._layout.in_shares:
            # The number of the chunk in the message is divided in place of the address.
            return division_cycles(self.chunks, self.part_chunks)
        return division_cycles(parts * self.part_flits, self.part_flits)

    @property
    def chunk_cycles(self) -> int:
        """Cycles of the divider that finds, for a host address, the chunk within its part.

        A part is the words for, or from, one other node.
        """
        if self.in_turn:
            return division_cycles(self.flits, self.chunks)
        return division_cycles(self.part_chunks * self.block_flits, self.block_flits)


def host_layouts(program: Program, words: int = 0, beat: int = 1) -> tuple[HostLayout, ...]:
    """Return the `HostLayout` of each form of a program: the host addresses of the words of a node.

    In all forms, received words begin at the same address (`recv_base`), so that one address
    decoder serves all forms.

    Parameters
    ----------
    program : Program
        The program of the fabric.
    words : int
        Number of words that each of the two ranges of addresses has room for. By default (0) it is
        the largest number that a node sends or receives in any form.
    beat : int
        Number of flits in one word of the host port.
    """
    parts = [program.part(form) for form in range(len(program.forms))]
    found = [HostLayout.from_program(part, beat=beat) for part in parts]
    words = words or max(max(each.send_words, each.recv_words) for each in found)
    return tuple(HostLayout.from_program(part, words, beat) for part in parts)


class Finder(ABC):
    """Hardware that translates a host address into the memory and the address of a word at a node.

    Nodes store flits in the order of arrival. One finder for the whole fabric knows this order, so
    that no flit carries a header, and no node translates addresses. A finder is a pipeline that
    accepts one address a cycle. It divides the address into part, chunk and flit
    (`divide_address`), and then finds the location of this flit (`look_up`). A *part* is the words
    for, or from, one other node.

    Parameters
    ----------
    layout : HostLayout
        The host addresses.
    parts : int
        Number of parts that a node sends, if the finder is for words to send; else the number that
        it receives.
    bank_bits : int
        Bits of the number of a memory.
    cycles : int
        Pipeline stages of `look_up`, in cycles.

    Attributes
    ----------
    latency : int
        Cycles from the host address to the memory and the address in it, the input register
        included.
    by_root : bool
        True if the locations of received words depend on the root of the last run.
    part_is_root : bool
        True if `look_up` takes the root of the last run as the part, because all received words
        come from the root.
    members : mapping of str to Member
        Signals that the finder adds to the module of the host port, if the tables of the finder are
        outside of this module.
    """

    by_root = part_is_root = False
    members: Mapping[str, Member] = MappingProxyType({})

    def __init__(self, layout: HostLayout, parts: int, bank_bits: int, cycles: int) -> None:
        self.layout, self.parts, self.bank_bits = layout, parts, bank_bits
        self._dividing = layout.part_cycles(parts) + layout.chunk_cycles
        self.latency = ENTRY_CYCLES + self._dividing + cycles

    def rom_bits(self) -> int:
        """Return the size in bits of all ROMs with the locations of blocks, which `look_up` adds.

        The ROMs of the dividers are not counted.
        """
        return 0

    def add_pipeline(
        self, m: Module, host: Leaf, name: str, address: Value, node: Value
    ) -> tuple[Value, Value]:
        """Add the finder to the host port; return the memory number and address for a host address.

        Both results are valid `latency` cycles after the host address.

        Parameters
        ----------
        m : Module
            The module of the host port.
        host : Leaf
            The host port, for inputs besides the address.
        name : str
            Prefix of the names of the ROMs.
        address : Value
            The host address, without the bit that selects sent or received words.
        node : Value
            The number of the node, in the same cycle as the address.
        """
        part, chunk, flit = self.divide_address(m, name, delay_value(m, address, ENTRY_CYCLES))
        part = host.input_value("sampled_root") if self.part_is_root else part
        return self.look_up(m, host, name, node, part, chunk, self.layout.first_flit(flit))

    def group_position(self, m: Module, name: str, node: Value) -> Value:
        """Return the position of `node` among the nodes of its group, for use in `look_up`.

        `node` arrives together with the host address. The position is delayed by the cycles of the
        address division, so that it is valid in the same cycle as part, chunk and flit. `name` is a
        prefix for the names of ROMs.
        """
        position = delay_value(m, node, ENTRY_CYCLES)
        if self.layout.positions is not None:
            table = RomColumns(node)
            position = table.read_column(self.layout.positions)
            table.build_rom(m, f"{name}_positions")
        return delay_value(m, position, self._dividing)

    def divide_address(self, m: Module, name: str, address: Value) -> tuple[Value, Value, Value]:
        """Divide a host address; return its part, the chunk in the part, the word in the chunk.

        A part is the words for, or from, one other node. With 2 chunks of 8 words in each part,
        address 27 is part 1, chunk 1, word 3, if the words of a chunk are consecutive. Two dividers
        work one after another; all three numbers are valid in the cycle in which the second is
        done. `name` is a prefix for the names of the dividers.
        """
        layout, parts = self.layout, self.parts
        chunks, flits = layout.chunks, layout.flits
        if layout.in_turn and layout.part_chunks < chunks:
            within, block = add_divider(m, f"{name}_chunk", address, chunks, count=flits)
            part, chunk = add_divider(m, f"{name}_part", block, layout.part_chunks, count=chunks)
            return part, chunk, delay_value(m, within, layout.part_cycles(parts))
        size = layout.part_flits
        part, flit = add_divider(m, f"{name}_part", address, size, count=parts * size)
        if layout.in_turn:
            within, chunk = add_divider(m, f"{name}_chunk", flit, chunks, count=flits)
        else:
            block = layout.block_flits
            count = layout.part_chunks * block
            chunk, within = add_divider(m, f"{name}_chunk", flit, block, count=count)
        return delay_value(m, part, layout.chunk_cycles), chunk, within

    @abstractmethod
    def look_up(
        self, m: Module, host: Leaf, name: str, node: Value, part: Value, chunk: Value, flit: Value
    ) -> tuple[Value, Value]:
        """Return the number of the memory that contains a flit, and the address of the flit in it.

        The results are valid `cycles` cycles after `part`, `chunk` and `flit`, which
        `divide_address` has computed from the host address. `node` is valid earlier, when the host
        address arrives at the port; `group_position` delays it by the difference. `host` is the
        module of the host port, for inputs such as the root. `name` is a prefix for the names of
        ROMs.
        """


class DirectFinder(Finder):
    """Finder without a look-up, for words that nodes store in the order of their host addresses.

    With `by_chunk` each chunk has a memory: the number of the memory is that of the chunk, and the
    address is the number of the word in the chunk. Otherwise all words are in memory 0, and the
    address is the host address.
    """

    def __init__(self, layout: HostLayout, *, by_chunk: bool) -> None:
        super().__init__(layout, 1, address_width(layout.part_chunks), cycles=0)
        self._by_chunk = by_chunk
        self.latency = ENTRY_CYCLES + layout.chunk_cycles * by_chunk

    @override
    def divide_address(self, m: Module, name: str, address: Value) -> tuple[Value, Value, Value]:
        if self._by_chunk:
            return super().divide_address(m, name, address)
        return Const(0), Const(0), address

    @override
    def look_up(
        self, m: Module, host: Leaf, name: str, node: Value, part: Value, chunk: Value, flit: Value
    ) -> tuple[Value, Value]:
        return chunk, flit


def make_finder(layout: HostLayout, program: Program, form: int, *, received: bool) -> Finder:
    """Return the finder for one form of a program: without ROMs if possible, else with ROMs.

    A `DirectFinder` needs no ROMs. It suffices for words to send whose host address gives their
    location directly; a `MapFinder` serves all others.

    Parameters
    ----------
    layout : HostLayout
        Division of the host address into part, chunk and flit.
    program : Program
        Program whose address maps give the locations of blocks.
    form : int
        Number of the form, counted over all modes of the program.
    received : bool
        True to find received words, False to find words to send.
    """
    part = program.part(form)
    by_chunk = _has_memory_per_chunk(part.form.send_map)
    if not received and (by_chunk or _has_host_order(part)):
        return DirectFinder(layout, by_chunk=by_chunk)
    return MapFinder(layout, program, form, received=received)


def _has_memory_per_chunk(sent: AddressMap) -> bool:
    """Return True if chunk k of each message lies in send memory k, from address 0 on.

    `sent` is the send map: the table with memory and first address of each block to send.
    """
    return (
        sent.memory.shape[:2] == (1, 1)
        and sent.base.size == 1
        and not sent.base.any()
        and bool((np.diff(sent.memory.ravel()) == 1).all())
    )


def _has_host_order(part: Program) -> bool:
    """Return True if each host address of a word to send is also its address in the send memory.

    `part` is a program with one form. The answer is False, for example, with several send memories,
    with flits of padding between blocks, or if the flits of a message belong to the chunks in turn.
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
    """Return the finders of words to send, one for each different send map of a program.

    A send map is the table of a form with memory and first address of each block to send. Forms
    with equal send maps share one finder.

    Parameters
    ----------
    program : Program
        Program whose forms have the send maps.
    layouts : sequence of HostLayout
        Division of the host address, for each form of the program.
    """
    numbers = [form.layout for form in program.forms]
    first = [numbers.index(layout) for layout in sorted({*numbers})]
    return [make_finder(layouts[form], program, form, received=False) for form in first]


class MapFinder(Finder):
    """Finder that looks up the location of a block in ROMs with the address map of a form.

    The location of a block is a memory and a *base*, the address of its first flit. A *part* is the
    words for, or from, one other node. An address map has one or more *ways*. A way is a table from
    (table row, key, chunk) to memory and base address. Each node has a table row, or shares one
    with other nodes. The key is the number of the part, or the differences between the coordinates
    of the node and of the node that the part is for or from. With differences all nodes can share
    one table row, because nodes of a torus are translates of each other. The first way that
    contains a block gives its location.

    ===============  ============================================================================
    cycles           step
    ===============  ============================================================================
    2                read the coordinates of node and part, subtract; only for keys of differences
    1                reduce the differences modulo the sides of the torus; only with several ways
    1                read memory and base; 0 cycles if they depend on the chunk alone
    2                test which ways contain the block, select the first; only with several ways
    1                add base and flit
    ===============  ============================================================================

    Parameters
    ----------
    layout : HostLayout
        The host addresses.
    program : Program
        The program of the fabric.
    form : int
        Number of the form whose blocks are looked up, counted over all modes of the program.
    received : bool
        True for received words, which may be in any memory. False for words to send; memories are
        then numbered from the first one that the host writes. In a broadcast from any root,
        received words are in the upper half of the memory. The root receives nothing; at the root
        the host therefore reads the words that it sent, in the lower half.
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
        self._ways, flits = [*mapped.map_chain], part.block_flits
        tables = [table for way in self._ways for table in (way.memory, way.base)]
        keys = any(way.coordinates for way in self._ways)
        # Cycles of each step of the table above, and of all steps together.
        self._choosing = int(len(self._ways) > 1)
        self._keying = (2 + self._choosing) * keys
        self._reading = int(any(table.shape[:2] != (1, 1) for table in tables))
        self._cycles = self._keying + self._reading + 2 * self._choosing + 1
        #: Address distance between consecutive flits of a block, in the memories of each way.
        self._pitches = [max(map(loop.pitch_of, np.unique(way.memory).tolist()))
                         for way in self._ways]  # fmt: skip
        #: Low address bits that equal the flit number: no adder is needed where bases are multiples
        #: of a power of two that is not less than the flits of a block; else 0.
        self._flit_bits = (flits - 1).bit_length()
        bases = (way.base[way.base >= 0] & ((1 << self._flit_bits) - 1) for way in self._ways)
        if max(self._pitches) > 1 or any(base.any() for base in bases):
            self._flit_bits = 0
        self.part_is_root = received and merged.has_root_addresses
        #: First address of the upper half; 0 if there is none.
        self._half = merged.upper_half_address if received else 0
        self.by_root = self.part_is_root or bool(self._half)
        nodes, chunks = part.groups.n_map_rows, part.layout.part_chunks
        #: Bits of the numbers of node, part, chunk and flit.
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
        asked = self.group_position(m, name, node), part, chunk, flit
        node, part, chunk, flit = map(resize, asked, self._bits)
        choosing = self._choosing
        tables = _LookUpRoms(m, chunk, self._reading, wrapping=choosing)
        flit = delay_value(m, flit, self._keying + self._reading)
        found, others = list[tuple[Value, ...]](), list[Value]()
        for way, pitch in zip(self._ways, self._pitches, strict=True):
            hit, *values = self._find_in_map(m, tables, way, node, part)
            values.append(flit * pitch if pitch > 1 else flit)
            first = hit & ~Cat(*others).any() if others else hit
            found.append(tuple(delay_value(m, each, choosing) for each in (first, *values)))
            others.append(hit)
        tables.add_roms(f"blocks_{name}")
        bank, base, words = (
            delay_value(m, _choose_location(found, value), choosing) for value in (1, 2, 3)
        )
        address = Cat(words[: self._flit_bits], base) if self._flit_bits else base + words
        address = delay_value(m, address, 1)
        if self._half:
            received = asked[0] != host.input_value("sampled_root")
            low = resize(address, (self._half - 1).bit_length())
            address = Cat(low, delay_value(m, received, self._cycles, f"{name}_received"))
        return delay_value(m, bank, 1), address

    def _find_in_map(
        self, m: Module, tables: _LookUpRoms, way: AddressMap, node: Value, part: Value
    ) -> tuple[Value, Value, Value]:
        """Add the look-up of a block in one table of an address map, `way`; return three values.

        These are a bit that is 1 if the table contains the block, the number of the memory of the
        block, and the upper bits of the address of its first flit (the lower bits are 0). `tables`
        adds the ROMs that output them. `node` and `part` are signals with the position of the node
        in its group and the number of the part: the words for, or from, one other node.
        """
        making, known = self._keying, list[Value]()
        row, key, sides = delay_value(m, node, making), [delay_value(m, part, making)], [self.parts]
        if way.row_of is not None:
            row = delay_value(m, tables.read_entry(way.row_of[:, None], [node]), making - 1)
        if way.coordinates:
            key, sides = [], [each.modulus for each in way.coordinates]
        for at, of, side in way.coordinates:
            both = (at, node), (of, part)
            here, there = (
                tables.read_entry(np.maximum(values, 0), [index]) for values, index in both
            )
            known += [delay_value(m, tables.read_entry((values >= 0).astype(int), [index]), making)
                      for values, index in both]  # fmt: skip
            key.append(tables.subtract_modulo(here, there, side))

        def read_table(values: IntArray) -> Value:
            rows, keys, chunks = values.shape
            shape = rows, *(sides if keys > 1 else [1] * len(sides)), chunks
            return tables.read_entry(values.reshape(shape), [row, *key], making)

        there = way.base >= 0
        hit = (
            Const(1) if way.otherwise is None else Cat(read_table(there.astype(int)), *known).all()
        )
        # An entry without a block is "don't care": a value that occurs anyway keeps ROMs narrow.
        memory, base = (np.where(there, table, table[there].min(initial=max(table.max(), 0)))
                        if table.shape == there.shape else table
                        for table in (way.memory, way.base))  # fmt: skip
        return hit, read_table(memory - self._first), read_table(base >> self._flit_bits)


def _choose_location(found: Sequence[tuple[Value, ...]], number: int) -> Value:
    """Return value `number` of the way that contains a block.

    Each entry of `found` has a bit, which is high for this way only, and the values of a way.
    """
    (hit, *_), *others = found
    if len(others) < 2:
        return Mux(hit, found[0][number], found[-1][number])
    return reduce(or_, (Mux(way[0], way[number], 0) for way in found))


class _LookUpRoms:
    """The ROMs and subtractors with which a `MapFinder` looks up the locations of blocks.

    Two tables that are read with the same indices become columns of one ROM, and a difference that
    is needed more than once is computed by one subtractor.

    Parameters
    ----------
    m : Module
        The module of the host port.
    chunk : Value
        The number of the chunk in its part: the words for, or from, one other node.
    reading : int
        Cycles to read a table: 1, or 0 if the location of a block depends on its chunk alone.
    wrapping : int
        Cycles between a subtraction and the reduction of its result by the modulus: 0 or 1.
    """

    def __init__(self, m: Module, chunk: Value, reading: int, wrapping: int) -> None:
        self._m, self._chunk, self._reading, self._wrapping = m, chunk, reading, wrapping
        self._roms: dict[tuple[object, ...], RomColumns] = {}
        self._differences: dict[tuple[int, int], Signal] = {}

    def subtract_modulo(self, here: Value, there: Value, modulus: int) -> Value:
        """Return the difference ``here - there`` modulo `modulus`, from registers.

        It is valid `wrapping` + 1 cycles after both operands; `wrapping` is a parameter of the
        class.
        """
        key, difference = (id(here), id(there)), here - there
        if key not in self._differences:
            if self._wrapping:
                difference = delay_value(self._m, difference, self._wrapping).as_signed()
            offset = Signal(range(max(modulus, 2)), reset_less=True, name="offset")
            wrapped = Mux(difference < 0, difference + modulus, difference)
            self._m.d.sync += offset.eq(wrapped)
            self._differences[key] = offset
        return self._differences[key]

    def read_entry(self, values: IntArray, index: list[Value], late: int = 0) -> Value:
        """Return a signal with the entry of a table that some index signals and the chunk select.

        Axes along which the table is constant are dropped. Chunks whose entries are all equal share
        one range of the ROM.

        Parameters
        ----------
        values : ndarray of int
            The table, with one axis for each index and a last axis for the chunk.
        index : list of Value
            An index for each axis of `values` but the last.
        late : int
            Number of cycles from the cycle in which the chunk is valid to the cycle in which the
            indices are valid. The method delays the chunk by as many.
        """
        every, chunk = range(len(index)), delay_value(self._m, self._chunk, late)
        kept = [axis for axis in every if (values != values.take([0], axis)).any()]
        values = values[tuple(slice(None) if axis in kept else 0 for axis in every)]
        index = [index[axis] for axis in kept]
        if not index:
            return constant_at(values.tolist(), delay_value(self._m, chunk, self._reading))
        number, first = number_by_value(each.tobytes() for each in np.moveaxis(values, -1, 0))
        values, key = values[..., first], (*map(id, index), number.tobytes())
        if len(first) == 1:
            values = values[..., 0]
        elif len(first) == len(number):
            index.append(chunk)
        else:
            index.append(constant_at(number.tolist(), chunk))
        if len(index) == 1 and (values == np.arange(len(values))).all():
            return delay_value(self._m, index[0], 1)
        # Every index but the first is padded to a power of two, as the ROM address is made of
        # bits. The first is the highest part of the address, and never exceeds its size.
        pads = [(0, (1 << len(each)) - size) for each, size in
                zip(index[1:], values.shape[1:], strict=True)]  # fmt: skip
        rom = self._roms.setdefault(key, RomColumns(Cat(*reversed(index))))
        return rom.read_column(np.pad(values, [(0, 0), *pads], mode="edge").ravel())

    def add_roms(self, name: str) -> None:
        """Add the ROMs to the module, after all calls of `read_entry`.

        `name` is a prefix for their names.
        """
        for number, rom in enumerate(self._roms.values()):
            rom.build_rom(self._m, f"{name}_{number}")


def division_cycles(count: int, divisor: int) -> int:
    """Return how many cycles `add_divider` takes to divide a number below `count` by `divisor`.

    A divisor that is a power of two needs 0 cycles, because it only splits the bits. A divisor of
    `count` or more needs 0 cycles, too. Any other division takes one cycle for each table
    (`table_digits`), or one for each bit of the quotient, whichever are fewer. A number below 1024
    takes 2 cycles for divisor 3 (by tables), and 4 cycles for divisor 100 (a quotient of 4 bits).

    Examples
    --------
    A number below 64 is divided in one cycle by 3 or by 25, and in none by 4 or by 100.

    >>> [division_cycles(64, divisor) for divisor in (4, 3, 25, 100)]
    [0, 1, 1, 0]
    >>> division_cycles(1024, 3), division_cycles(1024, 100)
    (2, 4)
    """
    if count <= divisor or not divisor & (divisor - 1):
        return 0
    return len(table_digits(count, divisor)) or _largest_quotient_bits(count, divisor)


def table_digits(count: int, divisor: int) -> tuple[int, ...]:
    """Return the bits of each digit of a dividend below `count`, for a long division by tables.

    A long division has one table, a ROM, for each digit, the uppermost digit first. The address of
    a table consists of the next digit and of the remainder that the preceding table outputs. The
    result is empty if a division by subtraction is better: because it needs no more cycles, or
    because a remainder below `divisor` has too many bits for the address of a table.

    Examples
    --------
    The 10 bits of a number below 1024 become digits of 6 and 4 bits. For ``48 / 24`` a single
    subtraction suffices.

    >>> table_digits(1024, 3), table_digits(48, 24)
    ((6, 4), ())
    """
    bits, rest = (count - 1).bit_length(), (divisor - 1).bit_length()
    if rest >= QUOTIENT_KEY_BITS:
        return ()
    digits = [min(bits, QUOTIENT_KEY_BITS)]
    while sum(digits) < bits:
        digits.append(min(bits - sum(digits), QUOTIENT_KEY_BITS - rest))
    return tuple(digits) if len(digits) < _largest_quotient_bits(count, divisor) else ()


def _largest_quotient_bits(count: int, divisor: int) -> int:
    """Return the bits of the largest quotient of a number below `count` and `divisor`.

    For numbers below 1024 and divisor 100, the largest quotient is 10, with 4 bits.

    `divisor` is the constant by which they are divided.
    """
    return ((count - 1) // divisor).bit_length()


def add_divider(
    m: Module, name: str, value: Value, divisor: int, *, count: int
) -> tuple[Value, Value]:
    """Add a pipelined division by a constant, and return quotient and remainder.

    Parameters
    ----------
    m : Module
        The module to which tables and registers are added.
    name : str
        Prefix of the names of the tables.
    value : Value
        The dividend, from 0 to ``count - 1``, a new one in each cycle.
    divisor : int
        Constant of 1 or more.
    count : int
        Number of possible dividends.

    Returns
    -------
    quotient, remainder : Value
        Both are valid `division_cycles` after the dividend.
    """
    bits = max((count - 1).bit_length(), 1)
    value = value[:bits]
    if count <= divisor:
        return Const(0), value
    if not divisor & (divisor - 1):
        shift = divisor.bit_length() - 1
        return value[shift:], value[:shift] if shift else Const(0)
    if digits := table_digits(count, divisor):
        return _divide_by_tables(m, name, value, divisor, digits)
    return _divide_by_subtraction(m, value, divisor, (count - 1) // divisor)


def _divide_by_tables(
    m: Module, name: str, value: Value, divisor: int, digits: tuple[int, ...]
) -> tuple[Value, Value]:
    """Add a long division with one table in each cycle; return quotient and remainder.

    `digits` has the number of bits of each digit of the dividend, the uppermost digit first
    (`table_digits`). The table for a digit outputs a digit of the quotient, and the remainder for
    the next table. `value` is the dividend, and `divisor` a constant. `name` is a prefix for the
    names of the ROMs.
    """
    quotient: Value = Const(0, 0)
    left: Value = Const(0, 0)
    lower = sum(digits)
    for number, bits in enumerate(digits):
        lower -= bits
        table = RomColumns(Cat(value[lower:][:bits], left))
        key = np.arange(1 << (bits + len(left)))
        # The remainder of the table before is below the divisor, so the digit fits into `bits`.
        digit = table.read_column(np.minimum(key // divisor, (1 << bits) - 1))
        left = table.read_column(key % divisor)
        table.build_rom(m, f"{name}_{number}")
        filled = Cat(digit, Const(0, max(bits - len(digit), 0)))[:bits]
        quotient = Cat(filled, delay_value(m, quotient, 1))
        value = delay_value(m, value[: max(lower, 1)], 1)
    return quotient, left


def _divide_by_subtraction(m: Module, value: Value, divisor: int, most: int) -> tuple[Value, Value]:
    """Add a division with one comparison and subtraction in each cycle; return quotient, remainder.

    Each cycle gives one bit of the quotient, the highest first. So the division takes as many
    cycles as `most`, the largest possible quotient, has bits. `value` is the dividend, and
    `divisor` a constant.
    """
    quotient: list[Value] = []
    rest = value
    for k in reversed(range(most.bit_length())):
        fits = rest >= divisor << k
        quotient = [delay_value(m, bit, 1) for bit in quotient]
        taken = Signal(reset_less=True, name="taken")
        remaining = Signal(len(value), reset_less=True, name="remaining")
        m.d.sync += [taken.eq(fits), remaining.eq(Mux(fits, rest - (divisor << k), rest))]
        quotient.insert(0, taken)
        rest = remaining
    return Cat(*quotient), rest[: max((divisor - 1).bit_length(), 1)]
