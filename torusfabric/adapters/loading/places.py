"""Places: allocation of table rows to entries.

An *entry* is one form of a mode, for one root if runs choose the root. A *room* is the capacity of
a loaded fabric. An *owner* is a node, or one of the tables that exist once in a fabric. A full
image replaces all modes, and allocates rows to all entries. A partial image allocates rows to new
entries, and the other entries keep their rows.

An entry needs consecutive rows in the table `rows` of the sequencer, and in the tables of received
blocks. Each row of the sequencer also refers to one row of every setting table, a setting. Equal
settings are stored once. Two settings also share a row if they differ only in values that do not
matter to one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...errors import InputError
from ...rtl.core.room import SettingTable
from ...topology import IntArray

if TYPE_CHECKING:
    from .loadable import LoadableForm, StartEntry
    from .room import Room

__all__ = ["TableAllocation", "join_settings", "allocate_entries", "stack_ranges"]


class TableAllocation(NamedTuple):
    """The rows of an entry (one form of a mode, for one root) in all loaded tables.

    Parameters
    ----------
    number : int
        Number of the entry: its row in the tables `starts`, `modes` and `facts_row`. The default
        entry of a mode has the number of the mode.
    row : int
        First row in the table of the sequencer.
    block : int
        First row in the tables of received blocks.
    settings : tuple of (sequence of int)
        For each setting table of a node, an array with one number for each row of the form: the row
        of the setting table in which the values for this row of the form are stored.
    """

    number: int
    row: int
    block: int
    settings: tuple[Sequence[int], ...]

    def is_valid_for(self, room: Room, form: LoadableForm) -> bool:
        """Return True if a form can occupy these rows in the tables of a fabric.

        The fabric must have the rows, and they must be as many as the form needs. Why this check:
        the numbers of the rows may come from a file. `room` has the sizes of the tables.
        """
        blocks = form.block_rows(streams=room.streams).max()
        return (
            0 <= self.number < room.sizes.entries
            and 0 <= self.row <= room.sizes.rows - form.n_rows
            and 0 <= self.block <= room.sizes.blocks - blocks
            and [*map(len, self.settings)] == [form.n_rows] * len(SettingTable)
            and all(0 <= min(each) <= max(each) < most
                    for each, most in zip(self.settings, room.sizes.settings, strict=True))
        )  # fmt: skip


def join_settings(rows: IntArray) -> tuple[IntArray, int]:
    """Return the number of the setting that each row uses, and the count of settings.

    A *setting* is an entry of a table of a node: control values that several rows of a program may
    share. Two rows may share a setting if no value differs that matters in each of the two. Row by
    row, the first setting with which the row agrees is taken; if there is none, a new one is made.

    Parameters
    ----------
    rows : ndarray of int, shape (rows, ...)
        The values of each row; a negative value does not matter.

    Examples
    --------
    Rows 0 and 2 share setting 0, which becomes [4, 9].

    >>> which, count = join_settings(np.array([[4, -1], [3, 8], [-1, 9]]))
    >>> which.tolist(), count
    ([0, 1, 0], 2)
    """
    which, known = np.zeros(len(rows), int), np.zeros((0, *rows.shape[1:]), int)
    others = tuple(range(1, rows.ndim))
    for number, row in enumerate(rows):
        fits = ((known == row) | (known < 0) | (row < 0)).all(axis=others)
        if not fits.any():
            known, fits = np.concatenate([known, row[None]]), np.append(fits, True)
        which[number] = fits.argmax()
        known[which[number]] = np.maximum(known[which[number]], row)
    return which, len(known)


def stack_ranges(
    uses: Sequence[IntArray], taken: Sequence[tuple[int, IntArray]] = ()
) -> tuple[list[int], int]:
    """Allocate ranges of rows in the tables of several owners, each range at the first free rows.

    The owners, for example nodes, have one table each, all of the same kind. A *use* is the need of
    one form of a mode: a range of rows in the table of each owner. The ranges of a use begin at the
    same row in all tables, and may differ in length.

    Parameters
    ----------
    uses : sequence of ndarray of int, shape (owners,)
        The number of rows that each use needs in the table of each owner.
    taken : sequence of (int, ndarray of int)
        First row, and number of rows for each owner, of the uses that are already allocated.

    Returns
    -------
    starts : list of int
        First row of each use.
    rows : int
        Number of rows that a table needs for all uses, including `taken`.

    Examples
    --------
    Two owners. Owner 0 has rows 0 and 1 in use, and owner 1 has rows 2 to 6. Three rows of owner 0
    alone begin at row 2, since they do not collide with rows of owner 1. A row of both owners
    begins at row 7.

    >>> taken = [(0, np.array([2, 0])), (2, np.array([0, 5]))]
    >>> stack_ranges([np.array([3, 0])], taken), stack_ranges([np.array([1, 1])], taken)
    (([2], 7), ([7], 8))
    """
    found, starts = [*taken], []
    for rows in uses:
        at, most = 0, int(rows.max())
        for first, used in sorted(found, key=itemgetter(0)):
            if not ((used > 0) & (rows > 0)).any():
                continue
            if first - at >= most:
                break
            at = max(at, first + int(used.max()))
        starts.append(at)
        found.append((at, rows))
    return starts, max(first + int(used.max()) for first, used in found)


def allocate_entries(
    room: Room,
    entries: Sequence[StartEntry],
    staying: Sequence[tuple[TableAllocation, LoadableForm]] = (),
) -> list[TableAllocation]:
    """Return the rows of loaded tables that each entry gets, beside entries that keep theirs.

    An entry is one form of a mode, for one root if runs choose the root. The first entry of a mode
    is its default entry, and gets the number of the mode. All further entries get free numbers,
    from the highest down. Why: of the further entries that match a start, the hardware takes the
    one with the lowest number. Forms come in the order of their lengths, so this is the form for
    the longest messages.

    Parameters
    ----------
    room : Room
        Capacity of the fabric.
    entries : sequence of StartEntry
        The entries that need rows.
    staying : sequence of (TableAllocation, LoadableForm)
        Entries that keep their rows.

    Raises
    ------
    InputError
        If a table is too small.
    """
    others, forms = [place for place, _ in staying], [entry.form for entry in entries]
    where = "beside other modes of this fabric" if staying else "for this fabric"

    def check_limit(what: str, most: int, needed: int) -> None:
        if needed > most:
            raise InputError(
                f"{what} must be at most {most} {where}, not {needed}; build it with more, or "
                "load fewer collectives"
            )

    def stack_rows(
        what: str, most: int, taken: Iterable[int], use: Callable[[LoadableForm], IntArray]
    ) -> list[int]:
        """Return the first row that each new form gets in the tables of one kind.

        Raises `InputError` if the tables are too small. `what` is the name of these tables, `most`
        their number of rows, and `taken` the first rows of the entries that stay. `use` is a
        function from a form to the number of rows that it needs in each table.
        """
        there = zip(taken, (use(form) for _, form in staying), strict=True)
        found, needed = stack_ranges([use(form) for form in forms], [*there])
        check_limit(what, most, needed)
        return found

    rows = stack_rows(
        "Rows", room.sizes.rows, (at.row for at in others), lambda form: np.array([form.n_rows])
    )
    blocks = stack_rows(
        "Blocks of nodes",
        room.sizes.blocks,
        (at.block for at in others),
        lambda form: form.block_rows(streams=room.streams),
    )
    check_limit("Entries of modes", room.sizes.entries - len(others), len(forms))
    numbers = _assign_numbers(room, entries, {place.number for place in others})
    known = room.settings_of(forms)
    named: list[list[list[int]]] = [[] for _ in forms]
    for table, most in zip(SettingTable, room.sizes.settings, strict=True):
        which, count = known[table]
        free = sorted({*range(most)}.difference(*(place.settings[table] for place in others)))
        check_limit(f"Settings of table {table.name.lower()}", len(free), count)
        ends = accumulate(form.n_rows for form in forms)
        for mine, form, end in zip(named, forms, ends, strict=True):
            mine.append([free[k] for k in which[end - form.n_rows : end].tolist()])
    return [*map(TableAllocation, numbers, rows, blocks, map(tuple, named))]


def _assign_numbers(room: Room, entries: Sequence[StartEntry], taken: set[int]) -> list[int]:
    """Return a free number for each entry (one form of a mode, for one root).

    The first entry of a mode gets the number of the mode; the others get the highest free numbers.
    Raises `InputError` if the number of a mode is taken. `taken` has the numbers of entries that
    stay, and `room` the largest number of entries.
    """
    first = {entry.mode: k for k, entry in reversed([*enumerate(entries)])}
    if not taken.isdisjoint(first):
        raise InputError(
            f"Mode numbers {', '.join(map(str, sorted(taken.intersection(first))))} are taken; "
            "give other numbers"
        )
    free = iter(sorted({*range(room.sizes.entries)} - taken - first.keys(), reverse=True))
    return [entry.mode if first[entry.mode] == k else next(free)
            for k, entry in enumerate(entries)]  # fmt: skip
