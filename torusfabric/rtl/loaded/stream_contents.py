"""What nodes with streams have in loaded tables: where they find what they have received."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .layout import TableLayout
from .packing import UNASKED, packed
from .places import Place

if TYPE_CHECKING:
    from ...program.loadable_modes import Entry
    from ...topology import BoolArray, IntArray

__all__ = ["NodePackets", "stream_tables"]


class NodePackets(NamedTuple):
    """The packets of nodes in an entry.

    Parameters
    ----------
    sends : ndarray of bool, shape (nodes,)
    sent : int
        Packets of a message.
    named : bool
        Whether these have destinations.
    position : ndarray of int, shape (nodes,)
        Which destination a node is itself.
    received : ndarray of int, shape (nodes, packets, chunks, 2)
        As of `Loadable`.
    origins : sequence of int
        Of the packets.
    """

    sends: BoolArray
    sent: int
    named: bool
    position: IntArray
    received: IntArray
    origins: Sequence[int]

    @classmethod
    def of(cls, entry: Entry) -> NodePackets:
        """Those of an entry.

        Examples
        --------
        >>> import torusfabric as tf
        >>> from torusfabric.program.loadable_modes import Entry
        >>> from torusfabric.program.rewriting import loadable
        >>> form = loadable(tf.compile(tf.plan("3", "scatter"), max_flits=4))
        >>> found = NodePackets.of(Entry(0, 1, 2, form.moved(2)))
        >>> found.sends.tolist(), found.sent, found.origins
        ([False, False, True], 3, [2])
        """
        form, layout = entry.form, entry.form.program.layout
        if entry.root is not None:
            layout = layout.with_root(entry.root)
        blocks = layout.blocks
        collective, groups = blocks.collective, blocks.groups
        sends = groups.group >= 0
        if collective.single_origin:
            sends &= groups.position == collective.root
        count = blocks.parts
        origins = [*range(count)] if collective.from_each else [
            (collective.root or 0) if collective.single_origin else 0
        ]  # fmt: skip
        received = form.received.reshape(len(sends), len(origins), -1, 2)
        position = np.maximum(groups.position, 0)
        return cls(sends, blocks.goals, collective.personal, position, received, origins)


def stream_tables(
    layout: TableLayout, entries: Sequence[tuple[Place, Entry]]
) -> list[list[list[int]]]:
    """The rows of `STREAM_TABLES` of every node."""
    frame = layout.frame
    unload, facts = ([[UNASKED] * rows for _ in range(frame.nodes)]
                     for rows in (frame.blocks, frame.entries))  # fmt: skip
    for place, entry in entries:
        packets = NodePackets.of(entry)
        chunks = packets.received.shape[2]
        for node, of_node in enumerate(packets.received.tolist()):
            row = place.block
            for origin, blocks in zip(packets.origins, of_node, strict=True):
                if blocks[0][1] < 0:
                    continue
                for memory, base in blocks:
                    # What a node has from itself is found word by word.
                    found = {"memory": memory, "base": base * (memory < frame.ports)}
                    unload[node][row] = _packed(layout.unload_fields, found | {"origin": origin})
                    row += 1
            count = (row - place.block) // chunks
            values = {
                "sends": int(packets.sends[node]),
                "named": int(packets.named),
                "last_sent": packets.sent - 1,
                "position": int(packets.position[node]),
                "receives": int(count > 0),
                "last_received": max(count - 1, 0),
                "last_chunk": chunks - 1,
                "first_row": place.block,
                # Where rows do not list them, all others follow the first.
                "origin": packets.origins[0],
            }
            facts[node][place.number] = _packed(layout.facts, values)
    return [unload, facts]


def _packed(fields: dict[str, int], values: dict[str, int]) -> int:
    """Those values side by side that there are fields for."""
    return packed({name: values[name] for name in fields}, fields)
