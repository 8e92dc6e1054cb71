"""Programs: schedules as what every router and endpoint does, in order."""

from .address_map import AddressMap, DirectMap, NodeMap, OffsetMap, RenumberedMap, RouteMap
from .compile import compile
from .cost import CycleCost
from .mode import Mode
from .program import Program
from .timing import Timing
from .values import IDLE, MADE, NEUTRAL, Loop, Memory, Order, Reads, Run, Writes

__all__ = [
    "IDLE",
    "MADE",
    "NEUTRAL",
    "AddressMap",
    "CycleCost",
    "DirectMap",
    "Loop",
    "Memory",
    "Mode",
    "NodeMap",
    "OffsetMap",
    "Order",
    "Program",
    "Reads",
    "RenumberedMap",
    "RouteMap",
    "Run",
    "Timing",
    "Writes",
    "compile",
]
