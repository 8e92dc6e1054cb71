"""Contents: the values of all table rows of a loaded fabric, for entries and their allocated rows.

An *entry* is one form of a mode, for one root if runs choose the root. The tables, and the rows
that an entry occupies in each, are described in `torusfabric.adapters.loading.layout`: `starts`,
`modes` and `rows` exist once in a fabric; setting tables (`SettingTable`), `unload_row` and
`facts_row` exist at each node. A *setting* is a row of a setting table. An *owner* is a node, or
one of the tables that exist once.

`Image` cuts the values into words, and `Loading` uses them as initial contents of the memories.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ...program.fields import IDLE, Action, Order
from ...rtl.core.room import SettingTable, assemble_tables
from ...rtl.memories import address_width
from ...topology import IntArray
from .layout import TableLayout
from .places import TableAllocation

if TYPE_CHECKING:
    from amaranth.lib.data import StructLayout

    from .loadable import LoadableForm, StartEntry

__all__ = ["UNUSED_ROW", "Contents", "table_contents"]

#: Value of a row that is never read.
UNUSED_ROW = -1

#: Rows by owner, table and row, with the sizes of `TableLayout.table_sizes`.
Contents: TypeAlias = list[list[list[int]]]


def pack_rows(layout: StructLayout, **values: ArrayLike) -> list[int]:
    """Pack values into the bit fields of rows, and return the rows as integers.

    Parameters
    ----------
    layout : StructLayout
        The bit fields of a row.
    **values : array_like of int
        For each field, one value for each row, or one value for all rows. Values for which the
        layout has no field are ignored.

    Examples
    --------
    >>> from amaranth.lib.data import StructLayout
    >>> pack_rows(StructLayout({"low": 4, "high": 2}), high=1, low=[2, 3], other=5)
    [18, 19]
    """
    rows = np.zeros(1, object)
    for name, field in layout:
        each = np.atleast_1d(np.asarray(values[name]).astype(int))
        assert 0 <= each.min() <= each.max() < 1 << field.width, f"{name} has {field.width} bits"
        rows = rows | each.astype(object) << field.offset
    found: list[int] = rows.tolist()
    return found


def table_contents(
    layout: TableLayout,
    entries: Sequence[tuple[TableAllocation, StartEntry]],
    freed: Sequence[int] = (),
) -> Contents:
    """Return the rows of all loaded tables that some entries need.

    An entry is one form of a mode, for one root if runs choose the root.

    Parameters
    ----------
    layout : TableLayout
        Fields and sizes of the tables.
    entries : sequence of (TableAllocation, StartEntry)
        The entries to write, with the rows that are allocated to them.
    freed : sequence of int
        Numbers of entries that become unused. Their rows of `starts` are marked `further`, so that
        none of them is the default entry of a mode any more.

    Returns
    -------
    list of list of list of int
        ``[owner][table][row]``: the value of each row; `UNUSED_ROW` for rows that these entries do
        not read. Owners are the nodes, and then the tables that exist once in a fabric.
    """
    found = [[[UNUSED_ROW] * rows for rows, _ in tables] for tables in layout.table_sizes]
    of_nodes, single = found[: layout.room.nodes], found[layout.room.nodes :]
    tables = {name: table for name, (table,) in zip(layout.single_tables, single, strict=True)}
    none = dict.fromkeys(layout.start_fields.members, 0)
    for number in freed:
        (tables["starts"][number],) = pack_rows(
            layout.start_fields, **none | {"further": 1, "mode": number}
        )
    for place, entry in entries:
        (tables["starts"][place.number],) = pack_rows(
            layout.start_fields,
            further=place.number != entry.mode,
            mode=entry.mode,
            least=entry.start,
            chosen=entry.root is not None,
            root=entry.root or 0,
        )
        (tables["modes"][place.number],) = _mode_row(layout, place, entry.form)
        tables["rows"][place.row : place.row + entry.form.n_rows] = _sequencer_rows(
            layout, place, entry.form
        )
        if layout.room.streams:
            _add_packets(layout, of_nodes, place, entry)
        else:
            _add_blocks(layout, tables["blocks"], place, entry.form)
    _add_settings(layout, of_nodes, [(place, entry.form) for place, entry in entries])
    return found


def _duration_fields(form: LoadableForm) -> dict[str, IntArray]:
    """Return the values, in each row of a form, of the fields that decide how long the row takes.

    The keys are fields of the table `rows`. `pause` is the number of cycles of a pause, `empty` is
    True if no block moves in the row, and `ends` is True for the last row.
    """
    loop, ends = form.program.loop, np.arange(form.n_rows) == form.n_rows - 1
    return {"pause": loop.pause, "empty": loop.blocks == 0, "ends": ends}


def _mode_row(layout: TableLayout, place: TableAllocation, form: LoadableForm) -> list[int]:
    """Return the row of the table `modes` with the constants of a form, such as its first row.

    The row is one integer, in a list. `layout` has the fields of the table, and `place` the rows of
    other tables that the form occupies.
    """
    return pack_rows(
        layout.mode_fields,
        first=place.row,
        by_flit=form.program.loop.order is Order.FLIT,
        streams=form.has_overlapping_rows,
        late=form.has_late_reads,
        chunks=form.n_chunks,
        reciprocal=-(-(1 << layout.reciprocal_shift) // form.n_chunks),
        drain=form.program.form.timing.drain_cycles,
        least=form.least_row_cycles,
        first_block=place.block,
        one_node=form.has_one_receiver,
        **{name: column[0] for name, column in _duration_fields(form).items()},
    )


def _sequencer_rows(layout: TableLayout, place: TableAllocation, form: LoadableForm) -> list[int]:
    """Return the rows of a form in the table `rows`, through which the sequencer steps.

    A row has the fields for the duration of the next row; the last row has those of the first. Why:
    the sequencer needs the duration of a row one row early. `layout` has the fields of the table,
    and `place` the rows of other tables to which these rows refer.
    """
    named = {
        f"setting_{table.name.lower()}": settings
        for table, settings in zip(SettingTable, place.settings, strict=True)
    }
    return pack_rows(
        layout.row_fields,
        at=layout.room.store_addresses(form) % (1 << layout.row_fields["at"].width),
        **{name: np.roll(column, -1) for name, column in _duration_fields(form).items()},
        **named,
    )


def _control_values(layout: TableLayout, forms: Sequence[LoadableForm]) -> dict[Action, IntArray]:
    """Return the values of all selectors, addresses and enables of nodes, keyed by action.

    Each array has the shape (rows of all forms, nodes, ports). A selected input of a multiplexer
    has its number in this fabric, into which its number in the form is translated. `layout` has the
    capacity of the fabric, and `forms` are the forms in the order of the rows.
    """
    room = layout.room
    every = {
        action: np.concatenate([form.action_values(action) for form in forms])
        for action in (Action.SELECT, Action.OPERAND, Action.MEMORY)
    }
    moves = np.concatenate([form.program.loop.blocks for form in forms])[:, None, None] > 0
    return {
        Action.SELECT: room.numbers_in_room[every[Action.SELECT]],
        Action.OPERAND: room.numbers_in_room[every[Action.OPERAND]],
        Action.MEMORY: every[Action.MEMORY],
        Action.READ: np.concatenate([room.read_addresses(form) for form in forms]),
        Action.LAG: np.concatenate([room.read_lag(form) for form in forms]),
        Action.TAP: np.where(moves, np.concatenate([form.store_delays for form in forms]), IDLE),
    }


def _add_settings(
    layout: TableLayout, found: Contents, placed: Sequence[tuple[TableAllocation, LoadableForm]]
) -> None:
    """Write the settings of forms into the setting tables of every node in `found`.

    A setting is one row of a setting table: the values of some selectors, addresses or enables of a
    node. `placed` has each form with the numbers of its settings. Rows of a form that share a
    setting have equal values, or a value is -1, which means idle. So the maximum over these rows is
    the value of the setting.
    """
    values = _control_values(layout, [form for _, form in placed])
    for table, bits in assemble_tables(layout.room, values, idles=layout.has_zero_identity).items():
        named = np.concatenate([np.asarray(place.settings[table]) for place, _ in placed])
        used, which = np.unique(named, return_inverse=True)
        joined = np.full((len(used), *bits.shape[1:]), IDLE)
        np.maximum.at(joined, which.ravel(), bits)
        weights = 1 << np.arange(bits.shape[2], dtype=object)
        words = (np.maximum(joined, 0).astype(object) * weights).sum(axis=2)
        for mine, column in zip(found, np.broadcast_to(words, joined.shape[:2]).T, strict=True):
            for number, word in zip(used.tolist(), column.tolist(), strict=True):
                mine[table][number] = int(word)


def _add_blocks(
    layout: TableLayout, rows: list[int], place: TableAllocation, form: LoadableForm
) -> None:
    """Write the location (memory, first address) of each received block into the table `blocks`.

    `rows` are the rows of the table. The location of block b of node k is in row ``place.block + b
    * S + k``, where S is the number of nodes, rounded up to a power of two. A node receives one
    part from each origin, and blocks are numbered part by part, within a part by chunk. If only one
    node receives, the location of its block b is in row ``place.block + b``. `layout` has the
    fields of the table. `form` is the form that receives the blocks, and `place` has its first row
    in the table.
    """
    nodes, apart = np.arange(layout.room.nodes), 1 << address_width(layout.room.nodes)
    memory, first = (each.reshape(len(nodes), -1) for each in form.received_locations)
    there = first >= 0
    if form.has_one_receiver:
        nodes, apart = nodes[there.any(axis=1)], 1
    at, block = np.nonzero(there[nodes])
    if not len(at):
        return
    numbers = place.block + block * apart + at
    words = pack_rows(
        layout.block_fields, memory=memory[nodes[at], block], base=first[nodes[at], block]
    )
    for number, word in zip(numbers.tolist(), words, strict=True):
        rows[number] = word


def _add_packets(
    layout: TableLayout, found: Contents, place: TableAllocation, entry: StartEntry
) -> None:
    """Write the rows of an entry into the tables `unload_row` and `facts_row` of every node.

    `unload_row` has the location of each chunk that a node receives, and `facts_row` says, for
    example, how many packets it sends. `found` has the rows of all tables. `place` has the numbers
    of the rows that the entry (one form of a mode, for one root) occupies. `layout` has the fields
    of both tables.
    """
    room, message = layout.room, entry.form.compiled.layout
    blocks = (message if entry.root is None else message.with_root(entry.root)).blocks
    collective, groups = blocks.collective, blocks.groups
    root = (collective.root or 0) if collective.single_origin else 0
    sends = groups.group_of_node >= 0
    if collective.single_origin:
        sends &= groups.position_of_node == root
    origins = np.arange(blocks.messages_per_receiver) if collective.from_each else np.array([root])
    memory, base = (
        each.reshape(room.nodes, len(origins), -1) for each in entry.form.received_locations
    )
    there, chunks = base[:, :, 0] >= 0, base.shape[2]
    # Words that a node sends to itself are addressed one by one, not from the base of a block. A
    # short message lacks some chunks: any word is then read in place of theirs.
    base = np.where(memory < room.ports, np.maximum(base, 0), 0)
    facts: dict[str, ArrayLike] = {
        "sends": sends,
        "named": collective.personal,
        "last_sent": blocks.messages_per_origin - 1,
        "position": np.maximum(groups.position_of_node, 0),
        "receives": there.any(axis=1),
        "own_last": np.maximum(there.sum(axis=1) - 1, 0),
        "last_chunk": chunks - 1,
        "first_row": place.block,
        # Used if rows of `unload_row` have no origins: these then count up from the first.
        "origin": origins[0],
    }
    loads, unloads = (pack_rows(each, **facts) for each in (layout.load_facts, layout.unload_facts))
    for node, (load, unload) in enumerate(
        zip(loads, np.broadcast_to(unloads, room.nodes), strict=True)
    ):
        packet_rows, facts_rows = found[node][len(SettingTable) :]
        facts_rows[place.number] = load | int(unload) << layout.load_facts.size
        here = there[node]
        if here.any():
            rows = pack_rows(
                layout.packet_row_fields,
                memory=memory[node, here].ravel(),
                base=base[node, here].ravel(),
                origin=np.repeat(origins[here], chunks),
            )
            packet_rows[place.block : place.block + len(rows)] = rows
