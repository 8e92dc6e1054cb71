"""Execution of a program on data: the one model of the hardware, cycle by cycle.

All nodes are vectors. Each clock edge moves words as the routers, operators and memories do; where
a word goes and when follows from the rows of the program and from `Timing` alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ..collective import combine_in_tree
from ..topology import IntArray, cayley
from .fields import Action, Loop, Order
from .host_words import word_addresses
from .timing import PASS, starts

if TYPE_CHECKING:
    from ..collective import Operator
    from .program import Program

__all__ = ["Hold", "Holder", "Machine", "Run", "carry_out"]

Words = np.ndarray


class Holder(Enum):
    """What holds a word after a clock edge; the number is that of a memory, reader or port."""

    MEMORY = "memory"
    READER = "word read"
    LINK = "register of an out-port"
    LATER = "register behind an in-port"
    RESULT = "register of the operator at an in-port"
    LATER_RESULT = "register behind the operator at an in-port"


#: What some holders have after an edge, elementwise, given them, the cycle, the words that come to
#: them, and the node and the number of each.
Hold: TypeAlias = Callable[[Holder, int, Words, IntArray, IntArray], Words]


def carry_out(program: Program, mode: int, sent: Words, run: Run, width: int) -> Words:
    """What the host reads at each node after a run, given what nodes send.

    Of what is loaded, with any root each node does what is done at its offset from it.
    """
    if program.loaded and not program.loop.of(Action.LAG):
        part = program.part(program.form_of(mode, run.length, run.root))
        groups, layout = part.form.groups, part.layout
        if program.modes[mode].roots:
            back = int(cayley(groups.torus).subtract(0, run.root))
            sent = groups.moved(sent, back, layout.send_parts)
            received = carry_out(part, 0, sent, run._replace(root=0), width)
            return groups.moved(received, run.root, layout.recv_parts)
        program, mode = part, 0
    machine = Machine(program, mode, sent, run, width)
    machine.run()
    return machine.received()


#: The cycle before the first slot.
BEFORE = -1


class Run(NamedTuple):
    """What is chosen for a run."""

    length: int
    root: int
    operator: Operator | None


class Slot(NamedTuple):
    """What a slot presents: a row, a block of those of the row, and a flit of the block."""

    row: int
    block: int
    flit: int


def _slots(loop: Loop, flits: int) -> list[Slot]:
    """Return what each slot presents, for blocks of so many flits."""
    flits, duration = loop.carried(flits), loop.duration(flits)
    if loop.order is Order.FLIT:
        row = np.tile(np.arange(loop.rows), flits)
        block, flit = np.zeros_like(row), np.repeat(np.arange(flits), loop.rows)
    else:
        row = np.repeat(np.arange(loop.rows), duration)
        block, flit = np.divmod(np.arange(len(row)) - starts(duration)[row], flits)
    return list(map(Slot, row.tolist(), block.tolist(), flit.tolist()))


class _Group(NamedTuple):
    """The control points of an action that act at once, and their values by row and variant."""

    delay: int
    numbers: IntArray
    values: IntArray


def _groups(loop: Loop, action: Action) -> list[_Group]:
    """The fields of an action, by their delays."""
    fields = loop.of(action)
    groups = []
    for delay in sorted({field.delay for field in fields}):
        chosen = [field for field in fields if field.delay == delay]
        numbers = np.array([field.point.number for field in chosen])
        groups.append(_Group(delay, numbers, np.stack([f.values for f in chosen], axis=-1)))
    return groups


class Machine:
    """All nodes of a fabric.

    Parameters
    ----------
    words : ndarray, shape (nodes, send words)
    width : int
        Bits of a word.
    hold : Hold
        What holders of words have after an edge; by default what comes to them.
    """

    def __init__(
        self,
        program: Program,
        mode: int,
        words: Words,
        run: Run,
        width: int,
        hold: Hold = lambda holder, cycle, words, node, number: words,
    ) -> None:
        self.hold = hold
        # What the host sees is that of the form alone; memories and sources are the common ones.
        number = program.form_of(mode, run.length, run.root)
        self.part, self.form, self.mode = program.part(number), program.forms[number], mode
        self.program, self.width = program, width
        self.length, self.root, operator = run
        # Words that change nothing pass the operators of other forms.
        self.operator = operator or next(iter(program.operators), None)
        self.loop, self.having = self.form.loop, self.form.loop.sources
        self.slots = _slots(self.loop, self.part.form.block_of(run.length))
        self.fields = {action: _groups(self.loop, action) for action in Action}
        lags = [group.values.ravel() for group in self.fields[Action.LAG]]
        self.lags: list[int] = np.unique(np.concatenate([[0], *lags])).tolist()
        topology = program.topology
        self.nodes = np.arange(topology.nodes)
        self.variant = program.variant_of
        if self.form.by_offset:
            groups = self.form.groups
            offset = cayley(groups.torus).subtract(groups.position, run.root)
            self.variant = program.variant_at[groups.members[0, offset]]
        depth = program.depth.max(axis=0)
        self.first = np.cumsum(depth) - depth
        memories, flits = np.ogrid[: len(program.memories), : self.loop.flits]
        #: By memory and flit, how far the flit lies from the first one of its block.
        self.within = program.within_blocks(number, memories, flits)
        # One word more, for what is read where nothing is.
        shape = (topology.nodes, int(depth.sum()) + 1)
        self.memory = np.zeros(shape, words.dtype)
        if self.operator:
            self.memory[:, -1] = self.operator.identity(width)
        self._load(words)
        self.upstream = topology.upstream
        self.link = self.idle()
        # What is on links behind the registers of out-ports, the newest first.
        self.late = topology.cycles_of_arc - PASS
        self.under_way: deque[Words] = deque()
        self.result, self.later, self.later_result = self.link, self.link, self.link
        # What is inside operators, the newest first.
        self.combining: deque[Words] = deque()
        self.injecting: deque[Words] = deque()
        self.read = np.zeros((topology.nodes, self.having.readers), words.dtype)

    def _addresses(self, *, received: bool) -> IntArray:
        """Where the words of the host lie among those of all memories; -1 for none."""
        memory, address = word_addresses(
            self.program, received=received, mode=self.mode, length=self.length, root=self.root
        )
        return np.where(address >= 0, self.first[memory] + address, -1)

    def _load(self, words: Words) -> None:
        """Write what the nodes send into their memories."""
        address = self._addresses(received=False)
        node, index = np.nonzero(address >= 0)
        memory = np.searchsorted(self.first, address[node, index], "right") - 1
        held = self.hold(Holder.MEMORY, BEFORE, words[node, index], node, memory)
        self.memory[node, address[node, index]] = held

    def received(self) -> Words:
        """What the host reads at each node."""
        address = self._addresses(received=True)
        words = self.memory[self.nodes[:, None], address]
        words[address < 0] = 0
        return words

    def run(self) -> None:
        """Pass all edges of a run; cycle 0 is the first slot."""
        for cycle in range(len(self.slots) + self.form.timing.drain):
            arriving = self._at_the_end_of_links()[self.upstream]
            sources = self._sources(arriving)
            result = None
            if self.loop.combining:
                made = self._combine(arriving, self._chosen(cycle, Action.OPERAND, sources))
                result = _later(self.combining, made, self.having.latency)
            if result is not None and self.having.made:
                sources[:, self.having.first_made :][:, : result.shape[1]] = result
            link = self._chosen(cycle, Action.SELECT, sources)
            read = self._read(cycle)
            self._store(cycle, sources)
            self.read, self.link = read, self._registered(Holder.LINK, cycle, link)
            self.later = self._registered(Holder.LATER, cycle, arriving)
            if result is not None:
                self.later_result = self._registered(Holder.LATER_RESULT, cycle, self.result)
                self.result = self._registered(Holder.RESULT, cycle, result)

    def _at_the_end_of_links(self) -> Words:
        """The words that come out of the links behind all out-ports."""
        longest = int(self.late.max(initial=0))
        if not longest:
            return self.link
        line, now = self.under_way, self.link
        line.appendleft(now)
        while len(line) <= longest:
            line.append(self.idle())
        out: Words = now.copy()
        for late in np.unique(self.late[self.late > 0]).tolist():
            out[self.late == late] = line[late][self.late == late]
        line.pop()
        return out

    def _at(self, slot: int) -> Slot | None:
        """Return what a slot presents, or None where there is no such slot."""
        return self.slots[slot] if 0 <= slot < len(self.slots) else None

    def idle(self) -> Words:
        """What ports have that no word passes, shape (nodes, ports)."""
        return np.zeros((len(self.nodes), self.program.topology.ports), self.memory.dtype)

    def _registered(self, holder: Holder, cycle: int, words: Words) -> Words:
        """What registers of ports have after an edge."""
        return self.hold(holder, cycle, words, self.nodes[:, None], np.arange(words.shape[1]))

    def _of_nodes(self, group: _Group, row: int) -> IntArray:
        """The values of control points in a row, shape (nodes, points)."""
        values = group.values[row]
        if len(values) == 1:
            return np.broadcast_to(values, (len(self.nodes), values.shape[1]))
        chosen: IntArray = values[self.variant]
        return chosen

    def _sources(self, arriving: Words) -> Words:
        """Everything that an out-port or an operator can select."""
        words = [arriving, self.later[:, list(self.having.delayed)]]
        if self.having.results:
            words += [self.result, self.later_result[:, list(self.having.delayed_results)]]
        if self.having.made:
            words.append(self.link)  # in place of what is made in this cycle
        # The word of each injection port: of one reader, or of several combined.
        injected = np.zeros((len(self.nodes), len(self.having.injections)), self.link.dtype)
        for number, readers in enumerate(self.having.injections):
            read = [self.read[:, reader] for reader in readers]
            injected[:, number] = combine_in_tree(read, self._combine)
        words.append(_later(self.injecting, injected, self.having.injection_delay))
        return np.concatenate([*words, self.memory[:, -1:]], axis=1)

    def _chosen(self, cycle: int, action: Action, sources: Words) -> Words:
        """What each out-port, or operator, selects in a cycle."""
        chosen = self.idle()
        for group in self.fields[action]:
            at = self._at(cycle - group.delay)
            if at is not None:
                source = self._of_nodes(group, at.row)
                word = np.take_along_axis(sources, np.maximum(source, 0), axis=1)
                chosen[:, group.numbers] = np.where(source >= 0, word, chosen[:, group.numbers])
        return chosen

    def _combine(self, a: Words, b: Words) -> Words:
        """Return the sums of two arrays of words, elementwise.

        Without an operator all operands are the word that changes nothing.
        """
        if self.operator is None:
            return a
        return self.operator.combine(a, b, self.width)

    def _read(self, cycle: int) -> Words:
        """The words that memories give after the next edge."""
        words: Words = self.read.copy()
        bases, memories = self.fields[Action.READ], self.fields[Action.MEMORY]
        for base_of, memory_of in zip(bases, memories, strict=True):
            for lag in self.lags:
                at = self._at(cycle - base_of.delay - lag)
                if at is not None:
                    self._read_late(words, cycle, at, lag, base_of, memory_of)
        return words

    def _read_late(
        self, words: Words, cycle: int, at: Slot, lag: int, base_of: _Group, memory_of: _Group
    ) -> None:
        """Read the words of those readers that read some cycles later in a row."""
        base, memory = self._of_nodes(base_of, at.row), self._of_nodes(memory_of, at.row)
        there = (base >= 0) & (memory >= 0) & (at.block < self.loop.blocks[at.row])
        number = np.maximum(memory, 0)
        within = at.block * self.loop.flits + self.within[number, at.flit]
        address = np.where(there, self.first[number] + base + within, -1)
        word = np.take_along_axis(self.memory, address, axis=1)
        word = self.hold(Holder.READER, cycle, word, self.nodes[:, None], base_of.numbers)
        if len(self.lags) > 1:
            (lag_of,) = self.fields[Action.LAG]
            word = np.where(self._of_nodes(lag_of, at.row) == lag, word, words[:, base_of.numbers])
        words[:, base_of.numbers] = word

    def _store(self, cycle: int, sources: Words) -> None:
        """Store what has arrived."""
        groups = (self.fields[action] for action in (Action.WRITE, Action.SOURCE, Action.TAP))
        for base_of, source_of, tap_of in zip(*groups, strict=True):
            for tap in np.unique(tap_of.values[base_of.values >= 0]).tolist():
                at = self._at(cycle - base_of.delay - tap)
                if at is None or at.block >= self.loop.blocks[at.row]:
                    continue
                base, taps = self._of_nodes(base_of, at.row), self._of_nodes(tap_of, at.row)
                node, point = np.nonzero((base >= 0) & (taps == tap))
                memory = base_of.numbers[point]
                source = self._of_nodes(source_of, at.row)[node, point]
                within = at.block * self.loop.flits + self.within[memory, at.flit]
                address = self.first[memory] + base[node, point] + within
                word = self.hold(Holder.MEMORY, cycle, sources[node, source], node, memory)
                self.memory[node, address] = word


def _later(line: deque[Words], words: Words, cycles: int) -> Words:
    """The words of so many cycles ago; what is not known yet is of no matter."""
    line.appendleft(words)
    return line.pop() if len(line) > cycles else np.zeros_like(words)
