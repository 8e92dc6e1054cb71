"""Engines: simulators that run a fabric cycle by cycle; each is imported at its first use.

In the glossary, *engine* has another meaning: a fabric with several modes.
"""

from typing import TYPE_CHECKING

from ...toolchain.exports import lazy_exports

if TYPE_CHECKING:
    from .amaranth_engine import AmaranthEngine
    from .base import Engine, EngineRun, Job, longest_job
    from .choice import ENGINES, EngineChoice, choose_engine
    from .compiled import CompiledEngine
    from .waves import check_wave_file

__all__ = ["ENGINES", "AmaranthEngine", "EngineChoice", "CompiledEngine", "Engine", "EngineRun",
           "Job", "check_wave_file", "choose_engine", "longest_job"]  # fmt: skip

__getattr__ = lazy_exports(__name__)
