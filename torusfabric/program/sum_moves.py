"""The planner for sums of a pattern: around each cycle, every node adds to all words that pass.

All words that arrive at an in-port come along one Hamiltonian cycle. The operator behind the
in-port combines each word with the node's own contribution to the same sum. The contributions lie
in a memory of the in-port in the order in which sums pass. The result leaves by the out-port that
the in-port feeds. At the node at which a sum starts, an identity word arrives in place of a sum, so
the first contribution takes the same path as all others. A node thus has a reader and an operator
for each in-port. All nodes act alike, except for the out-port that each in-port feeds.

A word needs p clock cycles from its arrival at a node to its arrival at the next node, for the
operator and the link. So p chunks can take turns on a Hamiltonian cycle: a node handles a word of
each of them in turn. If there are more chunks, p of them go around first, then the next p.

The *owner* of a share of a sum is the node that receives it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..schedule import SumPattern
from .address_map import AddressMap, Coordinate, direction_free_positions
from .fields import IDLE, Action, Loop, Order, Sources, Stage, make_node_memories, number_by_value
from .moves import Moves, Points
from .timing import COMBINE

if TYPE_CHECKING:
    from ..topology import IntArray
    from .moves import CompileRequest

__all__ = ["sum_moves"]


def sum_moves(request: CompileRequest) -> Moves:
    """Return the moves of sums that go around Hamiltonian cycles.

    Parameters
    ----------
    request : CompileRequest
        A `SumPattern`, with the properties that its program must have.

    Raises
    ------
    InputError
        If links differ in latency.

    Examples
    --------
    Two chunks take turns on each of four cycles, and pass nine nodes each.

    >>> import torusfabric as tf
    >>> pattern = tf.plan("3x3", "reduce-scatter", algorithm="hamiltonian")
    >>> program = tf.compile(pattern, flits=16)
    >>> program.loop.n_rows, program.cycles()
    (18, 42)
    """
    pattern, block, latency = request.schedule, request.block_flits, request.latency
    assert isinstance(pattern, SumPattern)
    topology, nodes, to_all = pattern.topology, pattern.topology.nodes, pattern.collective.to_all
    links, ports = topology.one_latency, topology.ports
    if links is None:
        raise InputError(
            f"Sums around cycles need links of equal latency, not of {topology.latency_text} "
            "cycles; choose an algorithm that sums in a table or along trees"
        )
    arriving = pattern.inject[topology.upstream]
    # Each in-port by which words arrive at any node has a memory of results, and a reader.
    is_live = (arriving >= 0).any(axis=0)
    live, reader = np.flatnonzero(is_live), np.cumsum(is_live) - 1
    readers = np.arange(len(live))
    sources = Sources(ports, results=True, injections=tuple((k,) for k in readers.tolist()))
    passed = np.where(pattern.feed >= 0, sources.first_of_stage(Stage.RESULT) + pattern.feed, IDLE)
    variant_of, first = number_by_value(map(bytes, passed))
    passed, there = passed[first], arriving[first] >= 0
    hop, turn, order = _follow_words(pattern, COMBINE + latency + links)
    start, stride = order[:, turn]
    departure = np.zeros((hop.max() + 1, turn.max() + 1), int)
    departure[hop[hop >= 0], turn[hop >= 0]] = np.flatnonzero(hop >= 0)
    # The last word of each turn is stored; in an all-reduce, the results of all owners.
    kept = (start + (hop - (nodes - 1)) * stride if to_all else turn)[:, None, None]
    place, hop = (start + hop * stride)[:, None, None], hop[:, None, None]
    adds, complete = (hop >= 0) & (hop < nodes), (hop >= nodes - 1) & there[:, live]
    entry = (arriving == pattern.along[0][:, None, None]).argmax(axis=2)
    #: The in-port of each cycle at each node, counted among the in-ports in use.
    entry = reader[entry]

    numbers, sign = zip(
        *(direction_free_positions(each, nodes) for each in pattern.index), strict=True
    )

    def passing_order_map(first_memory: int, lead: int) -> AddressMap:
        """Return the addresses of words that lie in memory in the order in which they pass a node.

        The first word belongs to the node that is `lead` nodes behind on the cycle. Each in-port
        has a memory; these are numbered from `first_memory` on.
        """
        cycle, turn = np.divmod(np.arange(pattern.sums_of_owner), pattern.turns)
        first, stride = block * order[:, turn]
        behind = (np.arange(nodes)[:, None] * np.array(sign)[cycle] - lead) % nodes
        memory = first_memory + entry[cycle].T[:, None]
        at = np.array(numbers)[cycle].T
        coordinates = (Coordinate(at, at, nodes),)
        return AddressMap(memory, (first + stride * behind)[None], coordinates)

    if to_all:
        receive_map = passing_order_map(0, 0)
    else:
        cycle, turn = np.divmod(np.arange(pattern.chunks), pattern.turns)
        memory = entry[cycle].T[:, None]
        base = np.broadcast_to(block * turn, memory.shape)
        receive_map = AddressMap.from_table(memory, base, topology, variant_of)
    # Results are passed on; at the beginning, identity words are sent.
    select = np.where((hop == 0) & (passed >= 0), sources.identity, passed)
    # Arriving words are combined with words that are read; complete sums with the identity word.
    operand = np.where(adds, sources.first_injection + reader, sources.identity)
    sums = pattern.turns * np.array([nodes if to_all else 1, nodes])
    return Moves(
        loop=Loop(
            order=Order.FLIT,
            flits=block,
            pause=np.zeros(len(hop), int),
            blocks=np.ones(len(hop), int),
            sources=sources,
            departure=np.repeat(departure[1:].reshape(-1, 1), ports, axis=1),
        ),
        points=(
            Points({Action.SELECT: np.where(hop >= 0, select, IDLE)}),
            Points({Action.OPERAND: np.where((hop >= 0) & there, operand, IDLE)}, links),
            Points.from_readers(
                len(live) + readers, np.where(adds & there[:, live], place, IDLE), links
            ),
            Points.from_memories(
                np.where(complete, kept, IDLE),
                sources.first_of_stage(Stage.RESULT) + live,
                np.array([links]),
                COMBINE + latency,
            ),
        ),
        memories=make_node_memories(live.tolist(), len(live)),
        depth=np.concatenate([slots * there[:, live] for slots in sums], axis=1),
        variant_of=variant_of,
        send_map=passing_order_map(len(live), 1),
        receive_map=receive_map,
        known_by="position on the cycle",
    )


def _follow_words(pattern: SumPattern, period: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return, for each row (a clock cycle), the word that arrives at every node.

    Parameters
    ----------
    pattern : SumPattern
        Pattern in which sums go around Hamiltonian cycles.
    period : int
        Clock cycles from the arrival of a word to its arrival at the next node. As many chunks can
        go around a Hamiltonian cycle at once, in turns.

    Returns
    -------
    hop : ndarray of int, shape (rows,)
        Number of nodes that have added to the word, or passed it; -1 if no word arrives.
    turn : ndarray of int, shape (rows,)
        Number of the word's chunk among those that take turns.
    order : ndarray of int, shape (2, turns)
        For each chunk that takes turns: the position of its first word in the order in which words
        pass a node, and the distance between the positions of its words.
    """
    nodes = pattern.topology.nodes
    # Results go around once more, without the last hop, which would lead back to their owner.
    hops = nodes + (nodes - 1) * (pattern.times_around - 1)
    spans, order = [], []
    for start in range(0, pattern.turns, period):
        together = min(period, pattern.turns - start)
        hop, turn = np.divmod(np.arange((hops - 1) * period + together), period)
        spans.append(np.where(turn < together, [hop, start + turn], IDLE))
        order += [(start * nodes + k, together) for k in range(together)]
    hop, turn = np.concatenate(spans, axis=1)
    return hop, turn, np.array(order).T
