"""Synthesis: what a fabric costs on an FPGA and how fast it runs."""

from .families import Mapping
from .report import SynthesisReport
from .synthesize import Workplace, synthesize
from .target import TARGETS

__all__ = ["TARGETS", "Mapping", "SynthesisReport", "Workplace", "synthesize"]
