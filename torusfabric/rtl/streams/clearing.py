"""Registers of nodes, and their resets, which come through a register near them.

A reset that one register gives to all nodes at once would be the longest wire of a fabric. So the
control passes it on as `clear`, like all that nodes are given; for that one cycle nodes offer and
accept nothing.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value

from ..modules import Leaf

__all__ = ["cleared", "registered_outputs", "state", "tally"]


def state(bits: int = 1, *, name: str, init: int = 0) -> Signal:
    """A register that `cleared` sets back, and no other reset."""
    return Signal(bits, name=name, init=init, reset_less=True)


def registered_outputs(leaf: Leaf, *names: str) -> None:
    """Make registers of outputs, as far as a leaf has them, that only `cleared` sets back."""
    for name in names:
        if name in leaf.signature.members:
            setattr(leaf, name, state(leaf.signature.members[name].shape, name=name))


def cleared(m: Module, clear: Value, *registers: Signal) -> None:
    """Let registers go back to their initial values; nothing is assigned to them after this.

    Parameters
    ----------
    clear : Value
        High in the cycle before.

    Examples
    --------
    >>> from amaranth.hdl import Fragment
    >>> m, begun = Module(), state(name="begun")
    >>> cleared(m, Signal(), begun)
    >>> [*Fragment.get(m, None).statements]
    ['sync']
    """
    with m.If(clear):
        m.d.sync += [register.eq(register.init) for register in registers]


def tally(m: Module, *, up: Value, down: Value, clear: Value, name: str) -> tuple[Signal, Signal]:
    """Count from 0 to 3, up and down.

    Each bit follows from four others: one table, where an adder and a subtractor would take two
    levels of them, behind signals that come late.

    Parameters
    ----------
    up, down : Value
        Whether the count grows with the next edge, and whether it shrinks.
    clear : Value
        Whether it is 0 from there on.

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
