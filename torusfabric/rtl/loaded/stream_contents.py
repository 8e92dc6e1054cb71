"""What nodes with streams have in loaded tables: where they find what they have received."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .layout import TableLayout
from .packing import UNASKED, packed
from .places import Place

if TYPE_CHECKING:
    from ...program.loadable_modes import Entry

__all__ = ["stream_tables"]


def stream_tables(
    layout: TableLayout, entries: Sequence[tuple[Place, Entry]]
) -> list[list[list[int]]]:
    """The rows of `STREAM_TABLES` of every node."""
    frame = layout.frame
    unload, facts = ([[UNASKED] * rows for _ in range(frame.nodes)]
                     for rows in (frame.blocks, frame.entries))  # fmt: skip
    for place, entry in entries:
        message = entry.form.program.layout
        blocks = (message if entry.root is None else message.with_root(entry.root)).blocks
        collective, groups = blocks.collective, blocks.groups
        root = (collective.root or 0) if collective.single_origin else 0
        sends = groups.group >= 0
        if collective.single_origin:
            sends &= groups.position == root
        origins = range(blocks.parts) if collective.from_each else range(root, root + 1)
        received = entry.form.received.reshape(frame.nodes, len(origins), -1, 2)
        chunks = received.shape[2]
        for node, packets in enumerate(received.tolist()):
            rows = [*_rows(layout, packets, origins)]
            unload[node][place.block : place.block + len(rows)] = rows
            values = {
                "sends": int(sends[node]),
                "named": int(collective.personal),
                "last_sent": blocks.goals - 1,
                "position": int(np.maximum(groups.position[node], 0)),
                "receives": int(len(rows) > 0),
                "last_received": max(len(rows) // chunks - 1, 0),
                "last_chunk": chunks - 1,
                "first_row": place.block,
                # Where rows do not list them, all others follow the first.
                "origin": origins[0],
            }
            facts[node][place.number] = packed(values, layout.facts)
    return [unload, facts]


def _rows(
    layout: TableLayout, packets: Sequence[Sequence[tuple[int, int]]], origins: Sequence[int]
) -> Iterator[int]:
    """Where the chunks of those packets lie that a node receives."""
    for origin, chunks in zip(origins, packets, strict=True):
        for memory, base in chunks if chunks[0][1] >= 0 else ():
            # What a node has from itself is found word by word.
            values = {"memory": memory, "base": base * (memory < layout.frame.ports)}
            yield packed(values | {"origin": origin}, layout.unload_fields)
