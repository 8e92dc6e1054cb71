"""Layout: the bits of all tables that are loaded, and the bus that writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from amaranth.lib.data import StructLayout

from ...rtl.core.part import NodeSettings
from ...rtl.core.room import assemble, entry_layout, row_layout
from ...rtl.memories import address_width
from ...rtl.operator_unit import OperatorUnit
from .room import Room

__all__ = ["HEAD", "PIECE", "RUN", "Piece", "TableLayout", "TableSize", "pieces"]

#: Bits of a word of an image, and the most of a memory of tables that is written at once.
PIECE = 32

#: Words that begin a run of rows in an image, and the most rows of one.
HEAD, RUN = 2, 1 << 10

#: Rows and bits of a table.
TableSize: TypeAlias = tuple[int, int]


@dataclass(frozen=True, eq=False)
class TableLayout:
    """The bits of each table.

    Parameters
    ----------
    width : int
        Bits of a flit.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.adapters.loading.room import room_for
    >>> program = tf.compile(tf.plan("4x4", "alltoall", algorithm="matching"), max_flits=4)
    >>> layout = TableLayout(room_for([program]), 8)
    >>> layout.setting_bits, layout.row.size, layout.block.size
    ((20, 0, 24, 20, 4), 28, 10)
    """

    room: Room
    width: int

    @property
    def idles(self) -> bool:
        """True if the word that changes nothing is 0."""
        operators = self.room.parsed_operators()
        unit = OperatorUnit(operators) if operators else None
        return NodeSettings(self.width, self.room.ports, unit).zero_is_neutral

    @cached_property
    def setting_bits(self) -> tuple[int, ...]:
        """Bits of a setting of each `SettingTable` of a node."""
        return tuple(bits.shape[2] for bits in assemble(self.room, {}, idles=self.idles).values())

    @cached_property
    def row(self) -> StructLayout:
        """The row table of the sequencer."""
        return row_layout(self.room)

    @property
    def reciprocal_shift(self) -> int:
        """Bits of the fraction of a reciprocal."""
        return address_width(self.room.flits) + address_width(self.room.sizes.chunks) + 1

    @cached_property
    def mode(self) -> StructLayout:
        """The table of forms: what the sequencer knows, then requests and the host port."""
        return StructLayout(
            {
                **entry_layout(self.room),
                "reciprocal": self.reciprocal_shift + 1,
                "first_block": address_width(self.room.sizes.blocks),
                "one_node": 1,
            }
        )

    @property
    def entry_bits(self) -> int:
        """Bits of the number of an entry of a mode."""
        return address_width(self.room.sizes.entries)

    @cached_property
    def start(self) -> StructLayout:
        """What a start is compared with, for each entry.

        An entry that is not of the mode of its number is `further`: of another, or of none.
        """
        room = self.room
        roots = {"chosen": 1, "root": address_width(room.nodes)} if room.roots else {}
        least = room.flits.bit_length()
        return StructLayout({"further": 1, "mode": self.entry_bits, "least": least, **roots})

    @cached_property
    def block(self) -> StructLayout:
        """The place where the host finds a block."""
        return StructLayout({"memory": address_width(self.room.ports + 1),
                             "base": self.row["at"].width})  # fmt: skip

    @cached_property
    def packet_row(self) -> StructLayout:
        """The place where a node with streams has received a chunk of a packet, and its origin.

        The memory behind those of in-ports is of what the node gets from itself.
        """
        room = self.room
        origin = {"origin": address_width(room.nodes)} if room.lists else {}
        base = address_width(room.sizes.words)
        return StructLayout({"memory": address_width(room.ports + 1), "base": base, **origin})

    @cached_property
    def load_facts(self) -> StructLayout:
        """What a node with streams has to know of an entry to load its packets."""
        bits = address_width(self.room.nodes)
        return StructLayout({"sends": 1, "named": 1, "last_sent": bits, "position": bits})

    @cached_property
    def unload_facts(self) -> StructLayout:
        """The same to unload them: the last packet and chunk, the row and origin of the first."""
        room, bits = self.room, address_width(self.room.nodes)
        chunk, row = address_width(room.sizes.chunks), address_width(room.sizes.blocks)
        facts = {"receives": 1, "own_last": bits, "last_chunk": chunk, "first_row": row}
        return StructLayout(facts if room.lists else {**facts, "origin": bits})

    @property
    def stream_tables(self) -> dict[str, TableSize]:
        """Rows and bits of what a node with streams has besides: by chunks, and by entries."""
        sizes, facts = self.room.sizes, self.load_facts.size + self.unload_facts.size
        if not self.room.streams:
            return {}
        return {
            "unload_row": (sizes.blocks, self.packet_row.size),
            "facts_row": (sizes.entries, facts),
        }

    @property
    def single_tables(self) -> dict[str, TableSize]:
        """Rows and bits of the tables that there are once; they come behind those of nodes."""
        sizes = self.room.sizes
        blocks = {} if self.room.streams else {"blocks": (sizes.blocks, self.block.size)}
        return {
            "rows": (sizes.rows, self.row.size),
            "modes": (sizes.entries, self.mode.size),
            **blocks,
            "starts": (sizes.entries, self.start.size),
        }

    @cached_property
    def tables(self) -> list[tuple[TableSize, ...]]:
        """Rows and bits of the tables of each node, and then of each that there is once."""
        settings = zip(self.room.sizes.settings, self.setting_bits, strict=True)
        of_node = (*settings, *self.stream_tables.values())
        single = self.single_tables.values()
        return [*[of_node] * self.room.nodes, *((table,) for table in single)]

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
        return -(-self.room.sizes.entries // PIECE)

    @property
    def image_words(self) -> int:
        """Words of the longest image: what begins it, each piece of a table, and the ends."""
        found = [piece.rows for table in self.tables for piece in pieces(table)]
        return 4 + self.fill_words + sum(rows + HEAD * -(-rows // RUN) for rows in found) + 2


class Piece(NamedTuple):
    """Bits that are written at once.

    Parameters
    ----------
    table : int
        The number of the table, among those of an owner.
    low, width : int
        The first of its bits, and how many.
    """

    table: int
    rows: int
    low: int
    width: int


def pieces(tables: Sequence[TableSize]) -> list[Piece]:
    """Return the pieces of tables.

    Examples
    --------
    >>> [piece.width for piece in pieces([(64, 40), (4, 8)])]
    [32, 8, 8]
    """
    return [
        Piece(number, rows, low, min(PIECE, width - low))
        for number, (rows, width) in enumerate(tables)
        for low in range(0, width, PIECE)
    ]
