"""Programs: the actions of every router and memory in order, compiled from schedules."""

from .address_map import AddressMap
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
    "Loop",
    "Form",
    "Memory",
    "Mode",
    "Order",
    "Point",
    "Program",
    "Sources",
    "Timing",
    "compile",
]
