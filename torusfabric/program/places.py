"""Where modes lie in tables that are loaded, and where others may."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InputError
from .loadable import free_row
from .settings import Table, settings

if TYPE_CHECKING:
    from ..topology import IntArray
    from .frame import Frame
    from .loadable import Loadable
    from .loadable_modes import Entry

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
    forms = [entry.form for entry in entries]
    at = _numbers(frame, entries, {place.number for place, _ in staying})
    numbers = []
    for table, count in zip(Table, frame.settings, strict=True):
        used = {number for place, _ in staying for number in place.settings[table]}
        numbers.append([k for k in range(count) if k not in used])
    rows = [(place.row, np.array([form.rows])) for place, form in staying]
    blocks = [(place.block, frame.block_rows(form)) for place, form in staying]
    found = []
    for number, form, named in zip(at, forms, _named(forms, numbers), strict=True):
        row = _free("Rows", rows, np.array([form.rows]), frame.rows)
        block = _free("Blocks", blocks, frame.block_rows(form), frame.blocks)
        found.append(Place(number, row, block, named))
    return found


def _numbers(frame: Frame, entries: Sequence[Entry], taken: set[int]) -> list[int]:
    """The numbers of entries, while others are taken."""
    first = {entry.mode: k for k, entry in reversed([*enumerate(entries)])}
    free = [k for k in reversed(range(frame.entries)) if k not in taken | first.keys()]
    found = []
    for k, entry in enumerate(entries):
        if first[entry.mode] == k:
            found.append(entry.mode)
        elif not free:
            raise InputError(f"Entries must be free for all forms of mode {entry.mode}, not taken")
        else:
            found.append(free.pop(0))
    if not taken.isdisjoint(first) or max(found) >= frame.entries:
        raise InputError(f"Modes must be of numbers that are free, not {max(first)}")
    return found


def _free(what: str, taken: list[tuple[int, IntArray]], rows: IntArray, most: int) -> int:
    """Take the first of so many free rows, side by side."""
    at, count = free_row(taken, rows), int(rows.max())
    if at + count > most:
        raise InputError(f"{what} must be free side by side for a mode of {count}, not apart")
    taken.append((at, rows))
    return at


def _named(forms: Sequence[Loadable], free: Sequence[Sequence[int]]) -> list[tuple[list[int], ...]]:
    """The settings that the rows of each form name, of those of each table that are free."""
    named: list[list[list[int]]] = [[] for _ in forms]
    for table, numbers, (of, known) in zip(Table, free, settings(forms), strict=True):
        if len(known) > len(numbers):
            raise InputError(
                f"Settings of table {table.name.lower()} must be at most {len(numbers)} that are "
                f"free, not {len(known)}"
            )
        ends = accumulate(form.rows for form in forms)
        for mine, form, end in zip(named, forms, ends, strict=True):
            mine.append([numbers[k] for k in of[end - form.rows : end].tolist()])
    return [tuple(mine) for mine in named]
