"""Simulation of fabrics with streams: random packets in, every received word compared."""

from .simulate import StreamReport, draw_jobs
from .simulate import simulate_streams as simulate

__all__ = ["StreamReport", "draw_jobs", "simulate"]
