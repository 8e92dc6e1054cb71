"""Engines: ways to run a fabric cycle by cycle."""

from .amaranth_engine import AmaranthEngine
from .base import Engine, Run

__all__ = ["AmaranthEngine", "Engine", "Run"]
