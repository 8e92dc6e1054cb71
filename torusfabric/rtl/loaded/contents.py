"""The contents that programs have in loaded tables, by where their modes lie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...program.fields import Order
from ...program.settings import Table, columns
from ...topology import IntArray
from ..memories import address_width
from .layout import TableLayout
from .packing import UNASKED, packed
from .places import Place
from .stream_contents import stream_tables

if TYPE_CHECKING:
    from ...program.loadable import Loadable
    from ...program.loadable_modes import Entry

__all__ = ["Contents", "contents_of"]

#: The rows of what `TableLayout.tables` lists; those at the end may be left out.
Contents = list[list[list[int]]]


def contents_of(
    layout: TableLayout, entries: Sequence[tuple[Place, Entry]], freed: Sequence[int] = ()
) -> Contents:
    """What entries have in the tables, by where they lie; nothing finds those that are freed."""
    frame = layout.frame
    forms = [(place, entry.form) for place, entry in entries]
    rows = [UNASKED] * max(place.row + form.rows for place, form in forms)
    known = [UNASKED] * (max(place.number for place, _ in forms) + 1)
    starts = [UNASKED] * frame.entries
    for number in freed:
        starts[number] = packed(_start(layout, further=1, mode=number), layout.entry_fields)
    for place, entry in entries:
        form = entry.form
        further = int(place.number != entry.mode)
        chosen = {"chosen": int(entry.root is not None), "root": entry.root or 0}
        start = _start(layout, further=further, mode=entry.mode, least=entry.start, **chosen)
        starts[place.number] = packed(start, layout.entry_fields)
        loop, shift = form.program.loop, layout.reciprocal_shift
        values = {
            "first": place.row,
            "by_flit": int(loop.order is Order.FLIT),
            "streams": int(form.streams),
            "late": int(form.reads_late),
            "chunks": form.chunks,
            "reciprocal": -(-(1 << shift) // form.chunks),
            "drain": form.program.form.timing.drain,
            "least": form.least,
            "first_block": place.block,
            "one_node": int(form.one_node),
            **{name: int(column[0]) for name, column in _lasting(form).items()},
        }
        known[place.number] = packed(values, layout.mode_fields)
        rows[place.row : place.row + form.rows] = _rows(layout, form, place)
    of_nodes = [_settings(layout, table, forms) for table in Table]
    single = {"rows": rows, "modes": known, "starts": starts}
    if frame.streams:
        of_nodes += stream_tables(layout, entries)
    else:
        single["blocks"] = _blocks(layout, forms)
    return [*([found[node] for found in of_nodes] for node in range(frame.nodes)),
            *([single[name]] for name in layout.single_tables)]  # fmt: skip


def _start(layout: TableLayout, **values: int) -> dict[str, int]:
    """What a start is compared with, of the fields that there are; 0 where nothing is said."""
    return {name: values.get(name, 0) for name in layout.entry_fields}


def _lasting(form: Loadable) -> dict[str, IntArray]:
    """What says how long each row of a form lasts, as `TableLayout.lasting`."""
    ends = np.arange(form.rows) == form.rows - 1
    return {"pause": form.pause, "empty": form.blocks == 0, "ends": ends}


def _rows(layout: TableLayout, form: Loadable, place: Place) -> list[int]:
    """What the sequencer has of the rows of a form."""
    fields = layout.row_fields
    # What comes a cycle after the slot is written when words have been counted up to two.
    at = form.at - (0 if form.streams else 2)
    each = (
        *(np.roll(column, -1) for column in _lasting(form).values()),
        at % (1 << layout.of_node.base_bits),
        *place.settings,
    )
    listed = (np.asarray(column).astype(int).tolist() for column in each)
    return [packed(dict(zip(fields, row, strict=True)), fields)
            for row in zip(*listed, strict=True)]  # fmt: skip


def _settings(
    layout: TableLayout, table: Table, modes: Iterable[tuple[Place, Loadable]]
) -> list[list[int]]:
    """The settings of a table of every node."""
    placed = [(place.settings[table], columns(form)[table]) for place, form in modes]
    used = np.unique(np.concatenate([np.asarray(of) for of, _ in placed]))
    values = np.full((len(used), *placed[0][1].shape[1:]), -1)
    for of, said in placed:
        np.maximum.at(values, np.searchsorted(used, of), said)
    found = [[UNASKED] * (int(used[-1]) + 1) for _ in range(layout.frame.nodes)]
    for mine, coded in zip(found, layout.of_node.coded(table, values), strict=True):
        for number, word in zip(used.tolist(), coded, strict=True):
            mine[number] = word
    return found


def _blocks(layout: TableLayout, forms: Iterable[tuple[Place, Loadable]]) -> list[int]:
    """Where the host finds blocks: parts of a message, then chunks, as it counts them, then nodes.

    Where there is anything at one node only, all nodes are that.
    """
    blocks = [UNASKED] * layout.frame.blocks
    for place, form in forms:
        nodes, apart = np.arange(layout.frame.nodes), 1 << address_width(layout.frame.nodes)
        if form.one_node:
            nodes, apart = nodes[(form.received[..., 1] >= 0).any(axis=1)], 1
        for at, node in enumerate(nodes.tolist()):
            for block, (memory, base) in enumerate(form.received[node].tolist()):
                if base >= 0:
                    values = {"memory": memory, "base": base}
                    number = place.block + block * apart + at
                    blocks[number] = packed(values, layout.block_fields)
    while blocks[-1] == UNASKED:
        blocks.pop()
    return blocks
