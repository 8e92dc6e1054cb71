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

__all__ = ["ALL", "Everything", "Grouped", "Listed", "Pattern", "Rounds", "Schedule", "Table",
           "Transfers"]  # fmt: skip
