"""All-gather with two packets a node on a torus with one odd side, after packets are evened out.

Model: store-and-forward, full duplex, all ports, one hop a step, no storage on the way. R is the
even side, the number of rows, and C the odd side, the number of columns. Two cycles run through all
columns except a *special* one, of which each cycle visits every other node. Nodes of the special
column hold one packet, all others two. In a first step blocks move along the rows until all packets
have the same size, C / (2 C - 1) messages.

Except for 2 x odd, `hamiltonian` serves the same tori with packets of half a message and no first
step. There R C / 4 messages cross a link in total. Here R C / 4 + (C^2 + C - 2) / (2 C - 1) do, or
a little more because of rounding: always more than there. Even where only start-up counts, this
algorithm is ahead only on tall tori, where R > 4 (C + 1):

=====  ======================  ======================
sides  redistribute            hamiltonian
=====  ======================  ======================
4x3    9 steps, 5.00 messages  6 steps, 3.00 messages
4x5    15 steps, 8.11          10 steps, 5.00
6x5    20 steps, 10.89         15 steps, 7.50
6x7    28 steps, 14.92         21 steps, 10.50
8x7    34 steps, 18.15         28 steps, 14.00
8x9    44 steps, 23.18         36 steps, 18.00
10x9   53 steps, 27.94         45 steps, 22.50
12x11  75 steps, 39.19         66 steps, 33.00
20x3   29 steps, 17.00         30 steps, 15.00
=====  ======================  ======================
"""

import math
from typing import NamedTuple

import numpy as np

from ...collective import Blocks, Collective
from ...schedule import Listed, Rounds, Transfers
from ...topology import Topology, Torus
from ..algorithm import Algorithm, Options, all_ports_reason

__all__ = ["REDISTRIBUTE"]

#: The most nodes. A schedule lists all blocks of all packets in all steps; more nodes would take
#: too much memory.
MOST_NODES = 600


class Rectangle(NamedTuple):
    """A torus with an even number of rows and an odd number of columns: coordinates and ports.

    Parameters
    ----------
    rows, columns : int
        The sides R and C.
    column : ndarray of int, shape (nodes,)
        The column of each node.
    top, bottom, left, right : int
        The out-port in each direction.
    """

    rows: int
    columns: int
    column: np.ndarray
    top: int
    bottom: int
    left: int
    right: int

    @classmethod
    def from_torus(cls, torus: Torus) -> "Rectangle":
        """Return the rectangle of a torus; its even side is the number of rows, on either axis."""
        down = 0 if torus.sides[0] % 2 == 0 else 1
        along = 1 - down
        column = torus.coordinates(np.arange(torus.nodes))[along]
        ports = 2 * down + 1, 2 * down, 2 * along + 1, 2 * along
        return cls(torus.sides[down], torus.sides[along], column, *ports)


def unsupported_reason(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Return the reason why this algorithm cannot plan a selection, or None if it can.

    The selection is `collective` on `topology` with `options`. The reason is a need, such as
    "a torus" or "at least two nodes".
    """
    if not isinstance(topology, Torus) or len(topology.sides) != 2 or sum(topology.sides) % 2 == 0:
        return "a torus of two axes with one even and one odd side"
    if topology.nodes > MOST_NODES:
        return f"at most {MOST_NODES} nodes"
    return all_ports_reason(options, topology.ports)


def plan(topology: Torus, collective: Collective, options: Options) -> Rounds:
    """Plan an all-gather on a torus with an even side R and an odd side C.

    It takes 1 + ceil((R C - R / 2 + 2 C) / 2) steps, or C + 1 if R = 2. The first step makes the
    packets of all nodes equal in size; then they travel along two cycles.

    Parameters
    ----------
    collective : Collective
        The all-gather.
    options : Options
        The options, none of which changes the plan.

    Returns
    -------
    Rounds
        The schedule, with 2 C - 1 chunks a message and C in a packet.

    Notes
    -----
    Each cycle has m = R C - R / 2 nodes. A node off a cycle is fed by two neighbours on it, which
    are L = 2 C - 1 positions apart; if R = 2, one neighbour feeds it both ways and L = 0. The node
    is complete after (m + L + 1) / 2 steps, rounded up. The table in the module docstring compares
    this with `hamiltonian`, which meets the lower bound.

    References
    ----------
    .. [1] U. Meyer and J. F. Sibeyn, "Oblivious gossiping on tori", J. Algorithms 42 (2002),
       section 2.2. Its packets are cut differently, and one of its rules for the special column is
       misprinted.

    Examples
    --------
    The number of steps, and the number of chunks:

    >>> import torusfabric as tf
    >>> schedule = REDISTRIBUTE(tf.parse_topology("4x5"), tf.parse_collective("allgather"))
    >>> schedule.round_count, schedule.chunks
    (15, 9)
    """
    rectangle = Rectangle.from_torus(topology)
    blocks = collective.blocks(topology, 2 * rectangle.columns - 1)
    packets = packet_blocks(topology, rectangle, blocks)
    feed, carried = forwarding_tables(topology, rectangle)
    nodes = np.arange(topology.nodes)
    source, port = np.repeat(nodes, 4), np.tile(np.arange(4, dtype=np.int8), len(nodes))
    ends = np.arange(len(source) + 1) * rectangle.columns
    upstream = topology.neighbours[nodes[:, None], feed], topology.opposite[feed]
    rounds = [evening_round(rectangle, blocks)]
    size = topology.nodes - rectangle.rows // 2
    apart = 2 * rectangle.columns - 1 if rectangle.rows > 2 else 0
    for _ in range(math.ceil((size + apart + 1) / 2)):
        payload = Listed(ends, packets[carried.ravel()].ravel())
        rounds.append(Transfers(source, port[:, None], payload))
        carried = carried[upstream]
    return Rounds(
        topology=topology,
        collective=collective,
        chunks=blocks.chunks,
        transfers=tuple(rounds),
    )


def evening_round(rectangle: Rectangle, blocks: Blocks) -> Transfers:
    """Return the transfers of the first step, which makes all packets equal in size.

    A packet is a set of blocks that nodes send on as a whole in the later steps. With C columns,
    each node of column j = 1 .. C - 2 sends j blocks to the left. A node of column C - 2 also sends
    one block to the right.

    Parameters
    ----------
    rectangle : Rectangle
        The torus as rows and columns.
    blocks : Blocks
        The blocks of the all-gather.
    """
    special = rectangle.columns - 2
    left = np.nonzero((rectangle.column >= 1) & (rectangle.column <= special))[0]
    right = np.nonzero(rectangle.column == special)[0]
    counts = np.append(rectangle.column[left], np.ones_like(right))
    ends = np.append(0, np.cumsum(counts))
    chunk = np.arange(ends[-1]) - np.repeat(ends[:-1], counts)
    chunk[ends[len(left)] :] = special
    source = np.append(left, right)
    port = np.repeat([rectangle.left, rectangle.right], [len(left), len(right)]).astype(np.int8)
    ids = blocks.encode(np.repeat(source, counts), chunk)
    return Transfers(source, port[:, None], Listed(ends, ids))


def packet_blocks(topology: Topology, rectangle: Rectangle, blocks: Blocks) -> np.ndarray:
    """Return the blocks of each packet, as block numbers in an array of shape (packets, C).

    A packet is a set of C blocks (C is the number of columns) that nodes send on as a whole, from
    the second step on. The first step moves single blocks, and leaves two packets at each node v:
    rows 2 v and 2 v + 1 of the array. A node in column C - 2 has only one packet, which both of its
    rows list. Why: each of the two cycles visits only every other node of this special column.

    Parameters
    ----------
    rectangle : Rectangle
        The torus as rows and columns.
    blocks : Blocks
        The blocks of the all-gather.
    """
    packets = np.empty((topology.nodes, 2, rectangle.columns), np.int32)
    special, chunks = rectangle.columns - 2, np.arange(blocks.chunks)
    for column in range(rectangle.columns):
        nodes = np.nonzero(rectangle.column == column)[0]
        kept = chunks if column > special else chunks[column + (column == special) :]
        came = [special] if column > special else chunks[: (column + 1) % rectangle.columns]
        giver = topology.neighbours[nodes, rectangle.left if column > special else rectangle.right]
        own = blocks.encode(nodes[:, None], kept)
        if column != special:
            own = np.concatenate([own, blocks.encode(giver[:, None], came)], axis=1)
        packets[nodes] = own.reshape(len(nodes), -1, rectangle.columns)
    return packets.reshape(-1, rectangle.columns)


def forwarding_tables(topology: Topology, rectangle: Rectangle) -> tuple[np.ndarray, np.ndarray]:
    """Return the forwarding in all later steps, as two arrays of shape (nodes, ports).

    The first step moves single blocks. In the second step, each out-port sends a packet of its own
    node, and in each further step the packet that arrived at a fixed in-port. The first array has
    this in-port. The second array has the number of the packet of the second step: 2 v or 2 v + 1
    at node v.

    Parameters
    ----------
    rectangle : Rectangle
        The torus as rows and columns.
    """
    feed = np.empty((topology.nodes, 4), np.int8)
    start = np.tile(2 * np.arange(topology.nodes)[:, None], 4)
    top, bottom, left, right = rectangle.top, rectangle.bottom, rectangle.left, rectangle.right
    for nodes, pairs in (
        (rectangle.column % 2 == 0, ((top, right), (bottom, left))),
        (rectangle.column % 2 == 1, ((top, left), (bottom, right))),
    ):
        for packet, (a, b) in enumerate(pairs):
            feed[nodes, a], feed[nodes, b] = b, a
            start[nodes, a] += packet
            start[nodes, b] += packet
    special = rectangle.column == rectangle.columns - 2
    for port, source in ((right, left), (top, left), (left, right), (bottom, right)):
        feed[special, port] = source
    return feed, start


REDISTRIBUTE = Algorithm(
    name="redistribute",
    source="Meyer & Sibeyn 2002, section 2.2",
    summary="two packets a node along partial Hamiltonian cycles, after a step that evens them out",
    collectives=("allgather",),
    options=("ports",),
    misfit=unsupported_reason,
    plan=plan,
)
