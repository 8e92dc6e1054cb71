"""The front of a fabric: the ports that an adapter puts before a core."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..contract.interface import Interface
from ..program.timing import WRITE
from .run_choices import RunChoices

if TYPE_CHECKING:
    from ..contract.cut import Cut
    from .core.core import Core

__all__ = ["Built", "Front", "short_digest"]


def short_digest(text: str) -> int:
    """Return a number of 32 bits that distinguishes a text from others."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


class Built(NamedTuple):
    """The facts about a front that are known once its hardware is in the netlist.

    Parameters
    ----------
    router_classes : list of (str, int)
        The modules of routers, and the number of nodes that have each.
    interface : Interface
        The declarations of the ports.
    read_latency : int
        Clock edges from an address to its data; 0 if no port reads at addresses.
    finders : sequence of Finder
        The units that find the words of a host.
    """

    router_classes: list[tuple[str, int]]
    interface: Interface
    read_latency: int = 0
    finders: Sequence[Any] = ()


class Front(ABC):
    """A core, and the ports that an adapter puts before it.

    An adapter makes the core with the run port and the memory ports that it needs. `add` then
    fills the netlist of the core with the hardware of the adapter and the parts of the core.

    Parameters
    ----------
    layouts : sequence of HostLayout
        The order of the words of a message, for each form of the program.

    Attributes
    ----------
    top : str
        The name of the kind of ports.
    windows : sequence of HostLayout
        The address map of the host port for each mode; empty without a host port.
    tables : Loading or None
        The tables of the fabric if they can be written.
    """

    #: Nets, each with its bits, that parts of a fabric have to agree on at a start, besides the
    #: choices of the run.
    agreed: Mapping[str, int] = MappingProxyType({})

    top: str
    windows: Sequence[Any] = ()
    tables: Any = None

    def __init__(self, core: Core, layouts: Sequence[Any]) -> None:
        self.core, self.layouts = core, tuple(layouts)

    @property
    def name(self) -> str:
        """The kind of the outermost ports, as the manifest has it."""
        return self.top

    @property
    def digest(self) -> int:
        """A number of 32 bits for program and width, by which software recognises the fabric."""
        return short_digest(f"{self.core.program.digest} {self.core.width}")

    @property
    def write_latency(self) -> int:
        """Clock edges from a write at the host port to the memory, that of the memory included."""
        return WRITE

    @property
    def choices(self) -> Mapping[str, int]:
        """The inputs that are sampled with a start, each with its bits."""
        return RunChoices.of(self.core.program).inputs

    @property
    def longest_run(self) -> int:
        """Clock edges of the longest run that the fabric may be given."""
        program = self.core.program
        return max(program.cycles(mode=mode) for mode in range(len(program.modes)))

    def part(self, cut: Cut, *, for_bus: bool, closed_by: str) -> Front:
        """Return the front of some of the nodes.

        Parameters
        ----------
        closed_by : str
            Prefix of the nets `start` and `busy` that close the port to writes.
        """
        raise NotImplementedError

    @abstractmethod
    def add(self) -> Built:
        """Fill the netlist of the core."""
