"""A count of a few runs or messages that may go up and down in the same cycle."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value

from .clearing import cleared, state

__all__ = ["tally"]


def tally(m: Module, *, up: Value, down: Value, clear: Value, name: str) -> Signal:
    """Count from 0 to 3, up and down.

    Each bit follows from four others: one table, where an adder and a subtractor would take two
    levels of them, behind signals that come late.

    Parameters
    ----------
    m : Module
    up, down : Value
        Whether the count grows with the next edge, and whether it shrinks.
    clear : Value
        Whether it is 0 from there on.
    name : str

    Examples
    --------
    >>> from amaranth.hdl import Fragment
    >>> m = Module()
    >>> count = tally(m, up=Signal(), down=Signal(), clear=Signal(), name="waiting")
    >>> len(count), [*Fragment.get(m, None).statements]
    (2, ['comb', 'sync'])
    """
    count = state(2, name=name)
    grows, shrinks = Signal(name=f"{name}_grows"), Signal(name=f"{name}_shrinks")
    m.d.comb += [grows.eq(up), shrinks.eq(down)]
    changes = grows ^ shrinks
    m.d.sync += count.eq(Cat(count[0] ^ changes, count[1] ^ (changes & (count[0] ^ shrinks))))
    cleared(m, clear, count)
    return count
