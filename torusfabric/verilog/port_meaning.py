"""What is said of a port: what it is for, and by which rules it is driven."""

from typing import NamedTuple

from ..schedule.model import Choice

__all__ = ["PortMeaning", "Protocol"]


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
    #: Wishbone B4, one access at a time.
    WISHBONE = "wishbone-b4"
    #: AMBA AXI4-Lite.
    AXI_LITE = "axi4-lite"
    #: AMBA AXI4-Stream: a word passes at each edge at which both `tvalid` and `tready` are high.
    AXI_STREAM = "axi4-stream"


class PortMeaning(NamedTuple):
    """What a port is for.

    Parameters
    ----------
    role : str
        ``clock``, ``reset``, ``control``, ``status``, ``write``, ``read``, ``data``, ``bus`` or
        ``interrupt``.
    protocol : Protocol
    meaning : str
    """

    role: str
    protocol: Protocol
    meaning: str
