"""Lower bounds on rounds.

They hold for every schedule that `check` accepts, on every topology that looks the same from each
node; in groups they are those of one group, which no message leaves. Each is proved in the
docstring of its function; `lower_bound` takes the largest that applies. N is the number of nodes, D
the diameter, M the number of chunks, P the number of ports in use, b the most blocks a message may
carry.
"""

from fractions import Fraction
from math import ceil

import numpy as np

from ..collective import Collective
from ..schedule import Duplex, Lifted, Listed, Pattern, Schedule, Switching, Table
from ..topology import Topology, Torus
from .check import Traffic
from .distance_bounds import bufferless_steps, delivery_steps

__all__ = ["all_pairs_rounds", "arc_load", "bound", "lower_bound", "spread_rounds"]


def bound(schedule: Schedule, traffic: Traffic | None = None) -> int:
    """The least number of rounds of any schedule for the same task in the same model.

    With store-and-forward switching, the model includes the length of the longest message; that no
    block ever rests, if none does; and in a total exchange, that all nodes do the same, if they do.

    Parameters
    ----------
    schedule : Schedule
        Of any form.
    traffic : Traffic, optional
        What `check` returned for it. It has the lengths of messages that carry all that their
        sender holds.

    Returns
    -------
    int

    Examples
    --------
    >>> from torusfabric.algorithms import find
    >>> from torusfabric.collective import parse_collective
    >>> from torusfabric.topology import Torus
    >>> schedule = find("matching")(Torus(8, 8), parse_collective("allgather"))
    >>> schedule.round_count, bound(schedule)
    (16, 16)

    Examples
    --------
    >>> import torusfabric as tf
    >>> tf.bound(tf.plan("8x8", "allgather", algorithm="matching"))
    16
    """
    if isinstance(schedule, Lifted):
        return bound(schedule.part, traffic)
    circuit = schedule.switching == Switching.CIRCUIT
    least = lower_bound(
        schedule.topology,
        schedule.collective,
        switching=schedule.switching,
        ports=schedule.ports,
        chunks=schedule.chunks,
        blocks=None if circuit else _longest_message(schedule, traffic),
        duplex=schedule.duplex,
    )
    collective = schedule.collective
    if isinstance(schedule, Table) and collective.from_each and collective.personal:
        return max(least, _invariant_exchange(schedule.topology, schedule.chunks))
    return max(least, bufferless_steps(schedule.topology)) if _bufferless(schedule) else least


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
    """Whether a schedule is an all-gather of whole messages in which no block ever rests."""
    collective, whole = schedule.collective, schedule.chunks == 1
    if not (isinstance(schedule, Table) and whole and collective.from_each and collective.to_all):
        return False
    topology, arrived = schedule.topology, {0}
    for row in schedule.offset:
        ports = np.nonzero(row >= 0)[0]
        sent = topology.subtract(row[ports], topology.generators[ports]).tolist()
        if not arrived.issuperset(sent):
            return False
        arrived = set(row[ports].tolist())
    return True


def _longest_message(schedule: Schedule, traffic: Traffic | None) -> int | None:
    """Blocks of the longest message of a schedule, None where that is not known."""
    if traffic is not None:
        return max(1, *traffic.round_blocks, 1)
    if isinstance(schedule, Pattern | Table):
        return 1
    longest = 1
    for transfers in schedule.rounds():
        if not isinstance(transfers.payload, Listed):
            return None if len(transfers) else longest
        longest = max(longest, int(np.diff(transfers.payload.indptr).max(initial=1)))
    return longest


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
    topology : Topology
        Where.
    collective : Collective
        What.
    switching : Switching
    ports : int, optional
        How many messages a node may send, and receive, in a round; all ports by default.
    chunks : int
        Into how many blocks a message is cut.
    blocks : int or None
        How many blocks a message may carry with store-and-forward switching, None for any number.
        With circuit switching a message may always carry any number.
    duplex : Duplex

    Returns
    -------
    int

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
    first = max(spread_rounds(topology.nodes, ports), topology.diameter if forward else 1)
    if collective.reducing and collective.to_all:
        first *= 2
    results = [first]
    if not forward and not collective.rooted:
        results.append(all_pairs_rounds(topology, ports, duplex))
    if forward and blocks is not None:
        results.append(_volume_rounds(topology, collective, ports, chunks, blocks, duplex))
    return max(results)


def spread_rounds(nodes: int, ports: int) -> int:
    """Rounds until all nodes can hold data of one node, or one of all: ceil(log_(P + 1) N).

    Data of a node, merged or split, are at one node at first; in a round each node that has some of
    them sends to at most P others. Read backwards, the same holds for the nodes whose messages
    can have reached a given node. So this bounds every collective, with any switching and any
    length of messages. For all-reduce it counts twice: since partial sums move, a complete sum
    first stands at one node, which all others must have reached, and then has to reach all others
    from there; likewise for the diameter (Wang et al., section 1; Delmas and Perennes, section 4).
    """
    rounds, reached = 0, 1
    while reached < nodes:
        rounds, reached = rounds + 1, reached * (ports + 1)
    return rounds


def arc_load(topology: Topology) -> Fraction:
    """How many of the N (N - 1) paths between all nodes some arc must carry at least.

    The paths have at least N S hops together, S the sum of all distances from a node, and there are
    N times degree arcs. On a torus the same holds for each axis: N (N / s) floor(s^2 / 4) hops on
    2 N arcs for a side s. For k equal sides this is the arc-forwarding index n^(k-1) / 2
    floor(n^2 / 4) itself, which dimension-ordered routing meets (Delmas and Perennes, Prop. 4.7).

    Returns
    -------
    Fraction
        The mean over those arcs; the largest load is at least that, rounded up.
    """
    nodes = topology.nodes
    loads = [Fraction(int(topology.distances.sum(dtype=np.int64)), topology.ports)]
    if isinstance(topology, Torus):
        loads += [Fraction(nodes // side * (side**2 // 4), 2) for side in topology.sides]
    return max(loads)


def all_pairs_rounds(
    topology: Topology, ports: int | None = None, duplex: Duplex = Duplex.FULL
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

    - Broadcast: nothing arrives at a node at distance D before round D, and at most P b of its M
      blocks in each round from then on: D - 1 + ceil(M / (P b)). Reduce: it must send a sum for
      each chunk by round T - D + 1.
    - Scatter: M (N - 1) blocks leave the root, at most P b in a round. Gather: they arrive there.
    - All-gather: each node receives M (N - 1) blocks. Reduce-scatter: it sends M (N - 1) sums. All
      nodes together receive at most N P messages in a round, in half duplex at most one a link.
      For all four, no block comes farther than the rounds so far allow: `delivery_steps`.
    - Total exchange: the blocks travel M N S hops in all; on a torus also per axis (`arc_load`).
    - All-reduce: of each chunk, N sums merge into one by N - 1 receipts, and N - 1 more copy it.
    """
    nodes, degree = topology.nodes, topology.ports
    half = 2 if duplex == Duplex.HALF else 1
    each = Fraction(min(ports * half, degree), half) * blocks
    near = delivery_steps(topology, chunks, capacity=ports * blocks)
    if collective.rooted:
        if collective.personal or collective.from_each:
            return max(near, ceil(Fraction(chunks * (nodes - 1), ports * blocks)))
        return topology.diameter - 1 + ceil(Fraction(chunks, ports * blocks))
    if collective.reducing and collective.to_all:
        return ceil(2 * chunks * Fraction(nodes - 1, nodes) / each)
    if collective.reducing or collective.to_all:
        return max(near, ceil(chunks * (nodes - 1) / each))
    hops = int(topology.distances.sum(dtype=np.int64))
    by_arcs = chunks * arc_load(topology) * half / blocks
    return max(ceil(chunks * hops / each), ceil(by_arcs))
