"""All-gather of whole messages by fixed forwarding.

Model: store-and-forward, full duplex, all ports, one hop a step, no storage on the way. A message
is not cut. On a torus of d axes it travels both ways along one of d cycles. Each cycle visits
little more than every d-th node and passes by all others.

On two axes (Meyer & Sibeyn, section 4.1) axis 0 runs down the rows, and axis 1 along the columns.
Columns are *rods*: column x belongs to cycle x modulo 2. In rows 0 and 1, the *head*, each cycle
goes one column to the right, one row down, one more column to the right, and then down its next
rod. For more axes see `rods`.

A *feed* is the in-port that feeds each out-port of each node.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ....collective import Collective
from ....schedule import Pattern
from ....topology import Topology, Torus
from ...algorithm import Algorithm, Options, all_ports_reason
from .rods import axis_orders_3d, axis_orders_4d, completion_steps, feeds_3d, feeds_4d, permute_axes

__all__ = ["ONE_PACKET"]

#: Out-ports (bottom, top, right, left) in the order of the columns of a feed, as the tables below
#: write them.
PORT_LETTERS = "BTRL"

#: The nodes of the head and of rods: the in-ports that feed the out-ports bottom, top, right, left.
HEAD, ROD = "LRTB", "TBBT"

# Where the number of columns is odd, the last five are special: rods of cycles 0, 1, 0, 0, 1, with
# a head of three rows. Between two rods of one cycle, messages of the other cycle are passed on
# sideways. The last row of each table stands for all rows below.
WIDE = (
    "LRTB TBLR LLBT TRTB LRTB",
    "LRTB RLBT RRBT RLLR LRTB",
    "TBBT RLBB RLBT LBBB TBBT",
    "TBBT TBTB TBLB TBBR TBBT",
)
NARROW = (
    "LRTB TBLR LLBT TRTB LRTB",
    "LRTB RLBT RRBT RLLR LRTB",
    "TBBT RLBR RLBT LBBB TBTT",
    "TBBT TBTT TBLB TBBR TBTT",
    "TBBT TBBB TBLB TBBR TBBB",
)

# On 3 x 3 nodes every message turns left after one hop, and has then reached all corners.
LEFT_FEED = "RLTB"


def feeds_2d(sides: Sequence[int]) -> Iterator[np.ndarray]:
    """Yield ways to forward by which every node of a torus of two axes gets every message.

    Each is an array of shape (nodes, ports): the in-port whose words each out-port forwards.

    Parameters
    ----------
    sides : sequence of int
        The two sides of the torus.
    """
    if sides == (3, 3):
        yield np.tile(ports_of_letters(LEFT_FEED), (9, 1))
        return
    for axes in sorted(((0, 1), (1, 0)), key=lambda axes: -sides[axes[1]]):
        rows, columns = (sides[axis] for axis in axes)
        if columns % 2 == 0 or (columns >= 5 and rows >= 3):
            yield permute_axes(rod_feed(rows, columns), sides, axes)


def ports_of_letters(text: str) -> np.ndarray:
    """Return the in-ports for the letters B, T, R and L (bottom, top, right, left).

    Parameters
    ----------
    text : str
        For each out-port, the letter of the in-port whose words it forwards.
    """
    return np.array([PORT_LETTERS.index(letter) for letter in text], np.int8)


def rod_feed(rows: int, columns: int) -> np.ndarray:
    """Return the in-port whose words each out-port forwards, shape (nodes, ports).

    Messages travel both ways along one of two cycles, which run down every other column.

    Parameters
    ----------
    rows, columns : int
        The two sides of the torus.
    """
    feed = np.empty((rows, columns, 4), np.int8)
    feed[:2], feed[2:] = ports_of_letters(HEAD), ports_of_letters(ROD)
    if columns % 2:
        table = NARROW if columns == 5 else WIDE
        special = np.array([[ports_of_letters(word) for word in line.split()] for line in table])
        feed[:, -5:] = special[np.minimum(np.arange(rows), len(table) - 1)]
    return feed.reshape(-1, 4)


FEEDS = {2: feeds_2d, 3: feeds_3d, 4: feeds_4d}


def unsupported_reason(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Return the reason why this algorithm cannot plan a selection, or None if it can.

    The selection is `collective` on `topology` with `options`. The reason is a need, such as
    "a torus" or "at least two nodes".
    """
    if not isinstance(topology, Torus) or len(topology.sides) not in FEEDS:
        return "a torus of two, three or four axes"
    if len(topology.sides) == 3 and not any(axis_orders_3d(topology.sides)):
        return "two sides that are multiples of 3 and a third of at least 3"
    if len(topology.sides) == 4 and not any(axis_orders_4d(topology.sides)):
        return (
            "two sides that are multiples of 4, an even one and a fourth of at least 4, "
            "on which the laps close to one cycle"
        )
    return all_ports_reason(options, topology.ports)


def plan(topology: Torus, collective: Collective, options: Options) -> Pattern:
    """Plan an all-gather in somewhat more than N / (2 d) steps, in the best order of axes.

    On a torus of N nodes and d axes, whole messages travel both ways along one of d cycles, each of
    which passes by all nodes.

    Parameters
    ----------
    collective : Collective
        The all-gather.
    options : Options
        The options, none of which changes the plan.

    Returns
    -------
    Pattern
        A pattern of one chunk.

    Notes
    -----
    The number of steps is found by tracing the messages that each node receives. It exceeds the
    lower bound, (N - 1) / (2 d), by O(n1 + n2) on two axes and by O(n1 n2 + n1 n3) on three.

    Examples
    --------
    The number of steps, and the lower bound:

    >>> import torusfabric as tf
    >>> schedule = ONE_PACKET(tf.parse_topology("6x6"), tf.parse_collective("allgather"))
    >>> schedule.round_count, (36 - 1) / 4
    (17, 8.75)
    """
    best, steps = None, None
    for feed in FEEDS[len(topology.sides)](topology.sides):
        found = completion_steps(topology, feed, None if steps is None else steps - 1)
        if found is not None:
            best, steps = feed, found
    if best is None or steps is None:
        raise AssertionError(f"no feed completes on {topology}")
    return Pattern(
        topology=topology,
        collective=collective,
        steps=steps,
        feed=best,
        inject=np.zeros_like(best),
    )


ONE_PACKET = Algorithm(
    name="one-packet",
    source="Meyer & Sibeyn 2002, section 4",
    summary="whole messages along d cycles that each pass by every node, by fixed forwarding",
    collectives=("allgather",),
    options=("ports",),
    misfit=unsupported_reason,
    plan=plan,
)
