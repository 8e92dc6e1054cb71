"""Where modes lie in tables that are loaded, and where others may."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from ...errors import InputError
from ...program.settings import Table, settings

if TYPE_CHECKING:
    from ...program.frame import Frame
    from ...program.loadable import Loadable

__all__ = ["Place", "places_beside"]


class Place(NamedTuple):
    """Where a mode lies in the tables of the sequencer, and of nodes.

    Parameters
    ----------
    row, block : int
        The first of its rows, and of the entries by which its blocks are found.
    settings : tuple of (sequence of int)
        By `Table`, the setting that each of its rows names.
    """

    row: int
    block: int
    settings: tuple[Sequence[int], ...]

    def fits(self, frame: Frame, form: Loadable) -> bool:
        """Whether a form may lie there."""
        return (
            0 <= self.row <= frame.rows - form.rows
            and 0 <= self.block <= frame.blocks - form.entries
            and [*map(len, self.settings)] == [form.rows] * len(Table)
            and all(0 <= min(each) <= max(each) < most
                    for each, most in zip(self.settings, frame.settings, strict=True))
        )  # fmt: skip


def places_beside(
    frame: Frame, forms: Sequence[Loadable], staying: Sequence[tuple[Place, Loadable]] = ()
) -> list[Place]:
    """Where forms may lie, while others stay where they are.

    Raises
    ------
    InputError
        If there is no room.
    """
    numbers = []
    for table, count in zip(Table, frame.settings, strict=True):
        used = {number for place, _ in staying for number in place.settings[table]}
        numbers.append([k for k in range(count) if k not in used])
    rows = [(place.row, form.rows) for place, form in staying]
    blocks = [(place.block, form.entries) for place, form in staying]
    found = []
    for form, named in zip(forms, _named(forms, numbers), strict=True):
        row = _free("Rows", rows, form.rows, frame.rows)
        block = _free("Blocks", blocks, form.entries, frame.blocks)
        rows.append((row, form.rows))
        blocks.append((block, form.entries))
        found.append(Place(row, block, named))
    return found


def _free(what: str, taken: list[tuple[int, int]], count: int, most: int) -> int:
    """The first of so many free ones, side by side."""
    at = 0
    for first, used in sorted(taken):
        if first - at >= count:
            break
        at = max(at, first + used)
    if at + count > most:
        raise InputError(f"{what} must be free side by side for a mode of {count}, not apart")
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
