"""The contents that programs have in loaded tables, by where their modes lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ...program.fields import Order
from ...program.frame import Place
from ...program.settings import Table, columns
from ...topology import IntArray
from ..memories import address_width
from .layout import TableLayout

if TYPE_CHECKING:
    from amaranth.lib.data import StructLayout

    from ...program.loadable import Entry, Loadable

__all__ = ["UNASKED", "Contents", "contents_of"]

#: A row of which nobody asks.
UNASKED = -1

#: The rows of what `TableLayout.tables` lists.
Contents: TypeAlias = list[list[list[int]]]


def packed(layout: StructLayout, **values: ArrayLike) -> list[int]:
    """Rows of values side by side, of which those count that have a field.

    Examples
    --------
    >>> from amaranth.lib.data import StructLayout
    >>> packed(StructLayout({"low": 4, "high": 2}), high=1, low=[2, 3], other=5)
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
    """What entries have in the tables, by where they lie; nothing finds those that are freed."""
    found = [[[UNASKED] * rows for rows, _ in tables] for tables in layout.tables]
    of_nodes, single = found[: layout.frame.nodes], found[layout.frame.nodes :]
    tables = {name: table for name, (table,) in zip(layout.single_tables, single, strict=True)}
    none = dict.fromkeys(layout.start.members, 0)
    for number in freed:
        (tables["starts"][number],) = packed(layout.start, **none | {"further": 1, "mode": number})
    for place, entry in entries:
        (tables["starts"][place.number],) = packed(
            layout.start, further=place.number != entry.mode, mode=entry.mode, least=entry.start,
            chosen=entry.root is not None, root=entry.root or 0,
        )  # fmt: skip
        (tables["modes"][place.number],) = _mode(layout, place, entry.form)
        tables["rows"][place.row : place.row + entry.form.rows] = _rows(layout, place, entry.form)
        if layout.frame.streams:
            _add_stream(layout, of_nodes, place, entry)
        else:
            _add_blocks(layout, tables["blocks"], place, entry.form)
    for table in Table:
        _add_settings(layout, of_nodes, table, [(place, entry.form) for place, entry in entries])
    return found


def _lasting(form: Loadable) -> dict[str, IntArray]:
    """What says how long each row of a form lasts, as `TableLayout.lasting`."""
    ends = np.arange(form.rows) == form.rows - 1
    return {"pause": form.pause, "empty": form.blocks == 0, "ends": ends}


def _mode(layout: TableLayout, place: Place, form: Loadable) -> list[int]:
    """What is known of a mode."""
    return packed(
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
    """What the sequencer has of the rows of a form."""
    # What comes a cycle after the slot is written when words have been counted up to two.
    at = form.at - (0 if form.streams else 2)
    return packed(
        layout.row,
        at=at % (1 << layout.of_node.base_bits),
        **{name: np.roll(column, -1) for name, column in _lasting(form).items()},
        **dict(zip(layout.named, place.settings, strict=True)),
    )


def _add_settings(
    layout: TableLayout,
    found: Contents,
    table: Table,
    modes: Iterable[tuple[Place, Loadable]],
) -> None:
    """Add the settings of a table of every node."""
    placed = [(np.asarray(place.settings[table]), columns(form)[table]) for place, form in modes]
    used = np.unique(np.concatenate([of for of, _ in placed]))
    values = np.full((len(used), *placed[0][1].shape[1:]), -1)
    for of, said in placed:
        np.maximum.at(values, np.searchsorted(used, of), said)
    for mine, coded in zip(found, layout.of_node.coded(table, values), strict=True):
        for number, word in zip(used.tolist(), coded, strict=True):
            mine[table][number] = word


def _add_blocks(layout: TableLayout, rows: list[int], place: Place, form: Loadable) -> None:
    """Add where the host finds blocks: parts of a message, then chunks, as it counts, then nodes.

    Where there is anything at one node only, all nodes are that.
    """
    nodes, apart = np.arange(layout.frame.nodes), 1 << address_width(layout.frame.nodes)
    there = form.received[..., 1] >= 0
    if form.one_node:
        nodes, apart = nodes[there.any(axis=1)], 1
    at, block = np.nonzero(there[nodes])
    if not len(at):
        return
    memory, base = form.received[nodes[at], block].T
    numbers = place.block + block * apart + at
    words = packed(layout.block, memory=memory, base=base)
    for number, word in zip(numbers.tolist(), words, strict=True):
        rows[number] = word


def _add_stream(layout: TableLayout, found: Contents, place: Place, entry: Entry) -> None:
    """Add what nodes with streams have of an entry, and where they find what they have received."""
    frame, message = layout.frame, entry.form.program.layout
    blocks = (message if entry.root is None else message.with_root(entry.root)).blocks
    collective, groups = blocks.collective, blocks.groups
    root = (collective.root or 0) if collective.single_origin else 0
    sends = groups.group >= 0
    if collective.single_origin:
        sends &= groups.position == root
    origins = np.arange(blocks.parts) if collective.from_each else np.array([root])
    received = entry.form.received.reshape(frame.nodes, len(origins), -1, 2)
    there, chunks = received[:, :, 0, 1] >= 0, received.shape[2]
    facts: Mapping[str, ArrayLike] = {
        "sends": sends,
        "named": collective.personal,
        "last_sent": blocks.goals - 1,
        "position": np.maximum(groups.position, 0),
        "receives": there.any(axis=1),
        "own_last": np.maximum(there.sum(axis=1) - 1, 0),
        "last_chunk": chunks - 1,
        "first_row": place.block,
        # Where rows do not list them, all others follow the first.
        "origin": origins[0],
    }
    loads, unloads = (packed(each, **facts) for each in (layout.load_facts, layout.unload_facts))
    for mine, load, unload, packets, here in zip(
        found, loads, np.broadcast_to(unloads, frame.nodes), received, there, strict=True
    ):
        unload_rows, facts_rows = mine[len(Table) :]
        facts_rows[place.number] = load | int(unload) << layout.load_facts.size
        memory, base = packets[here].reshape(-1, 2).T
        if len(memory):
            # What a node has from itself is found word by word.
            unload_rows[place.block : place.block + len(memory)] = packed(
                layout.unload_row, memory=memory, base=base * (memory < frame.ports),
                origin=np.repeat(origins[here], chunks),
            )  # fmt: skip
