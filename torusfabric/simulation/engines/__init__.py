"""Engines: ways to run a fabric cycle by cycle."""

from .amaranth_engine import AmaranthEngine
from .base import Engine, EngineRun, PhaseTimes
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
    "PhaseTimes",
    "VerilatorEngine",
    "check_wave",
    "choose_engine",
]
