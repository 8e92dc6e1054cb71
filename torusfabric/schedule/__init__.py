"""Schedules: the narrow waist between algorithms and everything else."""

from .forms import (
    ALL,
    Everything,
    Grouped,
    Listed,
    Pattern,
    Rounds,
    Schedule,
    Table,
    Transfers,
)
from .model import Duplex, Switching

__all__ = [
    "ALL",
    "Duplex",
    "Everything",
    "Grouped",
    "Listed",
    "Pattern",
    "Rounds",
    "Schedule",
    "Switching",
    "Table",
    "Transfers",
]
