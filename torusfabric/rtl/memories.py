"""Memories and ROMs whose ports are bound to existing signals."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from amaranth.hdl import Array, Cat, Const, Elaboratable, Fragment, Instance, Module, Signal, Value
from amaranth.lib import memory
from amaranth.utils import ceil_log2

from ..topology import IntArray
from .amaranth_private import MemoryInstance, describe_memory

__all__ = ["LOOK_UP", "Cell", "Columns", "MemoryShape", "ReadPort", "WritePort", "add_memory",
           "add_rom", "address_width", "choose", "constant_at", "fitting", "look_up",
           "memory_cell", "memories_of", "rom_and_port"]  # fmt: skip

#: Bits of the key of a table that finds a digit of a quotient: four look-up tables of four inputs
#: and what chooses among them.
TABLE_BITS = 6

#: Tells synthesis that no word is used that was read in the very cycle in which it was written.
NO_COLLISIONS = {"no_rw_check": 1}

#: Words of a memory up to which registers and a multiplexer take fewer tables than a memory of 16
#: words that is made of tables.
REGISTERS = 2

#: Tells synthesis to make a memory of registers, or of block RAM.
OF_REGISTERS, OF_BLOCKS = {"ram_style": "registers"}, {"ram_style": "block"}

#: How deep an expression of Amaranth's simulator may be nested, which Python compiles recursively.
#: The enable of a write port is one operator for each bit of the word, in one level for each bit of
#: the enable and one for each of its bits of data.
DEEPEST = 512

#: A word that cannot be enabled in levels that are few enough is cut at a multiple of this: the
#: widths of block RAMs divide it, or are 36 and its like, so that no more of them are needed.
CUT = 32

#: The module of ``look_up.v`` in the `verilog` room.
LOOK_UP = "look_up"

#: Rows of a ROM for which that module has a form of its own: those of two to four tables a bit.
LOOKED_UP = range(17, 65)


class MemoryShape(NamedTuple):
    """What a memory is like.

    Parameters
    ----------
    rows : tuple of int
        The contents of a ROM; empty for a memory that is written.
    """

    width: int
    depth: int
    rows: tuple[int, ...]

    @property
    def written(self) -> bool:
        """True if it is written; otherwise it is a ROM."""
        return not self.rows


def memories_of(design: Elaboratable) -> list[MemoryShape]:
    """The memories and ROMs in a design, those of its components included.

    Those of one word are registers, and what is read at once is made of tables.
    """
    return [*_within(Fragment.get(design, None))]


def _within(fragment: Fragment) -> Iterator[MemoryShape]:
    """Those inside a fragment."""
    for inner, _, _ in fragment.subfragments:
        if isinstance(inner, MemoryInstance):
            memory = describe_memory(inner)
            if all(port.domain != "comb" for port in memory.reads):
                rows = () if memory.writes else memory.rows
                yield MemoryShape(memory.width, memory.depth, rows)
        elif isinstance(inner, Instance) and inner.type == LOOK_UP:
            width, depth = inner.parameters["WIDTH"], inner.parameters["DEPTH"]
            contents = Value.cast(inner.parameters["CONTENTS"]).value
            rows = tuple(contents >> width * k & (1 << width) - 1 for k in range(depth))
            yield MemoryShape(width, depth, rows)
        yield from _within(inner)


def address_width(depth: int) -> int:
    """Bits that address so many words; at least one, for no port is without bits.

    Examples
    --------
    >>> [address_width(depth) for depth in (1, 2, 3, 256, 257)]
    [1, 1, 2, 8, 9]
    """
    return max((depth - 1).bit_length(), 1)


def choose(values: Sequence[Value], index: Value) -> Value:
    """The value at an index; past the end, the last one. One that all are needs no choice."""
    if all(value is values[0] for value in values):
        return values[0]
    padding = [values[-1]] * ((1 << len(index)) - len(values))
    return Array([*values, *padding])[index]


def constant_at(values: Sequence[int], index: Value) -> Value:
    """The constant at an index, as `choose`."""
    width = max(max(values).bit_length(), 1)
    known = {value: Const(value, width) for value in values}
    return choose([known[value] for value in values], index)


def look_up(values: Sequence[int], index: Value) -> Value:
    """One of several constants, at once.

    Each bit is selected from a constant. Given a case, synthesis makes a ROM, moves the register of
    the index behind it, and what comes next is in the way of the row that it reads.

    Examples
    --------
    >>> len(look_up([3, 0, 5], Signal(2)))
    3
    """
    columns = [
        sum((value >> bit & 1) << row for row, value in enumerate(values))
        for bit in range(max(max(values).bit_length(), 1))
    ]
    return Cat(*(Const(column, len(values)).bit_select(index, 1) for column in columns))


def add_rom(
    m: Module,
    name: str,
    *,
    rows: Sequence[int],
    width: int,
    address: Value,
    alone: bool = False,
) -> Value:
    """Add a ROM; a row is there one cycle after its address.

    Parameters
    ----------
    alone : bool
        Whether the text of a module is written, and in it the ROM may be an instance of a module.

    Returns
    -------
    Value
        The row read.
    """
    if alone and len(rows) in LOOKED_UP:
        return _looked_up(m, name, rows, width, address)
    m.submodules[name], port = rom_and_port(name, rows, width)
    port.addr = fitting(address, len(port.addr))
    return port.data


def rom_and_port(
    name: str, rows: Sequence[int], width: int
) -> tuple[memory.Memory, memory.ReadPort]:
    """A ROM and its one port, whose names do not depend on the code that asks for them."""
    rom = memory.Memory(shape=width, depth=len(rows), init=rows)
    rom.data.name = name
    return rom, _read_port(rom)


def _read_port(words: memory.Memory) -> memory.ReadPort:
    """A read port, whose signals have the same names in all versions of Python."""
    signature = memory.ReadPort.Signature(addr_width=ceil_log2(words.depth), shape=words.shape)
    return memory.ReadPort(signature, memory=words, domain="sync", path=("read",))


def _looked_up(m: Module, name: str, rows: Sequence[int], width: int, address: Value) -> Signal:
    """A row of a ROM that is an instance of a module, and has a register behind it."""
    bits = address_width(len(rows))
    contents = sum(row << width * k for k, row in enumerate(rows))
    found = Signal(width, name=f"{name}_found")
    row = Signal(width, name=f"{name}_row", reset_less=True)
    m.submodules[name] = Instance(
        LOOK_UP,
        p_DEPTH=len(rows),
        p_WIDTH=width,
        p_ADDRESS=bits,
        p_CONTENTS=Const(contents, len(rows) * width),
        i_address=fitting(address, bits),
        o_data=found,
    )
    m.d.sync += row.eq(found)
    return row


class Columns:
    """A ROM of many columns that share an address; equal columns are one, and constant ones none.

    Examples
    --------
    >>> columns = Columns(Signal(2))
    >>> len(columns.read(np.array([0, 5, 2, 7]))), len(columns.read(np.array([6, 6, 6, 6])))
    (3, 3)
    """

    def __init__(self, address: Value) -> None:
        self._address = address
        self._columns: dict[bytes, tuple[IntArray, Signal]] = {}

    def read(self, values: IntArray) -> Value:
        """A value one cycle after its address.

        Parameters
        ----------
        values : ndarray of int
            Not negative.
        """
        width = max(int(values.max()).bit_length(), 1)
        if (values == values[0]).all():
            return Const(int(values[0]), width)
        key = np.asarray(values, "<i8").tobytes()
        if key not in self._columns:
            self._columns[key] = (values, Signal(width, name=f"column_{len(self._columns)}"))
        return self._columns[key][1]

    def address(self, base: IntArray, word: Value) -> Value:
        """First addresses as `read` gives them, plus a word; what is below 0 does not matter."""
        bits, base = len(word), np.maximum(base, 0)
        if (base == 0).all():
            return word
        if not (base & ((1 << bits) - 1)).any():
            return Cat(word, self.read(base >> bits))
        return self.read(base) + word

    def build(self, m: Module, name: str, *, alone: bool = False) -> None:
        """Add the ROM to a module, once all columns are known; parameters as of `add_rom`."""
        if not self._columns:
            return
        values, signals = zip(*self._columns.values(), strict=True)
        rows, shift = [0] * len(values[0]), 0
        for column, signal in zip(values, signals, strict=True):
            rows = [row | int(v) << shift for row, v in zip(rows, column, strict=True)]
            shift += len(signal)
        m.d.comb += Cat(*signals).eq(
            add_rom(m, name, rows=rows, width=shift, address=self._address, alone=alone)
        )


class WritePort(NamedTuple):
    """What drives a write port; one enable bit for the word, or for each part of it."""

    address: Value
    data: Value
    enable: Value


#: What holds the words of a memory; see `memory_cell`.
Cell: TypeAlias = Signal | memory.MemoryData | tuple[memory.MemoryData, memory.MemoryData]


class ReadPort(NamedTuple):
    """What drives a read port."""

    address: Value
    enable: Value


def memory_cell(name: str, *, width: int, depth: int, parts: int = 1) -> Cell:
    """What holds the words of a memory.

    Parameters
    ----------
    parts : int
        Parts of a word that are written one by one.

    Returns
    -------
    Signal, MemoryData or tuple of MemoryData
        The register of a single word; the rows of a RAM, or of two where words are cut: the one
        holds the first bits of each part, the other the rest.

    Examples
    --------
    >>> memory_cell("bank", width=8, depth=4).depth
    4
    """
    part = width // parts
    if depth == 1:
        return Signal(width, name=name, reset_less=True)
    if _enable_bits(part, parts):
        return memory.MemoryData(shape=width, depth=depth, init=[])
    # A prime number of bits, or nearly.
    sizes = part - part % CUT, part % CUT
    first, rest = (memory.MemoryData(shape=size * parts, depth=depth, init=[]) for size in sizes)
    return first, rest


def add_memory(
    m: Module,
    name: str,
    cell: Cell,
    *,
    write: WritePort,
    read: ReadPort,
    many: bool = False,
    block: bool = False,
) -> Value:
    """Add a memory with one write port and one read port.

    Both ports are synchronous: a word is there one cycle after its address. A word written in a
    cycle may be read in the next; what a read in the same cycle gives is not defined. A memory of
    one word is a register. The signals of the ports are replaced rather than assigned, so that the
    simulator has nothing to evaluate between memories and their drivers.

    Parameters
    ----------
    cell : Signal, MemoryData or tuple of MemoryData
        What holds the words; see `memory_cell`.
    many : bool
        Whether there are many memories, so that those of two words had better be registers: there
        are not many places for memories that are made of tables, and they are far from one another.
    block : bool
        Whether it had better be a block RAM than be made of tables.

    Returns
    -------
    Value
        The word read.
    """
    if isinstance(cell, Signal):
        return _add_register(m, cell, write)
    halves = cell if isinstance(cell, tuple) else (cell,)
    width, depth = sum(rows.shape for rows in halves), halves[0].depth
    attributes = NO_COLLISIONS | (OF_BLOCKS if block else {})
    attributes |= OF_REGISTERS if many and depth <= REGISTERS else {}
    add = partial(_add_ram, m, read=read, attributes=attributes)
    if not isinstance(cell, tuple):
        return add(name, cell, write=write)
    parts = len(write.enable)
    found, start = [], 0
    for suffix, rows in zip(("", "_rest"), halves, strict=True):
        size = rows.shape // parts
        data = [write.data[k + start : k + start + size] for k in range(0, width, width // parts)]
        words = add(name + suffix, rows, write=write._replace(data=Cat(*data)))
        found.append([words.word_select(k, size) for k in range(parts)])
        start += size
    return Cat(*chain.from_iterable(zip(*found, strict=True)))


def _add_ram(
    m: Module,
    name: str,
    rows: memory.MemoryData,
    *,
    write: WritePort,
    read: ReadPort,
    attributes: Mapping[str, Any],
) -> Value:
    """Add a memory of several words, with one bit of the write enable for each part of a word."""
    m.submodules[name] = ram = memory.Memory(rows, attrs=attributes)
    ram.data.name = "ram"
    width, parts = rows.shape, len(write.enable)
    part = width // parts
    copies = _enable_bits(part, parts) or 1
    signature = memory.WritePort.Signature(
        addr_width=ceil_log2(rows.depth), shape=width, granularity=part // copies
    )
    into = memory.WritePort(signature, memory=ram, domain="sync", path=("write",))
    out = _read_port(ram)
    into.en = write.enable
    if copies > 1:
        bits = [bit.replicate(copies) for bit in into.en]
        into.en = Signal(len(bits) * copies, name=f"{name}_enable")
        m.d.comb += into.en.eq(Cat(*bits))
    into.addr, into.data = fitting(write.address, len(into.addr)), write.data[:width]
    out.addr, out.en = fitting(read.address, len(out.addr)), read.enable
    return out.data


def _enable_bits(part: int, parts: int) -> int | None:
    """The fewest bits of the write enable for each part of a word, so that a simulator can compile
    it: of 32, 512 and 1,024 bits 1, 2 and 4, and none serve for one of 1,021.
    """
    divisors = (n for n in range(1, part + 1) if not part % n)
    return next((n for n in divisors if part // n + n * parts < DEEPEST), None)


def fitting(value: Value, width: int) -> Value:
    """A value cut or filled up to a width."""
    missing = width - len(value)
    return Cat(value, Const(0, missing)) if missing > 0 else value[:width]


def _add_register(m: Module, word: Signal, write: WritePort) -> Value:
    """A memory of one word, which can always be read."""
    granularity = len(word) // len(write.enable)
    for k, start in enumerate(range(0, len(word), granularity)):
        part = slice(start, start + granularity)
        with m.If(write.enable[k]):
            m.d.sync += word[part].eq(write.data[part])
    return word
