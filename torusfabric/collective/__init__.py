"""Collectives: names, blocks, the layout of node memories, reduction operators, expected
results.
"""

from .collective import EVERY_NODE, Blocks, Collective, Layout
from .combining import combine_in_tree, tree_levels
from .definitions import COLLECTIVES, Content, Definition, Target
from .names import parse_collective
from .offsets import NO_NODE, Named, split_name, split_names
from .operators import ADD, OPERATORS, SIGNED, Operator, Words, parse_operators, register_operator
from .words import expected_words, random_messages

__all__ = ["ADD", "COLLECTIVES", "EVERY_NODE", "NO_NODE", "OPERATORS", "SIGNED", "Blocks",
           "Collective", "Content", "Definition", "Layout", "Named", "Operator", "Target", "Words",
           "combine_in_tree", "expected_words", "parse_collective", "parse_operators",
           "random_messages", "register_operator", "split_name", "split_names",
           "tree_levels"]  # fmt: skip
