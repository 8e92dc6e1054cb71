"""Contents: the rows of all tables of a loaded fabric, for entries at given places.

`Image` cuts these rows into words, and `Loading` uses them as initial contents of the memories.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ...program.fields import IDLE, Action, Order
from ...rtl.core.room import SettingTable, assemble
from ...rtl.memories import address_width
from ...topology import IntArray
from .layout import TableLayout
from .places import Place

if TYPE_CHECKING:
    from amaranth.lib.data import StructLayout

    from .loadable import Entry, Loadable

__all__ = ["UNASKED", "Contents", "contents_of"]

#: Value of a row that is never read.
UNASKED = -1

#: Rows by owner, table and row, with the sizes of `TableLayout.tables`.
Contents: TypeAlias = list[list[list[int]]]


def pack(layout: StructLayout, **values: ArrayLike) -> list[int]:
    """Return rows in which each value stands in the field of its name.

    Parameters
    ----------
    layout : StructLayout
        The fields; each needs a value.
    **values : array_like of int
        One value for each row, or one for all rows. Names without a field are ignored.

    Examples
    --------
    >>> from amaranth.lib.data import StructLayout
    >>> pack(StructLayout({"low": 4, "high": 2}), high=1, low=[2, 3], other=5)
    [18, 19]
    """
    rows = np.zeros(1, object)
    for name, field in layout:
        each = np.atleast_1d(np.asarray(values[name]).astype(int))
        assert 0 <= each.min() <= each.max() < 1 << field.width, f"{name} has {field.width} bits"
        rows = rows | each.astype(object) << field.offset
    found: list[int] = rows.tolist()
    return found


def contents_of(
    layout: TableLayout, entries: Sequence[tuple[Place, Entry]], freed: Sequence[int] = ()
) -> Contents:
    """Return the rows of all tables.

    Parameters
    ----------
    layout : TableLayout
        Fields and sizes of the tables.
    entries : sequence of (Place, Entry)
        The entries to write, with their places.
    freed : sequence of int
        Numbers of entries that become unused. Their rows of `starts` are marked `further`, so that
        a start of the mode with that number is refused.

    Returns
    -------
    list of list of list of int
        Rows by owner and table; `UNASKED` for rows that are never read.
    """
    found = [[[UNASKED] * rows for rows, _ in tables] for tables in layout.tables]
    of_nodes, single = found[: layout.room.nodes], found[layout.room.nodes :]
    tables = {name: table for name, (table,) in zip(layout.single_tables, single, strict=True)}
    none = dict.fromkeys(layout.start.members, 0)
    for number in freed:
        (tables["starts"][number],) = pack(layout.start, **none | {"further": 1, "mode": number})
    for place, entry in entries:
        (tables["starts"][place.number],) = pack(
            layout.start, further=place.number != entry.mode, mode=entry.mode, least=entry.start,
            chosen=entry.root is not None, root=entry.root or 0,
        )  # fmt: skip
        (tables["modes"][place.number],) = _mode(layout, place, entry.form)
        tables["rows"][place.row : place.row + entry.form.rows] = _rows(layout, place, entry.form)
        if layout.room.streams:
            _add_packets(layout, of_nodes, place, entry)
        else:
            _add_blocks(layout, tables["blocks"], place, entry.form)
    _add_settings(layout, of_nodes, [(place, entry.form) for place, entry in entries])
    return found


def _lasting(form: Loadable) -> dict[str, IntArray]:
    """Return the fields `lasting` of each row of a form, which decide the cycles of the row."""
    loop, ends = form.program.loop, np.arange(form.rows) == form.rows - 1
    return {"pause": loop.pause, "empty": loop.blocks == 0, "ends": ends}


def _mode(layout: TableLayout, place: Place, form: Loadable) -> list[int]:
    """Return the row of the table `modes` for a form."""
    return pack(
        layout.mode,
        first=place.row,
        by_flit=form.program.loop.order is Order.FLIT,
        streams=form.streams,
        late=form.reads_late,
        chunks=form.chunks,
        reciprocal=-(-(1 << layout.reciprocal_shift) // form.chunks),
        drain=form.program.form.timing.drain,
        least=form.least,
        first_block=place.block,
        one_node=form.one_node,
        **{name: column[0] for name, column in _lasting(form).items()},
    )


def _rows(layout: TableLayout, place: Place, form: Loadable) -> list[int]:
    """Return the rows of the table `rows` for a form.

    Each row has the cycles of its successor, and the last row those of the first: the sequencer
    needs them one row early.
    """
    named = {
        f"setting_{table.name.lower()}": settings
        for table, settings in zip(SettingTable, place.settings, strict=True)
    }
    return pack(
        layout.row,
        at=layout.room.store_addresses(form) % (1 << layout.row["at"].width),
        **{name: np.roll(column, -1) for name, column in _lasting(form).items()},
        **named,
    )


def _row_values(layout: TableLayout, forms: Sequence[Loadable]) -> dict[Action, IntArray]:
    """Return the values of all control points, with the rows of all forms concatenated."""
    room = layout.room

    def join(values: Sequence[IntArray]) -> IntArray:
        """Return the rows of all forms, concatenated."""
        return np.concatenate(values)

    every = {
        action: join([form.values(action) for form in forms])
        for action in (Action.SELECT, Action.OPERAND, Action.MEMORY)
    }
    moves = join([form.program.loop.blocks for form in forms])[:, None, None] > 0
    return {
        Action.SELECT: room.numbers[every[Action.SELECT]],
        Action.OPERAND: room.numbers[every[Action.OPERAND]],
        Action.MEMORY: every[Action.MEMORY],
        Action.READ: join([room.read_addresses(form) for form in forms]),
        Action.LAG: join([room.read_lag(form) for form in forms]),
        Action.TAP: np.where(moves, join([form.stores for form in forms]), IDLE),
    }


def _add_settings(
    layout: TableLayout, found: Contents, placed: Sequence[tuple[Place, Loadable]]
) -> None:
    """Write the settings of forms into the setting tables of every node.

    Rows that share a setting agree in every value except idle ones, so their values are joined
    by their maximum (idle is -1).
    """
    values = _row_values(layout, [form for _, form in placed])
    for table, bits in assemble(layout.room, values, idles=layout.idles).items():
        named = np.concatenate([np.asarray(place.settings[table]) for place, _ in placed])
        used, which = np.unique(named, return_inverse=True)
        joined = np.full((len(used), *bits.shape[1:]), IDLE)
        np.maximum.at(joined, which.ravel(), bits)
        weights = 1 << np.arange(bits.shape[2], dtype=object)
        words = (np.maximum(joined, 0).astype(object) * weights).sum(axis=2)
        for mine, column in zip(found, np.broadcast_to(words, joined.shape[:2]).T, strict=True):
            for number, word in zip(used.tolist(), column.tolist(), strict=True):
                mine[table][number] = int(word)


def _add_blocks(layout: TableLayout, rows: list[int], place: Place, form: Loadable) -> None:
    """Write the location of each received block into the table `blocks`.

    Block b (part, then chunk) of node k lies in row `place.block + b * S + k`, where S is the
    number of nodes rounded up to a power of two. If only one node receives, S is 1 and k is 0.
    """
    nodes, apart = np.arange(layout.room.nodes), 1 << address_width(layout.room.nodes)
    memory, first = (each.reshape(len(nodes), -1) for each in form.received)
    there = first >= 0
    if form.one_node:
        nodes, apart = nodes[there.any(axis=1)], 1
    at, block = np.nonzero(there[nodes])
    if not len(at):
        return
    numbers = place.block + block * apart + at
    words = pack(layout.block, memory=memory[nodes[at], block], base=first[nodes[at], block])
    for number, word in zip(numbers.tolist(), words, strict=True):
        rows[number] = word


def _add_packets(layout: TableLayout, found: Contents, place: Place, entry: Entry) -> None:
    """Write the rows of an entry in the tables `unload_row` and `facts_row` of all nodes."""
    room, message = layout.room, entry.form.compiled.layout
    blocks = (message if entry.root is None else message.with_root(entry.root)).blocks
    collective, groups = blocks.collective, blocks.groups
    root = (collective.root or 0) if collective.single_origin else 0
    sends = groups.group >= 0
    if collective.single_origin:
        sends &= groups.position == root
    origins = np.arange(blocks.parts) if collective.from_each else np.array([root])
    memory, base = (each.reshape(room.nodes, len(origins), -1) for each in entry.form.received)
    there, chunks = base[:, :, 0] >= 0, base.shape[2]
    # Words that a node sends to itself are addressed one by one, not from the base of a block.
    base = np.where(memory < room.ports, base, 0)
    facts: dict[str, ArrayLike] = {
        "sends": sends,
        "named": collective.personal,
        "last_sent": blocks.goals - 1,
        "position": np.maximum(groups.position, 0),
        "receives": there.any(axis=1),
        "own_last": np.maximum(there.sum(axis=1) - 1, 0),
        "last_chunk": chunks - 1,
        "first_row": place.block,
        # Used if rows of `unload_row` have no origins: these then count up from the first.
        "origin": origins[0],
    }
    loads, unloads = (pack(each, **facts) for each in (layout.load_facts, layout.unload_facts))
    for node, (load, unload) in enumerate(
        zip(loads, np.broadcast_to(unloads, room.nodes), strict=True)
    ):
        packet_rows, facts_rows = found[node][len(SettingTable) :]
        facts_rows[place.number] = load | int(unload) << layout.load_facts.size
        here = there[node]
        if here.any():
            rows = pack(
                layout.packet_row,
                memory=memory[node, here].ravel(),
                base=base[node, here].ravel(),
                origin=np.repeat(origins[here], chunks),
            )
            packet_rows[place.block : place.block + len(rows)] = rows
