"""Costs that papers claim in closed form, for comparison with planned schedules.

- O. Delmas and S. Perennes, "Circuit-switched gossiping in the 3-dimensional torus networks", 1996.
- D. Deserable, "Broadcasting in the Arrowhead Torus", INRIA research report 2827, 1996. The numbers
  in parentheses are its equations. The bounds (10) and (15) are taken with the exact diameter: (11)
  and (16), where 2/3 sqrt(N) stands for it, exceed it and are no bounds. N = 4^n; L is the length
  of the message and tau the time to send a message of unit length over one link.
- U. Meyer and J. F. Sibeyn, "Oblivious gossiping on tori", J. Algorithms 42, 2002.
- S.-Y. Wang, Y.-C. Tseng, S.-Y. Ni and J.-P. Sheu, "Circuit-switched broadcasting in multi-port
  multi-dimensional torus networks", The Journal of Supercomputing 20, 2001.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from torusfabric.algorithms import Options
from torusfabric.algorithms.arrowhead.spanning_tree import step_count
from torusfabric.algorithms.circuit.circuits import ceil_log
from torusfabric.analysis.cost import Number
from torusfabric.schedule import Duplex
from torusfabric.topology import Arrowhead


def forest_cost(
    order: int, *, ports: int = 6, alpha: float, delta: float, tau: float, length: float
) -> float:
    """Return the time of the circuit-switched broadcast: (8) on three ports, (9) on six.

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
    """Return the time of the store-and-forward broadcast: (12) on one tree, (13) on two.

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
    steps = step_count(order, Options(trees=trees, duplex=duplex), packets)
    return steps * (beta + length * tau / (trees * packets))


def pipelined_optimum(order: int, *, beta: float, tau: float, length: float) -> float:
    """Return (14), the least time of pipelining over two trees, if P could be any positive number.

    The best P is below 1 for order 1 and for short messages; no number of packets then gives this
    time.
    """
    if order == 0:
        return 0.0
    return (math.sqrt(((1 << order) - 2) * beta) + math.sqrt(length * tau / 2)) ** 2


def circuit_bound(
    order: int, *, ports: int = 6, alpha: float, delta: float, tau: float, length: float
) -> float:
    """Return (10), a lower bound of the time of a circuit-switched broadcast.

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
    """Return (15), a lower bound of the time of a store-and-forward broadcast in unit packets."""
    if order == 0:
        return 0.0
    return Arrowhead(order).diameter * (beta + tau) + (length - 6) * tau / 6


def whole_packet_steps(nodes: int) -> Fraction:
    """Return a lower bound of the steps of whole packets on two edge-disjoint Hamiltonian cycles.

    Meyer and Sibeyn, Theorem 2: 11/40 P on any 4-regular network of P nodes, less O(1).
    """
    return Fraction(11 * nodes, 40)


def time_hamiltonian(n: int, d: int, startup: Number, feed: Number) -> Number:
    """Return T_opt of Meyer and Sibeyn, section 5: n^d / 2 steps with packets of s / d.

    Parameters
    ----------
    n : int
        The side of a torus.
    d : int
        The number of sides.
    startup : number
        t_startup.
    feed : number
        s t_feed/byte, the time to transmit a whole message.
    """
    return Fraction(n**d, 2) * (startup + Fraction(1, d) * feed)


def time_one_packet(
    n: int, d: int, startup: Number, feed: Number, *, exact: bool = False
) -> Number:
    """Return T_one of Meyer and Sibeyn, section 5: n^(d-1) / 2 (n / d + 1) steps with packets of s.

    Parameters
    ----------
    n, d, startup, feed : number
        Parameters of `time_hamiltonian`.
    exact : bool
        True for the step count with double receives, `one_packet_steps`.
    """
    steps = (
        Fraction(one_packet_steps(n, d))
        if exact
        else Fraction(n ** (d - 1), 2) * (Fraction(n, d) + 1)
    )
    return steps * (startup + feed)


def time_dependent(n: int, d: int, startup: Number, feed: Number) -> Number:
    """Return T_stv of Meyer and Sibeyn, section 5: n^d / 2d steps with packets of s.

    This is the time-dependent all-gather of Soch and Tvrdik, without the -1 and the rounding of its
    count. The parameters are those of `time_hamiltonian`.
    """
    return Fraction(n**d, 2 * d) * (startup + feed)


def one_packet_steps(n: int, d: int) -> int:
    """Return the steps of the one-packet pattern on a torus of n^d nodes, with double receives.

    A node off a cycle of length m, fed by two nodes that are L apart on it, is complete after
    ceil((m + L + 1) / 2) steps: n^2 / 4 + n + 3/2, rounded up, for d = 2 and even n, and n^3 / 6 +
    5/6 n^2 + 3/2 n + 3/2 for d = 3 and n a multiple of 3 from 6 on (Meyer and Sibeyn, sections 4.1
    and 4.2, completed by the receipts that their text leaves out). The result is only an upper
    bound for n = 4 and for odd n.
    """
    if d == 2:
        cycle, apart = Fraction(n**2, 2) + n, Fraction(n + 2)
    elif d == 3:
        cycle = Fraction(n**2 * (n + 3), 3)
        apart = (Fraction(2 * n, 3) + 1) * (n + 3) - 1
    else:
        raise ValueError(f"Dimensions must be 2 or 3, not {d!r}")
    return ceil((cycle + apart + 1) / 2)


def tau_short(i: int) -> Fraction:
    """Return the sum of the longest messages of all rounds on the 7^i-cube, for short messages.

    The unit is the message of one node.

    Notes
    -----
    Solves tau(i) = 7 tau(i - 1) + 1 + (1 + 1/7 + 1/7^2) N with N = 7^(3 i) and tau(0) = 0. The
    closed form of Prop. 5.17 agrees with its own recurrence for i < 3 only.
    """
    seventh = Fraction(1, 7)
    nodes = Fraction(7) ** (3 * i)
    bracket = Fraction(57, 8) * (1 - seventh ** (2 * (i - 1)))
    return (bracket + 7**3 * seventh ** (2 * i) - seventh ** (3 * i)) * nodes / 6


def tau_large(i: int) -> Fraction:
    """Return the sum of the longest messages of all rounds on the 7^i-cube, delivered in pieces.

    The unit is the message of one node.

    Notes
    -----
    Solves tau(i) = 7 tau(i - 1) + 1 + (3/7 + 1/7^2) N with N = 7^(3 i) and tau(0) = 0. The
    closed form of Prop. 6.4 does so for i < 3 only.
    """
    seventh = Fraction(1, 7)
    nodes = Fraction(7) ** (3 * i)
    bracket = Fraction(22, 8) * (1 - seventh ** (2 * (i - 1)))
    return (bracket + 133 * seventh ** (2 * i) - seventh ** (3 * i)) * nodes / 6


def theorem_rounds(sides: Sequence[int], ports: int) -> int | None:
    """Return the rounds that Wang, Tseng, Ni and Sheu claim, or None where they state none.

    Parameters
    ----------
    sides : sequence of int
        Sides of the torus.
    ports : int
        Messages that a node can send, and receive, in a round: alpha.

    Notes
    -----
    Theorems 1 to 9 as printed, with n1 the shortest side. For odd n1 the stages of Theorems 3, 4
    and 7 to 9 run on n1 - 1, and can take up to two rounds more than the claim.
    """
    sides, dimensions = sorted(sides), len(sides)
    shortest = sides[0]
    if not 1 <= ports <= 2 * dimensions:
        return None
    if len(set(sides)) == 1:
        return dimensions * ceil_log(shortest, ports)
    if ports <= 2:
        return sum(ceil_log(side, ports) for side in sides)
    half, constant = ceil_log(Fraction(shortest, 2), ports), shortest % 2
    longer = sum(ceil_log(Fraction((1 + ports % 2) * side, shortest), ports) for side in sides[1:])
    if dimensions == 2:
        return ceil_log(shortest, ports) + half + longer + 1 + constant
    if dimensions == 3:
        return 3 * half + longer + 2 + constant
    return None
