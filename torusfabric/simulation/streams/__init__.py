"""Simulation of fabrics whose nodes have streams."""

from .simulate import StreamReport, check_faults, check_stall, simulate_streams, stream_jobs

__all__ = [
    "StreamReport",
    "check_faults",
    "check_stall",
    "simulate_streams",
    "stream_jobs",
]
