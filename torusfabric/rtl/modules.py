"""Modules: the leaves that netlists are made of, and what many of these have instances of.

The latter are no part of a netlist, but each is there once in its text: the text of a module says
of which it has instances.

Synthesis makes one of registers that always hold the same, and so undoes every copy that was made
to keep wires short and fan-out small. So a register bank that is to stay is an instance of a
module, which synthesis keeps.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from amaranth import tracer
from amaranth.hdl import (
    Cat,
    ClockSignal,
    Const,
    Elaboratable,
    Instance,
    Module,
    Signal,
    Value,
)
from amaranth.hdl._ast import Slice
from amaranth.lib import wiring

from .memories import MemoryShape, memories_of

__all__ = ["Leaf", "SharedModule", "Use", "apart", "delayed", "given_names", "pulsed"]


class Leaf(wiring.Component):
    """A module of a netlist.

    On its own it has the ports of its signature. Inside an `Assembly` its inputs are bound to what
    drives them, so that the simulator has no wires between instances to evaluate: `value` and
    `words` give what drives an input in either case. Members of no bits are left out.
    """

    # Many leaves are made to be asked for their ports only, and so never elaborated.
    _MustUse__silence = True

    #: Whether synthesis has to keep it as a module, with registers that hold what others do.
    kept = False

    def __init__(self, signature: Mapping[str, wiring.Member]) -> None:
        self._bound: dict[str, list[Value]] = {}
        super().__init__({name: each for name, each in signature.items() if each.shape})

    def bind(self, name: str, parts: list[Value]) -> None:
        """Let an input be driven by the concatenation of values."""
        self._bound[name] = parts

    def value(self, name: str) -> Value:
        """What drives an input."""
        if name not in self._bound:
            return getattr(self, name)
        parts = self._bound[name]
        return parts[0] if len(parts) == 1 else Cat(*parts)

    @property
    def alone(self) -> bool:
        """Whether the module stands by itself, for its text to be written."""
        return not self._bound

    def words(self, name: str, width: int) -> list[Value]:
        """What drives an input, as words of so many bits."""
        parts = self._bound.get(name)
        if parts is not None and all(len(part) == width for part in parts):
            return list(parts)
        whole = self.value(name)
        return [whole[start : start + width] for start in range(0, len(whole), width)]

    def memories(self) -> Sequence[MemoryShape]:
        """The memories and ROMs inside; see `memories_of`."""
        return memories_of(self)


@contextlib.contextmanager
def given_names() -> Iterator[None]:
    """Leave signals meanwhile without a name, unless they are given one or must have one.

    Those of Amaranth's library would have the names of variables, which Amaranth finds in bytecode:
    in some versions of Python, and not in others; and on names depends what tools place where.
    """
    found = tracer.get_var_name

    def given(depth: int = 2, **options: Any) -> Any:
        return options["default"] if "default" in options else found(depth + 1)

    tracer.get_var_name = given
    try:
        yield
    finally:
        tracer.get_var_name = found


class SharedModule(ABC):
    """A module that many have instances of."""

    #: Whether synthesis has to keep it as a module.
    kept = False

    @property
    def clocked(self) -> bool:
        """Whether it has a clock and a reset, be they used or not."""
        return False

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name, which says what it depends on."""

    @property
    @abstractmethod
    def about(self) -> str:
        """What it is, in a line."""

    @abstractmethod
    def ports(self) -> list[Signal]:
        """Its ports, apart from a clock."""

    @abstractmethod
    def module(self, ports: Sequence[Signal]) -> Module:
        """What is inside, with what `ports` has made."""


class Use(Elaboratable):
    """An instance of a shared module.

    Parameters
    ----------
    ports : Value
        By the names of the ports, with ``i_`` or ``o_`` in front of them.
    """

    def __init__(self, module: SharedModule, **ports: Value) -> None:
        self.module, self._ports = module, ports

    def elaborate(self, platform: object) -> Instance:
        """Make the instance."""
        return Instance(self.module.name, **self._ports)


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
