"""Programs: schedules as what every router and endpoint does, in order."""

from .address_map import (
    AddressMap,
    CycleMap,
    DirectMap,
    NodeMap,
    OffsetMap,
    PartMap,
    RenumberedMap,
    RouteMap,
)
from .compile import compile
from .fields import (
    IDLE,
    NEUTRAL,
    Action,
    Field,
    Loop,
    Memory,
    Order,
    Point,
    Sources,
)
from .mode import CycleCost, Form, Mode
from .program import Program
from .timing import CyclePiece, Timing

__all__ = [
    "IDLE",
    "NEUTRAL",
    "Action",
    "Field",
    "AddressMap",
    "CycleCost",
    "CyclePiece",
    "CycleMap",
    "DirectMap",
    "Loop",
    "Form",
    "Memory",
    "Mode",
    "NodeMap",
    "OffsetMap",
    "PartMap",
    "Order",
    "Point",
    "Program",
    "RenumberedMap",
    "RouteMap",
    "Sources",
    "Timing",
    "compile",
]
