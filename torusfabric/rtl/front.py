"""The front of a fabric: the base class of the hardware that an adapter puts around a core.

A fabric is a core and a front. The core executes the program. The front provides the ports that
users see: ports of each node, streams, one host port, or a bus. Each such adapter has a subclass
of `Front`, and a `Fabric` builds the netlist by calling its `add_hardware`.
"""

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
    from ..contract.node_block import NodeBlock
    from .core.core import Core

__all__ = ["FrontFacts", "Front", "short_digest"]


def short_digest(text: str) -> int:
    """Return the first 32 bits of the SHA-256 hash of a text, as a number."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


class FrontFacts(NamedTuple):
    """The result of `Front.add_hardware`: facts that are known once the hardware is in the netlist.

    Parameters
    ----------
    router_classes : list of (str, int)
        Each router module, and the number of nodes that have an instance of it.
    interface : Interface
        The declarations of the ports.
    read_latency : int
        Clock edges from an address at the ports to its data; 0 if no port has read addresses.
    finders : sequence of Finder
        The units that translate an address of the host port into the node, the memory (*bank*) of
        this node, and the address in it. Empty without a host port.
    """

    router_classes: list[tuple[str, int]]
    interface: Interface
    read_latency: int = 0
    finders: Sequence[Any] = ()


class Front(ABC):
    """A core and the ports that an adapter puts around it.

    The subclass of an adapter makes the core, with the run port and memory port that the adapter
    needs, and passes it to this constructor. `add_hardware` later fills the netlist of the core,
    with the hardware of the adapter and of the core itself.

    Parameters
    ----------
    core : Core
        The core, whose netlist is still empty.
    layouts : sequence of HostLayout
        For each form of the program, the order in which the host numbers the words of a message.

    Attributes
    ----------
    top : str
        The kind of ports, such as ``core`` or ``host``.
    windows : sequence of HostLayout
        The address map of the host port for each mode; empty without a host port.
    tables : Loading or None
        The tables of the fabric, if they are writable.
    """

    #: Further nets (with their widths) whose values must be equal in all parts of a fabric at the
    #: start of a run, besides the choices of the run.
    agreed: Mapping[str, int] = MappingProxyType({})

    top: str
    windows: Sequence[Any] = ()
    tables: Any = None

    def __init__(self, core: Core, layouts: Sequence[Any]) -> None:
        self.core, self.layouts = core, tuple(layouts)

    @property
    def name(self) -> str:
        """The kind of ports that users see, as in the manifest: ``host``, for example."""
        return self.top

    @property
    def digest(self) -> int:
        """A hash of 32 bits of program and width, by which software recognises the fabric."""
        return short_digest(f"{self.core.program.digest} {self.core.width}")

    @property
    def write_latency(self) -> int:
        """Clock edges of a write, from the host port to the edge that writes the memory."""
        return WRITE

    @property
    def sampled_inputs(self) -> Mapping[str, int]:
        """The inputs that choose a run, read in the cycle of its start: name -> width in bits."""
        return RunChoices.from_program(self.core.program).sampled_inputs

    @property
    def longest_run(self) -> int:
        """Clock edges of the longest run that the fabric can execute."""
        program = self.core.program
        return max(program.cycles(mode=mode) for mode in range(len(program.modes)))

    def front_of_part(self, cut: NodeBlock, *, for_bus: bool, closed_by: str) -> Front:
        """Return the front of a fabric that builds only some of the nodes: one of several parts.

        Parameters
        ----------
        cut : NodeBlock
            The nodes to build, and the link ports to the others.
        for_bus : bool
            True if a bus adapter will stand in front of the port.
        closed_by : str
            A prefix P. While one of the nets ``Pstart`` and ``Pbusy`` is high, the port ignores
            writes.
        """
        raise NotImplementedError

    @abstractmethod
    def add_hardware(self) -> FrontFacts:
        """Fill the netlist of the core with the hardware of the adapter and of the core."""
