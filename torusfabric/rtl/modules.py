"""Modules: the leaves that netlists are made of, and what many of these have instances of.

The latter are no part of a netlist, but each is there once in its text: the text of a module says
of which it has instances.

Synthesis makes one of registers that always hold the same, and so undoes every copy that was made
to keep wires short and fan-out small. Registers that are to stay have the attribute `APART`, which
the text passes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

from amaranth.hdl import (
    Cat,
    Const,
    Elaboratable,
    Instance,
    Module,
    Signal,
    Value,
)
from amaranth.lib import wiring

from .amaranth_private import ast
from .memories import MemoryShape, memories_of

__all__ = ["APART", "Known", "Leaf", "SharedModule", "Use", "apart", "delayed", "pulsed"]

#: The attribute of registers that synthesis makes one with no other.
APART = {"dont_merge": 1}


class Leaf(wiring.Component):
    """A module of a netlist.

    On its own it has the ports of its signature. Inside an `Assembly` its inputs are bound to what
    drives them, so that the simulator has no wires between instances to evaluate: `value` and
    `words` give what drives an input in either case. Members of no bits are left out.
    """

    # Many leaves are made to be asked for their ports only, and so never elaborated.
    _MustUse__silence = True

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


@dataclass(frozen=True, eq=False)
class SharedModule:
    """A module that many have instances of; there is one of a name.

    Parameters
    ----------
    name : str
        Says what it depends on.
    about : str
        What it is, in a line.
    widths : dict of str to int
        Bits of its ports, apart from a clock; the last of them is its output.
    fill : function of (Module, Signal, ..) -> None
        Adds what is inside, given the ports.
    shape : object
        What it is known by where there are other texts of it.
    clocked : bool
        Whether it has a clock and a reset, be they used or not.
    """

    name: str
    about: str
    widths: Mapping[str, int]
    fill: Callable[..., None]
    shape: object = None
    clocked: bool = False

    def ports(self) -> list[Signal]:
        """Its ports; those of no bits are left out."""
        return [
            Signal(width, name=name, reset_less=True)
            for name, width in self.widths.items()
            if width
        ]

    def module(self, ports: Sequence[Signal]) -> Module:
        """What is inside, with what `ports` has made."""
        m = Module()
        self.fill(m, *ports)
        return m


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
class Known:
    """A word itself; where simulation knows no value of a bit, 0.

    It stands in front of sums over words that do not matter, for an unknown bit of one would make
    the whole sum unknown. It costs nothing.

    Examples
    --------
    >>> Known(4).shared.name
    'known_4'
    """

    width: int

    @property
    def shared(self) -> SharedModule:
        """Its module."""
        return SharedModule(
            f"known_{self.width}",
            "A word; in Icarus, of which unknown bits are 0.",
            {"word": self.width, "known": self.width},
            _pass_on,
            self,
        )


def _pass_on(m: Module, word: Value, known: Value) -> None:
    """Add what is inside `Known`."""
    m.d.comb += known.eq(word)


def apart(m: Module, value: Value, *, name: str) -> Value:
    """Return a value one cycle later, in a register that synthesis makes one with no other."""
    held = Signal(len(value), name=name, reset_less=True, attrs=APART)
    m.d.sync += held.eq(value)
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
    while isinstance(value, ast.Slice):
        value, start = value.value, start + value.start
    return id(value), start, start + bits


def _name(value: Value) -> str:
    """The name of the signal that a value is a part of."""
    while isinstance(value, ast.Slice):
        value = value.value
    return value.name if isinstance(value, Signal) else "later"


def pulsed(m: Module, pulse: Value, cycles: int, *, name: str) -> Value:
    """Pulses some cycles later; none that is on its way outlives a reset."""
    for _ in range(cycles):
        later = Signal(len(pulse), name=name)
        m.d.sync += later.eq(pulse)
        pulse = later
    return pulse
