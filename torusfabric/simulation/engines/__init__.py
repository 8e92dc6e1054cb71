"""Engines: simulators that run a fabric cycle by cycle; each is imported at its first use."""

from typing import TYPE_CHECKING

from ...toolchain.exports import exported

if TYPE_CHECKING:
    from .amaranth_engine import AmaranthEngine
    from .base import Engine, EngineRun, Job, longest_job
    from .choice import ENGINES, Choice, choose_engine
    from .compiled import CompiledEngine
    from .waves import check_wave

__all__ = [
    "ENGINES",
    "AmaranthEngine",
    "Choice",
    "CompiledEngine",
    "Engine",
    "EngineRun",
    "Job",
    "check_wave",
    "choose_engine",
    "longest_job",
]

__getattr__ = exported(__name__)
