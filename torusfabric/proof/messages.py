"""The words that each run must deliver, as symbolic bits. This module knows no hardware."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..collective import ADD
from ..collective.words import expected_words
from ..topology import BoolArray, IntArray
from .symbols import word

if TYPE_CHECKING:
    from ..program import Program
    from .sums import Sums

__all__ = ["Locations", "Run", "expected_bits", "in_beats", "sent_words"]


@dataclass(frozen=True)
class Run:
    """The choices of a run.

    Parameters
    ----------
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

    def form(self, program: Program) -> int:
        """Return the number of the form, that is, of the schedule that this run uses."""
        return program.form_of(self.mode, self.length, self.root)


@dataclass(frozen=True)
class Locations:
    """Addresses of words in the memories of nodes.

    Parameters
    ----------
    memory : ndarray of int, shape (nodes, words)
        Number of the memory.
    address : ndarray of int, shape (nodes, words)
        Address within the memory; -1 for a word that is not stored.
    """

    memory: IntArray
    address: IntArray

    def of_beats(self, flits: int, beat: int) -> Locations:
        """Return the locations of beats, each that of the first word of the beat."""
        return Locations(
            *(in_beats(values, flits, beat)[..., 0] for values in (self.memory, self.address))
        )


def in_beats(values: IntArray, flits: int, beat: int) -> IntArray:
    """Group words into beats; beats never span two parts of a message.

    Parameters
    ----------
    values : ndarray of int, shape (nodes, words)
    flits : int
        Words per part.
    beat : int
        Words per beat.

    Returns
    -------
    ndarray of int, shape (nodes, beats, beat)
        Words of each beat; -1 past the end of a part.

    Examples
    --------
    >>> in_beats(np.arange(6)[None], flits=3, beat=2).tolist()
    [[[0, 1], [2, -1], [3, 4], [5, -1]]]
    """
    parts = values.reshape(len(values), -1, flits)
    padded = np.pad(parts, [(0, 0), (0, 0), (0, -flits % beat)], constant_values=-1)
    return padded.reshape(len(values), -1, beat)


def sent_words(program: Program, run: Run) -> IntArray:
    """Return the symbolic bits of the words that each node sends, shape (nodes, words)."""
    count = program.part(run.form(program)).layout.send_words(run.length)
    return word(np.arange(program.topology.nodes * count).reshape(-1, count))


def expected_bits(program: Program, run: Run, sums: Sums) -> tuple[IntArray, BoolArray]:
    """Return the symbolic bits of the words that each node must hold at the end.

    Returns
    -------
    words : ndarray of int, shape (nodes, words)
    receives : ndarray of bool, shape (nodes, words)
        True for words that the collective delivers to the node.
    """
    part = program.part(run.form(program))
    root = run.root if program.modes[run.mode].any_root else None
    count = part.layout.send_words(run.length)
    if not part.schedule.collective.reducing:
        numbers = np.arange(program.topology.nodes * count).reshape(-1, count)
        words, receives = expected_words(part.layout, numbers, root=root)
        return word(words), receives
    # The first node of each group sends word numbers and the others zeros, so that each sum under
    # ADD is the number of the summed words.
    groups = part.layout.blocks.groups
    numbers = np.zeros((program.topology.nodes, count), np.uint64)
    numbers[groups.members[:, 0]] = np.arange(count)
    index, receives = expected_words(part.layout, numbers, operator=ADD, root=root)
    members = groups.members.tolist()
    sum_of = np.array(
        [[sums.of([n * count + k for n in nodes]) for k in range(count)] for nodes in members]
    )
    return word(sum_of[groups.group[:, None], index.astype(int)]), receives
