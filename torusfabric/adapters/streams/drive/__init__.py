"""Simulation of fabrics whose nodes have streams."""

from .simulate import StreamReport, draw_jobs
from .simulate import simulate_streams as simulate

__all__ = ["StreamReport", "draw_jobs", "simulate"]
