"""The words of runs compared with what their collectives deliver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ..rtl import Fabric
    from .engines.base import EngineRun, Job

__all__ = ["Comparison", "WrongWord", "compare_run", "totals"]


@dataclass(frozen=True)
class WrongWord:
    """A word that is not what it should be; the origin is None for what comes from all nodes."""

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
    """The comparison of the words of a run; the first that is wrong, or a text about it."""

    words_checked: int
    words_wrong: int
    first_wrong: WrongWord | str | None = None


def totals(compared: Sequence[Comparison]) -> dict[str, Any]:
    """Return the entries of reports about the words of all runs."""
    return {
        "words_checked": sum(found.words_checked for found in compared),
        "words_wrong": sum(found.words_wrong for found in compared),
        "first_wrong": next((found.first_wrong for found in compared if found.first_wrong), None),
    }


def compare_run(fabric: Fabric, job: Job, messages: np.ndarray, run: EngineRun) -> Comparison:
    """Compare every word of a run: how many, how many are wrong, and the first of these."""
    got = run.words
    collective = fabric.program.modes[job.mode or 0].schedule.collective
    if not collective.reducing and isinstance(got, np.ndarray):
        # Words that are not combined are what they are in as few bits, too.
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
