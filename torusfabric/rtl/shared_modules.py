"""Modules that many modules of a text have instances of, each there once.

They are not part of a netlist: the text of a module says of which it has instances.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from amaranth.hdl import Elaboratable, Instance, Module, Signal, Value

__all__ = ["SharedModule", "Use"]


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
