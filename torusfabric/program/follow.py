"""Following one word: where it is after which clock edge, by the rows of the program alone.

It is followed backwards, from the memory in which its receiver has it, by the same fields by which
`torusfabric.program.execute` moves all words forwards: what fed this out-port, in this cycle?
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InputError
from ..toolchain.values import natural
from .execute import Slot, Slots, variants_in
from .fields import IDLE, Action
from .host_words import word_addresses
from .trace import arrivals

if TYPE_CHECKING:
    from .program import Program

__all__ = ["Holder", "Moment", "farthest", "follow"]


class Holder(Enum):
    """What holds a word after a clock edge; the number is that of a memory, reader or port."""

    MEMORY = "memory"
    READER = "word read"
    LINK = "register of an out-port"
    LATER = "register behind an in-port"
    RESULT = "register of the operator at an in-port"
    LATER_RESULT = "register behind the operator at an in-port"


class Moment(NamedTuple):
    """Where a word is after a clock edge.

    Parameters
    ----------
    cycle : int
        The clock edge from which on it is there; the edge that takes the start pulse is number 0.
        Of the memory in which it waits for the start, 0.
    holder : Holder
    node : int
    number : int
        Of the memory, reader, out-port or in-port.
    """

    cycle: int
    holder: Holder
    node: int
    number: int


class _State(NamedTuple):
    """A moment; the address of a memory, and the edge of a run before which it is looked for."""

    edge: int
    holder: Holder
    node: int
    number: int
    address: int = 0


def follow(program: Program, origin: int, destination: int, flit: int = 0) -> list[Moment]:
    """Where a flit of a message is, from the send memory of a node to the memory of its receiver.

    In a reduction it is the contribution of the origin that is followed, in the sums that it is
    part of.

    Parameters
    ----------
    program : Program
        Of one root, and of one collective, or `Program.alone` of several.
    origin, destination : int
        Nodes.
    flit : int
        Which flit of the message; of a reduce-scatter, which of its share.

    Raises
    ------
    InputError
        If no word goes from there to there.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3", "allgather", algorithm="matching"))
    >>> for moment in follow(program, 0, 1):
    ...     print(moment.cycle, moment.node, moment.holder.value)
    0 0 memory
    4 0 word read
    5 0 register of an out-port
    6 1 memory
    """
    _check(program, origin, destination)
    index = natural("Flit", flit)
    if index >= program.flits:
        raise InputError(f"Flit must be from 0 to {program.flits - 1}, not {flit}")
    if program.schedule.collective.from_each:
        index += program.flits * int(program.groups.position[origin])
    for path in _Follower(program).paths(destination, index):
        if path[0].node == origin:
            return path
    raise AssertionError("what is delivered comes from its origin")


def _check(program: Program, origin: int, destination: int) -> None:
    """Refuse nodes between which nothing goes."""
    if program.any_root:
        raise InputError("A word must be followed in a fabric of one root, not of any root")
    collective, groups, nodes = program.schedule.collective, program.groups, program.topology.nodes
    for name, node in (("Origin", origin), ("Destination", destination)):
        if natural(name, node) >= nodes:
            raise InputError(f"{name} must be a node from 0 to {nodes - 1}, not {node}")
    if origin == destination:
        raise InputError(f"Destination must be another node than the origin, not {destination}")
    if groups.group[origin] != groups.group[destination]:
        own = groups.members[groups.group[origin]].tolist()
        raise InputError(
            f"Destination must be in the group of the origin, {own}, not {destination}"
        )
    root = int(groups.members[groups.group[origin], collective.root or 0])
    if collective.single_origin and origin != root:
        raise InputError(f"Origin must be the root, node {root}, not {origin}")
    if collective.to_root and destination != root:
        raise InputError(f"Destination must be the root, node {root}, not {destination}")


def farthest(program: Program) -> tuple[int, int]:
    """The origin and destination of a message with the longest path: the first of them.

    In a reduction these are those of the contribution with the longest path to the node that has
    its sum last.

    Raises
    ------
    InputError
        If nothing is sent.
    """
    collective, groups, blocks = program.schedule.collective, program.groups, program.blocks
    if collective.reducing:
        receivers = set(program.layout.receivers.tolist())
        there = [(arrival.cycle, arrival.node) for arrival in arrivals(program)]
        _, node = max((at for at in there if at[1] in receivers), default=(0, -1))
        if node >= 0:
            paths = _Follower(program).paths(node, 0)
            return max(paths, key=_hops)[0].node, node
    hops: dict[tuple[int, int], int] = {}
    best, pair = 0, None
    for arrival in arrivals(program):
        members = groups.members[groups.group[arrival.node]]
        for block in arrival.blocks:
            key = arrival.node, block
            if key in hops:
                continue
            hops[key] = hops.get((arrival.path[0], block), 0) + len(arrival.hops)
            wanted = int(blocks.postcondition(block))
            if hops[key] > best and (wanted < 0 or members[wanted] == arrival.node):
                best, pair = hops[key], (int(members[blocks.origin(block)]), arrival.node)
    if pair is None:
        raise InputError(f"Collective must send something, not {collective}")
    return pair


def _hops(path: list[Moment]) -> int:
    return sum(moment.holder is Holder.LINK for moment in path)


class _Follower:
    """Finds what a word comes from.

    Parameters
    ----------
    program : Program
    """

    def __init__(self, program: Program) -> None:
        self._program, self._loop, self._having = program, program.loop, program.loop.sources
        self._timing, self._topology = program.timing, program.topology
        self._slots = Slots(self._loop, program.block_flits)
        self._variant = variants_in(program, program.mode, 0)
        self._of_row: dict[int, list[tuple[int, Slot]]] = defaultdict(list)
        for number in range(len(self._slots)):
            slot = self._slots.at(number)
            assert slot is not None
            self._of_row[slot.row].append((number, slot))

    def paths(self, node: int, index: int) -> Iterator[list[Moment]]:
        """The moments of each word that a word received at a node is combined of, or of that."""
        located = word_addresses(self._program, received=True, nodes=[node])
        memory, address = (int(column[0, index]) for column in located)
        last = _State(self._program.cycles() + 1, Holder.MEMORY, node, memory, address)
        after: dict[_State, _State | None] = {last: None}
        waiting = [last]
        while waiting:
            state = waiting.pop()
            before = list(self._before(state))
            if not before and state.holder is Holder.MEMORY:
                yield list(self._moments(state, after))
            for found in before:
                if found not in after:
                    after[found] = state
                    waiting.append(found)

    def _moments(
        self, state: _State | None, after: dict[_State, _State | None]
    ) -> Iterator[Moment]:
        """What the states are, from the first of them on."""
        first = True
        while state is not None:
            edge = self._written(state)[0] if state.holder is Holder.MEMORY else state.edge
            cycle = 0 if first else self._timing.wait + edge + 1
            yield Moment(cycle, state.holder, state.node, state.number)
            state, first = after[state], False

    def _before(self, state: _State) -> Iterator[_State]:
        """What a word comes from, or the words that it is combined of."""
        edge, node, number = state.edge, state.node, state.number
        if state.holder is Holder.MEMORY:
            written, source = self._written(state)
            if source is not None:
                yield from self._source(node, source, written)
        elif state.holder is Holder.READER:
            yield from self._read(state)
        elif state.holder is Holder.LATER:
            yield self._arriving(node, number, edge)
        elif state.holder is Holder.LATER_RESULT:
            yield _State(edge - 1, Holder.RESULT, node, number)
        elif state.holder is Holder.LINK:
            yield from self._selected(state, Action.SELECT)
        else:
            # The words that its hardware took so many cycles ago.
            state = state._replace(edge=edge - self._having.latency)
            yield from self._selected(state, Action.OPERAND)
            yield self._arriving(node, number, state.edge)

    def _arriving(self, node: int, port: int, edge: int) -> _State:
        """What an in-port is given at an edge."""
        there = int(self._topology.neighbours[node, port])
        return _State(edge - 1, Holder.LINK, there, int(self._topology.opposite[port]))

    def _presented(self, action: Action, state: _State) -> tuple[Slot, int] | None:
        """The slot whose row a control point acts on at an edge, and its value at a node there."""
        field = self._loop.field(action, state.number)
        slot = None if field is None else self._slots.at(state.edge - field.delay)
        if field is None or slot is None:
            return None
        values = field.values[slot.row]
        return slot, int(values[self._variant[state.node] if len(values) > 1 else 0])

    def _selected(self, state: _State, action: Action) -> Iterator[_State]:
        """What an out-port or operator selects."""
        found = self._presented(action, state)
        if found and found[1] != IDLE:
            yield from self._source(state.node, found[1], state.edge)

    def _source(self, node: int, source: int, edge: int) -> Iterator[_State]:
        """What a source of a node holds at an edge."""
        having = self._having
        if source < having.ports:
            yield self._arriving(node, source, edge)
        elif source < having.first_result:
            yield _State(edge - 1, Holder.LATER, node, having.delayed[source - having.ports])
        elif source < having.first_injection:
            port = source - having.first_result
            if port < having.ports:
                yield _State(edge - 1, Holder.RESULT, node, port)
            else:
                port = having.delayed_results[port - having.ports]
                yield _State(edge - 1, Holder.LATER_RESULT, node, port)
        elif source < having.identity:
            for reader in having.injections[source - having.first_injection]:
                yield _State(edge - 1 - having.injection_delay, Holder.READER, node, reader)

    def _read(self, state: _State) -> Iterator[_State]:
        """The word of a memory that a reader gives."""
        loop, found = self._loop, self._presented(Action.READ, state)
        memory_of = self._presented(Action.MEMORY, state)
        if not found or not memory_of or min(found[1], memory_of[1]) < 0:
            return
        slot, memory = memory_of
        if slot.block < loop.blocks[slot.row]:
            address = found[1] + slot.block * loop.flits + slot.flit * loop.pitch_of(memory)
            yield _State(state.edge, Holder.MEMORY, state.node, memory, address)

    def _written(self, state: _State) -> tuple[int, int | None]:
        """The last edge before that of a state at which a word was stored, and its source.

        -1 and None of a word that only the host has written.
        """
        found: tuple[int, int | None] = -1, None
        loop, number = self._loop, state.number
        field = loop.field(Action.WRITE, number)
        if field is None:
            return found
        pitch = loop.pitch_of(number)
        variant = int(self._variant[state.node]) if loop.variants > 1 else 0
        bases = field.values[:, variant]
        taps, sources = (
            loop.values(action, number)[:, variant] for action in (Action.TAP, Action.SOURCE)
        )
        for row in np.flatnonzero((bases >= 0) & (bases <= state.address)).tolist():
            delay = field.delay + int(taps[row]) * self._timing.link_latency
            for start, slot in self._of_row[row]:
                address = bases[row] + slot.block * loop.flits + slot.flit * pitch
                there = address == state.address and slot.block < loop.blocks[row]
                if there and found[0] < start + delay < state.edge:
                    found = start + delay, int(sources[row])
        return found
