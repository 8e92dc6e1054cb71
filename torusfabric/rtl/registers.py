"""Registers: delay lines, and registers that synthesis leaves apart.

Synthesis makes one of registers that always hold the same, and so undoes every copy that was made
to keep wires short and fan-out small. So a register bank that is to stay is an instance of a
module, which synthesis keeps.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import ClockSignal, Const, Module, Signal, Value

from .shared_modules import SharedModule, Use

__all__ = ["apart", "delayed", "pulsed"]


@dataclass(frozen=True)
class Register(SharedModule):
    """A register that stays a module.

    Parameters
    ----------
    width : int
    clears : bool
        Whether an input makes it 0.

    Examples
    --------
    >>> Register(4, clears=False).name
    'register_4'
    """

    width: int
    clears: bool
    kept = True

    @property
    def name(self) -> str:
        """Its name."""
        return f"register{'_cleared' * self.clears}_{self.width}"

    @property
    def about(self) -> str:
        """What it is."""
        return "A register that synthesis does not join with others that hold the same."

    def ports(self) -> list[Signal]:
        """What is given, whether that is nothing, and what is held."""
        clear = [Signal(name="clear")] * self.clears
        return [
            Signal(self.width, name="given"), *clear,
            Signal(self.width, name="held", reset_less=True),
        ]  # fmt: skip

    def module(self, ports: Sequence[Signal]) -> Module:
        """What is inside."""
        m = Module()
        given, *clear, held = ports
        m.d.sync += held.eq(given)
        for zero in clear:
            with m.If(zero):
                m.d.sync += held.eq(0)
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
    """
    held = Signal(len(value), name=name, reset_less=True)
    if not alone:
        m.d.sync += held.eq(value)
        if clear is not None:
            with m.If(clear):
                m.d.sync += held.eq(0)
        return held
    inputs = {} if clear is None else {"i_clear": clear}
    m.submodules[f"{name}_register"] = Use(
        Register(len(value), clear is not None),
        i_clk=ClockSignal(), i_given=value, **inputs, o_held=held,
    )  # fmt: skip
    return held


def delayed(m: Module, value: Value, cycles: int) -> Value:
    """A value some cycles later; a constant, or one of no bits, stays what it is."""
    if isinstance(value, Const) or not len(value):
        return value
    name = value.name.removesuffix("_later") + "_later" if isinstance(value, Signal) else "later"
    for _ in range(cycles):
        later = Signal(len(value), reset_less=True, name=name)
        m.d.sync += later.eq(value)
        value = later
    return value


def pulsed(m: Module, pulse: Value, cycles: int, *, name: str) -> Value:
    """Pulses some cycles later; none that is on its way outlives a reset."""
    for _ in range(cycles):
        later = Signal(len(pulse), name=name)
        m.d.sync += later.eq(pulse)
        pulse = later
    return pulse
