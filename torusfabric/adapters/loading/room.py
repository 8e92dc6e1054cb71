"""Room: the capacity of a loaded fabric, as data from which its hardware is built.

The terms of this module:

- A *form* is one schedule of a mode, here in canonical form (see `rewriting`): rewritten so that
  every large enough room can execute it.
- An *entry* is one form of a mode, for one root if runs choose the root.
- A *reader* is a read port of a node's memories.
- A *source* is an input that an out-port or an operator can select. A *stage* is the part of a node
  that provides it: an in-port, the result of an operator, a register behind these, ..
- A *slot* is a cycle in which the sequencer presents a row and a flit. A word is read, or stored,
  some cycles after its slot. The *word counter* counts the slots of a row.
- A *setting* is a row of a setting table of a node (`SettingTable`): the values of some selectors,
  addresses or enables. The rows of a program refer to settings by number.
- The data that a node sends or receives consist of *parts*: the message for one destination, or
  from one origin.

A `Room` has the sizes of all tables and memories, and the inputs of each multiplexer of a node: the
sources that an out-port or an operator can select, and the memories that a reader can read.
`room_for` makes a room large enough for some modes. The hardware is built from the room alone, so
every form that passes `Room.check_form` can be loaded later.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...collective import Operator
from ...errors import InputError
from ...program.fields import IDLE, Action, Sources, Stage
from ...rtl.core.room import RoomSizes, SettingTable
from ...rtl.flit_rows import round_up_to_beats
from ...rtl.memories import address_width
from ...toolchain.values import parse_non_negative_int
from ...topology import IntArray, Topology, topology_from_json, without_faults
from .loadable import LoadableForm, LoadableMode, list_entries
from .places import allocate_entries, join_settings, stack_ranges
from .rewriting import canonical_sources

if TYPE_CHECKING:
    from ...program import Program

__all__ = ["Room", "require_room_size", "room_for"]

#: Least capacities of a room: entries of modes, received blocks of each node, chunks of a message.
LEAST_ENTRIES, LEAST_BLOCKS, LEAST_CHUNKS = 4, 64, 16

#: If the user chooses the number of rows, each `SettingTable` of a node has at least
#: rows / SHARES[table] settings, and at least LEAST_SETTINGS. Why fewer than rows: rows share
#: settings.
SHARES, LEAST_SETTINGS = (2, 2, 2, 1, 2), 8

#: Upper limit of `LoadableForm.least_row_cycles`, the least cycles of a row, for links of one
#: cycle.
MOST_LEAST_CYCLES = 8

#: Upper limit of the clock edges that a run takes besides those of its rows.
OTHER_RUN_CYCLES = 64

#: Upper limits of the rows, and of the cycles from a slot to the arrival of its word. Tools already
#: take minutes for fabrics of these sizes.
MOST_ROWS, MOST_DEPTH = 2**16, 2**12

#: Upper limit of the entries. Each has a comparator, because a start is compared with all at once.
MOST_ENTRIES = 256

#: Names of sources, by `Stage`.
SOURCE_NAMES = ("in-port {}", "the second register of in-port {}", "the operator at in-port {}",
           "the second register of operator {}", "what is made at in-port {}", "injection port {}",
           "the word that changes nothing")  # fmt: skip


class _Limit(NamedTuple):
    """A resource of a fabric: its name, its amount in the fabric, and the amount a form needs.

    For example ("chunks", 16, 4): the form has 4 chunks, and the fabric has space for 16.
    """

    name: str
    most: int
    needed: int


@dataclass(frozen=True)
class NodePaths:
    """The paths that words can take through a node: registers, and inputs of multiplexers.

    A *source* is one input of the multiplexer of an out-port or an operator, given as two numbers:
    a `Stage` (the part of the node that provides it) and a number within the stage. For example
    (`Stage.PORT`, 2) is in-port 2.

    Parameters
    ----------
    later : bool
        True if there is a second register behind each in-port and each operator, so that a word can
        be selected one cycle later.
    late : bool
        True if the node can read words later than usual, by the latency of a link, in forms in
        which words of a row arrive while later rows are executed; see
        `LoadableForm.has_late_reads`.
    inputs : tuple of (tuple of (int, int)), or None
        For P ports, 3 P tuples: first the sources of each out-port, then the sources of each
        operator, then the memories of each reader (a read port of the memories) as pairs (memory,
        0). None if every multiplexer has all inputs.
    """

    later: bool
    late: bool
    inputs: tuple[tuple[tuple[int, int], ...], ...] | None


@dataclass(frozen=True)
class Room:
    """The capacity of a fabric with loaded tables: the limits of all programs that fit into it.

    Parameters
    ----------
    topology : Topology
        The network, without faults.
    flits : int
        Flits of the longest message.
    operators : tuple of str
        Names of the operators; empty if nodes have none and reductions cannot be loaded.
    sizes : RoomSizes
        Sizes of tables and memories.
    ways : NodePaths
        Paths of words through a node.
    roots : bool
        True if a run may choose the root.
    streams : bool
        True if nodes have streams. Each node then has a table of its received blocks, of
        `sizes.blocks` rows.
    lists : bool
        True if the rows of that table also have the origin of each packet. A node may then receive
        packets from only some of the origins.
    beat : int
        Flits in a word of ports and in a row of memories.

    Examples
    --------
    Words cross one link in a row. The memory of each in-port has 128 words.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("4x4", "alltoall", algorithm="matching"), max_flits=4)
    >>> room = room_for([program], rows=64)
    >>> room.sizes.depth, room.sizes.words, room.sources.identity
    (1, 128, 8)
    >>> room == Room.from_json(room.to_json())
    True
    """

    topology: Topology
    flits: int
    operators: tuple[str, ...]
    sizes: RoomSizes
    ways: NodePaths
    roots: bool
    streams: bool = False
    lists: bool = False
    beat: int = 1

    def __post_init__(self) -> None:
        require_room_size(self.sizes.rows, self.sizes.depth)

    @property
    def ports(self) -> int:
        """Number of ports of a node."""
        return self.topology.ports

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.topology.nodes

    @property
    def may_read_late(self) -> bool:
        """True if nodes can read words later than usual, by the latency of a link.

        Forms with `LoadableForm.has_late_reads` need this. In them, words of a row arrive while
        later rows are executed.
        """
        return self.ways.late

    @property
    def part_words(self) -> int:
        """Number of addresses of one part of a send memory: `flits`, rounded up to whole beats.

        A *part* is the message of a node for one destination.
        """
        return round_up_to_beats(self.flits, self.beat)

    @property
    def sent_words(self) -> int:
        """Number of addresses of the send memory of a node: `part_words` for each destination."""
        return self.nodes * self.part_words

    @property
    def longest_run(self) -> int:
        """Upper bound of the clock edges of a run, whatever image is loaded."""
        sizes = self.sizes
        return (
            OTHER_RUN_CYCLES
            + 2 * sizes.depth
            + sizes.rows * (self.part_words + sizes.depth + MOST_LEAST_CYCLES)
        )

    @property
    def stores_exactly(self) -> bool:
        """True if the hardware subtracts the delay of each word from its address in the memory.

        A word of a row arrives d cycles after the sequencer has presented the row, and the address
        counter of the row has advanced meanwhile. With the subtraction, the address does not depend
        on d.

        Why: with a beat above 1 a block has to begin at a whole row of the memory. With beat 1
        nodes need not subtract: the word simply lies d - 1 addresses above the store address of its
        row.
        """
        return self.beat > 1 and self.sizes.depth > 1

    @property
    def read_lags(self) -> int:
        """Largest *lag*: the cycles by which a reader of the send memory follows the word counter.

        A reader is a read port of a node, and the word counter counts the words of the present row.
        With beat 1 a reader needs no lag, because a lower first address has the same effect; the
        result is 0. With a larger beat the addresses of a chunk in the send memory are not evenly
        spaced, so the reader has to delay the counter. Only words that operators combine are read
        late, so the result is 0 without operators.
        """
        return min(self.beat - 1, self.sizes.depth) if self.operators else 0

    @cached_property
    def sources(self) -> Sources:
        """The sources (possible inputs) of out-ports and operators, with their numbers.

        In a fabric with operators every arriving word passes through an operator, which leaves the
        word unchanged if the other operand is the identity. So out-ports and memories take arriving
        words from operators only.
        """
        ports = range(self.ports)
        later, adds = tuple(ports) if self.ways.later else (), bool(self.operators)
        injections = tuple((k,) for k in ports)
        return Sources(self.ports, later, adds, later if adds else (), injections, made=adds)

    @cached_property
    def numbers_in_room(self) -> IntArray:
        """Array that translates the source numbers of forms into the source numbers of this room.

        A source is an input that an out-port or an operator can select. All loadable forms number
        the sources alike (see `canonical_sources`). Element k is the number in this room of their
        source k, or -1 if the room lacks this source. The last element, -1, is there for the index
        -1, which stands for an idle selector.
        """
        listed = {source: number for number, source in enumerate(self.sources.by_number)}
        instead = (
            {Stage.PORT: Stage.EARLY_RESULT} if self.operators else {Stage.EARLY_RESULT: Stage.PORT}
        )
        every = canonical_sources(self.ports).by_number
        found = [listed.get((instead.get(stage, stage), k), IDLE) for stage, k in every]
        return np.array([*found, IDLE])

    def _numbers_of_sources(self, named: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """Return the numbers in this room of the sources in `named`, in ascending order.

        A source is a pair (`Stage`, number), such as (`Stage.PORT`, 2) for in-port 2. Sources that
        the room lacks are left out.
        """
        found = {int(self.numbers_in_room[stage * self.ports + number]) for stage, number in named}
        return tuple(sorted(found - {IDLE}))

    def source_numbers(self, action: Action, port: int) -> tuple[int, ...]:
        """Return the numbers, in this room, of the sources that one multiplexer can select.

        A source is an input such as the word of an in-port. If `action` is `Action.SELECT`, the
        multiplexer is the one of out-port `port`. If it is `Action.OPERAND`, the multiplexer
        selects the second operand of the operator behind in-port `port`.
        """
        sources, adds = self.sources, bool(self.operators)
        operand = action is Action.OPERAND
        if self.ways.inputs is not None:
            return self._numbers_of_sources(self.ways.inputs[port + self.ports * operand])
        if operand:
            # An operand is never an operator's result of the same cycle (`Stage.EARLY_RESULT`):
            # that would be a combinational path through two operators.
            results = range(
                sources.first_of_stage(Stage.RESULT), sources.first_of_stage(Stage.EARLY_RESULT)
            )
            return (*results, *range(sources.first_injection, sources.identity + 1)) if adds else ()
        passed = range(self.ports * adds, sources.first_injection)
        own = sources.first_injection + port
        return (*passed, own, *range(sources.identity, sources.identity + adds))

    def memories_of_reader(self, port: int) -> tuple[int, ...]:
        """Return the numbers of the memories that reader `port` of a node can read.

        A reader is a read port; each port of the node has one. Memory k stores the words of in-port
        k. The number after the last in-port stands for the send memory.
        """
        if self.ways.inputs is None:
            return tuple(range(self.ports + 1))
        return tuple(memory for memory, _ in self.ways.inputs[2 * self.ports + port])

    def read_addresses(self, form: LoadableForm) -> IntArray:
        """Return the first address of each reader in each row of a form; -1 for idle readers.

        The shape is (rows, nodes, ports); a reader is a read port, one for each port of a node. In
        each cycle the hardware adds the word counter, the number of the word within the row. An
        address may be negative before the first word; so it is taken modulo the size of the memory.
        """
        memory, first = form.action_values(Action.MEMORY), form.action_values(Action.READ)
        own = memory == self.ports
        if not form.has_overlapping_rows:
            # A word with lag n is read when the counter has advanced by n more words.
            counted = form.reader_lags - np.maximum(self.read_lag(form), 0)
            first = first - counted * np.where(own, form.n_chunks, 1)
        size = 1 << np.where(own, address_width(self.sent_words), address_width(self.sizes.words))
        return np.where(memory >= 0, first % size, IDLE)

    def read_lag(self, form: LoadableForm) -> IntArray:
        """Return the cycles by which each reader of the send memory follows the word counter.

        The shape is (rows, nodes, ports), for the rows of `form`; a reader is a read port, one for
        each port of a node. The word counter counts the words of a row. The value is -1 for readers
        of other memories and for idle readers. Why readers follow later: see `read_lags`.
        """
        within = 0 if form.has_overlapping_rows else form.reader_lags % self.beat
        return np.where(form.action_values(Action.MEMORY) == self.ports, within, IDLE)

    def store_addresses(self, form: LoadableForm) -> IntArray:
        """Return, for each row of a form, the address at which arriving words are stored.

        The address is that of the first word; for later words the hardware adds the number of the
        word within the row. If `stores_exactly` is True, the hardware also subtracts the delay of
        the word: the cycles from the row that the sequencer presents to the arrival.
        """
        late = form.store_delays.max() if form.has_overlapping_rows else 1
        found: IntArray = form.store_addresses + late * self.stores_exactly
        return found

    def setting_values(self, form: LoadableForm) -> dict[SettingTable, IntArray]:
        """Return the values that nodes need from their setting tables in each row of a form.

        A key is a setting table of a node, such as `SettingTable.SELECT` with the select bits of
        out-ports. The array of the key has the shape (program rows, nodes, values of one entry of
        the table). A value of -1 does not matter in its row: the table may hold any value instead.
        """
        first, low = self.read_addresses(form), (self.flits - 1).bit_length()
        block, within = (np.where(first >= 0, each, IDLE) for each in np.divmod(first, 1 << low))
        moves = (form.program.loop.blocks > 0)[:, None, None]
        lags = [self.read_lag(form)] if self.read_lags else []
        return {
            SettingTable.SELECT: form.action_values(Action.SELECT),
            SettingTable.OPERAND: form.action_values(Action.OPERAND),
            SettingTable.READ: np.concatenate(
                [form.action_values(Action.MEMORY), within, *lags], axis=2
            ),
            SettingTable.ADDRESS: block,
            SettingTable.STORE: np.where(moves, form.store_delays, IDLE),
        }

    def settings_of(
        self, forms: Sequence[LoadableForm]
    ) -> dict[SettingTable, tuple[IntArray, int]]:
        """Return, for each setting table, the setting that each program row uses, and their count.

        A *setting* is one entry of a setting table of a node, such as the select bits of all
        out-ports. The rows of the programs of `forms` are concatenated. A key of the result is a
        setting table; its value is an array with the setting number of each row, and the number of
        different settings. Rows with equal values share a setting; -1 counts as equal to any value.
        """
        each = [self.setting_values(form) for form in forms]
        return {
            table: join_settings(np.concatenate([one[table] for one in each]))
            for table in SettingTable
        }

    def check_form(self, form: LoadableForm) -> None:
        """Check that a fabric of this capacity can execute a form.

        Raises
        ------
        InputError
            If the topology, message length or operators differ, or the form needs more rows, words
            of memory or other resources, or other multiplexer inputs, than the fabric has.
        """
        program = form.program
        if without_faults(program.topology) != self.topology:
            raise InputError(
                f"Topology must be {self.topology.title} for this fabric, not "
                f"{program.topology.title}"
            )
        if program.flits != self.flits:
            raise InputError(
                f"Max flits (--max-flits) must be {self.flits} for this fabric, not {program.flits}"
            )
        if form.needs_operators:
            names = tuple(each.name for each in program.operators)
            if not self.operators:
                raise InputError(
                    "This fabric has no operators, which a reduction needs; build it with a "
                    "reduction among its collectives, for example allgather,reduce"
                )
            if names != self.operators:
                raise InputError(
                    f"Operators must be {', '.join(self.operators)} for this fabric, not "
                    f"{', '.join(names)}"
                )
        blocks = int(form.block_rows(streams=self.streams).max())
        least = MOST_LEAST_CYCLES * self.topology.longest_link
        for limit in (
            _Limit("rows (--rows)", self.sizes.rows, form.n_rows),
            _Limit("cycles of depth (--depth)", self.sizes.depth, form.longest_delay),
            _Limit("cycles of the shortest row", least, form.least_row_cycles),
            _Limit("chunks", self.sizes.chunks, form.n_chunks),
            _Limit("blocks of nodes", self.sizes.blocks, blocks),
            _Limit("words of a memory", self.sizes.words, form.memory_words),
        ):
            self.check_count(*limit)
        assert self.read_lag(form).max() <= self.read_lags, "only what is combined is read later"
        if form.has_late_reads and not self.may_read_late:
            raise InputError(
                "This schedule needs reads delayed by the link latency, which this fabric was "
                "built without; build it with a reduction and --inputs all"
            )
        if self.streams and form.has_partial_receivers and not self.lists:
            raise InputError(
                "This schedule needs lists of origins at nodes that lack packets, which this "
                "fabric was built without; build it with --inputs all"
            )
        self._check_inputs(form)

    @staticmethod
    def check_count(what: str, most: int, needed: int) -> None:
        """Raise InputError if a schedule needs more of a resource than the fabric has.

        Parameters
        ----------
        what : str
            Name of the resource, for the message.
        most, needed : int
            Amount in the fabric, and amount that the schedule needs.
        """
        if needed > most:
            raise InputError(
                f"This schedule needs {needed} {what}, but this fabric has {most}; build it with "
                "more, or choose another algorithm"
            )

    def _check_inputs(self, form: LoadableForm) -> None:
        """Raise InputError if a multiplexer of a node lacks an input that a form selects."""
        names = self.topology.port_names
        for what, action in (("out-port", Action.SELECT), ("operator", Action.OPERAND)):
            if action is Action.OPERAND and not self.operators:
                continue
            values = form.action_values(action)
            for port, name in enumerate(names):
                known = values[..., port]
                fits = np.isin(self.numbers_in_room[known], self.source_numbers(action, port))
                wrong = np.argwhere((known >= 0) & ~fits)
                if len(wrong):
                    row, node = wrong[0].tolist()
                    stage, number = divmod(int(known[row, node]), self.ports)
                    at = names[number] if stage < Stage.INJECTION else number
                    self._raise_missing_input(
                        f"{what} {name} of node {node}", SOURCE_NAMES[stage].format(at)
                    )
        memory = form.action_values(Action.MEMORY)
        for port, name in enumerate(names):
            for number in np.unique(memory[..., port]).tolist():
                if number >= 0 and number not in self.memories_of_reader(port):
                    whose = f"in-port {names[number]}" if number < self.ports else "what is sent"
                    self._raise_missing_input(
                        f"the reader of out-port {name}", f"the memory of {whose}"
                    )

    @staticmethod
    def _raise_missing_input(where: str, source: str) -> None:
        raise InputError(
            f"This schedule needs an input of {where} from {source}, which this fabric was built "
            "without; build it with --inputs all"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the room, the capacity of a fabric, as JSON data for a manifest."""
        facts = asdict(self.sizes) | asdict(self.ways) | {"roots": self.roots}
        if self.streams:
            facts |= {"streams": True, "lists": self.lists}
        if self.beat > 1:
            facts |= {"beat": self.beat}
        return facts | {
            "topology": self.topology.to_entry(),
            "flits": self.flits,
            "operators": list(self.operators),
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Room:
        """Return the room from `facts`, the JSON data that `to_json` returned."""
        sizes = {each.name: facts[each.name] for each in fields(RoomSizes)}
        inputs = facts["inputs"] and tuple(
            tuple((int(a), int(b)) for a, b in port) for port in facts["inputs"]
        )
        return cls(
            topology=topology_from_json(facts["topology"]),
            flits=int(facts["flits"]),
            operators=tuple(facts["operators"]),
            sizes=RoomSizes(**sizes | {"settings": tuple(map(int, facts["settings"]))}),
            ways=NodePaths(bool(facts["later"]), bool(facts["late"]), inputs),
            roots=bool(facts["roots"]),
            streams=bool(facts.get("streams")),
            lists=bool(facts.get("lists")),
            beat=int(facts.get("beat", 1)),
        )

    def with_facts(self, **facts: Any) -> Room:
        """Return a copy of the room with some of its data replaced.

        The keywords are the keys of the data that `to_json` returns.
        """
        return self.from_json(self.to_json() | facts)

    def digest(self, width: int) -> int:
        """Return a 32-bit digest of the hardware of this room with flits of `width` bits."""
        text = json.dumps([self.to_json(), width, "core"], sort_keys=True)
        return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)

    def parsed_operators(self) -> tuple[Operator, ...]:
        """Return the operators, made from their names."""
        return tuple(map(Operator.parse, self.operators))


def room_for(
    programs: Sequence[Program | LoadableMode],
    *,
    rows: int | None = None,
    depth: int | None = None,
    inputs: Sequence[Program] | None = None,
    streams: bool = False,
) -> Room:
    """Return a `Room`, the capacity of a fabric with loaded tables, large enough for some modes.

    Its topology, message length and beat are those of the first mode.

    Parameters
    ----------
    programs : sequence of Program or LoadableMode
        The modes; a program stands for a mode of one form.
    rows, depth : int, optional
        Number of rows of all modes together; and the largest delay of a word, in cycles from the
        row that the sequencer presents to the arrival. By default as large as the modes need.
    inputs : sequence of Program, optional
        Further programs that may be loaded later. Multiplexers of nodes then have only the inputs
        that these and `programs` select. By default every multiplexer has all inputs.
    streams : bool
        True if nodes have streams.

    Raises
    ------
    InputError
        If a mode does not fit into the given rows or depth, or there are too many entries (forms of
        all modes, each counted once for each root).
    """
    modes = [
        each if isinstance(each, LoadableMode) else LoadableMode((LoadableForm.from_program(each),))
        for each in programs
    ]
    entries = list_entries(modes)
    forms = [entry.form for entry in entries]
    first = forms[0].program
    others = [*forms, *(LoadableForm.from_program(each) for each in inputs or ())]
    nodes, needed = first.topology.nodes, [form for form in forms if form.needs_operators]
    beat = forms[0].beat
    sizes = RoomSizes(
        rows=max(rows or 0, 1) if rows else sum(form.n_rows for form in forms),
        depth=depth or max(form.longest_delay for form in others),
        settings=(),
        entries=_power_of_two(len(forms), LEAST_ENTRIES),
        blocks=_power_of_two(
            stack_ranges([form.block_rows(streams=streams) for form in forms])[1],
            LEAST_BLOCKS * (1 if streams else nodes),
        ),
        chunks=_power_of_two(max(form.n_chunks for form in others), LEAST_CHUNKS),
        # Without a list of inputs, twice the words: plans around faults store more on their way.
        words=_power_of_two(
            max(form.memory_words for form in others),
            nodes * round_up_to_beats(first.flits, beat) * (2 if inputs is None else 1),
        ),
    )
    ways = NodePaths(
        later=any(form.needs_second_registers for form in others),
        late=bool(needed) and (inputs is None or any(form.has_late_reads for form in others)),
        inputs=None if inputs is None else _used_sources(others, first.ports),
    )
    room = Room(
        topology=without_faults(first.topology),
        flits=first.flits,
        operators=tuple(each.name for each in needed[0].program.operators) if needed else (),
        sizes=sizes,
        ways=ways,
        roots=any(mode.any_root for mode in modes),
        streams=streams,
        lists=streams and (inputs is None or any(form.has_partial_receivers for form in others)),
        beat=beat,
    )
    if sizes.entries > MOST_ENTRIES:
        raise InputError(
            f"Loaded tables take at most {MOST_ENTRIES} forms of modes, not {len(forms)}; choose "
            "fewer collectives, or --forms short"
        )
    asked, most = rows or 0, rows or sizes.rows
    settings = [
        max(count, min(most, max(-(-asked // share), LEAST_SETTINGS)))
        for share, (_, count) in zip(SHARES, room.settings_of(forms).values(), strict=True)
    ]
    room = room.with_facts(settings=settings)
    for form in forms:
        room.check_form(form)
    allocate_entries(room, entries)  # raises InputError if the entries do not fit together
    return room


def require_room_size(rows: int | None, depth: int | None) -> None:
    """Check the rows and the depth that a user wants against their upper limits.

    Parameters
    ----------
    rows, depth : int or None
        Number of rows, and largest delay of a word in cycles, as for `room_for`. None is not
        checked.

    Raises
    ------
    InputError
        If a number exceeds `MOST_ROWS` or `MOST_DEPTH`.
    """
    parse_non_negative_int("Rows", rows or 0, most=MOST_ROWS)
    parse_non_negative_int("Depth", depth or 0, most=MOST_DEPTH)


def _power_of_two(needed: int, least: int) -> int:
    """Return the least power of two that is at least `needed` and at least `least`."""
    return 1 << (max(needed, least) - 1).bit_length()


def _used_sources(
    forms: Sequence[LoadableForm], ports: int
) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return, for each multiplexer of a node, the inputs that any of `forms` selects.

    The result has the format of `NodePaths.inputs`: a tuple of pairs for each out-port, then for
    each operator, then for each reader (read port of memories). A multiplexer that no form uses
    gets one input. `ports` is the number of ports of a node.
    """
    found = []
    idle = {Action.SELECT: Stage.PORT, Action.OPERAND: Stage.RESULT, Action.MEMORY: None}
    for action, stage in idle.items():
        each = np.concatenate([form.action_values(action).reshape(-1, ports) for form in forms])
        for port in range(ports):
            known = np.unique(each[:, port][each[:, port] >= 0]).tolist()
            if stage is None:
                found.append(tuple((k, 0) for k in known) or ((ports, 0),))
            else:
                found.append(tuple(divmod(k, ports) for k in known) or ((int(stage), port),))
    return tuple(found)
