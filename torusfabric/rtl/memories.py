"""Memories whose ports are bound to existing signals."""

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import NamedTuple

from amaranth.hdl import Array, Cat, Const, Module, Signal, Value
from amaranth.lib import memory

__all__ = [
    "MemoryShape",
    "ReadPort",
    "WritePort",
    "add_memory",
    "add_rom",
    "address_width",
    "choose",
    "recorded_memories",
]

#: Tells synthesis that no word is used that was read in the very cycle in which it was written.
NO_COLLISIONS = {"no_rw_check": 1}


class MemoryShape(NamedTuple):
    """What a memory is like.

    Parameters
    ----------
    width, depth : int
    written : bool
        Whether it is written; otherwise it is a ROM.
    """

    width: int
    depth: int
    written: bool


_recorded: ContextVar[list[MemoryShape] | None] = ContextVar("recorded memories", default=None)


@contextlib.contextmanager
def recorded_memories() -> Iterator[list[MemoryShape]]:
    """A list of all memories that are added meanwhile; those of one word are registers."""
    found: list[MemoryShape] = []
    token = _recorded.set(found)
    try:
        yield found
    finally:
        _recorded.reset(token)


def _record(width: int, depth: int, *, written: bool) -> None:
    found = _recorded.get()
    if found is not None:
        found.append(MemoryShape(width, depth, written))


def address_width(depth: int) -> int:
    """Bits that address so many words; at least one, for no port is without bits.

    Examples
    --------
    >>> [address_width(depth) for depth in (1, 2, 3, 256, 257)]
    [1, 1, 2, 8, 9]
    """
    return max((depth - 1).bit_length(), 1)


def choose(values: Sequence[Value], index: Value) -> Value:
    """The value at an index; past the end, the last one."""
    padding = [values[-1]] * ((1 << len(index)) - len(values))
    return Array([*values, *padding])[index]


def add_rom(m: Module, name: str, *, rows: Sequence[int], width: int, address: Value) -> Value:
    """Add a ROM; a row is there one cycle after its address.

    Parameters
    ----------
    m : Module
    name : str
    rows : sequence of int
    width : int
    address : Value

    Returns
    -------
    Value
        The row read.
    """
    _record(width, len(rows), written=False)
    m.submodules[name] = rom = memory.Memory(shape=width, depth=len(rows), init=rows)
    port = rom.read_port()
    port.addr = _fitting(address, len(port.addr))
    return port.data


class WritePort(NamedTuple):
    """What drives a write port; one enable bit for the word, or for each part of it."""

    address: Value
    data: Value
    enable: Value


class ReadPort(NamedTuple):
    """What drives a read port."""

    address: Value
    enable: Value


def add_memory(
    m: Module,
    name: str,
    *,
    width: int,
    depth: int,
    write: WritePort,
    read: ReadPort,
    granularity: int | None = None,
) -> Value:
    """Add a memory with one write port and one read port.

    Both ports are synchronous: a word is there one cycle after its address. A word written in a
    cycle may be read in the next; what a read in the same cycle gives is not defined. A memory of
    one word is a register. The signals of the ports are replaced rather than assigned, so that the
    simulator has nothing to evaluate between memories and their drivers.

    Parameters
    ----------
    m : Module
    name : str
    width, depth : int
    write : WritePort
    read : ReadPort
    granularity : int, optional
        Bits of a word for each bit of the write enable; by default all.

    Returns
    -------
    Value
        The word read.
    """
    if depth == 1:
        return _add_register(m, name, width, write, granularity or width)
    _record(width, depth, written=True)
    ram = memory.Memory(shape=width, depth=depth, init=[], attrs=NO_COLLISIONS)
    m.submodules[name] = ram
    into, out = ram.write_port(granularity=granularity), ram.read_port()
    into.addr, into.data, into.en = (
        _fitting(value, len(port))
        for value, port in zip(write, (into.addr, into.data, into.en), strict=True)
    )
    out.addr, out.en = _fitting(read.address, len(out.addr)), read.enable
    return out.data


def _fitting(value: Value, width: int) -> Value:
    """A value cut or filled up to a width."""
    missing = width - len(value)
    return Cat(value, Const(0, missing)) if missing > 0 else value[:width]


def _add_register(m: Module, name: str, width: int, write: WritePort, granularity: int) -> Value:
    """A memory of one word, which can always be read."""
    word = Signal(width, name=name, reset_less=True)
    for k, start in enumerate(range(0, width, granularity)):
        part = slice(start, start + granularity)
        with m.If(write.enable[k]):
            m.d.sync += word[part].eq(write.data[part])
    return word
