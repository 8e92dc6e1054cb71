"""Registers that synthesis leaves apart.

Synthesis makes one of registers that always hold the same, and so undoes every copy that was made
to keep wires short and fan-out small. Each register bank of this module is a module of its own,
which synthesis keeps; the attribute `APART` of what it holds marks it.
"""

from amaranth.hdl import Elaboratable, Module, Signal, Value

__all__ = ["APART", "apart", "held_signal"]

#: The attribute of signals whose module stays a module in synthesis.
APART = "apart"


def held_signal(width: int, *, name: str, reset: bool = False, init: int = 0) -> Signal:
    """What a register of a module holds that stays a module in synthesis."""
    return Signal(width, name=name, init=init, reset_less=not reset, attrs={APART: 1})


class _Bank(Elaboratable):
    """A register that stays a module."""

    def __init__(self, width: int, *, clears: bool) -> None:
        self.given = Signal(width, name="given")
        self.held = Signal(width, name="held")
        self.clear = Signal(name="clear") if clears else None

    def elaborate(self, platform: object) -> Module:
        m = Module()
        # Not the output itself: what is around has that as well, and shall not be marked by it.
        held = held_signal(width=len(self.given), name="register")
        m.d.sync += held.eq(self.given)
        if self.clear is not None:
            with m.If(self.clear):
                m.d.sync += held.eq(0)
        m.d.comb += self.held.eq(held)
        return m


def apart(m: Module, value: Value, *, name: str, alone: bool, clear: Value | None = None) -> Value:
    """A value one cycle later, in a register that synthesis makes one with no other.

    Parameters
    ----------
    m : Module
    value : Value
    name : str
    alone : bool
        Whether the text of a module is written; for a simulator it is a plain register.
    clear : Value, optional
        Whether it is 0 a cycle later.

    Returns
    -------
    Value
    """
    if not alone:
        held = Signal(len(value), name=name, reset_less=True)
        m.d.sync += held.eq(value)
        if clear is not None:
            with m.If(clear):
                m.d.sync += held.eq(0)
        return held
    m.submodules[name] = bank = _Bank(len(value), clears=clear is not None)
    m.d.comb += bank.given.eq(value)
    if bank.clear is not None:
        m.d.comb += bank.clear.eq(clear)
    return bank.held
