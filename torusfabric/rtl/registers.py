"""Registers: delay lines, and registers that synthesis leaves apart.

Synthesis makes one of registers that always hold the same, and so undoes every copy that was made
to keep wires short and fan-out small. So a register bank that is to stay is an instance of a
module, which synthesis keeps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

from amaranth.hdl import ClockSignal, Const, Module, Signal, Value
from amaranth.hdl._ast import Slice

from .modules import SharedModule, Use

__all__ = ["apart", "delayed", "pulsed"]


@dataclass(frozen=True)
class Register(SharedModule):
    """A register that stays a module.

    Parameters
    ----------
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


def delayed(m: Module, value: Value, cycles: int, name: str = "") -> Value:
    """A value some cycles later; a constant, or one of no bits, stays what it is.

    What is asked of a value twice is there once. A register has the name that is given, or that of
    the signal, and the number of cycles behind it: ``node_d2``.
    """
    if isinstance(value, Const) or not len(value) or not cycles:
        return value
    lines = _lines.setdefault(m, {})
    line, at = lines.get(_key(value)) or (_Line(name or _name(value), [value]), 0)
    lines[_key(value)] = line, at
    while len(line.stages) <= at + cycles:
        stage = Signal(len(value), reset_less=True, name=f"{line.name}_d{len(line.stages)}")
        m.d.sync += stage.eq(line.stages[-1])
        lines[_key(stage)] = line, len(line.stages)
        line.stages.append(stage)
    return line.stages[at + cycles]


class _Line(NamedTuple):
    """A value, and what it is one, two, .. cycles later."""

    name: str
    stages: list[Value]


#: The delay lines of each module, by what is in them, with its place.
_lines: WeakKeyDictionary[Module, dict[tuple[int, int, int], tuple[_Line, int]]] = (
    WeakKeyDictionary()
)


def _key(value: Value) -> tuple[int, int, int]:
    """What is equal for equal bits of one value."""
    start, bits = 0, len(value)
    while isinstance(value, Slice):
        value, start = value.value, start + value.start
    return id(value), start, start + bits


def _name(value: Value) -> str:
    """The name of the signal that a value is a part of."""
    while isinstance(value, Slice):
        value = value.value
    return value.name if isinstance(value, Signal) else "later"


def pulsed(m: Module, pulse: Value, cycles: int, *, name: str) -> Value:
    """Pulses some cycles later; none that is on its way outlives a reset."""
    for _ in range(cycles):
        later = Signal(len(pulse), name=name)
        m.d.sync += later.eq(pulse)
        pulse = later
    return pulse
