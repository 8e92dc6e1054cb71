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
    """The purpose of a port of the whole.

    Parameters
    ----------
    role : str
        ``clock``, ``reset``, ``control``, ``status``, ``write``, ``read``, ``data``, ``bus`` or
        ``interrupt``.
    clock : str
        The clock at whose edges it counts.
    """

    role: str
    protocol: Protocol
    meaning: str
    clock: str = "clk"


def grouped_ports(
    groups: Mapping[tuple[str, Protocol], Mapping[str, str]],
) -> dict[str, Port]:
    """Return ports by name, given in groups of one role and protocol."""
    return {
        name: Port(role, protocol, meaning)
        for (role, protocol), meanings in groups.items()
        for name, meaning in meanings.items()
    }
