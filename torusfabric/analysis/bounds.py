"""Lower bounds on the rounds of a collective.

The bounds hold for every schedule that `check` accepts, whether it moves or copies partial sums. A
collective in groups has the bound of a single group, because no message leaves its group. The proof
of each bound is in the docstring of its function; `lower_bound` returns the largest bound that
applies.

Symbols: N is the number of nodes, D the diameter, M the number of chunks of a message, P the number
of ports that a node may use in a round, and b the most blocks that a transfer may carry.
"""

from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np

from ..collective import Collective
from ..schedule import (
    Duplex,
    Lifted,
    Pattern,
    Schedule,
    SumPattern,
    SumTable,
    Switching,
    Table,
)
from ..schedule.file import load_if_path
from ..toolchain.destinations import AnyPath
from ..toolchain.public import public
from ..topology import CayleyGraph, Topology
from .check import CheckedTraffic, check
from .distance_bounds import bufferless_steps, delivery_steps
from .irregular import irregular_least_steps
from .volume import busiest_arc_load, least_time, longest_distance

__all__ = ["Bound", "all_pairs_rounds", "busiest_arc_load", "bound", "find_bound", "lower_bound",
           "spread_rounds_by_links", "spread_rounds"]  # fmt: skip


@public
def bound(schedule: Schedule | AnyPath, traffic: CheckedTraffic | None = None) -> int:
    """Return a lower bound on the number of rounds, for all schedules like this one.

    These are schedules for the same collective and topology in the same model: with the same
    switching, ports, chunks and duplex, and for store-and-forward switching with messages of the
    same largest length. The bound is larger if this schedule belongs to one of two restricted
    classes: all-gathers in which no block ever rests, which means that a node sends a block only in
    the step after its arrival; and all-to-alls in which all nodes do the same. In a reduction, the
    bound also holds for schedules that copy partial sums.

    Parameters
    ----------
    schedule : Schedule or path
        A schedule in any form, or the path of its file.
    traffic : CheckedTraffic, optional
        The result of `check` for this schedule. Without it, a schedule in rounds of one hop is
        checked here, because the length of its messages depends on all earlier rounds.

    Raises
    ------
    InputError
        If there is no such file or it is not a valid schedule file.
    ScheduleError
        If the schedule has to be checked and has a fault.

    Examples
    --------
    Each node receives 63 blocks, at most four in each step:

    >>> import torusfabric as tf
    >>> tf.bound(tf.plan("8x8", "allgather", algorithm="matching"))
    16
    """
    return find_bound(load_if_path(schedule), traffic).rounds


class Bound(NamedTuple):
    """A lower bound on rounds, and the restriction under which it holds.

    Parameters
    ----------
    rounds : int
        Number of rounds that every schedule needs, if it obeys the restriction.
    where : str
        The restriction, such as "no block rests"; empty if the bound holds for all schedules.
    """

    rounds: int
    where: str = ""


def find_bound(schedule: Schedule, traffic: CheckedTraffic | None = None) -> Bound:
    """Return the bound on the rounds of a schedule, with the restriction under which it holds.

    See `bound`; the restriction is empty unless it makes the bound larger.

    Parameters
    ----------
    traffic : CheckedTraffic, optional
        The result of `check` for the schedule. Without it, a schedule whose messages may have
        several blocks is checked here.

    Examples
    --------
    An all-gather in which no block rests needs a step more:

    >>> import torusfabric as tf
    >>> find_bound(tf.plan("6x6", "allgather", algorithm="bufferless"))
    Bound(rounds=10, where='no block rests')
    >>> find_bound(tf.plan("6x6", "allgather", algorithm="matching"))
    Bound(rounds=9, where='')
    """
    if isinstance(schedule, Lifted):
        return find_bound(schedule.part, traffic)
    single = isinstance(schedule, Pattern | SumPattern | Table | SumTable) or schedule.keeps_sums
    blocks: int | None = 1
    if schedule.switching == Switching.CIRCUIT:
        blocks = None  # a message may have any number
    elif traffic is not None or not single:
        blocks = max(1, *(traffic or check(schedule)).round_blocks, 1)
    least = lower_bound(
        schedule.topology,
        schedule.collective,
        switching=schedule.switching,
        ports=schedule.ports,
        chunks=schedule.chunks,
        blocks=blocks,
        duplex=schedule.duplex,
    )
    topology, chunks = schedule.topology, schedule.chunks
    restricted = Bound(0)
    if isinstance(schedule, Table) and schedule.collective.kind == "alltoall":
        restricted = Bound(_invariant_exchange_steps(topology, chunks), "all nodes do the same")
    elif isinstance(topology, CayleyGraph) and _is_bufferless(schedule):
        restricted = Bound(bufferless_steps(topology, chunks), "no block rests")
    return restricted if restricted.rounds > least else Bound(least)


def _invariant_exchange_steps(topology: Topology, chunks: int) -> int:
    """Return a number of steps that every all-to-all in which all nodes do the same needs.

    `chunks` is the number M of chunks of a message. Proof: in such an exchange, all arcs of a port
    carry the same number of hops. Take an axis of even side s, and let K = M N / s. A block with
    offset d on this axis makes h hops forwards and k back, with h - k = d modulo s. Summed over all
    offsets, h - k is K s (s - 1) / 2 modulo s. This is s / 2 if K is odd. The hops of the two ports
    of the axis therefore differ by at least s / 2, and together they are at least K s^2 / 4.
    """
    least = 0
    for side in getattr(topology, "sides", ()):
        if side % 2 == 0 and topology.nodes // side * chunks % 2:
            least = max(least, ceil(Fraction(chunks * topology.nodes * side // 4 + side // 2, 2)))
    return least


def _is_bufferless(schedule: Schedule) -> bool:
    """Return True if a schedule, in any form, is an all-gather in which no block ever rests.

    A pattern has this property by definition. A table has it if in the first step it sends only
    chunks of the own message, and later only blocks received in the step before.
    """
    collective = schedule.collective
    if not (collective.from_each and collective.to_all):
        return False
    if not isinstance(schedule, Table):
        return isinstance(schedule, Pattern)
    topology = schedule.topology
    arrived = {(0, chunk) for chunk in range(schedule.chunks)}
    for row, chunks in zip(schedule.offset, schedule.chunk, strict=True):
        ports = np.nonzero(row >= 0)[0]
        sent = topology.subtract(row[ports], topology.generators[ports]).tolist()
        if not arrived.issuperset(zip(sent, chunks[ports].tolist(), strict=True)):
            return False
        arrived = set(zip(row[ports].tolist(), chunks[ports].tolist(), strict=True))
    return True


def lower_bound(
    topology: Topology,
    collective: Collective,
    *,
    switching: Switching,
    ports: int | None = None,
    chunks: int = 1,
    blocks: int | None = 1,
    duplex: Duplex = Duplex.FULL,
) -> int:
    """Return the largest of the lower bounds on rounds that apply to a collective.

    Parameters
    ----------
    ports : int, optional
        Messages that a node may send in a round, and messages that it may receive; by default one
        for each port.
    chunks : int
        Number M of chunks into which a message is cut.
    blocks : int or None
        The most blocks b that a transfer may carry with store-and-forward switching, None for no
        limit. With circuit switching there is never a limit.
    duplex : Duplex
        Half duplex if a link carries a message in one direction only in a round.

    Examples
    --------
    An all-gather on 343 nodes takes at least four rounds of circuits:

    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import Torus
    >>> lower_bound(Torus(7, 7, 7), parse_collective("allgather"), switching=Switching.CIRCUIT)
    4
    """
    if collective.axes is not None:
        topology, collective = collective.groups(topology).group_topology, collective.in_one_group
    if topology.nodes == 1:
        return 0
    ports = topology.ports if ports is None else ports
    forward = switching == Switching.STORE_AND_FORWARD
    results = [longest_distance(topology, collective) if forward else 1]
    if collective.is_irregular:
        collective = collective.with_lengths_in_chunks(topology, chunks)
        if collective.members and not collective.local:
            results.append(spread_rounds(max(map(len, collective.members)), ports))
        if forward and blocks is not None:
            if topology.spacing_multiple > 1:
                longest = collective.longest_flits or chunks
                moved = least_time(topology, collective, ports=ports)
                least = ceil(moved * longest / -(-longest // chunks))
            else:
                least = irregular_least_steps(topology, collective, chunks, ports)
            results.append(-(-least // blocks))
        return max(results)
    if collective.local:
        moved = least_time(topology, collective, switching=switching, ports=ports, duplex=duplex)
        if forward and blocks is not None:
            results.append(ceil(moved * chunks / blocks))
        return max(results)
    results.append(spread_rounds(topology.nodes, ports))
    if not isinstance(topology, CayleyGraph):
        results.append(spread_rounds_by_links(topology, collective, ports))
    elif not forward and not collective.rooted:
        results.append(all_pairs_rounds(topology, ports, duplex))
    if forward and blocks is not None:
        results.append(_volume_rounds(topology, collective, ports, chunks, blocks, duplex))
    return max(results)


def spread_rounds(nodes: int, ports: int) -> int:
    """Return the rounds until data of one node can be at all N nodes: ceil(log_(P + 1) N).

    Here P is `ports`. Proof: data of a node, even if merged or split, are at one node at first. In
    a round, each node that has some of them sends to at most P others. Read backwards, the same
    holds for the nodes whose messages can have reached a given node. The bound therefore holds for
    every collective, with any switching and any message length (Wang et al., section 1; Delmas and
    Perennes, section 4). An all-reduce that never copies partial sums needs twice as many rounds;
    one that copies may reach this bound.
    """
    rounds, reached = 0, 1
    while reached < nodes:
        rounds, reached = rounds + 1, reached * (ports + 1)
    return rounds


def spread_rounds_by_links(topology: Topology, collective: Collective, ports: int) -> int:
    """Return the fewest rounds after which data of one node can be at all nodes.

    In contrast to `spread_rounds`, the nodes may have different numbers of links.

    Parameters
    ----------
    ports : int
        Messages that a node may send, or receive, in a round.

    Notes
    -----
    A node sends by at most the links that it has. Data start at the root. A collective without a
    root has data that start at the node with the fewest links. At best, the data reach the nodes
    with the most links first. Read backwards, the same holds for data that are gathered at a node.

    Examples
    --------
    The root has one of its four links left. After three rounds at most 2, 7 and 35 nodes have data:

    >>> import torusfabric as tf
    >>> topology = tf.parse_topology("4x4!0:+0,0:-0,0:+1")
    >>> spread_rounds_by_links(topology, tf.parse_collective("broadcast"), 4)
    3
    """
    network = topology.backwards if collective.to_root else topology
    sends = np.minimum(network.linked.sum(axis=1), ports)
    start = collective.root if collective.rooted else int(sends.argmin())
    assert start is not None
    order = [int(sends[start]), *np.sort(np.delete(sends, start))[::-1].tolist()]
    rounds, reached = 0, 1
    while reached < topology.nodes:
        rounds, reached = rounds + 1, reached + sum(order[:reached])
    return rounds


def all_pairs_rounds(
    topology: CayleyGraph, ports: int | None = None, duplex: Duplex = Duplex.FULL
) -> int:
    """Return a lower bound on the rounds until data of every node can be at every other node.

    It holds for circuit switching. Proof: let g be the number of rounds, P the `ports` of a node,
    and Q = P + 1. Before round t, a node can hold data of at most Q^(t-1) nodes. A message sent in
    round t can still reach at most Q^(g-t) nodes. An arc therefore serves in round t at most
    min(Q^(t-1), N) min(Q^(g-t), N) pairs of origin and destination. Over all rounds, some arc has
    to serve as many pairs as `busiest_arc_load`. In half duplex, both arcs of a link share one
    message a round, which doubles the load.

    This is Prop. 4.4 and 4.5 of Delmas and Perennes without their relaxation. It gives 4, 7, 11, 15
    rounds for the tori of 7^i x 7^i x 7^i nodes, i = 1..4.
    """
    nodes = topology.nodes
    growth = (topology.ports if ports is None else ports) + 1
    load = ceil(busiest_arc_load(topology) * (2 if duplex == Duplex.HALF else 1))
    rounds, served = 0, 0
    while served < load:
        rounds += 1
        served = sum(
            min(growth**before, nodes) * min(growth ** (rounds - 1 - before), nodes)
            for before in range(rounds)
        )
    return max(rounds, spread_rounds(nodes, growth - 1))


def _volume_rounds(
    topology: Topology,
    collective: Collective,
    ports: int,
    chunks: int,
    blocks: int,
    duplex: Duplex,
) -> int:
    """Return a lower bound on rounds of one hop, which follows from the number of blocks to move.

    The arguments are those of `lower_bound`: `collective`, `ports` (P), `chunks` (M), `blocks` (b,
    the most blocks in a transfer) and `duplex`. The bound of `least_time`, which is on whole
    messages, also holds for the blocks of messages. Additional bounds:

    - Broadcast: no data arrive at a node at distance D before round D. From then on at most P b of
      its M blocks arrive in each round. This gives D - 1 + ceil(M / (P b)). Reduce: the same in
      reverse, since the farthest node must send a sum for each chunk by round T - D + 1 of T.
    - Scatter, gather, all-gather and reduce-scatter: in each round, a block is at most as far from
      its origin as the number of rounds so far, see `delivery_steps`.
    """
    moved = least_time(topology, collective, ports=ports, duplex=duplex) * chunks / blocks
    exchange = collective.from_each and collective.personal
    allreduce = collective.reducing and collective.to_all
    if not isinstance(topology, CayleyGraph) or exchange or allreduce:
        return ceil(moved)
    if collective.rooted and not (collective.personal or collective.from_each):
        return topology.diameter - 1 + ceil(moved)
    return max(delivery_steps(topology, chunks, capacity=ports * blocks), ceil(moved))
