"""Schedules: the narrow waist between algorithms and everything else."""

from .base import Schedule
from .lifted import Lifted
from .masked import Masked
from .model import Duplex, Switching
from .pattern import Pattern
from .rounds import Rounds
from .table import Table
from .transfers import ALL, Everything, Grouped, Listed, Transfers

__all__ = [
    "ALL",
    "Duplex",
    "Everything",
    "Grouped",
    "Lifted",
    "Listed",
    "Masked",
    "Pattern",
    "Rounds",
    "Schedule",
    "Switching",
    "Table",
    "Transfers",
]
