"""Circuit-switched all-gather on the torus with three sides of 7^i, by perfect Lee codes.

Rules of the model:

- A round is a set of paths that share no arc; a link carries a message each way.
- A node sends up to six messages and receives up to six in a round.
- A message is all that its sender held before the round, or one named piece of it.

The nodes x with l(x) = x1 + 2 x2 + 3 x3 = 0 mod 7 are a perfect code: every node is a code node or
next to exactly one. All data is concentrated on the code. That consists of tori with sides 7^(i-1),
dilated by 7, in each of which the same is done; then two rounds spread all data over the code, and
the last one delivers it to the neighbours.
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ....collective import Collective
from ....schedule import Rounds, Switching
from ....schedule.quotient import Quotient, QuotientRound, Send
from ....topology import Topology, Torus
from ...algorithm import Options

__all__ = [
    "Path",
    "exponent",
    "lee_code_allgather",
    "lee_code_quotient",
    "side_depth",
]

#: A path as runs (axis, signed number of hops).
Path: TypeAlias = tuple[tuple[int, int], ...]

#: l(x) is the sum of weight times coordinate.
WEIGHTS = (1, 2, 3)

#: Spreading paths of section 5.1.3 as runs (axis, hops); the other three negate every hop.
SPREAD_A: tuple[Path, ...] = (((1, 1), (0, -2)), ((2, -1), (1, 2), (2, 2)), ((0, 1), (1, 3)))
SPREAD_B: tuple[Path, ...] = (
    ((0, -3), (2, 1)),
    ((1, -1), (2, 2), (0, 1), (1, 1)),
    ((2, 3), (0, -2)),
)

#: Above this depth a list of all transfers grows large and the schedule stays a quotient.
LISTED_DEPTH = 1


def exponent(number: int, base: int) -> int | None:
    """The p >= 0 for which a number is base^p, or None."""
    p = round(math.log(number, base))
    return p if base**p == number else None


def side_depth(topology: Topology) -> int | None:
    """The i for which a topology is the torus with three sides of 7^i, or None."""
    if not isinstance(topology, Torus) or topology.sides != 3 * topology.sides[:1]:
        return None
    return exponent(topology.sides[0], 7)


def lee_code_allgather(
    topology: Torus, collective: Collective, options: Options
) -> Rounds | Quotient:
    """Plan an all-gather on the torus with three sides of 7^i.

    Parameters
    ----------
    topology : Torus
        With three sides of 7^i.
    options : Options
        ``large`` delivers by pieces: more rounds, shorter messages.

    Returns
    -------
    Rounds or Quotient
        4 i rounds, or 5 i where ``large``; an explicit list for i = 1.

    Notes
    -----
    The longest paths of all rounds sum to 12/9 of the diameter, or 13/9 where ``large``, the
    longest messages to `tau_short` or `tau_large`. For i = 1 no schedule has fewer than 4 rounds.

    References
    ----------
    .. [1] O. Delmas, S. Perennes, "Circuit-switched gossiping in the 3-dimensional torus networks",
       1996, sections 5 and 6.

    Examples
    --------
    >>> from torusfabric.algorithms import Options, find
    >>> import torusfabric as tf
    >>> torus, allgather = tf.parse_topology("7x7x7"), tf.parse_collective("allgather")
    >>> find("lee-code")(torus, allgather).round_count
    4
    >>> find("lee-code")(torus, allgather, Options(large=True)).round_count
    5
    """
    schedule = lee_code_quotient(topology, collective, large=options.large)
    return listed(schedule) if schedule.modulus <= 7**LISTED_DEPTH else schedule


def lee_code_quotient(topology: Torus, collective: Collective, *, large: bool = False) -> Quotient:
    """The schedule by labels: what a node does depends on l(x) mod 7^i alone.

    Parameters
    ----------
    topology : Torus
        With three sides of 7^i.
    large : bool
        Whether to deliver by pieces.

    Raises
    ------
    ValueError
        If the torus has other sides.
    """
    i = side_depth(topology)
    if i is None:
        raise ValueError(f"Torus must have three sides of 7^i, not {topology}")
    gather, steps = concentration(i)
    for j in range(i, 0, -1):
        steps += [spread(i, j, SPREAD_A), spread(i, j, SPREAD_B)]
        steps += deliver_pieces(i, j, gather[j - 1]) if large else [deliver(i, j)]
    return Quotient(
        topology=topology,
        collective=collective,
        switching=Switching.CIRCUIT,
        ports=6,
        weights=WEIGHTS,
        modulus=7**i,
        quotient_rounds=tuple(steps),
    )


def port_weights() -> np.ndarray:
    """How much l(x) changes along each port: 1, -1, 2, -2, 3, -3."""
    return np.asarray(np.repeat(WEIGHTS, 2) * np.tile([1, -1], 3))


def colours(labels: np.ndarray, j: int) -> np.ndarray:
    """colour_j of labels that are 0 mod 7^(j-1), as 0..6."""
    return np.asarray(labels // 7 ** (j - 1) % 7)


def concentration(i: int) -> tuple[list[np.ndarray], list[QuotientRound]]:
    """The rounds that bring all data together on P_1, P_2, .. P_i.

    Returns
    -------
    gather : list of ndarray of int, shape (7^i, 3)
        ``gather[j][label]`` is the displacement of data of origins of a label after j rounds.
    steps : list of QuotientRound
    """
    gather, steps = [np.zeros((7**i, 3), int)], []
    for j in range(1, i + 1):
        senders = np.arange(0, 7**i, 7 ** (j - 1))
        here = (np.arange(7**i) + gather[-1] @ WEIGHTS) % 7**i
        onward, moves = gather[-1].copy(), []
        for port, weight in enumerate(port_weights()):
            moves.append(Send(senders[colours(senders, j) == -weight % 7], dilated([port], [1], j)))
            onward[colours(here, j) == -weight % 7, port // 2] += 7 ** (j - 1) * (1 - port % 2 * 2)
        gather.append(onward)
        steps.append(QuotientRound(tuple(moves)))
    return gather, steps


def dilated(ports: Sequence[int], counts: Sequence[int], j: int) -> tuple[tuple[int, int], ...]:
    """A path at depth j: every hop is repeated 7^(j-1) times."""
    return tuple((port, count * 7 ** (j - 1)) for port, count in zip(ports, counts, strict=True))


def spread(i: int, j: int, paths: Sequence[Path]) -> QuotientRound:
    """Every node of P_j sends all it holds along six paths."""
    senders, moves = np.arange(0, 7**i, 7**j), []
    for sign in (1, -1):
        for path in paths:
            ports = [2 * axis + (hops * sign < 0) for axis, hops in path]
            moves.append(Send(senders, dilated(ports, [abs(hops) for _, hops in path], j)))
    return QuotientRound(tuple(moves))


def deliver(i: int, j: int) -> QuotientRound:
    """Every node of P_j sends all it holds to its six neighbours at depth j."""
    senders = np.arange(0, 7**i, 7**j)
    return QuotientRound(tuple(Send(senders, dilated([port], [1], j)) for port in range(6)))


def deliver_pieces(i: int, j: int, gather: np.ndarray) -> list[QuotientRound]:
    """Every node of P_j sends each neighbour a piece; then all send theirs to all neighbours.

    The piece of a block is the colour at depth j of where it was after j - 1 rounds.
    """
    labels = np.arange(7**i)
    pieces = colours((labels + gather @ WEIGHTS) % 7**i, j)
    code, all_senders = labels[:: 7**j], labels[:: 7 ** (j - 1)]
    first = [
        Send(code, dilated([port], [1], j), np.full(len(code), weight % 7))
        for port, weight in enumerate(port_weights())
    ]
    second = [
        Send(all_senders, dilated([port], [1], j), colours(all_senders, j)) for port in range(6)
    ]
    return [QuotientRound(tuple(first), pieces), QuotientRound(tuple(second), pieces)]


def listed(quotient: Quotient) -> Rounds:
    """The same schedule with all its transfers listed."""
    return Rounds(
        topology=quotient.topology,
        collective=quotient.collective,
        algorithm=quotient.algorithm,
        switching=quotient.switching,
        ports=quotient.ports,
        transfers=tuple(quotient.rounds()),
    )
