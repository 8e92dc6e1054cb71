"""Collectives, the blocks they move, the memories of their nodes, and operators of reductions."""

from .blocks import EVERY_NODE, Blocks
from .collective import Collective, parse_collective
from .definitions import COLLECTIVES, Content, Definition, Target
from .layout import Layout
from .operators import ADD, OPERATORS, SIGNED, Operator, Words, register_operator
from .words import expected_words, random_messages

__all__ = [
    "ADD",
    "COLLECTIVES",
    "EVERY_NODE",
    "OPERATORS",
    "SIGNED",
    "Blocks",
    "Collective",
    "Content",
    "Definition",
    "Layout",
    "Operator",
    "Target",
    "Words",
    "expected_words",
    "parse_collective",
    "random_messages",
    "register_operator",
]
