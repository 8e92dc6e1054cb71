"""A count of a few runs or messages that may go up and down in the same cycle."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value

from .clearing import cleared, state

__all__ = ["tally"]


def tally(m: Module, *, up: Value, down: Value, clear: Value, name: str) -> tuple[Signal, Signal]:
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

    Returns
    -------
    count, following : Signal
        The count, and what it is from the next edge on, but for `clear`.

    Examples
    --------
    >>> from amaranth.hdl import Fragment
    >>> m = Module()
    >>> count, following = tally(m, up=Signal(), down=Signal(), clear=Signal(), name="waiting")
    >>> len(count), len(following), [*Fragment.get(m, None).statements]
    (2, 2, ['comb', 'sync'])
    """
    count, following = state(2, name=name), Signal(2, name=f"{name}_next")
    grows, shrinks = Signal(name=f"{name}_grows"), Signal(name=f"{name}_shrinks")
    m.d.comb += [grows.eq(up), shrinks.eq(down)]
    changes = grows ^ shrinks
    counted = Cat(count[0] ^ changes, count[1] ^ (changes & (count[0] ^ shrinks)))
    m.d.comb += following.eq(counted)
    m.d.sync += count.eq(following)
    cleared(m, clear, count)
    return count, following
