"""Runs, as a node is told of them: what loaders and unloaders are proved with.

Runs are numbered from 0, modulo twice the sections of memories, by the pulses `run_begins` and
`run_ends`. Of the last run in each section there are facts: the mode, the root, the length of
packets, whether anything came of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..model import Model, within

if TYPE_CHECKING:
    from ...rtl.streams.sections import Sections

__all__ = ["add_runs", "keep_facts", "section_of"]


def add_runs(model: Model, sections: Sections, *, begins_if: str) -> None:
    """Add the numbers `begun` and `ended` of runs, and assume that runs follow one another.

    Parameters
    ----------
    model : Model
    sections : Sections
    begins_if : str
        What is true when a run begins.
    """
    bits = sections.number_bits
    model.drive("clear", "rst")
    if not model.has("run_ends"):
        # Runs end even if the module is not told of it.
        model.free("run_ends")
    model.register("begun", "begun + run_begins", bits)
    model.register("ended", "ended + run_ends", bits)
    model.past("past_begins", "run_begins")
    model.past("past_begun", "begun", bits)
    model.wire("under_way", "begun != ended")
    model.assume("!run_begins || !under_way || run_ends")
    # No run ends in the cycle after its begin, in which its facts come.
    model.assume("!run_ends || (under_way && !(steady && past_begun == ended))")
    model.assume(f"!run_begins || {begins_if}")


def keep_facts(model: Model, sections: Sections, names: Sequence[str], bits: Sequence[int]) -> None:
    """Assume that facts of a section change only as the next run in it begins."""
    begun = section_of("past_begun", sections)
    for name, width in zip(names, bits, strict=True):
        before = model.past(f"past_{name}", name, sections.count * width)
        for section in range(sections.count):
            now, then = within(name, str(section), width), within(before, str(section), width)
            model.assume(f"!steady || (past_begins && {begun} == {section}) || {now} == {then}")


def section_of(number: str, sections: Sections) -> str:
    """The section of a run or message, in Verilog.

    Examples
    --------
    >>> from torusfabric.rtl.streams.sections import Sections
    >>> section_of("begun", Sections(3))
    'begun[1:0]'
    """
    return f"{number}[{sections.bits - 1}:0]"
