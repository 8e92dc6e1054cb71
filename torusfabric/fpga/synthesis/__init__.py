"""Synthesis: what a fabric costs on an FPGA and how fast it runs."""

from .report import SynthesisReport
from .synthesize import Workplace, synthesize
from .target import TARGETS, Mapping

__all__ = ["TARGETS", "Mapping", "SynthesisReport", "Workplace", "synthesize"]
