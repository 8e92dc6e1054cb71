"""Room: a core with writable tables, which executes any program within given limits.

The structure of such a core must not depend on one program. It depends on a *room*: the limits of
all programs that can be loaded (`RoomShape`, `RoomSizes`).

The planners of the core (`plan_all_crossbars`, `plan_stores`) are used unchanged. Instead of a
program they are given *template* rows (`RoomRows`), in which each control point takes every value
that the room allows, at random and independently of all others. The usual rules then find the right
structure: a multiplexer gets the inputs that any program needs, and two bits share a place only if
they are equal in every program. If the rows of a program follow the template, the same plan also
yields the contents of the tables (`assemble_tables`).

Each node has the tables of `SettingTable`. An entry of a table is a *setting*. A row of the
sequencer has the number of a setting in each table, so that rows can share settings. An *entry* of
a program is a form of a mode for a root. A *lag* is the number of cycles by which a reader (a read
port of a node's memories) follows the word counter of the sequencer.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
from amaranth.lib.data import StructLayout

from ...program.fields import IDLE, Action, Loop, Sources, Stage, make_node_memories
from ...program.timing import ADDRESS, MODE_SETUP, RUN_SETUP, SETTING
from ...topology import IntArray, Topology
from ..memories import address_width
from .places import Bit, BitPlace, SequencerSignals
from .router import CrossbarPlan, plan_all_crossbars
from .rows import Delays, NodeKinds, RowField, Rows
from .store_plan import StorePlan, plan_stores

if TYPE_CHECKING:
    from ...collective import Operator

__all__ = ["RoomKinds", "RoomRows", "RoomShape", "RoomSizes", "SettingTable", "assemble_tables",
           "entry_layout", "duration_fields", "row_layout"]  # fmt: skip

#: Number of template values of each control point, at all nodes together. It is large enough that
#: the random values of two control points never agree everywhere by chance.
TEMPLATE_SAMPLES = 1 << 13

#: The minimum number of bits of two fields of a form: the cycles from the last slot of a run to its
#: end, and the least cycles of a row.
DRAIN_BITS, LEAST_BITS = 6, 5


class SettingTable(enum.IntEnum):
    """The writable tables that every node has, each for one purpose.

    A row of such a table is a *setting*. Each row of the sequencer has, for each table, the number
    of one setting, so that rows can share settings. The value of a member of this class is the
    position of its table among these numbers.
    """

    #: The select bits of out-ports.
    SELECT = 0
    #: The select bits of operators.
    OPERAND = 1
    #: For each reader, the memory to read and the first word within a block.
    READ = 2
    #: For each reader, the block to read.
    ADDRESS = 3
    #: For each in-port, the cycles after which its words are stored; 0 for never.
    STORE = 4


@dataclass(frozen=True)
class RoomSizes:
    """The sizes of the tables and memories of a room; all loaded programs share them.

    Parameters
    ----------
    rows : int
        Number of rows, of all modes together.
    depth : int
        The largest value of `Action.TAP` (cycles of the links on the path of a word) and of
        `Action.LAG` (cycles by which a reader reads later in the row) in any row.
    settings : tuple of int
        For each `SettingTable` of a node, the number of its rows. The row of a table is a setting.
    entries : int
        Number of entries of all modes together. An entry is a form of a mode for one root.
    blocks : int
        Number of blocks that nodes receive, in all entries together.
    chunks : int
        The largest number of chunks of a message.
    words : int
        Words of the memory of an in-port.
    """

    rows: int
    depth: int
    settings: tuple[int, ...]
    entries: int
    blocks: int
    chunks: int
    words: int


class RoomShape(Protocol):
    """The limits of the programs that can be loaded into a core.

    `torusfabric.adapters.loading.room.Room` implements this protocol.
    """

    @property
    def topology(self) -> Topology:
        """The network."""

    @property
    def flits(self) -> int:
        """Flits of the longest message."""

    @property
    def sizes(self) -> RoomSizes:
        """Sizes of the tables and memories, which limit the programs."""

    @property
    def sent_words(self) -> int:
        """Number of addresses of the memory of a node for the words that it sends.

        It has `flits` addresses, rounded up to whole beats, for each node of the network.
        """

    @property
    def beat(self) -> int:
        """Flits that a memory port moves in a cycle; they lie in one word of a memory."""

    @property
    def read_lags(self) -> int:
        """The largest lag: cycles by which a reader of the send memory follows the word counter.

        With a lag of d, a reader reads the word that the counter had d cycles ago, so that words of
        one row can leave at different times.
        """

    @property
    def stores_exactly(self) -> bool:
        """True if a node corrects the address of a stored word by the cycles of its path.

        The address counts on while the word is on its path. Without the correction, a word with a
        path of d more cycles lies d addresses higher.
        """

    @property
    def may_read_late(self) -> bool:
        """True if a form may read all words later, by the latency of a link."""

    @property
    def sources(self) -> Sources:
        """The words that out-ports and operators can select, with their numbers."""

    def source_numbers(self, action: Action, port: int) -> tuple[int, ...]:
        """Return the words that an out-port or an operator can select, as numbers in `sources`.

        Parameters
        ----------
        action : Action
            `Action.SELECT` for an out-port, `Action.OPERAND` for an operator.
        port : int
            The number of the out-port, or of the in-port with the operator.
        """

    def memories_of_reader(self, port: int) -> tuple[int, ...]:
        """Return the memories that reader `port` must be able to read, by their numbers.

        A reader passes words of memories to the router. There is one reader for each port.
        """

    def parsed_operators(self) -> tuple[Operator, ...]:
        """Return the operators that runs choose from."""


def address_bits(room: RoomShape) -> int:
    """Return the bits of an address of the deepest memory.

    Parameters
    ----------
    room : RoomShape
        The limits of the programs that the core can execute.
    """
    return address_width(max(room.sizes.words, room.sent_words))


def duration_fields(room: RoomShape) -> dict[str, int]:
    """Return the fields, name -> bits, of a table entry that decide the duration of a row.

    ``pause``: cycles of the pause after the words of the row; ``empty``: 1 if no block moves;
    ``ends``: 1 if the row is the last.

    Parameters
    ----------
    room : RoomShape
        The limits of the programs that the core can execute.
    """
    return {"pause": (room.sizes.depth + 2).bit_length() + 2, "empty": 1, "ends": 1}


def row_layout(room: RoomShape) -> StructLayout:
    """Return the bit layout of the sequencer's row table, which has an entry for each row.

    An entry has the duration of the *next* row (for the last row, of the first one), the address
    ``at`` at which words are stored, and a field ``setting_..`` for each table of the nodes: the
    number of the table's row to use.

    Parameters
    ----------
    room : RoomShape
        The limits of the programs that the core can execute.
    """
    named = {
        f"setting_{table.name.lower()}": address_width(count)
        for table, count in zip(SettingTable, room.sizes.settings, strict=True)
    }
    return StructLayout({**duration_fields(room), "at": address_bits(room), **named})


def entry_layout(room: RoomShape) -> dict[str, int]:
    """Return the fields, name -> bits, of the form table, with which the sequencer begins a run.

    It has an entry for each form of a mode and each root.

    =========== =========================================================
    ``first``   number of the first row
    ``by_flit`` all rows come once for each flit (`Order.FLIT`)
    ``streams`` words of a row arrive while later rows pass
    ``late``    words are read later, by the latency of a link
    ``chunks``  chunks of a message
    ``drain``   cycles from the last slot to the last cycle of a run
    ``least``   least number of cycles of a row
    =========== =========================================================

    The fields of `duration_fields` follow, with the duration of the first row of the form.

    Parameters
    ----------
    room : RoomShape
        The limits of the programs that the core can execute.
    """
    longest = room.topology.longest_link
    return {
        "first": address_width(room.sizes.rows),
        "by_flit": 1,
        "streams": 1,
        "late": 1,
        "chunks": room.sizes.chunks.bit_length(),
        "drain": max(room.sizes.depth.bit_length() + 1, DRAIN_BITS),
        "least": max(longest.bit_length() + 2, LEAST_BITS),
        **duration_fields(room),
    }


class RoomRows(Rows):
    """Rows from which a core for many programs is planned, and behind them the rows of one program.

    The first rows are the *template*: in each of them, each control point (selector, address or
    enable of a node) has a random value, and every value that the room allows occurs. Hardware that
    is planned for these rows can execute every program of the room. The rows of a program follow
    only if `values` is given; the plan then yields the contents of the tables for this program.

    Parameters
    ----------
    room : RoomShape
        The limits of the programs that can be loaded.
    values : mapping of Action to (ndarray of int), shape (rows, nodes, ports)
        The values of control points in the rows of a program: sources by their numbers in the room,
        memories, addresses, and cycles until words are stored; -1 where they do not matter.
    """

    def __init__(self, room: RoomShape, values: Mapping[Action, IntArray] | None = None) -> None:
        self.room = room
        ports, nodes = room.topology.ports, room.topology.nodes
        self.links = room.topology.one_latency or 1
        self._template, self._values = -(-TEMPLATE_SAMPLES // nodes), values or {}
        rows = next(map(len, self._values.values()), 0)
        self.loops: tuple[Loop, ...] = ()
        self.low_bits, self.stores_exactly = (room.flits - 1).bit_length(), room.stores_exactly
        self.starts, self.stops = np.zeros(1, int), np.array([self._template + rows])
        self.form_of_row = np.zeros(self.n_rows, int)
        self.used = np.arange(nodes)
        self.memories = make_node_memories(range(ports), 1)
        self.depth = np.tile([room.sizes.words] * ports + [room.sent_words], (nodes, 1))
        self._known: dict[tuple[Action, int], RowField | None] = {}

    @property
    def blocks(self) -> IntArray:
        """Blocks of each row, here always 1.

        A table of the node decides if the words of the block are stored.
        """
        return np.ones(self.n_rows, int)

    @property
    def n_template_rows(self) -> int:
        """Number of random rows, which come before the rows of a program."""
        return self._template

    @property
    def sources(self) -> Sources:
        """The words that out-ports and operators can select, with their numbers."""
        return self.room.sources

    @property
    def ports(self) -> int:
        """Ports of a node."""
        return self.room.topology.ports

    @property
    def run_setup(self) -> int:
        """Cycles from a start to the cycle in which the sequencer presents the first row."""
        return RUN_SETUP + MODE_SETUP

    def pitch_of(self, memory: int) -> Delays:
        """Return the distance between the addresses of successive flits of a block: ``(1,)``.

        The tuple has one entry, for the only form. For the memory of sent words it is ``(0,)``. In
        this memory the chunks are interleaved, so that the distance depends on the program. The
        entry 0 stands for the second word counter, which the sequencer advances by the number of
        chunks.

        Parameters
        ----------
        memory : int
            The number of the memory; that of sent words comes after one for each port.
        """
        return (int(memory < self.room.topology.ports),)

    def max_word_offset(self, pitch: Delays) -> int:
        """Return the largest distance of an address in a row from the first address of the row.

        It is the highest address of the deepest memory, because a later program may use any
        distance.

        Parameters
        ----------
        pitch : Delays
            The same as in `Rows.max_word_offset`, ignored here.
        """
        return (1 << address_bits(self.room)) - 1

    def _random_values(
        self, action: Action, number: int, options: Sequence[int], *, alike: bool = False
    ) -> IntArray:
        """Return random values of a control point, taken from `options`, shape (rows, nodes).

        A control point is a selector, an address or an enable of a node; `action` and `number`
        identify it, and seed the random numbers. Each option occurs at least once. If `alike`, all
        nodes have the same value in a row.
        """
        shape = self._template, 1 if alike else len(self.used)
        seed = [*Action].index(action), number
        values = np.random.default_rng(seed).integers(len(options), size=shape)
        values.flat[: len(options)] = range(len(options))
        found: IntArray = np.array(options)[values]
        return np.broadcast_to(found, (self._template, len(self.used)))

    def _join_point(self, action: Action, number: int) -> RowField | None:
        """Return the random values of a control point, followed by those of the program.

        A control point is a selector, an address or an enable of a node: here the point for
        `action` at the port, reader or memory `number`. The result is None if the room does not
        allow any value at this point.
        """
        delays = {Action.SELECT: SETTING, Action.OPERAND: SETTING + self.links}
        found = self._template_field(action, number)
        if found is None:
            return None
        if action in self._values:
            found = np.concatenate([found, self._values[action][..., number]])
        missing = ((0, self.n_rows - len(found)), (0, 0))
        found = np.pad(found, missing, constant_values=IDLE)
        reads = action in (Action.READ, Action.MEMORY, Action.LAG)
        return RowField(found, (delays.get(action, ADDRESS if reads else SETTING),))

    def _template_field(self, action: Action, number: int) -> IntArray | None:
        """Return random values of a control point, shape (rows, nodes), or None if it does nothing.

        A control point is a selector, an address or an enable of a node: here the point for
        `action` at the port, reader or memory `number`. Every value that the room allows occurs.
        """
        room, sources, draw = (
            self.room,
            self.room.sources,
            partial(self._random_values, action, number),
        )
        if action in (Action.SELECT, Action.OPERAND):
            options = room.source_numbers(action, number)
            return draw(options) if options else None
        if action is Action.MEMORY:
            return draw(room.memories_of_reader(number))
        if action is Action.LAG:
            return draw(range(room.read_lags + 1)) if room.read_lags else None
        if action is Action.READ:
            memory = self.field(Action.MEMORY, number)
            assert memory is not None
            size = 1 << np.array([address_width(depth) for depth in self.depth[0].tolist()])
            return draw(range(size.max())) % size[memory.values[: self._template]]
        if number >= room.topology.ports:
            return None
        if action is Action.WRITE:
            # All memories of in-ports are written at the same address.
            return self._random_values(
                action, 0, range(1 << address_width(room.sizes.words)), alike=True
            )
        if action is Action.TAP:
            return draw(range(room.sizes.depth + 1))
        stage = Stage.EARLY_RESULT if sources.made else Stage.PORT
        return draw([sources.by_number.index((stage, number))], alike=True)


def assemble_tables(
    room: RoomShape, values: Mapping[Action, IntArray], *, idles: bool
) -> dict[SettingTable, IntArray]:
    """Return the contents of the tables of the nodes for the rows of a program.

    Parameters
    ----------
    room : RoomShape
        The limits of the programs that can be loaded.
    values : mapping of Action to (ndarray of int)
        The values of all selectors, addresses and enables of nodes in the program, see `RoomRows`.
    idles : bool
        True if the identity word, which leaves the result of an operator unchanged, is 0.

    Returns
    -------
    dict of SettingTable to (ndarray of int), shape (rows, nodes, bits)
        The bits of each table for each row of the program; -1 where a bit does not matter. A table
        that the nodes do not have has 0 bits.
    """
    rows = RoomRows(room, values)
    kinds, columns = RoomKinds(rows), SequencerSignals(by_setting=True)
    routers, operators = plan_all_crossbars(rows, kinds, columns, idles=idles)
    stores = plan_stores(rows, kinds, columns, idles=idles, port=None, beat=room.beat)
    check_template(room, [*routers, *operators], stores)
    placers = [each.placer for each in (*routers, *operators)]
    placers += [store.placer for store in stores]
    known = {
        table.name: np.stack(table.columns, axis=-1)[0, rows.n_template_rows :]
        for placer in placers
        for table in placer.tables
    }
    none = np.zeros((rows.n_rows - rows.n_template_rows, len(rows.used), 0), int)
    return {table: known.get(table.name.lower(), none) for table in SettingTable}


def check_template(
    room: RoomShape, crossbars: Sequence[CrossbarPlan], stores: Sequence[StorePlan]
) -> None:
    """Assert that each select bit and address bit of the nodes has a bit of its own in a table.

    The nodes are planned for random rows (see `RoomRows`). The plan fits every program if these
    rows contain all values that the room allows, and if no two selectors, addresses or enables have
    equal values in all rows.

    Parameters
    ----------
    room : RoomShape
        The limits of the programs that the core can execute.
    crossbars : sequence of CrossbarPlan
        The plan of the router, then that of the operators if there are any.
    stores : sequence of StorePlan
        The plan of the memories and readers, the only entry.
    """
    (store,) = stores
    shape, used = store.shape, list[tuple[int, Sequence[Bit]]]()
    for number, crossbar in enumerate(crossbars):
        for port, choice in enumerate(crossbar.choices):
            action = Action.OPERAND if number else Action.SELECT
            options = len(room.source_numbers(action, port))
            assert (choice.n_inputs if choice else 0) == options, "a template has all sources"
            used.append((number, choice.bits if choice else ()))
    memories = sorted(room.memories_of_reader(port) for port in range(room.topology.ports))
    read = sorted(tuple(number for number, _ in reader.inputs) for reader in shape.readers)
    assert read == memories, "a template has all memories"
    used += [(2, reader.choice.bits) for reader in shape.readers]
    copies = [(bank, copy.address) for bank in shape.banks for copy in bank.copies if copy.address]
    used += [(2, address.lag) for _, address in copies]
    firsts = {address.first: bank.depth for bank, address in copies}
    for first, depth in firsts.items():
        assert len(first) == (depth - 1).bit_length(), "a template has all addresses"
    # The memories of a reader share one first address. The deepest memory uses all its bits.
    longest = [
        first
        for first in firsts
        if not any(first == each[: len(first)] and first != each for each in firsts)
    ]
    used += [(2, first) for first in longest]
    used += [(2, arrival.late) for bank in shape.banks for arrival in bank.arrivals]
    bits = [(part, bit.table, bit.number) for part, each in used for bit in each]
    assert len(bits) == len({*bits}), "no two values of a template agree"
    assert all(bit.place is BitPlace.TABLE for _, each in used for bit in each), (
        "no value is constant"
    )


class RoomKinds(NodeKinds):
    """The kinds of nodes of a core with writable tables: a single one.

    All nodes have the same modules, because a program may give any node any actions.
    """

    def __init__(self, rows: RoomRows, *, concurrent: bool = False) -> None:
        nodes = len(rows.used)
        self.rows, self.kind_of = rows, np.zeros(nodes, int)
        self.variants = np.broadcast_to(np.arange(nodes), (1, rows.n_rows, nodes))
        # A memory port that is used during runs does not read the memory of sent words.
        shown = [k for k, memory in enumerate(rows.memories) if not (concurrent and memory.own)]
        self.__dict__["received_memories"] = (frozenset(shown),)
