"""Simulation of fabrics on several boards, each with a clock of its own."""

from .report import BoardRun, SystemReport
from .simulate import simulate_boards

__all__ = ["BoardRun", "SystemReport", "simulate_boards"]
