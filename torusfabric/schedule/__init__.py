"""Schedules: the path and round of every message of a collective, in several forms and in files."""

from .base import Rounds, Schedule
from .lifted import Lifted, Masked
from .model import Duplex, Switching
from .pattern import Pattern, SumPattern
from .table import SumTable, Table
from .transfers import ALL, Everything, Grouped, KeptSums, Listed, Transfers

__all__ = ["ALL", "Duplex", "Everything", "Grouped", "KeptSums", "Lifted", "Listed", "Masked",
           "Pattern", "Rounds", "Schedule", "SumPattern", "SumTable", "Switching", "Table",
           "Transfers"]  # fmt: skip
