"""Memories, ROMs and look-up tables inside leaf modules.

All memories are synchronous: a word is available one clock cycle after its address.

- `memory_cell` makes the storage of a memory, the *cell*; `add_memory` adds a RAM around it, with
  one write port and one read port. Why apart: simulation reads and writes cells directly.
- `add_rom` adds a ROM; `RomColumns` joins many ROMs with the same address into one.
- `look_up`, `choose_value` and `constant_at` are combinational tables.

The address, data and enable of a port *are* the signals of the logic that drives the port, instead
of signals that are assigned from them. Why: Amaranth's simulator then has nothing to evaluate
between a memory and that logic.
"""

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

__all__ = ["LOOK_UP", "Cell", "RomColumns", "MemoryShape", "ReadPort", "WritePort", "add_memory",
           "add_rom", "address_width", "choose_value", "constant_at", "resize", "look_up",
           "memory_cell", "memories_of", "make_rom_and_port"]  # fmt: skip

#: Bits of the key of a table that finds one digit of a quotient. Such a table takes four 4-input
#: LUTs and a multiplexer for each bit.
QUOTIENT_KEY_BITS = 6

#: Tells synthesis that no word is used that was read in the cycle in which it was written, so that
#: synthesis adds no bypass from the write port to the read port.
NO_COLLISIONS = {"no_rw_check": 1}

#: A memory of up to this many words takes fewer LUTs as registers and a multiplexer than as a
#: distributed RAM, which has at least 16 words.
MOST_REGISTER_WORDS = 2

#: Tells synthesis to make a memory of registers, or of block RAM.
OF_REGISTERS, OF_BLOCKS = {"ram_style": "registers"}, {"ram_style": "block"}

#: Limit of the nesting depth of a write port in Amaranth's simulator, which makes one Python
#: expression of the port. Python compiles expressions recursively. The depth is the number of
#: enable bits plus the number of data bits for each enable bit.
MOST_WRITE_NESTING = 512

#: A word whose write port would be nested too deeply is cut in two at a multiple of this width.
#: Why 32: the widths of block RAMs divide 32 (or are 9, 18 and 36), so that cutting needs no more
#: block RAMs.
CUT_WIDTH = 32

#: The name of the module in ``look_up.v`` of the package `torusfabric.verilog`.
LOOK_UP = "look_up"

#: Numbers of rows of a ROM that is emitted as an instance of `LOOK_UP`: two to four LUTs a bit.
LOOK_UP_ROWS = range(17, 65)


class MemoryShape(NamedTuple):
    """The size of a memory or ROM, for cost estimates and lists of memories.

    Parameters
    ----------
    width : int
        Bits of a word.
    depth : int
        Number of words.
    rows : tuple of int
        The contents of a ROM; empty for a RAM.
    """

    width: int
    depth: int
    rows: tuple[int, ...]

    @property
    def is_ram(self) -> bool:
        """True for a RAM, False for a ROM."""
        return not self.rows


def memories_of(design: Elaboratable) -> list[MemoryShape]:
    """Return the size of each memory and ROM in a design, those of its submodules included.

    Memories of one word are left out because they are registers. Memories that are read in the
    cycle of their address are left out because they are made of LUTs.
    """
    return [*_find_memories(Fragment.get(design, None))]


def _find_memories(fragment: Fragment) -> Iterator[MemoryShape]:
    """Yield the size of each memory and ROM in a compiled Amaranth design."""
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
        yield from _find_memories(inner)


def address_width(depth: int) -> int:
    """Return the number of bits that address `depth` words; at least 1, since a port needs a bit.

    Examples
    --------
    >>> [address_width(depth) for depth in (1, 2, 3, 256, 257)]
    [1, 1, 2, 8, 9]
    """
    return max((depth - 1).bit_length(), 1)


def choose_value(values: Sequence[Value], index: Value) -> Value:
    """Return the signal ``values[index]``; an index past the end yields the last signal.

    If all values are the same object, no multiplexer is built.
    """
    if all(value is values[0] for value in values):
        return values[0]
    padding = [values[-1]] * ((1 << len(index)) - len(values))
    return Array([*values, *padding])[index]


def constant_at(values: Sequence[int], index: Value) -> Value:
    """Return the signal ``values[index]``; an index past the end yields the last constant.

    Parameters
    ----------
    values : sequence of int
        The constants, at least 0.
    index : Value
        The index, from 0.
    """
    width = max(max(values).bit_length(), 1)
    known = {value: Const(value, width) for value in values}
    return choose_value([known[value] for value in values], index)


def look_up(values: Sequence[int], index: Value) -> Value:
    """Return the signal ``values[index]`` of some constants, in the cycle of the index.

    Bit b of the result is ``C[index]`` for a constant C that consists of bit b of each value. Why
    not a ``case`` over the index: synthesis would make a ROM of it, and absorb the register of the
    index into the ROM. The logic behind the table would then follow the slow output of the ROM.

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
    """Add a ROM and return the row that it reads, one cycle after the address.

    Parameters
    ----------
    m : Module
        The module that the ROM becomes a part of.
    name : str
        The name of the submodule.
    rows : sequence of int
        The contents.
    width : int
        Bits of a row.
    address : Value
        The address, cut or zero-extended to the bits that the ROM needs.
    alone : bool
        True if Verilog is emitted of the module, False if it is simulated in Amaranth. A ROM with a
        number of rows in `LOOK_UP_ROWS` is then an instance of the Verilog module `LOOK_UP`, which
        Amaranth's simulator does not know.
    """
    if alone and len(rows) in LOOK_UP_ROWS:
        return _add_look_up_rom(m, name, rows, width, address)
    m.submodules[name], port = make_rom_and_port(name, rows, width)
    port.addr = resize(address, len(port.addr))
    return port.data


def make_rom_and_port(
    name: str, rows: Sequence[int], width: int
) -> tuple[memory.Memory, memory.ReadPort]:
    """Return a ROM and its read port, with names that do not depend on the calling code.

    Parameters
    ----------
    name : str
        The name of the storage.
    rows : sequence of int
        The contents.
    width : int
        Bits of a row.
    """
    rom = memory.Memory(shape=width, depth=len(rows), init=rows)
    rom.data.name = name
    return rom, _read_port(rom)


def _read_port(words: memory.Memory) -> memory.ReadPort:
    """Return a read port of the memory `words`.

    Its signals have the same names in all versions of Python.
    """
    signature = memory.ReadPort.Signature(addr_width=ceil_log2(words.depth), shape=words.shape)
    return memory.ReadPort(signature, memory=words, domain="sync", path=("read",))


def _add_look_up_rom(
    m: Module, name: str, rows: Sequence[int], width: int, address: Value
) -> Signal:
    """Add a ROM as an instance of `LOOK_UP` with a register behind it, and return the register.

    `name` is that of the instance. The ROM has the contents `rows`, of `width` bits each. `address`
    chooses the row; it is cut or zero-extended to the bits that the ROM needs.
    """
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
        i_address=resize(address, bits),
        o_data=found,
    )
    m.d.sync += row.eq(found)
    return row


class RomColumns:
    """Several ROMs with a common address, joined into one ROM.

    A *column* is a field of the rows of this ROM, with a value at each address. `read_column` and
    `read_address` ask for columns; `build_rom` then adds the ROM. Equal columns are stored once,
    and a column with one value at all addresses becomes a constant.

    Parameters
    ----------
    address : Value
        The address of the row.

    Examples
    --------
    Two columns with numbers of 3 bits; the second is a constant.

    >>> columns = RomColumns(Signal(2))
    >>> [len(columns.read_column(np.array(values))) for values in ([0, 5, 2, 7], [6, 6, 6, 6])]
    [3, 3]
    """

    def __init__(self, address: Value) -> None:
        self._address = address
        self._columns: dict[bytes, tuple[IntArray, Signal]] = {}

    def read_column(self, values: IntArray) -> Value:
        """Return ``values[address]``, one cycle after the address of the ROM.

        Parameters
        ----------
        values : ndarray of int, shape (rows,)
            A number of at least 0 for each address.
        """
        width = max(int(values.max()).bit_length(), 1)
        if (values == values[0]).all():
            return Const(int(values[0]), width)
        key = np.asarray(values, "<i8").tobytes()
        if key not in self._columns:
            self._columns[key] = (values, Signal(width, name=f"column_{len(self._columns)}"))
        return self._columns[key][1]

    def read_address(self, base: IntArray, word: Value) -> Value:
        """Return the sum ``base[address] + word``: the address of a word in another memory.

        The ROM provides ``base[address]``, one cycle after its address.

        No adder is built if all first addresses are 0, or multiples of the range of `word`.

        Parameters
        ----------
        base : ndarray of int, shape (rows,)
            The address of the first word of a message for each address of the ROM; a negative entry
            does not matter.
        word : Value
            The number of the word within the message, in the cycle after the address of the row.
        """
        bits, base = len(word), np.maximum(base, 0)
        if (base == 0).all():
            return word
        if not (base & ((1 << bits) - 1)).any():
            return Cat(word, self.read_column(base >> bits))
        return self.read_column(base) + word

    def build_rom(self, m: Module, name: str, *, alone: bool = False) -> None:
        """Add the ROM with all columns to a module; call it after the last request for a column.

        Parameters
        ----------
        m, name, alone
            The same as in `add_rom`.
        """
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
    """The signals that drive a write port of a memory: address, data and write enable.

    `enable` has one bit for each part of the word, or a single bit.
    """

    address: Value
    data: Value
    enable: Value


#: The storage of a memory; see `memory_cell`.
Cell: TypeAlias = Signal | memory.MemoryData | tuple[memory.MemoryData, memory.MemoryData]


class ReadPort(NamedTuple):
    """The signals that drive a read port of a memory: address and read enable."""

    address: Value
    enable: Value


def memory_cell(name: str, *, width: int, depth: int, parts: int = 1) -> Cell:
    """Return the storage of a memory, to which `add_memory` adds the ports.

    Parameters
    ----------
    name : str
        The name of the register, if the memory has one word.
    width : int
        Bits of a word.
    depth : int
        Number of words.
    parts : int
        Parts of a word with a write enable each.

    Returns
    -------
    Signal, MemoryData or tuple of MemoryData
        A register if `depth` is 1; otherwise the rows of a RAM. Words of an awkward width (see
        `CUT_WIDTH`) are cut into two RAMs: the first holds the low bits of each part, the second
        the rest.

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
    sizes = part - part % CUT_WIDTH, part % CUT_WIDTH
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
    """Add a memory with one write port and one read port, and return the word that it reads.

    Both ports are synchronous: a word is available one cycle after its address. A word written in
    a cycle can be read in the next cycle. A read of the same word in the same cycle is undefined.
    A memory of one word is a register and ignores its read port.

    Parameters
    ----------
    m : Module
        The module that the memory becomes a part of.
    name : str
        The name of the submodule.
    cell : Signal, MemoryData or tuple of MemoryData
        The storage, made by `memory_cell`.
    write, read : WritePort, ReadPort
        The drivers of the ports.
    many : bool
        True if the fabric has many such memories. Those of up to `MOST_REGISTER_WORDS` words then
        become registers. Why: a device has few sites for distributed RAM, and they are far apart.
    block : bool
        True to ask synthesis for a block RAM rather than distributed RAM.
    """
    if isinstance(cell, Signal):
        return _add_register(m, cell, write)
    halves = cell if isinstance(cell, tuple) else (cell,)
    width, depth = sum(rows.shape for rows in halves), halves[0].depth
    attributes = NO_COLLISIONS | (OF_BLOCKS if block else {})
    attributes |= OF_REGISTERS if many and depth <= MOST_REGISTER_WORDS else {}
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
    """Add a RAM with the storage `rows`, and return the word that it reads.

    `name` is the name of the submodule. `write` and `read` drive its ports; `write.enable` has one
    bit for each part of a word. A wide part gets several copies of its enable bit, so that the
    simulator can compile the port. The memory has the attributes `attributes` in emitted Verilog.
    """
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
    into.addr, into.data = resize(write.address, len(into.addr)), write.data[:width]
    out.addr, out.en = resize(read.address, len(out.addr)), read.enable
    return out.data


def _enable_bits(part: int, parts: int) -> int | None:
    """Return the number of copies of its enable bit that a part of a word needs, or None.

    A word has `parts` parts of `part` bits, each with a write enable. Amaranth's simulator nests
    the code of a wide part too deep; with several copies, each enables an equal share of the part.
    A part of 32 bits needs 1, of 512 bits 2, of 1,024 bits 4. For a part of 1,021 bits, a prime, no
    number serves: the result is None.
    """
    divisors = (n for n in range(1, part + 1) if not part % n)
    return next((n for n in divisors if part // n + n * parts < MOST_WRITE_NESTING), None)


def resize(value: Value, width: int) -> Value:
    """Return a value cut, or extended by zeros, to a width in bits."""
    missing = width - len(value)
    return Cat(value, Const(0, missing)) if missing > 0 else value[:width]


def _add_register(m: Module, word: Signal, write: WritePort) -> Value:
    """Add the register `word` as a memory of one word, and return the register.

    `write` has the signals that write it.
    """
    granularity = len(word) // len(write.enable)
    for k, start in enumerate(range(0, len(word), granularity)):
        part = slice(start, start + granularity)
        with m.If(write.enable[k]):
            m.d.sync += word[part].eq(write.data[part])
    return word
