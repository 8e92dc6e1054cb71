"""Collectives: names, blocks, the layout of node memories, reduction operators, expected
results.

- `definitions`, `names`, `offsets`: the table of collectives, and the parser of their names.
- `collective`: a collective, with its root, groups and messages.
- `blocks`, `layout`: its numbered blocks on a network, and the layout of node memories.
- `traffic`, `counts`: the messages of a pattern, unequal lengths, and files of both.
- `operators`, `combining`: reduction operators, and the order in which words are combined.
- `floats`, `float_operators`, `float_adder`: floating-point formats, operators and their hardware.
- `words`: random messages, and the words that a collective must deliver.
"""

from .blocks import EVERY_NODE, Blocks
from .collective import KINDS_WITH_LENGTHS, Collective
from .combining import combine_in_tree, tree_levels
from .counts import common_longest
from .definitions import COLLECTIVES, CollectiveDefinition, DeliveredContent, DeliveryTarget
from .layout import MemoryLayout
from .names import parse_collective
from .offsets import NO_NODE, NameParts, split_name, split_names
from .operators import (
    ADD,
    FLOATS,
    OPERATORS,
    SATURATING,
    SIGNED,
    Operator,
    Words,
    parse_operators,
    register_operator,
)
from .traffic import Message, Traffic
from .words import expected_words, random_messages

__all__ = ["ADD", "COLLECTIVES", "EVERY_NODE", "FLOATS", "KINDS_WITH_LENGTHS", "NO_NODE",
           "OPERATORS", "SATURATING", "SIGNED", "Blocks", "Collective", "DeliveredContent",
           "CollectiveDefinition", "MemoryLayout", "Message", "NameParts", "Operator",
           "DeliveryTarget", "Traffic", "Words", "combine_in_tree", "common_longest",
           "expected_words", "parse_collective", "parse_operators", "random_messages",
           "register_operator", "split_name", "split_names", "tree_levels"]  # fmt: skip
