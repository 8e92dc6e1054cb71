"""Which bits of loaded tables are what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...program.loadable import operand_links
from ...program.settings import Table, named
from ...topology import IntArray
from ..cascade import branch_bits, select_bits, select_code
from ..endpoint_plan import EndpointPlan
from ..endpoint_shape import EndpointMemory, EndpointReader, EndpointShape
from ..endpoint_wires import SHARED, EndpointWires
from ..loops import Loops
from ..memories import address_width
from ..place import Location, RowTables
from ..placement import Placement, RouterPlan
from ..router import Crossbar, Output

if TYPE_CHECKING:
    from ...program import Program
    from ...program.frame import Frame

__all__ = ["HEAD", "PIECE", "RUN", "Bits", "Piece", "TableLayout", "pieces"]

#: Bits of a word of an image, and the most of a memory of tables that is written at once.
PIECE = 32

#: Words that begin a run of rows in an image, and the most rows of one.
HEAD, RUN = 2, 1 << 10

#: The least bits for cycles from the last slot of a run to its end, and of a row.
DRAIN_BITS, LEAST_BITS = 6, 5


#: What a node with streams has besides: by chunks that it has received, and by entries.
STREAM_TABLES = ("unload_row", "facts_row")

#: Bits of a table: the first, and how many.
Bits = tuple[int, int]


class Column(NamedTuple):
    """Where the values of a column of a `Table` lie in it.

    Parameters
    ----------
    codes : dict of int to int, or None
        What stands for each value; by default its low bits.
    """

    start: int
    width: int
    codes: Mapping[int, int] | None = None


class _Columns:
    """Takes bits of the tables of a node, one column after another."""

    def __init__(self) -> None:
        self.found: tuple[list[Column], ...] = tuple([] for _ in Table)
        self.widths = [0] * len(Table)

    def take(self, table: Table, width: int, codes: Mapping[int, int] | None = None) -> int:
        """The first bit of the next column of a table."""
        start = self.widths[table]
        self.found[table].append(Column(start, width, codes))
        self.widths[table] += width
        return start


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
    >>> layout.router_bits, layout.setting_bits, layout.row_bits, layout.block_bits
    (20, (20, 24, 20, 4), 25, 10)
    """

    frame: Frame

    @property
    def base_bits(self) -> int:
        """Bits of an address in a memory."""
        return address_width(max(self.frame.words, self.frame.nodes * self.frame.flits))

    @property
    def code_bits(self) -> int:
        """Bits of the cycles by which a word is late; 0 for one that is not stored."""
        return self.frame.depth.bit_length()

    @cached_property
    def _outputs(self) -> tuple[Crossbar, Crossbar | None, int, int]:
        """The crossbars of routers and operators, and the bits of a row that select in each."""
        frame, sources = self.frame, self.frame.sources
        router = [frame.out_port(port) for port in range(frame.ports)]
        first = sources.first_result
        adds = range(frame.ports) if frame.operators else ()
        operand = [tuple(k - first for k in frame.operand(port)) for port in adds]
        found: list[tuple[Crossbar, int]] = []
        for ports in (router, operand):
            outputs, at = [], 0
            for each in ports:
                count = len(branch_bits(len(each), 0))
                outputs.append(Output(each, tuple(range(at, at + count))))
                at += count
            found.append((Crossbar(tuple(outputs), np.zeros((1, at), np.int8), ()), at))
        (routers, router_bits), (operators, operand_bits) = found
        return routers, operators if operand else None, router_bits, operand_bits

    @property
    def router_bits(self) -> int:
        """Bits of a setting of table `SELECT`."""
        return self._outputs[2]

    @property
    def operand_bits(self) -> int:
        """Bits of a setting of table `READ` that are for operators; they come first."""
        return self._outputs[3]

    @cached_property
    def _columns(self) -> _Columns:
        """Where the values of `program.settings.columns` lie."""
        frame, found, ports = self.frame, _Columns(), range(self.frame.ports)
        low = min((frame.flits - 1).bit_length(), self.base_bits)
        routers, operators, *_ = self._outputs
        for table, crossbar, first in (
            (Table.SELECT, routers, 0),
            (Table.READ, operators, frame.sources.first_result),
        ):
            # Where nothing is combined columns say nothing.
            outputs = crossbar.outputs if crossbar else [Output((), ())] * frame.ports
            for output in outputs:
                code = {k + first: _number(output.code(at)) for at, k in enumerate(output.sources)}
                known = {name: code[k] for name, k in self._named if k in code}
                found.take(table, len(output.bits), known)
        for memories in map(frame.memories, ports):
            codes = {number: select_code(len(memories), k) for k, number in enumerate(memories)}
            found.take(Table.READ, len(select_bits(len(codes), 0)), codes)
        for _ in ports:
            found.take(Table.READ, low)
        for _ in ports:
            found.take(Table.ADDRESS, self.base_bits - low)
        for _ in ports:
            found.take(Table.STORE, self.code_bits)
        return found

    @property
    def _named(self) -> list[tuple[int, int]]:
        """What sources are called in columns, and their numbers."""
        listed = np.array(self.frame.sources.listed)
        return [*zip(named(listed).tolist(), self.frame.numbers(listed).tolist(), strict=True)]

    @property
    def setting_bits(self) -> tuple[int, ...]:
        """Bits of a setting of each `Table` of a node."""
        return tuple(self._columns.widths)

    @cached_property
    def _endpoint(self) -> tuple[EndpointShape, tuple[Bits, ...]]:
        """The shape of all endpoints, and which bits of tables are given to them."""
        frame, ports = self.frame, self.frame.ports
        read, address, store = self._columns.found[Table.READ :]
        starts = np.cumsum([0, *self.setting_bits]).tolist()
        given: list[Bits] = []

        def place(*found: tuple[Table, Column]) -> Location:
            start, width = sum(bits for _, bits in given), sum(each.width for _, each in found)
            given.extend((starts[table] + each.start, each.width) for table, each in found)
            return Location(width, (0,), start)

        codes, within = read[ports : 2 * ports], read[2 * ports :]
        readers = tuple(
            EndpointReader(
                address=_at_column(place((Table.READ, low), (Table.ADDRESS, high))),
                memories=frame.memories(port),
                code=place((Table.READ, code)) if code.width else None,
            )
            for port, (code, low, high) in enumerate(zip(codes, within, address, strict=True))
        )
        groups = [
            tuple((port,) for port in range(ports) if memory in frame.memories(port))
            for memory in range(ports + 1)
        ]
        stored = []
        for port in range(ports):
            stored.append(
                EndpointMemory(
                    number=port, depth=frame.words, own=None, layout=0, sources=(port,),
                    address=None, enable=place((Table.STORE, store[port])),
                    strobes=tuple(range(frame.depth)), skips=False,
                    source=None, start=Location(1, (0,)), groups=groups[port], host_reads=True,
                )
            )  # fmt: skip
        stored.append(
            EndpointMemory(
                number=ports, depth=frame.nodes * frame.flits, own=0, layout=0, sources=(),
                address=None, enable=None, strobes=(), skips=False, source=None,
                start=Location(1, (0,)), groups=groups[ports], host_reads=True,
            )
        )  # fmt: skip
        width = sum(bits for _, bits in given)
        injections = tuple((port,) for port in range(ports))
        shape = EndpointShape(tuple(stored), readers, injections, len(self._words), width)
        return shape, tuple(given)

    @property
    def _words(self) -> tuple[int, ...]:
        """What comes from outside to be stored: what is made at in-ports, or words of these."""
        frame = self.frame
        first = frame.sources.first_made if frame.operators else 0
        return tuple(range(first, first + frame.ports))

    @property
    def _wires(self) -> EndpointWires:
        """How all endpoints are wired."""
        ports = tuple(range(self.frame.ports))
        words = tuple((source, SHARED) for source in self._words)
        return EndpointWires(ports, ports, words, (0, 1), tuple(range(self.frame.depth)))

    @property
    def shape(self) -> EndpointShape:
        """The shape of all endpoints."""
        return self._endpoint[0]

    @property
    def node_parts(self) -> dict[str, tuple[tuple[Bits, ...], int]]:
        """Which bits of the tables of a node, one behind the other, are given to whom, how late."""
        first, width = self.router_bits, self.operand_bits
        parts = {"setting": (((0, first),), 1),
                 "operand": (((first, width),), 1 + operand_links(self.frame.topology)),
                 "row": (self._endpoint[1], 0)}  # fmt: skip
        first = sum(self.setting_bits)
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
        return {**self.lasting, "at": self.base_bits, **names}

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
        return {"memory": address_width(self.frame.ports + 1), "base": self.base_bits}

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
        of_node = (*zip(frame.settings, self.setting_bits, strict=True), *self._of_streams)
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

    def placement(self, program: Program) -> Placement:
        """Where everything lies: at the nodes."""
        routers, operators, router_bits, operand_bits = self._outputs
        one, none = np.zeros(1, int), RowTables(Loops.of(program), [])

        sources = self.frame.sources

        def plan(crossbar: Crossbar, bits: int, first: int) -> RouterPlan:
            given = {"select": tuple(Location(1, (0,), k) for k in range(bits))}
            words = {0: tuple(range(first, sources.identity))}
            return RouterPlan(crossbar, words, given, {0: ()}, bits)

        endpoints = EndpointPlan((self.shape,), one, (self._wires,), (), none, {}, 0)
        operands = (plan(operators, operand_bits, sources.first_injection),) if operators else ()
        router = (plan(routers, router_bits, sources.first_result),)
        return Placement((), {}, operands, one, router, one, endpoints, none)

    def coded(self, table: Table, values: IntArray) -> list[list[int]]:
        """The settings of a table, node by node, of the values of its columns."""
        total = np.zeros(values.shape[:2], object)
        for k, (start, width, codes) in enumerate(self._columns.found[table]):
            cut = np.maximum(values[..., k], 0) & ((1 << width) - 1)
            if codes is not None:
                known = {value: codes.get(value, 0) for value in np.unique(values[..., k]).tolist()}
                cut = np.vectorize(known.__getitem__, otypes=[object])(values[..., k])
            total |= cut.astype(object) << start
        return [list(map(int, column)) for column in total.T]


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


def _number(bits: Sequence[int]) -> int:
    return sum(bit << k for k, bit in enumerate(bits))


def _at_column(where: Location) -> Location:
    """An address to which the word of column 0 is added."""
    return Location(where.width, where.constants, where.start, column=0)
