"""Simulation of fabrics whose nodes have streams."""

from .limits import StreamReport
from .simulate import check_faults, check_stall, simulate_streams, stream_jobs

__all__ = [
    "StreamReport",
    "check_faults",
    "check_stall",
    "simulate_streams",
    "stream_jobs",
]
