"""Execution of a program on data: the reference model of the hardware, cycle by cycle.

All nodes are simulated at once, as vectors. At each clock edge words move as in routers, operators
and memories. The rows of the program and the constants of `torusfabric.program.timing` alone
determine the destination and the cycle of each move.

A *slot* is a cycle in which the sequencer presents one row, and one flit of one block of that row.
Out-ports, readers and memories act on it some cycles later. These components, and the operators,
are called *points*; a `torusfabric.program.fields.Field` has the values that each row gives to a
point. The *host* is the computer that writes and reads the memories of the nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ..collective import combine_in_tree
from ..topology import IntArray, require_cayley_graph
from .fields import IDLE, Action, Loop, Order, Stage
from .host_words import word_addresses
from .timing import PASS, row_start_slots

if TYPE_CHECKING:
    from ..collective import Operator
    from .program import Program

__all__ = ["HoldWords", "Holder", "Machine", "Run"]

Words = np.ndarray


class Holder(Enum):
    """The kinds of components that hold words after a clock edge; the value of a kind is its name.

    A single component is identified by its kind, its node, and its number among the memories,
    readers, out-ports or in-ports of the node.
    """

    MEMORY = "memory"
    READER = "word read"
    LINK = "register of an out-port"
    DELAYED = "register behind an in-port"
    RESULT = "register of the operator at an in-port"
    DELAYED_RESULT = "register behind the operator at an in-port"


#: The type of a function that sees, and may replace, the words that holders take at an edge. It is
#: given the holder, the cycle, the words, and the node and the number of each holder, and returns
#: the words that they hold.
HoldWords: TypeAlias = Callable[[Holder, int, Words, IntArray, IntArray], Words]


#: The cycle before the first slot.
BEFORE_FIRST_SLOT = -1


class Run(NamedTuple):
    """The choices of a run: flits of a message, root, and operator (None without a reduction)."""

    length: int
    root: int
    operator: Operator | None


class Slot(NamedTuple):
    """The row, and its block and flit, that the sequencer presents in one cycle."""

    row: int
    block: int
    flit: int


def _list_slots(loop: Loop, flits: int) -> list[Slot]:
    """Return the row, block and flit that the sequencer presents in each cycle of a run, in order.

    `loop` has the rows of the run, and blocks have `flits` flits. In a pause at the end of a row no
    block is presented; `Slot.block` is then at least the number of blocks of the row.
    """
    flits, duration = loop.padded_flits(flits), loop.row_cycles(flits)
    if loop.order is Order.FLIT:
        row = np.tile(np.arange(loop.n_rows), flits)
        block, flit = np.zeros_like(row), np.repeat(np.arange(flits), loop.n_rows)
    else:
        row = np.repeat(np.arange(loop.n_rows), duration)
        block, flit = np.divmod(np.arange(len(row)) - row_start_slots(duration)[row], flits)
    return list(map(Slot, row.tolist(), block.tolist(), flit.tolist()))


class _PointGroup(NamedTuple):
    """Components of one kind (out-ports, operators, readers or memories) with equal delay.

    A *point* is a component that rows control. A *slot* is a cycle in which the sequencer presents
    a row.

    Parameters
    ----------
    delay : int
        Cycles from a slot to the cycle in which the points act on it.
    numbers : ndarray of int, shape (points,)
        Numbers of the points.
    values : tuple of (ndarray of int, shape (rows, variants, points))
        For each action of these points, such as `Action.READ` and `Action.LAG`, its values.
    late : list of int
        All different numbers of further cycles, beyond `delay`, after which some point acts in some
        row. The values of the last action (`Action.LAG` or `Action.TAP`) give these cycles. ``[0]``
        if there is only one action.
    """

    delay: int
    numbers: IntArray
    values: tuple[IntArray, ...]
    late: list[int]


def _group_points(loop: Loop, *actions: Action) -> list[_PointGroup]:
    """Return the components of one kind, such as all readers, in groups with equal delay.

    The kind is the one that the first of `actions` belongs to: `Action.READ` belongs to readers. A
    group has the values of all `actions` for its components. Given `Action.READ` and
    `Action.MEMORY`, it has the address that each reader reads, and the memory. `loop` has the rows
    of the program.
    """
    fields, groups = loop.fields_of_action(actions[0]), []
    for delay in sorted({field.delay for field in fields}):
        numbers = [field.point.number for field in fields if field.delay == delay]
        values = tuple(
            np.stack([loop.point_values(action, number) for number in numbers], axis=-1)
            for action in actions
        )
        late = np.unique(np.maximum(values[-1], 0)).tolist() if len(actions) > 1 else [0]
        groups.append(_PointGroup(delay, np.array(numbers), values, late))
    return groups


#: Points that act in a cycle: the slot they act on, the cycles by which they are later than their
#: group, their numbers, and for each action their values by node.
_Acting: TypeAlias = tuple[Slot, int, IntArray, list[IntArray]]


class Machine:
    """The state of all nodes of a fabric, and the clock edges that change it.

    The memories of each node are joined to one array, in which memory k begins at index
    ``first[k]``. An address in this array is a *joined address*.

    Parameters
    ----------
    program : Program
        Program to execute.
    mode : int
        Mode of the run.
    words : ndarray, shape (nodes, send words)
        Message of each node.
    run : Run
        Choices of the run.
    width : int
        Bits of a word.
    hold : HoldWords
        Function that is called at each clock edge with the words that components are about to hold,
        and returns the words that they then hold; by default the same words. It serves to observe
        words, or to mark them.
    """

    def __init__(
        self,
        program: Program,
        mode: int,
        words: Words,
        run: Run,
        width: int,
        hold: HoldWords = lambda holder, cycle, words, node, number: words,
    ) -> None:
        self.hold = hold
        # `part` has the layout that the host sees; `form` has common memory and source numbers.
        self.number = program.form_of(mode, run.length, run.root)
        self.part, self.form = program.part(self.number), program.forms[self.number]
        self.program, self.width = program, width
        self.length, self.root, operator = run
        # A form without an operator sends its words through operators of other forms, combined
        # with the identity word. So it needs an operator that has an identity word.
        self.operator = operator or next(iter(program.operators), None)
        self.loop, self.having = self.form.loop, self.form.loop.sources
        self.slots = _list_slots(self.loop, self.part.form.block_of(run.length))
        self.selecting = _group_points(self.loop, Action.SELECT)
        self.combined = _group_points(self.loop, Action.OPERAND)
        self.reading = _group_points(self.loop, Action.READ, Action.MEMORY, Action.LAG)
        self.storing = _group_points(self.loop, Action.WRITE, Action.SOURCE, Action.TAP)
        topology = program.topology
        self.nodes = np.arange(topology.nodes)
        self.variant = program.variant_of
        if self.form.by_offset:
            groups = self.form.groups
            offset = require_cayley_graph(groups.group_topology).subtract(
                groups.position_of_node, run.root
            )
            self.variant = program.variant_at[groups.members[0, offset]]
        depth = program.depth.max(axis=0)
        self.first = np.cumsum(depth) - depth
        memories, flits = np.ogrid[: len(program.memories), : self.loop.flits]
        #: Address of each flit relative to flit 0 of its block, by memory and flit.
        self.within = program.within_blocks(self.number, memories, flits)
        # One word more at the end: address -1 reads it. It is the identity word.
        shape = (topology.nodes, int(depth.sum()) + 1)
        self.memory = np.zeros(shape, words.dtype)
        if self.operator:
            self.memory[:, -1] = self.operator.identity(width)
        self._write_messages(words)
        self.upstream = topology.upstream
        self.link = self.idle_words()
        # Words on links behind the registers of out-ports, the newest first.
        self.late = topology.cycles_of_arc - PASS
        longest = int(self.late.max(initial=0))
        self.under_way = deque([self.idle_words() for _ in range(longest)], longest + 1)
        self.result, self.later, self.later_result = self.link, self.link, self.link
        # Words inside operators, the newest first.
        self.combining: deque[Words] = deque()
        self.injecting: deque[Words] = deque()
        self.read = np.zeros((topology.nodes, self.having.n_readers), words.dtype)

    def _host_addresses(self, *, received: bool) -> IntArray:
        """Return the address of each word that the host reads, or writes, at each node.

        Addresses are those in the array of all memories of a node (`Machine.memory`). The shape is
        (nodes, words); -1 where a node does not have the word. The words are those that the host
        reads if `received`, otherwise those that it writes.
        """
        memory, address = word_addresses(
            self.program, received=received, form=self.number, length=self.length, root=self.root
        )
        return np.where(address >= 0, self.first[memory] + address, -1)

    def _write_messages(self, words: Words) -> None:
        """Write the messages `words`, shape (nodes, send words), into the memories of the nodes."""
        address = self._host_addresses(received=False)
        node, index = np.nonzero(address >= 0)
        memory = np.searchsorted(self.first, address[node, index], "right") - 1
        held = self.hold(Holder.MEMORY, BEFORE_FIRST_SLOT, words[node, index], node, memory)
        self.memory[node, address[node, index]] = held

    def shorten_blocks(self) -> None:
        """Move only the first flit of each block, which takes the same path as all others."""
        self.slots = _list_slots(self.loop, 1)

    def received_words(self) -> Words:
        """Return the words that the host reads at each node, shape (nodes, receive words)."""
        address = self._host_addresses(received=True)
        words = self.memory[self.nodes[:, None], address]
        words[address < 0] = 0
        return words

    def run(self) -> None:
        """Execute all clock edges of a run; cycles are counted from the first slot."""
        arcs = self.late[self.upstream], *self.upstream
        for cycle in range(len(self.slots) + self.form.timing.drain_cycles):
            self.under_way.appendleft(self.link)
            arriving = np.stack(self.under_way)[arcs]
            sources = self._source_words(arriving)
            result = None
            if self.loop.has_operators:
                made = self._combine_words(
                    arriving, self._select_words(cycle, self.combined, sources)
                )
                result = _delay_words(self.combining, made, self.having.latency)
            if result is not None and self.having.made:
                sources[:, self.having.first_of_stage(Stage.EARLY_RESULT) :][
                    :, : result.shape[1]
                ] = result
            link = self._select_words(cycle, self.selecting, sources)
            read = self._read_words(cycle)
            self._store_words(cycle, sources)
            self.read, self.link = read, self._register_words(Holder.LINK, cycle, link)
            self.later = self._register_words(Holder.DELAYED, cycle, arriving)
            if result is not None:
                self.later_result = self._register_words(Holder.DELAYED_RESULT, cycle, self.result)
                self.result = self._register_words(Holder.RESULT, cycle, result)

    def _acting_points(self, cycle: int, groups: Iterable[_PointGroup]) -> Iterator[_Acting]:
        """Yield the components that act in a cycle, as tuples (slot, late, numbers, values).

        The components are those of `groups`. `slot` is the row, block and flit on which they act,
        and `late` the cycles by which they are later than their group. ``values[k]``, shape (nodes,
        components), has the values of action k of the group.
        """
        for group in groups:
            for late in group.late:
                at = cycle - group.delay - late
                if 0 <= at < len(self.slots):
                    slot = self.slots[at]
                    values = [each[slot.row][self.variant] for each in group.values]
                    yield slot, late, group.numbers, values

    def _joined_address(self, slot: Slot, memory: IntArray, base: IntArray) -> IntArray:
        """Return the address at which each component reads or writes in a slot.

        It is an address in the array of all memories of a node. `slot` is the row, block and flit
        that the sequencer presents. The arrays `memory` and `base` have the memory of each
        component, and the address in it at which the first block of the row begins. The result is
        -1 for a component that does nothing.
        """
        there = (base >= 0) & (memory >= 0) & (slot.block < self.loop.blocks[slot.row])
        within = slot.block * self.loop.flits + self.within[memory, slot.flit]
        return np.where(there, self.first[memory] + base + within, -1)

    def idle_words(self) -> Words:
        """Return an array of zeros: a word for each port of each node, shape (nodes, ports)."""
        return np.zeros((len(self.nodes), self.program.topology.ports), self.memory.dtype)

    def _register_words(self, holder: Holder, cycle: int, words: Words) -> Words:
        """Return the words in the registers of all ports after an edge, shape (nodes, ports).

        `words` are those at the inputs of the registers; the function `hold` may change them. It is
        given `holder`, the kind of these registers, and `cycle`, the cycle of the edge.
        """
        return self.hold(holder, cycle, words, self.nodes[:, None], np.arange(words.shape[1]))

    def _source_words(self, arriving: Words) -> Words:
        """Return the words of all sources in this cycle: those that other components can select.

        The shape is (nodes, sources), with sources in the order of `Sources`. `arriving` has the
        words at the in-ports, shape (nodes, ports).
        """
        words = [arriving, self.later[:, list(self.having.delayed)]]
        if self.having.results:
            words += [self.result, self.later_result[:, list(self.having.delayed_results)]]
        if self.having.made:
            words.append(self.link)  # a placeholder: `run` fills in the results of this cycle
        # An injection port has the word of one reader, or the combined words of several.
        injected = np.zeros((len(self.nodes), len(self.having.injections)), self.link.dtype)
        for number, readers in enumerate(self.having.injections):
            read = [self.read[:, reader] for reader in readers]
            injected[:, number] = combine_in_tree(read, self._combine_words)
        words.append(_delay_words(self.injecting, injected, self.having.injection_delay))
        return np.concatenate([*words, self.memory[:, -1:]], axis=1)

    def _select_words(self, cycle: int, groups: list[_PointGroup], sources: Words) -> Words:
        """Return the words that all out-ports, or all operators behind in-ports, select in a cycle.

        The result has the shape (nodes, ports). `groups` are these components, and `sources` the
        words from which they select.
        """
        chosen = self.idle_words()
        for _, _, numbers, (source,) in self._acting_points(cycle, groups):
            word = np.take_along_axis(sources, np.maximum(source, 0), axis=1)
            chosen[:, numbers] = np.where(source >= 0, word, chosen[:, numbers])
        return chosen

    def _combine_words(self, a: Words, b: Words) -> Words:
        """Return the results of the operator for two arrays of words, elementwise.

        In a run without an operator every word of `b` is the identity word, so the result is `a`.
        """
        if self.operator is None:
            return a
        return self.operator.combine(a, b, self.width)

    def _read_words(self, cycle: int) -> Words:
        """Return the words that readers, which read memories, hold after the edge of `cycle`.

        The shape is (nodes, readers). A reader that does not read in this cycle keeps its word.
        """
        words: Words = self.read.copy()
        for slot, late, numbers, (base, memory, lag) in self._acting_points(cycle, self.reading):
            if late and slot.block >= self.loop.blocks[slot.row]:
                continue  # The row is in its pause, and the next row may read already.
            address = self._joined_address(slot, memory, base)
            word = np.take_along_axis(self.memory, address, axis=1)
            word = self.hold(Holder.READER, cycle, word, self.nodes[:, None], numbers)
            words[:, numbers] = np.where(np.maximum(lag, 0) == late, word, words[:, numbers])
        return words

    def _store_words(self, cycle: int, sources: Words) -> None:
        """Store words in all memories that store one in this cycle.

        `sources`, shape (nodes, sources), has the words from which memories select.
        """
        for slot, late, numbers, (base, source, tap) in self._acting_points(cycle, self.storing):
            address = self._joined_address(slot, numbers, np.where(tap == late, base, IDLE))
            node, point = np.nonzero(address >= 0)
            memory, word = numbers[point], sources[node, source[node, point]]
            word = self.hold(Holder.MEMORY, cycle, word, node, memory)
            self.memory[node, address[node, point]] = word


def _delay_words(line: deque[Words], words: Words, cycles: int) -> Words:
    """Append `words` to `line`, and return the words of `cycles` cycles ago.

    In the first cycles, for which there are no such words, the result is zeros.
    """
    line.appendleft(words)
    return line.pop() if len(line) > cycles else np.zeros_like(words)
