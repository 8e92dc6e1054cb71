"""Resets of nodes, which come through a register near them.

A reset that one register gives to all nodes at once would be the longest wire of a fabric. So the
control passes it on as `clear`, like all that nodes are given; for that one cycle nodes offer and
accept nothing.
"""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value

from ..leaf import Leaf

__all__ = ["cleared", "registered_outputs", "state"]


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
    m : Module
    clear : Value
        High in the cycle before.
    *registers : Signal

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
