"""Programs of patterns of sums: around each cycle, a node adds to all that passes.

All that arrives at an in-port comes along one cycle. The operator behind it combines each word with
the node's own contribution to the same sum, which lies in a memory of the in-port in the order in
which sums come by; the result goes on by the out-port that the in-port feeds. At the beginning of a
cycle words arrive that change nothing, so that the first contribution takes the same way as all
others. So a node has a reader and an operator for each in-port, and wires; all nodes do the same,
but for which out-port each in-port feeds.

A word is on its next link as many cycles later as the operator and the out-port take: so many
chunks can take turns on a cycle. Where there are more, they go around one group after another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..schedule import SumPattern
from .address_map import CycleMap, NodeMap
from .fields import IDLE, Action, Field, Loop, Order, Point, Sources, memories_of, number_equal
from .timing import ADDRESS, COMBINE, SETTING, store_delay

if TYPE_CHECKING:
    from ..topology import BoolArray, IntArray
    from .address_map import AddressMap
    from .program import Program
    from .request import Request

__all__ = ["compile_sum_pattern"]


def compile_sum_pattern(request: Request) -> Program:
    """The program of a pattern of sums.

    Examples
    --------
    Two chunks take turns on each of four cycles, and pass nine nodes each.

    >>> import torusfabric as tf
    >>> pattern = tf.plan("3x3", "reduce-scatter", algorithm="hamiltonian")
    >>> program = tf.compile(pattern, flits=16)
    >>> program.loop.rows, program.cycles()
    (18, 45)
    """
    pattern, block = request.schedule, request.block
    assert isinstance(pattern, SumPattern)
    if pattern.topology.one_latency is None:
        raise InputError(
            "Links must be of equal latency for sums around cycles, not of "
            f"{pattern.topology.latency_text} cycles: sums in a table and along trees take any"
        )
    node = _Node(pattern)
    rows = _Rows.of(pattern, COMBINE + request.latency + pattern.topology.one_latency)
    loop = Loop(
        order=Order.FLIT,
        flits=block,
        pause=np.zeros(len(rows.hop), int),
        blocks=np.ones(len(rows.hop), int),
        sources=node.sources,
        fields=tuple(_fields(rows, node, request)),
        departure=rows.departure(node.sources.ports),
    )
    owners = pattern.topology.nodes if pattern.collective.to_all else 1
    words = block * pattern.turns * np.array([owners, pattern.topology.nodes])
    return request.program(
        loop,
        send_map=node.map(rows, block, first_memory=len(node.live), lead=1),
        receive_map=_receive_map(pattern, node, rows, block),
        known_by="position on the cycle",
        memories=memories_of(node.live.tolist(), len(node.live)),
        depth=np.concatenate([count * node.there for count in words], axis=1),
        variant_of=node.variant_of,
    )


class _Node:
    """What nodes have.

    Attributes
    ----------
    live : ndarray of int
        The in-ports that bring anything to any node: each has a memory of results, and after these
        one of what the node sends, with a reader.
    variant_of : ndarray of int, shape (nodes,)
    passed : ndarray of int, shape (variants, ports)
        The result that each out-port passes on.
    there : ndarray of bool, shape (variants, live in-ports)
        Which in-ports bring anything.
    """

    def __init__(self, pattern: SumPattern) -> None:
        topology = pattern.topology
        arriving = pattern.inject[topology.upstream]
        self.pattern = pattern
        self.live = np.flatnonzero((arriving >= 0).any(axis=0))
        injections = tuple((reader,) for reader in range(len(self.live)))
        self.sources = Sources(topology.ports, results=True, injections=injections)
        passed = np.where(pattern.feed >= 0, self.sources.first_result + pattern.feed, IDLE)
        self.variant_of, found = number_equal(map(bytes, passed))
        self.passed = passed[found]
        self.there = arriving[found][:, self.live] >= 0
        chunk, _ = pattern.along
        entry = (arriving == chunk[:, None, None]).argmax(axis=2)
        #: Of each cycle and node the in-port by which it comes, counted among those in use.
        self.entry = np.searchsorted(self.live, entry)

    def map(self, rows: _Rows, block: int, *, first_memory: int, lead: int) -> CycleMap:
        """Where words lie as they come by, first that of the owner `lead` nodes behind."""
        cycle, turn = np.divmod(np.arange(self.pattern.sums_of_owner), self.pattern.turns)
        first, stride = block * rows.order[:, turn]
        return CycleMap(
            index=self.pattern.index,
            memory=first_memory + self.entry,
            cycle=cycle,
            first=first,
            stride=stride,
            lead=lead,
        )


@dataclass(frozen=True, eq=False)
class _Rows:
    """What arrives at all nodes in each row, which is a cycle.

    Parameters
    ----------
    hop : ndarray of int, shape (rows,)
        How many nodes have added to it, or passed it; -1 where nothing arrives.
    turn : ndarray of int, shape (rows,)
        Which of the chunks that take turns it is of.
    order : ndarray of int, shape (2, turns)
        In the order in which words come by, which the first one of each turn is, and by how many
        the next one is later.
    """

    hop: IntArray
    turn: IntArray
    order: IntArray

    @classmethod
    def of(cls, pattern: SumPattern, period: int) -> _Rows:
        """Those of a pattern in which a word is on its next link so many cycles later."""
        nodes = pattern.topology.nodes
        # Results go around once more, but for the last hop, which would bring them home.
        hops = nodes + (nodes - 1) * (pattern.times_around - 1)
        spans, order = [], []
        for start in range(0, pattern.turns, period):
            together = min(period, pattern.turns - start)
            hop, turn = np.divmod(np.arange((hops - 1) * period + together), period)
            spans.append(np.where(turn < together, [hop, start + turn], IDLE))
            order += [(start * nodes + k, together) for k in range(together)]
        hop, turn = np.concatenate(spans, axis=1)
        return cls(hop, turn, np.array(order).T)

    def place(self, hop: int) -> IntArray:
        """Of each row, which word it has in the order in which those come by from some hop on."""
        first, stride = self.order[:, self.turn]
        place: IntArray = first + (self.hop - hop) * stride
        return place

    def departure(self, ports: int) -> IntArray:
        """The row in which what a node sends arrives, by step and port."""
        row = np.zeros((self.hop.max() + 1, self.turn.max() + 1), int)
        there = np.flatnonzero(self.hop >= 0)
        row[self.hop[there], self.turn[there]] = there
        return np.repeat(row[1:].reshape(-1, 1), ports, axis=1)


def _fields(rows: _Rows, node: _Node, request: Request) -> Iterator[Field]:
    """What out-ports pass on, what operators combine with what arrives, and what is stored."""
    pattern, sources, live = node.pattern, node.sources, node.live.tolist()
    nodes, links = pattern.topology.nodes, pattern.topology.longest_link
    hop = rows.hop[:, None]

    def field(
        action: Action, number: int, reader: int, acts: BoolArray, value: IntArray | int, delay: int
    ) -> Field:
        values = np.where(acts & node.there[:, reader], value, IDLE)
        return Field(Point(action, number), values, delay)

    # Results are passed on, and at the beginning what changes nothing.
    for port, result in enumerate(node.passed.T):
        values = np.where((hop == 0) & (result >= 0), sources.identity, result)
        values = np.where(hop >= 0, values, IDLE).astype(np.int16)
        yield Field(Point(Action.SELECT, port), values, SETTING)
    # With what arrives words are combined that are read, and with results nothing.
    adds, place, late = (hop >= 0) & (hop < nodes), rows.place(0), ADDRESS + links
    for reader, port in enumerate(live):
        own = np.where(adds, sources.first_injection + reader, sources.identity)
        yield field(Action.OPERAND, port, reader, hop >= 0, own, SETTING + links)
        yield field(Action.MEMORY, reader, reader, adds, len(live) + reader, late)
        yield field(Action.READ, reader, reader, adds, request.block * place[:, None], late)
    # Of each turn the last word is stored, or of an all-reduce the results of all owners.
    kept = rows.place(nodes - 1) if pattern.collective.to_all else rows.turn
    complete, late = hop >= nodes - 1, store_delay(latency=request.latency)
    for number, port in enumerate(live):
        result = sources.first_result + port
        yield field(Action.WRITE, number, number, complete, request.block * kept[:, None], late)
        yield field(Action.SOURCE, number, number, complete, result, late)
        yield field(Action.TAP, number, number, complete, links, late)


def _receive_map(pattern: SumPattern, node: _Node, rows: _Rows, block: int) -> AddressMap:
    """Where nodes store sums: their own, or those of all owners."""
    if pattern.collective.to_all:
        return node.map(rows, block, first_memory=0, lead=0)
    cycle, turn = np.divmod(np.arange(pattern.chunks), pattern.turns)
    memory = node.entry[cycle].T[:, None]
    base = np.broadcast_to(block * turn, memory.shape)
    return NodeMap(memory, base, node.variant_of)
