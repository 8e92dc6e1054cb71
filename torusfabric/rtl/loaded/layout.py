"""Which bits of loaded tables are what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ...program.settings import Table
from ..memories import address_width
from .node_tables import Bits, NodeTables

if TYPE_CHECKING:
    from ...program.frame import Frame

__all__ = ["HEAD", "PIECE", "RUN", "Piece", "TableLayout", "pieces"]

#: Bits of a word of an image, and the most of a memory of tables that is written at once.
PIECE = 32

#: Words that begin a run of rows in an image, and the most rows of one.
HEAD, RUN = 2, 1 << 10

#: The least bits for cycles from the last slot of a run to its end, and of a row.
DRAIN_BITS, LEAST_BITS = 6, 5

#: What a node with streams has besides: by chunks that it has received, and by entries.
STREAM_TABLES = ("unload_row", "facts_row")


@dataclass(frozen=True, eq=False)
class TableLayout:
    """Which bits of each table are what.

    Parameters
    ----------
    frame : Frame

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.program.frame import Frame
    >>> program = tf.compile(tf.plan("4x4", "alltoall", algorithm="matching"), max_flits=4)
    >>> layout = TableLayout(Frame.of([program]))
    >>> layout.of_node.setting_bits, layout.row_bits, layout.block_bits
    ((20, 24, 20, 4), 25, 10)
    """

    frame: Frame

    @cached_property
    def of_node(self) -> NodeTables:
        """The settings of each node."""
        return NodeTables(self.frame)

    @property
    def node_parts(self) -> dict[str, tuple[tuple[Bits, ...], int]]:
        """Which bits of the tables of a node, one behind the other, are given to whom, how late."""
        parts, first = self.of_node.parts, sum(self.of_node.setting_bits)
        for name, (_, bits) in zip(STREAM_TABLES, self._of_streams, strict=self.frame.streams):
            parts[name], first = (((first, bits),), 0), first + bits
        return {name: part for name, part in parts.items() if any(bits for _, bits in part[0])}

    @property
    def pause_bits(self) -> int:
        """Bits of the pause of a row."""
        return (self.frame.depth + 2).bit_length() + 2

    @property
    def lasting(self) -> dict[str, int]:
        """What says how long a row lasts: its pause, whether it has no block, or is the last."""
        return {"pause": self.pause_bits, "empty": 1, "ends": 1}

    @property
    def row_fields(self) -> dict[str, int]:
        """What the sequencer has of a row: how long the next one lasts, which is the first behind
        the last, where words are stored, and the settings of nodes.
        """
        names = {f"named_{table.name.lower()}": address_width(count)
                 for table, count in zip(Table, self.frame.settings, strict=True)}  # fmt: skip
        return {**self.lasting, "at": self.of_node.base_bits, **names}

    @property
    def row_bits(self) -> int:
        """Bits of a row of the sequencer."""
        return sum(self.row_fields.values())

    @property
    def reciprocal_shift(self) -> int:
        """Bits of the fraction of a reciprocal."""
        return address_width(self.frame.flits) + address_width(self.frame.chunks) + 1

    @property
    def mode_fields(self) -> dict[str, int]:
        """What is known of a mode, and the bits of each value."""
        frame = self.frame
        return {
            "first": address_width(frame.rows),
            "by_flit": 1,
            "streams": 1,
            "late": 1,
            "chunks": frame.chunks.bit_length(),
            "reciprocal": self.reciprocal_shift + 1,
            "drain": max(frame.depth.bit_length() + 1, DRAIN_BITS),
            "least": max(frame.topology.longest_link.bit_length() + 2, LEAST_BITS),
            "first_block": address_width(frame.blocks),
            "one_node": 1,
            # Of the first row.
            **self.lasting,
        }

    @property
    def mode_bits(self) -> int:
        """Bits of what is known of a mode."""
        return sum(self.mode_fields.values())

    @property
    def entry_fields(self) -> dict[str, int]:
        """What a start is compared with, for each entry, and the bits of each value.

        An entry that is not of the mode of its number is `further`: of another, or of none.
        """
        frame = self.frame
        roots = {"chosen": 1, "root": address_width(frame.nodes)} if frame.roots else {}
        return {
            "further": 1,
            "mode": address_width(frame.entries),
            "least": frame.flits.bit_length(),
            **roots,
        }

    @property
    def entry_bits(self) -> int:
        """Bits of what a start is compared with."""
        return sum(self.entry_fields.values())

    @property
    def block_fields(self) -> dict[str, int]:
        """Where the host finds a block, and the bits of each value."""
        return {"memory": address_width(self.frame.ports + 1), "base": self.of_node.base_bits}

    @property
    def block_bits(self) -> int:
        """Bits of where the host finds a block."""
        return sum(self.block_fields.values())

    @property
    def unload_fields(self) -> dict[str, int]:
        """Where a node with streams has received a chunk of a packet, and the origin of that.

        The memory behind those of in-ports is of what it gets from itself, word by word.
        """
        frame = self.frame
        fields = {"memory": address_width(frame.ports + 1), "base": address_width(frame.words)}
        return fields | ({"origin": address_width(frame.nodes)} if frame.lists else {})

    @property
    def load_facts(self) -> dict[str, int]:
        """What a node with streams has to know of an entry to load its packets."""
        bits = address_width(self.frame.nodes)
        return {"sends": 1, "named": 1, "last_sent": bits, "position": bits}

    @property
    def unload_facts(self) -> dict[str, int]:
        """The same to unload them: the last packet and chunk, the row and origin of the first."""
        frame = self.frame
        return {
            "receives": 1,
            "last_received": address_width(frame.nodes),
            "last_chunk": address_width(frame.chunks),
            "first_row": address_width(frame.blocks),
            **({} if frame.lists else {"origin": address_width(frame.nodes)}),
        }

    @property
    def facts(self) -> dict[str, int]:
        """What a node with streams has to know of an entry."""
        return self.load_facts | self.unload_facts

    @property
    def _of_streams(self) -> list[Bits]:
        """Rows and bits of `STREAM_TABLES`, where nodes have streams."""
        frame = self.frame
        unload, facts = (sum(each.values()) for each in (self.unload_fields, self.facts))
        return [(frame.blocks, unload), (frame.entries, facts)] * frame.streams

    @property
    def single_tables(self) -> dict[str, Bits]:
        """Rows and bits of the tables that there are once; they come behind those of nodes."""
        frame = self.frame
        tables = {
            "rows": (frame.rows, self.row_bits),
            "modes": (frame.entries, self.mode_bits),
            "blocks": (frame.blocks, self.block_bits),
            "starts": (frame.entries, self.entry_bits),
        }
        if frame.streams:
            del tables["blocks"]
        return tables

    @property
    def tables(self) -> list[tuple[Bits, ...]]:
        """Rows and bits of what each node has, and then of what there is once."""
        frame = self.frame
        of_node = (*zip(frame.settings, self.of_node.setting_bits, strict=True), *self._of_streams)
        return [*[of_node] * frame.nodes, *((table,) for table in self.single_tables.values())]

    @property
    def table_bits(self) -> int:
        """Bits of all tables."""
        return sum(rows * width for table in self.tables for rows, width in table)

    @property
    def bus(self) -> dict[str, int]:
        """What the loader gives to all tables, and the bits of each."""
        tables = self.tables
        return {
            "load_valid": 1,
            "load_every": 1,
            "load_table": address_width(len(tables)),
            "load_row": address_width(max(rows for table in tables for rows, _ in table)),
            "load_piece": address_width(max(len(pieces(table)) for table in tables)),
            "load_word": PIECE,
        }

    @property
    def fill_words(self) -> int:
        """Words of an image that have a bit for each entry of a mode."""
        return -(-self.frame.entries // PIECE)

    @property
    def image_words(self) -> int:
        """Words of the longest image: what begins it, each piece of a table, and the ends."""
        found = [piece.rows for table in self.tables for piece in pieces(table)]
        return 4 + self.fill_words + sum(rows + HEAD * -(-rows // RUN) for rows in found) + 2


class Piece(NamedTuple):
    """Bits that are written at once.

    Parameters
    ----------
    of : int
        The number of the table, of those that a node has.
    low, width : int
        The first of its bits, and how many.
    """

    of: int
    rows: int
    low: int
    width: int


def pieces(tables: Sequence[Bits]) -> list[Piece]:
    """The pieces of tables of so many rows and bits.

    Examples
    --------
    >>> [piece.width for piece in pieces([(64, 40), (4, 8)])]
    [32, 8, 8]
    """
    return [
        Piece(of, rows, low, min(PIECE, width - low))
        for of, (rows, width) in enumerate(tables)
        for low in range(0, width, PIECE)
    ]
