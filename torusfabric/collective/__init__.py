"""Collectives, the blocks they move, and the operators of reductions."""

from .collective import COLLECTIVES, OPERATORS, Blocks, Collective, parse_collective
from .operators import Operator

__all__ = ["COLLECTIVES", "OPERATORS", "Blocks", "Collective", "Operator", "parse_collective"]
