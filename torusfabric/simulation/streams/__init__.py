"""Simulation of fabrics whose nodes have streams."""

from .engine import StreamEngine
from .report import StreamReport
from .simulate import check_faults, check_stall, simulate_streams, stream_jobs

__all__ = [
    "StreamEngine",
    "StreamReport",
    "check_faults",
    "check_stall",
    "simulate_streams",
    "stream_jobs",
]
