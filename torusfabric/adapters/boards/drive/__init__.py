"""Simulation of fabrics on several boards, each with a clock of its own."""

from .simulate import BoardRun, SystemReport, jobs_of, run_jobs, simulate_boards

__all__ = ["BoardRun", "SystemReport", "jobs_of", "run_jobs", "simulate_boards"]
