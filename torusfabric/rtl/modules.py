"""Modules: the leaves that netlists are made of, and what many of these have instances of.

The latter are no part of a netlist, but each is there once in its text: the text of a module says
of which it has instances.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from amaranth import tracer
from amaranth.hdl import Cat, Elaboratable, Fragment, Instance, Module, Signal, Value
from amaranth.lib import wiring

from .memories import MemoryShape, recorded_memories

__all__ = ["Leaf", "SharedModule", "Use", "given_names"]


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
        """The memories and ROMs inside, those of its components included."""
        with recorded_memories() as found:
            Fragment.get(self, None)
        return found


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
