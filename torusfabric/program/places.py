"""Where modes lie in tables that are loaded, and where others may."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InputError
from .loadable import stacked
from .settings import Table, settings

if TYPE_CHECKING:
    from ..topology import IntArray
    from .frame import Frame
    from .loadable import Entry, Loadable

__all__ = ["Place", "places_beside"]


class Place(NamedTuple):
    """Where an entry lies in the tables of the sequencer, and of nodes.

    Parameters
    ----------
    number : int
        Its own; the first of a mode has that of the mode.
    row, block : int
        The first of its rows, and of those by which its blocks are found.
    settings : tuple of (sequence of int)
        By `Table`, the setting that each of its rows names.
    """

    number: int
    row: int
    block: int
    settings: tuple[Sequence[int], ...]

    def fits(self, frame: Frame, form: Loadable) -> bool:
        """Whether a form may lie there."""
        return (
            0 <= self.number < frame.entries
            and 0 <= self.row <= frame.rows - form.rows
            and 0 <= self.block <= frame.blocks - frame.block_rows(form).max()
            and [*map(len, self.settings)] == [form.rows] * len(Table)
            and all(0 <= min(each) <= max(each) < most
                    for each, most in zip(self.settings, frame.settings, strict=True))
        )  # fmt: skip


def places_beside(
    frame: Frame, entries: Sequence[Entry], staying: Sequence[tuple[Place, Loadable]] = ()
) -> list[Place]:
    """Where entries may lie, while others stay where they are.

    What a mode has besides its first entry lies behind all modes: the last number first, so that of
    those that serve for a length the one with the least number is for the longest messages.

    Raises
    ------
    InputError
        If there is no room.
    """
    others, forms = [place for place, _ in staying], [entry.form for entry in entries]
    where = "beside other modes of this fabric" if staying else "for this fabric"

    def refuse(what: str, most: int, needed: int) -> None:
        if needed > most:
            raise InputError(f"{what} must be at most {most} {where}, not {needed}")

    def stack(
        what: str, most: int, taken: Iterable[int], of: Callable[[Loadable], IntArray]
    ) -> list[int]:
        """Take the first rows that are free, side by side."""
        there = zip(taken, (of(form) for _, form in staying), strict=True)
        found, needed = stacked([of(form) for form in forms], [*there])
        refuse(what, most, needed)
        return found

    rows = stack("Rows", frame.rows, (at.row for at in others), lambda form: np.array([form.rows]))
    blocks = stack("Blocks of nodes", frame.blocks, (at.block for at in others), frame.block_rows)
    refuse("Entries of modes", frame.entries - len(others), len(forms))
    numbers = _numbers(frame, entries, {place.number for place in others})
    named: list[list[list[int]]] = [[] for _ in forms]
    for table, count, (of, known) in zip(Table, frame.settings, settings(forms), strict=True):
        free = sorted({*range(count)}.difference(*(place.settings[table] for place in others)))
        refuse(f"Settings of table {table.name.lower()}", len(free), len(known))
        ends = accumulate(form.rows for form in forms)
        for mine, form, end in zip(named, forms, ends, strict=True):
            mine.append([free[k] for k in of[end - form.rows : end].tolist()])
    return [*map(Place, numbers, rows, blocks, map(tuple, named))]


def _numbers(frame: Frame, entries: Sequence[Entry], taken: set[int]) -> list[int]:
    """The numbers of entries, while others are taken."""
    first = {entry.mode: k for k, entry in reversed([*enumerate(entries)])}
    if not taken.isdisjoint(first):
        raise InputError(f"Modes must be of numbers that are free, not {max(first)}")
    free = iter(sorted({*range(frame.entries)} - taken - first.keys(), reverse=True))
    return [entry.mode if first[entry.mode] == k else next(free)
            for k, entry in enumerate(entries)]  # fmt: skip
