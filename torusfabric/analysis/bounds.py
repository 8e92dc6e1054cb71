"""Lower bounds on rounds.

They hold for every schedule that `check` accepts, whether partial sums are moved or copied; in
groups they are those of one group, which no message leaves. Each is proved in the docstring of its
function; `lower_bound` takes the largest that applies. N is the number of nodes, D the diameter, M
the number of chunks, P the number of ports in use, b the most blocks a message may carry.
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
from ..schedule.file import given_schedule
from ..toolchain.destinations import AnyPath
from ..toolchain.public import public
from ..topology import CayleyGraph, Topology
from .check import Traffic, check
from .distance_bounds import bufferless_steps, delivery_steps
from .volume import arc_load, least_time, reach

__all__ = ["Bound", "all_pairs_rounds", "arc_load", "bound", "find_bound", "lower_bound",
           "spread_around", "spread_rounds"]  # fmt: skip


@public
def bound(schedule: Schedule | AnyPath, traffic: Traffic | None = None) -> int:
    """A number of rounds that no schedule for the same task in the same model goes below.

    With store-and-forward switching, the model includes the length of the longest message; that no
    block ever rests, if none does; and in a total exchange, that all nodes do the same, if they do.
    In a reduction other schedules may copy partial sums, whether this one does or not.

    Parameters
    ----------
    schedule : Schedule or path
        Of any form; or its file.
    traffic : Traffic, optional
        What `check` returned for it. Without it, a schedule in rounds of one hop is checked, since
        the length of its messages follows from the whole history.

    Raises
    ------
    InputError
        If there is no such file or it is not a valid schedule file.
    ScheduleError
        If the schedule has to be checked and has a fault.

    Examples
    --------
    >>> import torusfabric as tf
    >>> tf.bound(tf.plan("8x8", "allgather", algorithm="matching"))
    16
    """
    return find_bound(given_schedule(schedule), traffic).rounds


class Bound(NamedTuple):
    """A lower bound on rounds, and for which schedules alone it holds.

    Parameters
    ----------
    where : str
        What restricts the schedules: "no block rests"; empty if it holds for all of the model.
    """

    rounds: int
    where: str = ""


def find_bound(schedule: Schedule, traffic: Traffic | None = None) -> Bound:
    """The bound of a schedule, see `bound`, and whether a restriction makes it greater.

    Examples
    --------
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
        restricted = Bound(_invariant_exchange(topology, chunks), "all nodes do the same")
    elif isinstance(topology, CayleyGraph) and _bufferless(schedule):
        restricted = Bound(bufferless_steps(topology, chunks), "no block rests")
    return restricted if restricted.rounds > least else Bound(least)


def _invariant_exchange(topology: Topology, chunks: int) -> int:
    """Steps of a total exchange in which all nodes do the same.

    Then all arcs of a port carry the same number of hops. On an axis of even side s, a block whose
    offset there is d goes h forwards and k back with h - k = d modulo s. Over all offsets the sum
    of h - k is M (N / s) s (s - 1) / 2 modulo s, which is s / 2 where M N / s is odd. So the two
    ports of the axis differ by s / 2 hops or more, of at least M N s / 4 together.
    """
    least = 0
    for side in getattr(topology, "sides", ()):
        if side % 2 == 0 and topology.nodes // side * chunks % 2:
            least = max(least, ceil(Fraction(chunks * topology.nodes * side // 4 + side // 2, 2)))
    return least


def _bufferless(schedule: Schedule) -> bool:
    """Whether a schedule is an all-gather in which no block ever rests, whatever its form.

    A pattern is that by its definition; a table, if it sends only what it received in the step
    before, and chunks of its own message in the first step.
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
    """The largest of the lower bounds on rounds that apply to a collective.

    Parameters
    ----------
    ports : int, optional
        How many messages a node may send, and receive, in a round; all ports by default.
    chunks : int
        Into how many blocks a message is cut.
    blocks : int or None
        How many blocks a message may carry with store-and-forward switching, None for any number.
        With circuit switching a message may always carry any number.

    Examples
    --------
    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import Torus
    >>> lower_bound(Torus(7, 7, 7), parse_collective("allgather"), switching=Switching.CIRCUIT)
    4
    """
    if collective.axes is not None:
        topology, collective = collective.groups(topology).torus, collective.in_one_group
    if topology.nodes == 1:
        return 0
    ports = topology.ports if ports is None else ports
    forward = switching == Switching.STORE_AND_FORWARD
    results = [reach(topology, collective) if forward else 1]
    if collective.local:
        moved = least_time(topology, collective, switching=switching, ports=ports, duplex=duplex)
        if forward and blocks is not None:
            results.append(ceil(moved * chunks / blocks))
        return max(results)
    results.append(spread_rounds(topology.nodes, ports))
    if not isinstance(topology, CayleyGraph):
        results.append(spread_around(topology, collective, ports))
    elif not forward and not collective.rooted:
        results.append(all_pairs_rounds(topology, ports, duplex))
    if forward and blocks is not None:
        results.append(_volume_rounds(topology, collective, ports, chunks, blocks, duplex))
    return max(results)


def spread_rounds(nodes: int, ports: int) -> int:
    """Rounds until all nodes can hold data of one node, or one of all: ceil(log_(P + 1) N).

    Data of a node, merged or split, are at one node at first; in a round each node that has some of
    them sends to at most P others. Read backwards, the same holds for the nodes whose messages
    can have reached a given node. So this bounds every collective, with any switching and any
    length of messages (Wang et al., section 1; Delmas and Perennes, section 4). An all-reduce that
    never copies partial sums takes twice as many; one that does can do with these.
    """
    rounds, reached = 0, 1
    while reached < nodes:
        rounds, reached = rounds + 1, reached * (ports + 1)
    return rounds


def spread_around(topology: Topology, collective: Collective, ports: int) -> int:
    """Rounds like `spread_rounds`, where nodes have different numbers of links.

    Parameters
    ----------
    ports : int
        How many messages a node may send, or receive, in a round.

    Notes
    -----
    A node sends by no more links than it has, and receives by no more. Data start at the root, or,
    where there is none, at the node with the fewest links, too; at best they come to the nodes with
    the most links first. Read backwards, the same holds for what comes together at a node.

    Examples
    --------
    A root with one of four links left reaches 2, 7, and then at most 35 nodes.

    >>> import torusfabric as tf
    >>> topology = tf.parse_topology("4x4!0:+0,0:-0,0:+1")
    >>> spread_around(topology, tf.parse_collective("broadcast"), 4)
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
    """Rounds of a circuit-switched collective in which every node has to reach every other.

    After t - 1 rounds a node can hold data of at most (P + 1)^(t-1) nodes, and what it sends in
    round t of g can reach at most (P + 1)^(g-t) nodes. So in round t an arc serves at most
    min((P + 1)^(t-1), N) min((P + 1)^(g-t), N) of the pairs of a node and one it must reach; over
    all rounds some arc has to serve as many as its load. In half duplex a link, which serves two
    arcs, carries one message in a round. This is Prop. 4.4 and 4.5 of Delmas and Perennes without
    the relaxation: 4, 7, 11, 15 rounds for the tori of 7^i x 7^i x 7^i nodes, i = 1..4.
    """
    nodes = topology.nodes
    growth = (topology.ports if ports is None else ports) + 1
    load = ceil(arc_load(topology) * (2 if duplex == Duplex.HALF else 1))
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
    """Rounds it takes to move the blocks, at most b in a message, one hop in a round.

    What `least_time` says of messages holds of their blocks. Besides,

    - Broadcast: nothing arrives at a node at distance D before round D, and at most P b of its M
      blocks in each round from then on: D - 1 + ceil(M / (P b)). Reduce: it must send a sum for
      each chunk by round T - D + 1.
    - Scatter, gather, all-gather and reduce-scatter: no block comes farther than the rounds so far
      allow, `delivery_steps`.
    """
    moved = least_time(topology, collective, ports=ports, duplex=duplex) * chunks / blocks
    exchange = collective.from_each and collective.personal
    allreduce = collective.reducing and collective.to_all
    if not isinstance(topology, CayleyGraph) or exchange or allreduce:
        return ceil(moved)
    if collective.rooted and not (collective.personal or collective.from_each):
        return topology.diameter - 1 + ceil(moved)
    return max(delivery_steps(topology, chunks, capacity=ports * blocks), ceil(moved))
