"""Memories whose ports are bound to existing signals."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import NamedTuple

from amaranth.hdl import Array, Cat, Const, Signal
from amaranth.lib import memory

__all__ = ["MemoryShape", "add_memory", "add_rom", "address_width", "choose", "recorded_memories"]


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
    """Bits that address so many words; at least one, for no port is without bits."""
    return max((depth - 1).bit_length(), 1)


def choose(values, index):
    """The value at an index; past the end, the last one."""
    padding = [values[-1]] * ((1 << len(index)) - len(values))
    return Array([*values, *padding])[index]


def add_rom(m, name, *, rows, width, address):
    """Add a ROM; a row is there one cycle after its address.

    Parameters
    ----------
    m : Module
    name : str
    rows : list of int
    width : int
    address : Value

    Returns
    -------
    Signal
        The row read.
    """
    _record(width, len(rows), written=False)
    m.submodules[name] = rom = memory.Memory(shape=width, depth=len(rows), init=rows)
    port = rom.read_port()
    port.addr = _fitting(address, len(port.addr))
    return port.data


def add_memory(m, name, *, width, depth, write, read, granularity=None):
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
    write : tuple of (Value, Value, Value)
        Address, data and enable; one enable bit for each `granularity` bits.
    read : tuple of (Value, Value)
        Address and enable.
    granularity : int, optional

    Returns
    -------
    Signal
        The word read.
    """
    if depth == 1:
        return _add_register(m, name, width, write[1], write[2], granularity or width)
    _record(width, depth, written=True)
    ram = memory.Memory(shape=width, depth=depth, init=[], attrs=NO_COLLISIONS)
    m.submodules[name] = ram
    into, out = ram.write_port(granularity=granularity), ram.read_port()
    into.addr, into.data, into.en = (
        _fitting(value, len(port))
        for value, port in zip(write, (into.addr, into.data, into.en), strict=True)
    )
    out.addr, out.en = _fitting(read[0], len(out.addr)), read[1]
    return out.data


def _fitting(value, width):
    """A value cut or filled up to a width."""
    missing = width - len(value)
    return Cat(value, Const(0, missing)) if missing > 0 else value[:width]


def _add_register(m, name, width, data, enable, granularity):
    """A memory of one word, which can always be read."""
    word = Signal(width, name=name, reset_less=True)
    for k, start in enumerate(range(0, width, granularity)):
        part = slice(start, start + granularity)
        with m.If(enable[k]):
            m.d.sync += word[part].eq(data[part])
    return word
