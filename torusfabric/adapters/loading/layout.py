"""Layout: the bit fields of all loaded tables, and the bus on which the loader writes them.

A loaded fabric has these tables, each with an *owner*::

    owner                  tables
    node k, k < N          one for each `SettingTable`; with streams also `unload_row`, `facts_row`
    N, N + 1, ..           one *single table* each: rows, modes, blocks (not with streams), starts

An *entry* is one form of a mode, for one root if runs choose the root. `starts` says which starts
of runs select an entry, `modes` has the constants of an entry, `rows` the rows of the sequencer,
and `blocks` the locations of received blocks. With streams, `unload_row` has these locations, and
`facts_row` other constants of the node for an entry. A row of a `SettingTable` has the values of
one kind of selectors, addresses or enables of a node.

A *room* is the capacity of a loaded fabric. All nodes have tables of the same sizes. A table is a
memory that is cut by columns into *pieces* of at most `PIECE_BITS` bits, because a word of an image
fills one row of one piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

from amaranth.lib.data import StructLayout

from ...rtl.core.node_module import NodeSettings
from ...rtl.core.room import assemble_tables, entry_layout, row_layout
from ...rtl.memories import address_width
from ...rtl.operator_unit import OperatorUnit
from .room import Room

__all__ = ["HEADER_WORDS", "PIECE_BITS", "MOST_RUN_ROWS", "TablePiece", "TableLayout", "TableSize",
           "split_into_pieces"]  # fmt: skip

#: Bits of a word of an image, and most bits of a piece of a table.
PIECE_BITS = 32

#: Words before the data of a run in an image (header and first row), and most rows of a run.
HEADER_WORDS, MOST_RUN_ROWS = 2, 1 << 10

#: Number of rows of a table, and bits of a row.
TableSize: TypeAlias = tuple[int, int]


@dataclass(frozen=True, eq=False)
class TableLayout:
    """The bit fields and sizes of all loaded tables of a fabric.

    Parameters
    ----------
    room : Room
        Capacity of the fabric, which decides the sizes.
    width : int
        Bits of a flit.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.adapters.loading.room import room_for
    >>> program = tf.compile(tf.plan("4x4", "alltoall", algorithm="matching"), max_flits=4)
    >>> layout = TableLayout(room_for([program]), 8)
    >>> layout.setting_bits, layout.row_fields.size, layout.block_fields.size
    ((20, 0, 24, 20, 4), 28, 10)
    """

    room: Room
    width: int

    @property
    def has_zero_identity(self) -> bool:
        """True if the identity of the operators is 0: the operand that leaves a word unchanged."""
        operators = self.room.parsed_operators()
        unit = OperatorUnit(operators) if operators else None
        return NodeSettings(self.width, self.room.ports, unit).identity_is_zero

    @cached_property
    def setting_bits(self) -> tuple[int, ...]:
        """Bits in a row of each setting table of a node, in the order of `SettingTable`.

        A setting table has the values of one kind of selectors, addresses or enables. For example
        (20, 0, 24, 20, 4): 20 bits for the selectors of out-ports, none for operators, ..
        """
        return tuple(
            bits.shape[2]
            for bits in assemble_tables(self.room, {}, idles=self.has_zero_identity).values()
        )

    @cached_property
    def row_fields(self) -> StructLayout:
        """The fields of a row of the table `rows`, through which the sequencer steps in a run.

        A row has its duration, the address at which nodes store words, and for each setting table
        of a node the number of a row in it.
        """
        return row_layout(self.room)

    @property
    def reciprocal_shift(self) -> int:
        """Number of fraction bits of the number 1 / C in the table `modes`, for C chunks.

        The hardware has no divider: it computes x / C as x times this number, shifted right by this
        number of bits.
        """
        return address_width(self.room.flits) + address_width(self.room.sizes.chunks) + 1

    @cached_property
    def mode_fields(self) -> StructLayout:
        """The fields of a row of the table `modes`, which has the constants of an entry.

        An entry is one form of a mode, for one root. First come the fields for the sequencer, then
        those for the start of runs (`Requests`) and for the host port.
        """
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
        """Bits of the number of an entry, which is one form of a mode, for one root."""
        return address_width(self.room.sizes.entries)

    @cached_property
    def start_fields(self) -> StructLayout:
        """The fields of a row of the table `starts`: the starts of runs that an entry serves.

        An entry is one form of a mode, for one root. If the bit `further` is set, the entry serves
        starts of mode `mode` with a length of at least `least` flits and, if `chosen` is set, with
        root `root`. Otherwise entry k is the default of mode k: it serves all starts of this mode
        that no further entry serves. In a row of an entry that is no longer used `further` is set,
        too.
        """
        room = self.room
        roots = {"chosen": 1, "root": address_width(room.nodes)} if room.roots else {}
        least = room.flits.bit_length()
        return StructLayout({"further": 1, "mode": self.entry_bits, "least": least, **roots})

    @cached_property
    def block_fields(self) -> StructLayout:
        """The fields of a row of the table `blocks`: memory and first address of a block.

        The table has a row for each block that a node receives.
        """
        return StructLayout({"memory": address_width(self.room.ports + 1),
                             "base": self.row_fields["at"].width})  # fmt: skip

    @cached_property
    def packet_row_fields(self) -> StructLayout:
        """The fields of a row of `unload_row`: memory, first address and origin of a chunk.

        With streams each node has this table, with a row for each chunk that it receives. Memory p
        stores the words of in-port p. The number after the last in-port is the send memory, for the
        packet that a node sends to itself. The field `origin` exists only if `Room.lists` is True.
        """
        room = self.room
        origin = {"origin": address_width(room.nodes)} if room.lists else {}
        base = address_width(room.sizes.words)
        return StructLayout({"memory": address_width(room.ports + 1), "base": base, **origin})

    @cached_property
    def load_facts(self) -> StructLayout:
        """The fields of the table `facts_row` for the loader of a node with streams.

        A row is for one entry, which is one form of a mode, for one root. `sends`: the node sends.
        `named`: its packets have destinations. `last_sent`: number of its last packet. `position`:
        its position in its group.
        """
        bits = address_width(self.room.nodes)
        return StructLayout({"sends": 1, "named": 1, "last_sent": bits, "position": bits})

    @cached_property
    def unload_facts(self) -> StructLayout:
        """The fields of the table `facts_row` for the unloader of a node with streams.

        A row is for one entry, which is one form of a mode, for one root. `receives`: the node
        receives. `own_last`: number of its last packet. `last_chunk`: number of the last chunk of a
        packet. `first_row`: row of `unload_row` for its first packet. `origin`: origin of its first
        packet; absent if the table `unload_row` has an origin for each packet (`Room.lists`).
        """
        room, bits = self.room, address_width(self.room.nodes)
        chunk, row = address_width(room.sizes.chunks), address_width(room.sizes.blocks)
        facts = {"receives": 1, "own_last": bits, "last_chunk": chunk, "first_row": row}
        return StructLayout(facts if room.lists else {**facts, "origin": bits})

    @property
    def stream_tables(self) -> dict[str, TableSize]:
        """Sizes (rows, bits) of the two tables that a node has only with streams, by name.

        `unload_row` has a row for each received chunk. `facts_row` has a row for each entry, which
        is one form of a mode, for one root.
        """
        sizes, facts = self.room.sizes, self.load_facts.size + self.unload_facts.size
        if not self.room.streams:
            return {}
        return {
            "unload_row": (sizes.blocks, self.packet_row_fields.size),
            "facts_row": (sizes.entries, facts),
        }

    @property
    def single_tables(self) -> dict[str, TableSize]:
        """Sizes (rows, bits) of the tables that exist once in a fabric, keyed by name.

        On the bus of the loader, with N nodes, the first table has the number N, the next one
        N + 1, and so on.
        """
        sizes = self.room.sizes
        blocks = {} if self.room.streams else {"blocks": (sizes.blocks, self.block_fields.size)}
        return {
            "rows": (sizes.rows, self.row_fields.size),
            "modes": (sizes.entries, self.mode_fields.size),
            **blocks,
            "starts": (sizes.entries, self.start_fields.size),
        }

    @cached_property
    def table_sizes(self) -> list[tuple[TableSize, ...]]:
        """Sizes (rows, bits) of all tables, as one tuple of sizes for each owner.

        Owners 0 to N - 1 are the N nodes, with several tables each. Each further owner has one
        table, of which the fabric has only one.
        """
        settings = zip(self.room.sizes.settings, self.setting_bits, strict=True)
        of_node = (*settings, *self.stream_tables.values())
        single = self.single_tables.values()
        return [*[of_node] * self.room.nodes, *((table,) for table in single)]

    @property
    def table_bits(self) -> int:
        """Bits of all tables of the fabric together."""
        return sum(rows * width for table in self.table_sizes for rows, width in table)

    @cached_property
    def bus_signals(self) -> dict[str, int]:
        """Signals of the bus from the loader to all tables, with their bits.

        If `load_valid` is high, `load_word` is written into row `load_row` of piece `load_piece` (a
        range of columns of a table). With N nodes, a `load_table` below N selects the tables of
        this node. Each `load_table` from N on selects one table of which the fabric has only one.
        If `load_every` is high, the tables of all nodes are written.
        """
        tables = self.table_sizes
        return {
            "load_valid": 1,
            "load_every": 1,
            "load_table": address_width(len(tables)),
            "load_row": address_width(max(rows for table in tables for rows, _ in table)),
            "load_piece": address_width(max(len(split_into_pieces(table)) for table in tables)),
            "load_word": PIECE_BITS,
        }

    @property
    def fill_words(self) -> int:
        """Number of words of the fill mask of an image, which says which entries it writes.

        The mask has a bit for each entry (form of a mode, for one root), 32 bits in a word.
        """
        return -(-self.room.sizes.entries // PIECE_BITS)

    @property
    def image_words(self) -> int:
        """Number of words of the longest image.

        It has the words of the header, all rows of all tables (in pieces of at most 32 bits),
        END_MARK and the CRC.
        """
        found = [piece.rows for table in self.table_sizes for piece in split_into_pieces(table)]
        return (
            4
            + self.fill_words
            + sum(rows + HEADER_WORDS * -(-rows // MOST_RUN_ROWS) for rows in found)
            + 2
        )


class TablePiece(NamedTuple):
    """A range of columns of a loaded table, which one word of an image can fill in one row.

    Parameters
    ----------
    table : int
        Number of the table among the tables of its node, or 0 for a table that exists once.
    rows : int
        Number of rows of the table.
    low, width : int
        Lowest bit of the range, and number of bits.
    """

    table: int
    rows: int
    low: int
    width: int


def split_into_pieces(tables: Sequence[TableSize]) -> list[TablePiece]:
    """Cut the tables of one module by columns into pieces of at most 32 bits.

    Why: a word of an image, of 32 bits, fills one row of one piece. The result lists table by
    table, the lowest bits of each table first.

    Parameters
    ----------
    tables : sequence of (int, int)
        Rows and bits of each table.

    Examples
    --------
    The table of 40 bits has two pieces, the table of 8 bits has one.

    >>> [piece.width for piece in split_into_pieces([(64, 40), (4, 8)])]
    [32, 8, 8]
    """
    return [
        TablePiece(number, rows, low, min(PIECE_BITS, width - low))
        for number, (rows, width) in enumerate(tables)
        for low in range(0, width, PIECE_BITS)
    ]
