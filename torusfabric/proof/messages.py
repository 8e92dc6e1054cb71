"""The words that each run must deliver, as symbolic bits. This module knows no hardware.

A symbolic bit is a number that stands for one bit of a word, for all values of that word (see
`symbols`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..collective import ADD
from ..collective.words import expected_words
from ..program.operand_orders import execute_with_function
from ..topology import BoolArray, IntArray
from .report import make_refutation
from .symbols import word_bits

if TYPE_CHECKING:
    from ..collective import Words
    from ..program import Program
    from .sums import Sums

__all__ = ["Locations", "Run", "expected_bits", "group_by_beats", "sent_words"]


@dataclass(frozen=True)
class Run:
    """The choices of a run.

    Parameters
    ----------
    mode : int
        Number of the mode, that is, of the collective among those of the fabric.
    length : int
        Flits per message.
    root : int
        Root, as a position within each group.
    operation : int
        Number of the operator within the mode.
    """

    mode: int
    length: int
    root: int = 0
    operation: int = 0

    def form_number(self, program: Program) -> int:
        """Return the number of the form, that is, of the schedule that this run uses."""
        return program.form_of(self.mode, self.length, self.root)


@dataclass(frozen=True)
class Locations:
    """The memory and the address at which the nodes store each word of their messages.

    Parameters
    ----------
    memory : ndarray of int, shape (nodes, words)
        Number of the memory.
    address : ndarray of int, shape (nodes, words)
        Address within the memory; -1 for a word that is not stored.
    """

    memory: IntArray
    address: IntArray

    def first_of_beats(self, flits: int, beat: int) -> Locations:
        """Return the location of each beat, which is the location of its first word.

        The arrays of the result have shape (nodes, beats).

        Parameters
        ----------
        flits : int
            Flits per message.
        beat : int
            Words per beat.
        """
        return Locations(
            *(group_by_beats(values, flits, beat)[..., 0] for values in (self.memory, self.address))
        )


def group_by_beats(values: IntArray, flits: int, beat: int) -> IntArray:
    """Group the words that a node sends or receives into beats; no beat spans two messages.

    Parameters
    ----------
    values : ndarray of int, shape (nodes, words)
        A number for each word, message after message.
    flits : int
        Words per message, which is the number of flits of a message.
    beat : int
        Words per beat.

    Returns
    -------
    ndarray of int, shape (nodes, beats, beat)
        Numbers of the words of each beat; -1 past the end of a message.

    Examples
    --------
    >>> group_by_beats(np.arange(6)[None], flits=3, beat=2).tolist()
    [[[0, 1], [2, -1], [3, 4], [5, -1]]]
    """
    parts = values.reshape(len(values), -1, flits)
    padded = np.pad(parts, [(0, 0), (0, 0), (0, -flits % beat)], constant_values=-1)
    return padded.reshape(len(values), -1, beat)


def sent_words(program: Program, run: Run) -> IntArray:
    """Return the symbolic bits of the words that each node sends in `run`, shape (nodes, words).

    With W words for each node, word k of node n has the word number m = ``n * W + k``, and the
    symbolic bit 2 m + 2.
    """
    count = program.part(run.form_number(program)).layout.send_words(run.length)
    return word_bits(np.arange(program.topology.nodes * count).reshape(-1, count))


def expected_bits(program: Program, run: Run, sums: Sums) -> tuple[IntArray, BoolArray]:
    """Return the symbolic bits of the words that each node must hold at the end of a run.

    Parameters
    ----------
    program : Program
        Program of the fabric.
    run : Run
        The run that ends.
    sums : Sums
        Collection of the symbolic sums, to which the expected sums of a reduction are added.

    Returns
    -------
    words : ndarray of int, shape (nodes, words)
        Symbolic bits of words, or of sums in a reduction, in the order of the received words.
    receives : ndarray of bool, shape (nodes, words)
        True for words that the collective delivers to the node.
    """
    part = program.part(run.form_number(program))
    root = run.root if program.modes[run.mode].any_root else None
    count = part.layout.send_words(run.length)
    if not part.schedule.collective.reducing:
        numbers = np.arange(program.topology.nodes * count).reshape(-1, count)
        words, receives = expected_words(part.layout, numbers, root=root)
        return word_bits(words), receives
    # The first node of each group sends word numbers and the others zeros, so that each sum under
    # ADD is the number of the summed words.
    groups = part.layout.blocks.groups
    numbers = np.zeros((program.topology.nodes, count), np.uint64)
    numbers[groups.members[:, 0]] = np.arange(count)
    index, receives = expected_words(part.layout, numbers, operator=ADD, root=root)
    members = [nodes.tolist() for nodes in groups.node_lists]
    group, index = groups.group_of_node[:, None], index.astype(int)
    if sums.ordered:
        found = _ordered_sums(program, run, sums, count)
        for node, k in np.argwhere(receives).tolist():
            summands = [n * count + index[node, k] for n in members[group[node, 0]]]
            if sums.summands(found[node, k]) != tuple(summands):
                message = f"must combine words {summands}, not {sums.summands(found[node, k])}"
                raise make_refutation("whole runs", f"word {k} of node {node}", message)
        return word_bits(found), receives
    sum_of = np.array(
        [
            [sums.number_of_sum([n * count + k for n in nodes]) for k in range(count)]
            for nodes in members
        ]
    )
    return word_bits(sum_of[group, index]), receives


def _ordered_sums(program: Program, run: Run, sums: Sums, count: int) -> IntArray:
    """Return the numbers of the sums that nodes receive, in the order in which the program adds.

    `count` is the number of words that a node sends. In the execution, a word is its number and 1,
    because 0 is the identity word.
    """

    def combine(a: Words, b: Words, width: int) -> Words:
        result = np.maximum(a, b)
        pairs = np.minimum(a, b) > 0
        numbers = [
            sums.add_numbers(x - 1, y - 1) + 1
            for x, y in zip(a[pairs].tolist(), b[pairs].tolist(), strict=True)
        ]
        result[pairs] = np.array(numbers, result.dtype)
        return result

    words = np.arange(1, program.topology.nodes * count + 1, dtype=np.uint64).reshape(-1, count)
    root = run.root if program.modes[run.mode].any_root else None
    choice = {"mode": run.mode, "length": run.length, "root": root}
    return execute_with_function(program, words, combine, **choice).astype(int) - 1
