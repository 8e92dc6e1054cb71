"""Moves of sums: in patterns, in tables (`sum_planner`), and in rounds (`rounds`).

In a pattern of sums, around each cycle, a node adds to all that passes.

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

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..schedule import SumPattern, SumTable, Table
from .address_map import AddressMap, CycleMap, NodeMap
from .fields import IDLE, Action, Loop, Order, Sources, memories_of, number_equal
from .moves import Moves, Points
from .rounds import round_moves
from .sum_planner import plan_sums
from .timing import COMBINE

if TYPE_CHECKING:
    from ..topology import IntArray
    from .moves import Request

__all__ = ["sum_moves"]


def sum_moves(request: Request) -> Moves:
    """Return the moves of sums, by the form of the schedule.

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
    if isinstance(pattern, Table | SumTable):
        return plan_sums(request)
    if not isinstance(pattern, SumPattern):
        return round_moves(request)
    topology, nodes, to_all = pattern.topology, pattern.topology.nodes, pattern.collective.to_all
    links = topology.one_latency
    if links is None:
        raise InputError(
            "Links must be of equal latency for sums around cycles, not of "
            f"{topology.latency_text} cycles: sums in a table and along trees take any"
        )
    node, rows = _Node(pattern), _Rows.of(pattern, COMBINE + request.latency + links)
    sources, live, count = node.sources, node.live, len(node.live)
    hop, place = rows.hop[:, None, None], rows.place(0)[:, None, None]
    # Results are passed on, and at the beginning what changes nothing.
    select = np.where((hop == 0) & (node.passed >= 0), sources.identity, node.passed)
    # With what arrives words are combined that are read, and with results nothing.
    adds, readers = (hop >= 0) & (hop < nodes), np.arange(count)
    operand = np.full((len(rows.hop), len(node.there), topology.ports), IDLE)
    own = np.where(adds, sources.first_injection + readers, sources.identity)
    operand[..., live] = np.where((hop >= 0) & node.there, own, IDLE)
    # Of each turn the last word is stored, or of an all-reduce the results of all owners.
    kept = rows.place(nodes - 1) if to_all else rows.turn
    complete = (hop >= nodes - 1) & node.there
    if to_all:
        receive_map: AddressMap = node.map(rows, block, first_memory=0, lead=0)
    else:
        cycle, turn = np.divmod(np.arange(pattern.chunks), pattern.turns)
        memory = node.entry[cycle].T[:, None]
        receive_map = NodeMap(memory, np.broadcast_to(block * turn, memory.shape), node.variant_of)
    sums = pattern.turns * np.array([nodes if to_all else 1, nodes])
    return Moves(
        loop=Loop(
            order=Order.FLIT,
            flits=block,
            pause=np.zeros(len(rows.hop), int),
            blocks=np.ones(len(rows.hop), int),
            sources=sources,
            departure=rows.departure(topology.ports),
        ),
        points=(
            Points({Action.SELECT: np.where(hop >= 0, select, IDLE)}),
            Points({Action.OPERAND: operand}, links),
            Points(
                {
                    Action.MEMORY: count + readers,
                    Action.READ: np.where(adds & node.there, place, IDLE),
                },
                links,
            ),
            Points(
                {
                    Action.WRITE: np.where(complete, kept[:, None, None], IDLE),
                    Action.SOURCE: sources.first_result + live,
                    Action.TAP: np.array([links]),
                },
                COMBINE + request.latency,
            ),
        ),
        memories=memories_of(live.tolist(), count),
        depth=np.concatenate([slots * node.there for slots in sums], axis=1),
        variant_of=node.variant_of,
        send_map=node.map(rows, block, first_memory=count, lead=1),
        receive_map=receive_map,
        known_by="position on the cycle",
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
