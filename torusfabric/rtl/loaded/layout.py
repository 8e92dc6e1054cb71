"""Which bits of loaded tables are what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from amaranth.lib.data import StructLayout

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


@dataclass(frozen=True, eq=False)
class TableLayout:
    """Which bits of each table are what.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.program.frame import Frame
    >>> program = tf.compile(tf.plan("4x4", "alltoall", algorithm="matching"), max_flits=4)
    >>> layout = TableLayout(Frame.of([program]))
    >>> layout.of_node.setting_bits, layout.row.size, layout.block.size
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
        for name, (_, bits) in self.stream_tables.items():
            parts[name], first = (((first, bits),), 0), first + bits
        return {name: part for name, part in parts.items() if any(bits for _, bits in part[0])}

    @property
    def lasting(self) -> dict[str, int]:
        """What says how long a row lasts: its pause, whether it has no block, or is the last."""
        return {"pause": (self.frame.depth + 2).bit_length() + 2, "empty": 1, "ends": 1}

    @property
    def named(self) -> dict[str, int]:
        """The settings of nodes that rows name, and the bits of each number."""
        return {f"named_{table.name.lower()}": address_width(count)
                for table, count in zip(Table, self.frame.settings, strict=True)}  # fmt: skip

    @cached_property
    def row(self) -> StructLayout:
        """What the sequencer has of a row: how long the next one lasts, which is the first behind
        the last, where words are stored, and the settings of nodes.
        """
        return StructLayout({**self.lasting, "at": self.of_node.base_bits, **self.named})

    @property
    def reciprocal_shift(self) -> int:
        """Bits of the fraction of a reciprocal."""
        return address_width(self.frame.flits) + address_width(self.frame.chunks) + 1

    @cached_property
    def mode(self) -> StructLayout:
        """What is known of a mode."""
        frame = self.frame
        return StructLayout(
            {
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
        )

    @property
    def entry_bits(self) -> int:
        """Bits of the number of an entry of a mode."""
        return address_width(self.frame.entries)

    @cached_property
    def start(self) -> StructLayout:
        """What a start is compared with, for each entry.

        An entry that is not of the mode of its number is `further`: of another, or of none.
        """
        frame = self.frame
        roots = {"chosen": 1, "root": address_width(frame.nodes)} if frame.roots else {}
        least = frame.flits.bit_length()
        return StructLayout({"further": 1, "mode": self.entry_bits, "least": least, **roots})

    @cached_property
    def block(self) -> StructLayout:
        """Where the host finds a block."""
        memory = address_width(self.frame.ports + 1)
        return StructLayout({"memory": memory, "base": self.of_node.base_bits})

    @cached_property
    def unload_row(self) -> StructLayout:
        """Where a node with streams has received a chunk of a packet, and the origin of that.

        The memory behind those of in-ports is of what it gets from itself, word by word.
        """
        frame = self.frame
        origin = {"origin": address_width(frame.nodes)} if frame.lists else {}
        memory = address_width(frame.ports + 1)
        return StructLayout({"memory": memory, "base": address_width(frame.words), **origin})

    @cached_property
    def load_facts(self) -> StructLayout:
        """What a node with streams has to know of an entry to load its packets."""
        bits = address_width(self.frame.nodes)
        return StructLayout({"sends": 1, "named": 1, "last_sent": bits, "position": bits})

    @cached_property
    def unload_facts(self) -> StructLayout:
        """The same to unload them: the last packet and chunk, the row and origin of the first."""
        frame, bits = self.frame, address_width(self.frame.nodes)
        chunk, row = address_width(frame.chunks), address_width(frame.blocks)
        facts = {"receives": 1, "own_last": bits, "last_chunk": chunk, "first_row": row}
        return StructLayout(facts if frame.lists else {**facts, "origin": bits})

    @property
    def stream_tables(self) -> dict[str, Bits]:
        """Rows and bits of what a node with streams has besides: by chunks, and by entries."""
        frame = self.frame
        if not frame.streams:
            return {}
        facts = self.load_facts.size + self.unload_facts.size
        return {
            "unload_row": (frame.blocks, self.unload_row.size),
            "facts_row": (frame.entries, facts),
        }

    @property
    def single_tables(self) -> dict[str, Bits]:
        """Rows and bits of the tables that there are once; they come behind those of nodes."""
        frame = self.frame
        blocks = {} if frame.streams else {"blocks": (frame.blocks, self.block.size)}
        return {
            "rows": (frame.rows, self.row.size),
            "modes": (frame.entries, self.mode.size),
            **blocks,
            "starts": (frame.entries, self.start.size),
        }

    @cached_property
    def tables(self) -> list[tuple[Bits, ...]]:
        """Rows and bits of what each node has, and then of what there is once."""
        settings = zip(self.frame.settings, self.of_node.setting_bits, strict=True)
        of_node = (*settings, *self.stream_tables.values())
        single = self.single_tables.values()
        return [*[of_node] * self.frame.nodes, *((table,) for table in single)]

    @property
    def table_bits(self) -> int:
        """Bits of all tables."""
        return sum(rows * width for table in self.tables for rows, width in table)

    @cached_property
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
