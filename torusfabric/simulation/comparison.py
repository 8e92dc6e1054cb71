"""Comparison of the words that nodes hold after a run with the words that the collective delivers.

Simulations compare each run with `compare_run` and add the results up with `total_words`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ..rtl import Fabric
    from .engines.base import EngineRun, Job

__all__ = ["Comparison", "WrongWord", "compare_run", "total_words"]


@dataclass(frozen=True)
class WrongWord:
    """A received word that differs from the expected word.

    Parameters
    ----------
    node : int
        Node that holds the word.
    origin : int or None
        Node that sent the word; None in a reduction, where the word combines words of all nodes.
    flit : int
        Position of the word within the message.
    expected, got : int
        The expected word and the word found.
    """

    node: int
    origin: int | None
    flit: int
    expected: int
    got: int

    def __str__(self) -> str:
        if self.origin is None:
            return (
                f"node {self.node} holds {self.got:#x} as sum {self.flit}, not {self.expected:#x}"
            )
        return (
            f"node {self.node} holds {self.got:#x} for flit {self.flit} of node {self.origin}, "
            f"not {self.expected:#x}"
        )


class Comparison(NamedTuple):
    """Result of the comparison of one run.

    Parameters
    ----------
    words_checked : int
        Words that the collective delivers, in all nodes together.
    words_wrong : int
        Checked words that differ from the expected ones.
    first_wrong : WrongWord or str, optional
        The first wrong word, or a sentence about it; None if all words are right.
    """

    words_checked: int
    words_wrong: int
    first_wrong: WrongWord | str | None = None


def total_words(compared: Sequence[Comparison]) -> dict[str, Any]:
    """Add up the results of several runs.

    Parameters
    ----------
    compared : sequence of Comparison
        Result of `compare_run` for each run.

    Returns
    -------
    dict
        Three entries of a simulation report: ``words_checked`` and ``words_wrong`` for all runs
        together, and ``first_wrong`` of the first run that has a wrong word.
    """
    return {
        "words_checked": sum(found.words_checked for found in compared),
        "words_wrong": sum(found.words_wrong for found in compared),
        "first_wrong": next((found.first_wrong for found in compared if found.first_wrong), None),
    }


def compare_run(fabric: Fabric, job: Job, messages: np.ndarray, run: EngineRun) -> Comparison:
    """Compare every word of a run with the word that the collective delivers.

    Parameters
    ----------
    job : Job
        Mode, length, root and operator of the run. A value is None if the fabric was built for one
        value only.
    messages : ndarray, shape (nodes, send words)
        Words that each node sent: its messages, one after another.
    run : EngineRun
        Result of the engine, with the words that the nodes received.
    """
    got = run.words
    collective = fabric.program.modes[job.mode or 0].schedule.collective
    if not collective.reducing and isinstance(got, np.ndarray):
        # Words pass through unchanged, so they can be compared in the narrow type of the engine.
        messages = messages.astype(got.dtype, copy=False)
    words, receives = fabric.delivered(messages, **job.inputs)
    got = np.asarray(got, words.dtype)
    differing = np.argwhere((got != words) & receives)
    first = None
    if len(differing):
        node, index = differing[0].tolist()
        origin, flit = None, index
        if not collective.reducing:
            origin, flit = divmod(index, fabric.program.length_of(job.length))
            if not collective.from_each:
                origin = collective.root if job.root is None else job.root
        first = WrongWord(node, origin, flit, int(words[node, index]), int(got[node, index]))
    return Comparison(int(receives.sum()), len(differing), first)
