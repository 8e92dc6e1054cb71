"""Declarations of ports: the purpose of each, and the timing rules that it follows."""

from collections.abc import Mapping
from typing import NamedTuple

from ..toolchain.values import Choice

__all__ = ["Port", "Protocol", "ports_by_name"]


class Protocol(Choice):
    """The timing rule of a port: the cycles in which its value is valid, or its bus protocol."""

    #: A clock.
    CLOCK = "clock"
    #: The value has meaning at every edge of the port's clock.
    LEVEL = "level"
    #: The value has meaning at every edge, and is high for one cycle at a time.
    PULSE = "pulse"
    #: The fabric samples the value at the edge that takes `start`.
    SAMPLED = "sampled"
    #: An address, and the word to write with it or the word read a fixed number of edges later.
    MEMORY = "memory"
    #: The value has meaning in cycles that the schedule fixes, counted from the start.
    SCHEDULED = "scheduled"
    #: The value has meaning at every edge of the clock that the link carries along.
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
    """The declaration of a port of the fabric: its purpose, its timing, and perhaps its width.

    Parameters
    ----------
    role : str
        ``clock``, ``reset``, ``control``, ``status``, ``write``, ``read``, ``data``, ``bus`` or
        ``interrupt``.
    protocol : str
        A value of `Protocol`, or the name of a further protocol that an adapter defines.
    meaning : str
        Purpose of the port on one line, for the manifest.
    clock : str
        Port of the clock at whose edges the port is sampled or changes.
    width : int
        Bits of the port; 0 if only the netlist knows the width.
    output : bool
        True if the fabric drives the port.
    node : int or None
        The node that the port belongs to, None for a port of the whole fabric.
    """

    role: str
    protocol: str
    meaning: str
    clock: str = "clk"
    width: int = 0
    output: bool = False
    node: int | None = None


def ports_by_name(
    groups: Mapping[tuple[str, str], Mapping[str, str]],
) -> dict[str, Port]:
    """Return the declarations of ports, each by the name of its port.

    Parameters
    ----------
    groups : mapping of (str, str) to mapping of str to str
        Ports with the same role and protocol. A key is the pair of these two; the value has the
        meaning of each port, by port name.
    """
    return {
        name: Port(role, protocol, meaning)
        for (role, protocol), meanings in groups.items()
        for name, meaning in meanings.items()
    }
