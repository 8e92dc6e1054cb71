"""Schedules: the narrow waist between algorithms and everything else."""

from .base import Schedule
from .lifted import Lifted
from .masked import Masked
from .model import Duplex, Switching
from .pattern import Pattern
from .rounds import Rounds
from .sum_pattern import SumPattern
from .sum_table import SumTable
from .table import Table
from .transfers import ALL, Everything, Grouped, KeptSums, Listed, Transfers

__all__ = ["ALL", "Duplex", "Everything", "Grouped", "KeptSums", "Lifted", "Listed", "Masked",
           "Pattern", "Rounds", "Schedule", "SumPattern", "SumTable", "Switching", "Table",
           "Transfers"]  # fmt: skip
