"""Engines: ways to run a fabric cycle by cycle."""

from .amaranth_engine import AmaranthEngine
from .base import Engine, EngineRun, Job, PhaseTimes, longest_job
from .choice import ENGINES, Choice, choose_engine
from .compiled import CompiledEngine
from .verilator import VerilatorEngine
from .waves import check_wave

__all__ = [
    "ENGINES",
    "AmaranthEngine",
    "Choice",
    "CompiledEngine",
    "Engine",
    "EngineRun",
    "Job",
    "PhaseTimes",
    "VerilatorEngine",
    "check_wave",
    "choose_engine",
    "longest_job",
]
