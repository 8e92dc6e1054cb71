"""Execution of a program on data: the one model of the hardware, cycle by cycle.

All nodes are vectors. Each clock edge moves words as the routers, operators and memories do; where
a word goes and when follows from the rows of the program and from `Timing` alone.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InputError
from ..toolchain.values import natural, positive
from ..topology import IntArray
from .mode import block_flits
from .timing import ADDRESS, LINK, SETTING, starts
from .values import MADE, NEUTRAL, Loop, Order, Reads
from .word_addresses import word_addresses

if TYPE_CHECKING:
    from ..collective import Operator
    from .mode import Mode
    from .program import Program

__all__ = ["Slot", "Slots", "execute", "variants_in"]

Words = np.ndarray


def execute(
    program: Program,
    words: Words,
    *,
    mode: int | None = None,
    length: int | None = None,
    root: int | None = None,
    operation: int | None = None,
    width: int = 64,
) -> Words:
    """Carry out a program; see `Program.execute`.

    Examples
    --------
    Every node sends its number, and receives the numbers of all.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan(tf.Torus(3, 3), "allgather", algorithm="matching"))
    >>> execute(program, np.arange(9)[:, None])[4]
    array([0, 1, 2, 3, 4, 5, 6, 7, 8])
    """
    number, words = program.mode_number(mode), np.asarray(words)
    operator = program.modes[number].operator_of(operation)
    run = _Run(program.length_of(length), _root(program, number, root), operator)
    shape = program.topology.nodes, program.part(number).layout.send_words(run.length)
    if words.shape != shape or words.dtype.kind not in "iuO":
        raise InputError(
            f"Words must be integers of shape {shape}, a row for each node, not {words.dtype} of "
            f"shape {words.shape}"
        )
    width = positive("Width", width)
    if operator:
        operator.check_width(width)
    machine = _Machine(program, number, _unsigned(words, program, width), run, width)
    machine.run()
    return machine.received().astype(words.dtype, copy=False)


def _root(program: Program, mode: int, root: int | None) -> int:
    """The root of a run: a node, or a position in a group."""
    number, size = natural("Root", root or 0), program.modes[mode].groups.size
    if number >= size:
        raise InputError(f"Root must be from 0 to {size - 1}, not {root}")
    return number


def _unsigned(words: Words, program: Program, width: int) -> Words:
    """Words as operators take them: without a sign, and no wider than they may be."""
    if not program.operators or words.dtype.kind != "i":
        return words
    return words.astype(np.uint64) & np.uint64((1 << width) - 1) if width <= 64 else words


class _Run(NamedTuple):
    """What is chosen for a run."""

    length: int
    root: int
    operator: Operator | None


class Slot(NamedTuple):
    """What a slot presents: a row, a block of those of the row, and a flit of the block."""

    row: int
    block: int
    flit: int


class Slots:
    """What each slot presents.

    Parameters
    ----------
    loop : Loop
    flits : int
        Of a block.
    """

    def __init__(self, loop: Loop, flits: int) -> None:
        flits, duration = loop.carried(flits), loop.duration(flits)
        if loop.order is Order.FLIT:
            row = np.tile(np.arange(loop.rows), flits)
            block, flit = np.zeros_like(row), np.repeat(np.arange(flits), loop.rows)
        else:
            row = np.repeat(np.arange(loop.rows), duration)
            block, flit = np.divmod(np.arange(len(row)) - starts(duration)[row], flits)
        self._slots = list(map(Slot, row.tolist(), block.tolist(), flit.tolist()))

    def __len__(self) -> int:
        return len(self._slots)

    def at(self, slot: int) -> Slot | None:
        """What a slot presents, or None where there is no such slot."""
        return self._slots[slot] if 0 <= slot < len(self._slots) else None


def variants_in(program: Program, mode: Mode, root: int) -> IntArray:
    """The variant of each node in a run of a mode, with a root."""
    if not mode.by_offset:
        return program.variant_of
    groups = mode.groups
    offset = groups.members[0, groups.torus.subtract(groups.position, root)]
    variant: IntArray = program.variant_at[offset]
    return variant


class _Machine:
    """All nodes of a fabric."""

    def __init__(self, program: Program, mode: int, words: Words, run: _Run, width: int) -> None:
        # What the host sees is that of the mode alone; memories and sources are the common ones.
        self.part, self.mode, self.number = program.part(mode), program.modes[mode], mode
        self.program, self.width = program, width
        self.length, self.root, operator = run
        # Words that change nothing pass the operators of other modes.
        self.operator = operator or next(iter(program.operators), None)
        self.loop = self.mode.loop
        self.slots = Slots(self.loop, block_flits(self.part.schedule, run.length))
        topology = program.topology
        self.nodes = np.arange(topology.nodes)
        self.variant = variants_in(program, self.mode, run.root)
        depth = program.depth.max(axis=0)
        self.first = np.cumsum(depth) - depth
        self.pitch = np.array([self.loop.pitch_of(k) for k in range(len(program.memories))])
        # One word more, for what is read where nothing is.
        shape = (topology.nodes, int(depth.sum()) + 1)
        self.memory = np.zeros(shape, words.dtype)
        if self.operator:
            self.memory[:, -1] = self.operator.identity(width)
        self._load(words)
        ports = topology.ports
        self.upstream = topology.neighbours, topology.opposite[None, :]
        self.link = np.zeros((topology.nodes, ports), words.dtype)
        self.result, self.later, self.later_result = self.link, self.link, self.link
        # What is inside operators, the newest first.
        self.combining: deque[Words] = deque()
        self.injecting: deque[Words] = deque()
        self.read = np.zeros((topology.nodes, len(self.loop.reads)), words.dtype)
        self._bases = [self._single_bases(reads) for reads in self.loop.reads]
        self._rows: dict[int, tuple[int, IntArray]] = {}

    def _addresses(self, *, received: bool) -> IntArray:
        """Where the words of the host lie among those of all memories; -1 for none."""
        memory, address = word_addresses(
            self.program, received=received, mode=self.number, length=self.length, root=self.root
        )
        return np.where(address >= 0, self.first[memory] + address, -1)

    def _load(self, words: Words) -> None:
        """Write what the nodes send into their memories."""
        address = self._addresses(received=False)
        node, index = np.nonzero(address >= 0)
        self.memory[node, address[node, index]] = words[node, index]

    def received(self) -> Words:
        """What the host reads at each node."""
        address = self._addresses(received=True)
        words = self.memory[self.nodes[:, None], address]
        words[address < 0] = 0
        return words

    def run(self) -> None:
        """Pass all edges of a run; cycle 0 is the first slot."""
        for cycle in range(len(self.slots) + self.loop.drain):
            arriving = self.link[self.upstream]
            sources = self._sources(arriving)
            result = self._combined(cycle, arriving, sources) if self.loop.combining else None
            link = self._forwarded(cycle, sources)
            read = self._read(cycle)
            self._store(cycle, sources)
            self.read, self.link = read, link
            self.later, self.later_result = arriving, self.result
            if result is not None:
                self.result = result

    def _setting(self, cycle: int, delay: int) -> Slot | None:
        """What the slot of so many cycles ago presents."""
        return self.slots.at(cycle - delay)

    def _injected(self) -> Words:
        """The word of each injection port: of one reader, or of several combined."""
        injected = []
        for group in self.loop.injections:
            word = self.read[:, group[0]]
            for reader in group[1:]:
                assert self.operator is not None
                word = self.operator.combine(word, self.read[:, reader], self.width)
            injected.append(word)
        shape = (len(self.nodes), 0)
        words = np.stack(injected, axis=1) if injected else np.zeros(shape, self.link.dtype)
        return _later(self.injecting, words, self.loop.injection_delay)

    def _sources(self, arriving: Words) -> Words:
        """Everything that an out-port or an operator can select."""
        loop = self.loop
        words = [arriving, self.later[:, list(loop.delayed)]]
        if loop.results:
            words += [self.result, self.later_result[:, list(loop.delayed_results)]]
        return np.concatenate([*words, self._injected(), self.memory[:, -1:]], axis=1)

    def _chosen(
        self, cycle: int, settings: IntArray, skews: tuple[int, ...], delay: int, sources: Words
    ) -> Words:
        """What each out-port or operator selects in a cycle; what is idle keeps zeros."""
        chosen = np.zeros_like(self.link)
        rows = {skew: self._setting(cycle, delay + skew) for skew in {0, *skews}}
        for port in range(self.link.shape[1]):
            at = rows[skews[port] if skews else 0]
            if at is None:
                continue
            row = settings[at.row]
            source = row[self.variant if len(row) > 1 else 0, port]
            source = np.broadcast_to(source, len(self.nodes))
            word = sources[self.nodes, np.maximum(source, 0)]
            chosen[:, port] = np.where(source >= 0, word, chosen[:, port])
        return chosen

    def _forwarded(self, cycle: int, sources: Words) -> Words:
        """What is on the links after the next edge."""
        return self._chosen(cycle, self.loop.select, self.loop.select_skew, SETTING, sources)

    def _combined(self, cycle: int, arriving: Words, sources: Words) -> Words:
        """What the operators behind the in-ports make."""
        assert self.loop.operand is not None
        assert self.operator is not None
        other = self._chosen(cycle, self.loop.operand, self.loop.operand_skew, LINK, sources)
        made = self.operator.combine(arriving, other, self.width)
        return _later(self.combining, made, self.loop.latency)

    def _read(self, cycle: int) -> Words:
        """The words that memories give after the next edge."""
        words = np.empty_like(self.read)
        for reader, reads in enumerate(self.loop.reads):
            at = self._setting(cycle, ADDRESS + reads.skew)
            if at is None:
                words[:, reader] = self.read[:, reader]
                continue
            address = self._address(reader, at)
            address = address[self.variant] if len(address) > 1 else address[0]
            words[:, reader] = self.memory[self.nodes, address]
        return words

    def _single_bases(self, reads: Reads) -> IntArray | None:
        """First addresses, shape (rows, variants), of a reader of at most one run a row."""
        if reads.count.max() > 1:
            return None
        there = (reads.count > 0) & (_at(reads.memory, reads.start) != NEUTRAL)
        memory = np.where(there, _at(reads.memory, reads.start), 0)
        return np.where(there, self.first[memory] + _at(reads.base, reads.start), -1)

    def _address(self, reader: int, slot: Slot) -> IntArray:
        """The address that each variant reads in a slot; the last one where it reads nothing."""
        bases, reads = self._bases[reader], self.loop.reads[reader]
        if bases is not None:
            base, start = bases[slot.row], reads.start[slot.row]
            inside = (base >= 0) & (slot.block < _at(reads.blocks, start))
            pitch = self.pitch[_at(reads.memory, start)]
            return np.where(inside, base + slot.block * self.loop.flits + slot.flit * pitch, -1)
        known, table = self._rows.get(reader, (-1, None))
        if known != slot.row or table is None:
            table = self._row_blocks(reader, slot.row)
            self._rows[reader] = (slot.row, table)
        base, pitch = table[:, :, min(slot.block, table.shape[2] - 1)]
        address: IntArray = base + slot.flit * pitch
        return address

    def _row_blocks(self, reader: int, row: int) -> IntArray:
        """Base and pitch of all blocks that variants read in a row, one after another.

        Returns
        -------
        ndarray of int, shape (2, variants, blocks)
            Ends with a block that nobody reads.
        """
        reads, lists = self.loop.reads[reader], []
        for variant in range(reads.count.shape[1]):
            blocks: list[tuple[int, int]] = []
            for run in reads.at(row, variant):
                if run.memory == NEUTRAL:
                    blocks += [(-1, 0)] * run.blocks
                else:
                    start = int(self.first[run.memory]) + run.base
                    pitch = int(self.pitch[run.memory])
                    blocks += [(start + k * self.loop.flits, pitch) for k in range(run.blocks)]
            lists.append(blocks)
        longest = max(map(len, lists)) + 1
        padded = [blocks + [(-1, 0)] * (longest - len(blocks)) for blocks in lists]
        return np.moveaxis(np.array(padded), -1, 0)

    def _store(self, cycle: int, sources: Words) -> None:
        """Store what has arrived."""
        timing = self.mode.timing
        for number, writes in enumerate(self.loop.writes):
            for hops in np.unique(writes.hops[writes.base >= 0]).tolist():
                at = self._setting(cycle, timing.store_delay(hops, writes.skew))
                if at is not None:
                    self._store_after(number, hops, at, sources)

    def _store_after(self, number: int, hops: int, slot: Slot, sources: Words) -> None:
        """Store what has arrived over so many hops."""
        writes, row = self.loop.writes[number], slot.row
        variant = self.variant if writes.base.shape[1] > 1 else np.zeros_like(self.variant)
        base, port = writes.base[row][variant], writes.port[row][variant]
        there = (base >= 0) & (writes.hops[row][variant] == hops)
        there &= slot.block < writes.blocks[row][variant]
        nodes = self.nodes[there]
        if not len(nodes):
            return
        source = np.where(port == MADE, self.loop.first_injection, port)
        word = sources[self.nodes, source]
        within = slot.block * self.loop.flits + slot.flit * self.pitch[number]
        address = self.first[number] + base[there] + within
        self.memory[nodes, address] = word[there]


def _later(line: deque[Words], words: Words, cycles: int) -> Words:
    """The words of so many cycles ago; what is not known yet is of no matter."""
    line.appendleft(words)
    return line.pop() if len(line) > cycles else np.zeros_like(words)


def _at(values: IntArray, index: IntArray) -> IntArray:
    """Values at indices; the last one past the end, and 0 of none."""
    if not len(values):
        return np.zeros_like(index)
    return values[np.minimum(index, len(values) - 1)]
