"""The closed running times that papers on all-gathers on tori compare."""

from fractions import Fraction
from math import ceil

from .cost import Number

__all__ = ["one_packet_steps", "time_dependent", "time_hamiltonian", "time_one_packet",
           "whole_packet_steps"]  # fmt: skip


def whole_packet_steps(nodes: int) -> Fraction:
    """Steps of whole packets on two edge-disjoint Hamiltonian cycles: at least this, less O(1).

    Meyer and Sibeyn, Theorem 2: 11/40 P on any 4-regular network of P nodes.
    """
    return Fraction(11 * nodes, 40)


def time_hamiltonian(n: int, d: int, startup: Number, feed: Number) -> Number:
    """T_opt of Meyer and Sibeyn, section 5: n^d / 2 steps with packets of s / d.

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
    """T_one of Meyer and Sibeyn, section 5: n^(d-1) / 2 (n / d + 1) steps with packets of s.

    Parameters
    ----------
    n, d, startup, feed : number
        As for `time_hamiltonian`.
    exact : bool
        Whether to take the step count with double-receives, `one_packet_steps`.
    """
    steps = (
        Fraction(one_packet_steps(n, d))
        if exact
        else Fraction(n ** (d - 1), 2) * (Fraction(n, d) + 1)
    )
    return steps * (startup + feed)


def time_dependent(n: int, d: int, startup: Number, feed: Number) -> Number:
    """T_stv of Meyer and Sibeyn, section 5: n^d / 2d steps with packets of s.

    The time-dependent all-gather of Soch and Tvrdik, without the -1 and the rounding of its count.
    Parameters as for `time_hamiltonian`.
    """
    return Fraction(n**d, 2 * d) * (startup + feed)


def one_packet_steps(n: int, d: int) -> int:
    """Steps of the one-packet pattern on a torus of n^d nodes, double-receives included.

    A node off a cycle of length m, fed by two nodes that are L apart on it, is complete after
    ceil((m + L + 1) / 2) steps: n^2 / 4 + n + 3/2, rounded up, for d = 2 and even n, and n^3 / 6 +
    5/6 n^2 + 3/2 n + 3/2 for d = 3 and n a multiple of 3 from 6 on (Meyer and Sibeyn, sections 4.1
    and 4.2, completed by the receipts that their text leaves out). Only an upper bound for n = 4
    and for odd n.
    """
    if d == 2:
        cycle, apart = Fraction(n**2, 2) + n, Fraction(n + 2)
    elif d == 3:
        cycle = Fraction(n**2 * (n + 3), 3)
        apart = (Fraction(2 * n, 3) + 1) * (n + 3) - 1
    else:
        raise ValueError(f"Dimensions must be 2 or 3, not {d!r}")
    return ceil((cycle + apart + 1) / 2)
