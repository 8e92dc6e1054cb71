"""Runs, as a node is told of them: what loaders and unloaders are proved with.

Runs are numbered from 0, modulo four, by the pulses `run_begins` and `run_ends`. Of the last two
runs there are facts: the mode, the root, the length of packets, whether anything came of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from .model import Model, within

__all__ = ["add_runs", "keep_facts"]


def add_runs(model: Model, *, begins_if: str, under_way: str = "under_way") -> None:
    """Add the numbers `begun` and `ended` of runs, and assume that runs follow one another.

    Parameters
    ----------
    model : Model
    begins_if : str
        What is true when a run begins.
    under_way : str
        The name for whether a run is under way.
    """
    model.register("begun", "begun + run_begins", 2)
    model.register("ended", "ended + run_ends", 2)
    model.past("past_begins", "run_begins")
    model.past("past_odd", "begun[0]")
    model.wire(under_way, "begun != ended")
    model.assume(f"!run_begins || !{under_way} || run_ends")
    model.assume(f"!run_ends || {under_way}")
    model.assume(f"!run_begins || {begins_if}")


def keep_facts(model: Model, names: Sequence[str], bits: Sequence[int]) -> None:
    """Assume that facts of even and odd runs change only as the next run of their kind begins."""
    for name, width in zip(names, bits, strict=True):
        before = model.past(f"past_{name}", name, 2 * width)
        for odd in (0, 1):
            now, then = within(name, str(odd), width), within(before, str(odd), width)
            model.assume(f"!steady || (past_begins && past_odd == {odd}) || {now} == {then}")
