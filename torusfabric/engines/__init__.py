"""Engines: ways to run a fabric cycle by cycle."""

from .amaranth_engine import AmaranthEngine
from .base import Engine, Run
from .compiled import CompiledEngine

__all__ = ["AmaranthEngine", "CompiledEngine", "Engine", "Run"]
