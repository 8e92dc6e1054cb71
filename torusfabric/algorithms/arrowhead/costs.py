"""Closed costs and lower bounds of broadcasting on the arrowhead torus.

Dominique Deserable, "Broadcasting in the Arrowhead Torus", INRIA research report 2827, 1996; the
numbers in parentheses are its equations. The bounds (10) and (15) are taken with the exact
diameter: (11) and (16), where 2/3 sqrt(N) stands for it, exceed it and are no bounds. N = 4^n; L is
the length of the message and tau the time to send a message of unit length over one link.
"""

import math

from ...schedule import Duplex
from ...topology import Arrowhead
from .spanning_tree import best_packets, step_count

__all__ = ["best_packets", "circuit_bound", "forest_cost", "pipelined_optimum",
           "store_and_forward_bound", "tree_cost"]  # fmt: skip


def forest_cost(
    order: int, *, ports: int = 6, alpha: float, delta: float, tau: float, length: float
) -> float:
    """Time of the circuit-switched broadcast: (8) on three ports, (9) on six.

    Parameters
    ----------
    order : int
        n, the order of the arrowhead.
    ports : int
        3, or 6 with half of the message on either three ports.
    alpha : float
        Start-up time of a round.
    delta : float
        Time to switch a circuit through a node.
    tau : float
        Time to send a message of unit length over one link.
    length : float
        Length of the message.
    """
    return order * (alpha + length * tau * 3 / ports) + ((1 << order) - 1) * delta


def tree_cost(
    order: int,
    *,
    trees: int = 2,
    packets: int = 1,
    duplex: Duplex = Duplex.FULL,
    beta: float,
    tau: float,
    length: float,
) -> float:
    """Time of the store-and-forward broadcast: (12) on one tree, (13) on two.

    With more packets it is the exact time (2^n - 2 + P) (beta + L tau / 2P) of which (14) is the
    least over real P.

    Parameters
    ----------
    order : int
        n, the order of the arrowhead.
    trees, packets, duplex
        As in `torusfabric.algorithms.Options`; packets counts those of one tree.
    beta : float
        Start-up time of a step.
    tau : float
        Time to send a message of unit length over one link.
    length : float
        Length of the message.
    """
    steps = step_count(order, trees=trees, packets=packets, duplex=duplex)
    return steps * (beta + length * tau / (trees * packets))


def pipelined_optimum(order: int, *, beta: float, tau: float, length: float) -> float:
    """(14): the least time of pipelining over two trees, if P could be any positive number.

    That P is below 1 for order 1 and for short messages; no number of packets then gives this time.
    """
    if order == 0:
        return 0.0
    return (math.sqrt(((1 << order) - 2) * beta) + math.sqrt(length * tau / 2)) ** 2


def circuit_bound(
    order: int, *, ports: int = 6, alpha: float, delta: float, tau: float, length: float
) -> float:
    """(10): no circuit-switched broadcast from a node with this many ports takes less time.

    In a round each informed node informs at most ``ports`` others; the farthest node is a diameter
    away, and the message leaves its root on at most ``ports`` ports.
    """
    if order == 0:
        return 0.0
    rounds, informed = 0, 1
    while informed < 4**order:
        rounds, informed = rounds + 1, informed * (ports + 1)
    farthest = alpha + Arrowhead(order).diameter * delta + length * tau / ports
    return max(rounds * alpha, farthest)


def store_and_forward_bound(order: int, *, beta: float, tau: float, length: float) -> float:
    """(15): no store-and-forward broadcast takes less time, in whatever packets of unit length."""
    if order == 0:
        return 0.0
    return Arrowhead(order).diameter * (beta + tau) + (length - 6) * tau / 6
