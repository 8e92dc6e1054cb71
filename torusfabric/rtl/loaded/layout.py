"""Which bits of loaded tables are what, and the contents that a program has in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...program.fields import Order
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
    from ...program.loadable import Loadable

__all__ = ["PIECE", "Contents", "TableLayout", "contents_of"]

#: Bits of a word of an image, and the most of a memory of tables that is written at once.
PIECE = 32

#: Bits for cycles from the last slot of a run to its end.
DRAIN_BITS = 6


class _Bits:
    """Takes bits of a row, one value after another."""

    def __init__(self) -> None:
        self.width = 0

    def take(self, bits: int) -> Location:
        """Where the next value lies."""
        self.width += bits
        return Location(bits, (0,), self.width - bits)


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
    >>> layout.router_bits, layout.node_bits, layout.row_bits, layout.block_bits
    (20, 96, 6, 10)
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
        """Bits of a row of a node that are for its router; they come first."""
        return self._outputs[2]

    @property
    def operand_bits(self) -> int:
        """Bits of a row of a node that are for its operators; they follow."""
        return self._outputs[3]

    @cached_property
    def _endpoint(self) -> tuple[EndpointShape, int]:
        """The shape of all endpoints, and the bits of a row."""
        frame, bits, ports = self.frame, _Bits(), self.frame.ports
        memories = tuple(range(ports + 1))
        readers = tuple(
            EndpointReader(
                address=_at_column(bits.take(self.base_bits)),
                memories=memories,
                code=bits.take(len(select_bits(len(memories), 0))),
            )
            for _ in range(ports)
        )
        groups = tuple((port,) for port in range(ports))
        stored = []
        for port in range(ports):
            adds = frame.operators
            sources = (port, ports + port) if adds else (port,)
            stored.append(
                EndpointMemory(
                    number=port, depth=frame.words, own=None, layout=0, sources=sources,
                    address=None, enable=bits.take(self.code_bits),
                    strobes=tuple(range(frame.depth)), skips=False,
                    source=bits.take(1) if adds else None, start=bits.take(self.base_bits),
                    groups=groups, host_reads=True,
                )
            )  # fmt: skip
        stored.append(
            EndpointMemory(
                number=ports, depth=frame.nodes * frame.flits, own=0, layout=0, sources=(),
                address=None, enable=None, strobes=(), skips=False, source=None,
                start=Location(1, (0,)), groups=groups, host_reads=True,
            )
        )  # fmt: skip
        words = len(self._words)
        shape = EndpointShape(tuple(stored), readers, groups, words, bits.width)
        return shape, bits.width

    @property
    def _words(self) -> tuple[int, ...]:
        """What comes from outside to be stored: words of in-ports, and their results."""
        ports, first = self.frame.ports, self.frame.sources.first_result
        results = range(first, first + ports) if self.frame.operators else ()
        return (*range(ports), *results)

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
    def node_bits(self) -> int:
        """Bits of a row of the table of a node."""
        return self.router_bits + self.operand_bits + self._endpoint[1]

    @property
    def pause_bits(self) -> int:
        """Bits of the pause of a row."""
        return (self.frame.depth + 2).bit_length() + 2

    @property
    def row_bits(self) -> int:
        """Bits of a row of the sequencer: its pause, whether it has no block, or is last."""
        return self.pause_bits + 2

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
            "drain": DRAIN_BITS,
        }

    @property
    def mode_bits(self) -> int:
        """Bits of what is known of a mode."""
        return sum(self.mode_fields.values())

    @property
    def block_fields(self) -> dict[str, int]:
        """Where the host finds a block, and the bits of each value."""
        return {"memory": address_width(self.frame.ports + 1), "base": self.base_bits}

    @property
    def block_bits(self) -> int:
        """Bits of where the host finds a block."""
        return sum(self.block_fields.values())

    @property
    def tables(self) -> list[tuple[int, int]]:
        """Rows and bits of each table: those of nodes, of the sequencer, of modes, of blocks."""
        frame = self.frame
        of_mode = frame.blocks << address_width(frame.nodes)
        return [
            *[(frame.rows, self.node_bits)] * frame.nodes,
            (frame.rows, self.row_bits),
            (frame.modes, self.mode_bits),
            (frame.modes * of_mode, self.block_bits),
        ]

    @property
    def bus(self) -> dict[str, int]:
        """What the loader gives to all tables, and the bits of each."""
        rows, widths = (max(each) for each in zip(*self.tables, strict=True))
        return {
            "load_valid": 1,
            "load_table": address_width(len(self.tables)),
            "load_row": address_width(rows),
            "load_piece": address_width(-(-widths // PIECE)),
            "load_word": PIECE,
        }

    @property
    def image_words(self) -> int:
        """Words of the longest image: what each table begins with, and the ends of the whole."""
        pieces = sum(rows * -(-width // PIECE) for rows, width in self.tables)
        return 5 + 3 * len(self.tables) + pieces + 2

    def placement(self, program: Program) -> Placement:
        """Where everything lies: at the nodes."""
        routers, operators, router_bits, operand_bits = self._outputs
        injections = {0: tuple(range(self.frame.ports))}
        one, none = np.zeros(1, int), RowTables(Loops.of(program), [])

        def plan(crossbar: Crossbar, bits: int) -> RouterPlan:
            given = {"select": tuple(Location(1, (0,), k) for k in range(bits))}
            return RouterPlan(crossbar, injections, given, bits)

        endpoints = EndpointPlan((self.shape,), one, (self._wires,), (), none, {}, 0)
        operands = (plan(operators, operand_bits),) if operators else ()
        router = (plan(routers, router_bits),)
        return Placement((), {}, operands, one, router, one, endpoints, none)

    def node_rows(self, form: Loadable) -> IntArray:
        """The rows of a form at every node, as Python integers, shape (rows, nodes)."""
        frame, shape = self.frame, self.shape
        total = np.zeros(form.select.shape[:2], object)
        start = 0
        routers, operators, *_ = self._outputs
        chosen = [(routers, frame.numbers(form.select), 0)]
        if operators:
            chosen.append((operators, frame.numbers(form.operand), frame.sources.first_result))
        for crossbar, numbers, first in chosen:
            for port, output in enumerate(crossbar.outputs):
                codes = np.array([_number(output.code(k))
                                  for k in range(len(output.sources))] + [0], object)  # fmt: skip
                index = np.full(frame.sources.identity + 2, -1)
                index[[source + first for source in output.sources]] = range(len(output.sources))
                total |= codes[index[numbers[:, :, port]]] << start
                start += len(output.bits)

        def put(where: Location | None, values: IntArray) -> None:
            if where is not None and where.start is not None:
                cut = np.where(values < 0, values + (1 << 48), values) & ((1 << where.width) - 1)
                nonlocal total
                total = total | (cut.astype(object) << (start + where.start))

        # In a loop with pauses words are counted on: a late one begins earlier by as much.
        late = 0 if form.streams else 1
        for port, reader in enumerate(shape.readers):
            memory, base, delay = (form.reads[:, :, port, k] for k in range(3))
            pitch = np.where(memory == frame.ports, form.chunks, 1)
            there = memory >= 0
            put(reader.address, np.where(there, base - late * delay * pitch, 0))
            codes = np.array([select_code(len(reader.memories), k) for k in reader.memories])
            put(reader.code, np.where(there, codes[np.maximum(memory, 0)], 0))
        for port, stored in enumerate(shape.memories[: frame.ports]):
            base, delay, result = (form.stores[:, :, port, k] for k in range(3))
            there = delay > 0
            put(stored.enable, np.where(there, delay, 0))
            put(stored.start, np.where(there, base - late * (1 + delay), 0))
            put(stored.source, np.where(there & (result > 0), 1, 0))
        return total


def _number(bits: Sequence[int]) -> int:
    return sum(bit << k for k, bit in enumerate(bits))


def _at_column(where: Location) -> Location:
    """An address to which the word of column 0 is added."""
    return Location(where.width, where.constants, where.start, column=0)


#: A row of which nobody asks.
UNASKED = -1

#: The rows of each table, as `TableLayout.tables` lists them; those at the end may be left out.
Contents = list[list[int]]


def contents_of(layout: TableLayout, forms: Mapping[int, tuple[int, Loadable]]) -> Contents:
    """What forms have in the tables, by their modes; beside each is its first row."""
    frame = layout.frame
    height = max(first + form.rows for first, form in forms.values())
    node_rows = np.full((height, frame.nodes), UNASKED, object)
    of_mode = frame.blocks << address_width(frame.nodes)
    rows, modes = [UNASKED] * height, [UNASKED] * (max(forms) + 1)
    blocks = [UNASKED] * (len(modes) * of_mode)
    for number, (first, form) in forms.items():
        loop = form.program.loop
        node_rows[first : first + form.rows] = layout.node_rows(form)
        timing = form.program.form.timing
        shift = layout.reciprocal_shift
        values = {
            "first": first,
            "by_flit": int(loop.order is Order.FLIT),
            "streams": int(form.streams),
            "late": int(form.reads_late),
            "chunks": form.chunks,
            "reciprocal": -(-(1 << shift) // form.chunks),
            "drain": timing.drain,
        }
        modes[number] = _packed(values, layout.mode_fields)
        last = [0] * (form.rows - 1) + [1]
        said = zip(form.pause.tolist(), form.blocks.tolist(), last, strict=True)
        for row, (pause, some, end) in enumerate(said, first):
            assert pause < 1 << layout.pause_bits
            rows[row] = pause | (int(not some) | end << 1) << layout.pause_bits
        _put_blocks(layout, form, blocks, number * of_mode)
    return [*(list(map(int, column)) for column in node_rows.T), rows, modes, blocks]


def _put_blocks(layout: TableLayout, form: Loadable, blocks: list[int], start: int) -> None:
    """Where the host finds blocks: by node, then as it counts parts of a message, then chunks."""
    frame = layout.frame
    for node in range(frame.nodes):
        for block, (memory, base) in enumerate(form.received[node].tolist()):
            if base >= 0:
                values = {"memory": memory, "base": base}
                at = start + node * frame.blocks + block
                blocks[at] = _packed(values, layout.block_fields)


def _packed(values: dict[str, int], fields: dict[str, int]) -> int:
    """Values side by side."""
    total, start = 0, 0
    for name, bits in fields.items():
        assert 0 <= values[name] < 1 << bits, f"{name} {values[name]} has {bits} bits"
        total |= values[name] << start
        start += bits
    return total
