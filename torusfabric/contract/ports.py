"""Declared ports: what each is for, and by which rules it is driven or shows something."""

from collections.abc import Mapping
from typing import NamedTuple

from ..toolchain.values import Choice

__all__ = ["Port", "Protocol", "grouped_ports"]


class Protocol(Choice):
    """The rules by which a port is driven, or shows something."""

    #: A clock.
    CLOCK = "clock"
    #: It counts at every edge of its clock.
    LEVEL = "level"
    #: It counts at every edge, and is high for one cycle.
    PULSE = "pulse"
    #: It counts at the edge that takes `start`.
    SAMPLED = "sampled"
    #: An address, and the word to write with it or the word read a fixed number of edges later.
    MEMORY = "memory"
    #: It counts in the cycles of the schedule, known from the start on.
    SCHEDULED = "scheduled"
    #: It counts at every edge of the clock that goes beside it.
    LINK = "link"
    #: Wishbone B4, one access at a time.
    WISHBONE = "wishbone-b4"
    #: AMBA AXI4-Lite.
    AXI_LITE = "axi4-lite"
    #: AMBA AXI4.
    AXI4 = "axi4"
    #: AMBA AXI4-Stream: a word passes at each edge at which both `tvalid` and `tready` are high.
    AXI_STREAM = "axi4-stream"


class Port(NamedTuple):
    """The purpose of a port of the whole, and its shape where that is declared, too.

    Parameters
    ----------
    role : str
        ``clock``, ``reset``, ``control``, ``status``, ``write``, ``read``, ``data``, ``bus`` or
        ``interrupt``.
    protocol : str
        One of `Protocol`, or the name of another protocol that an adapter brings.
    clock : str
        The clock at whose edges it counts.
    width : int
        Bits of the port; 0 where the netlist alone knows them.
    output : bool
        True if the fabric drives the port.
    node : int or None
        The node that has the port; None for a port that there is once.
    """

    role: str
    protocol: str
    meaning: str
    clock: str = "clk"
    width: int = 0
    output: bool = False
    node: int | None = None


def grouped_ports(
    groups: Mapping[tuple[str, str], Mapping[str, str]],
) -> dict[str, Port]:
    """Return ports by name, given in groups of one role and protocol."""
    return {
        name: Port(role, protocol, meaning)
        for (role, protocol), meanings in groups.items()
        for name, meaning in meanings.items()
    }
