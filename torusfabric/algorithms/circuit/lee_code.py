"""Circuit-switched all-gathers and broadcasts by perfect Lee codes.

Rules of the model:

- A round is a set of paths that share no arc; a link carries a message each way.
- A node sends up to 2k messages and receives up to 2k in a round, on a torus of k dimensions.
- A message is all that its sender held before the round, or one named piece of it.

An all-gather is on the torus with three sides of 7^i. The nodes x with l(x) = x1 + 2 x2 + 3 x3 = 0
mod 7 are a perfect code: every node is a code node or next to exactly one. All data is concentrated
on the code. That consists of tori with sides 7^(i-1), dilated by 7, in each of which the same is
done; then two rounds spread all data over the code, and the last one delivers it to the neighbours.

A broadcast takes the least number of rounds. Where the informed nodes are those whose coordinates
are multiples of b d, with b = 2k + 1, a level of k rounds informs all multiples of d: first the
nodes with x + 2y = 0 mod b (k = 2) or x + 2y + 3z = 0 mod b (k = 3) among them, which form a
perfect code, and then the neighbours of these at distance d. All messages of a round reach new
nodes, so no schedule has fewer rounds.
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ...collective import Collective
from ...schedule import Rounds, Schedule, Switching, Transfers
from ...schedule.quotient import Quotient, QuotientRound, Send
from ...topology import Topology, Torus
from ..algorithm import Algorithm, Options, every_port, one_chunk
from ..reversal import BROADCAST, also_backwards

__all__ = ["LEE_CODE", "lee_code_quotient"]

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
    if not isinstance(topology, Torus) or topology.sides != (topology.sides[0],) * 3:
        return None
    return exponent(topology.sides[0], 7)


def lee_code_allgather(
    topology: Torus, collective: Collective, options: Options
) -> Rounds | Quotient:
    """Plan an all-gather on the torus with three sides of 7^i.

    Parameters
    ----------
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
    if schedule.modulus > 7**LISTED_DEPTH:
        return schedule
    return Rounds(**schedule.head, transfers=tuple(schedule.rounds()))


def lee_code_quotient(topology: Torus, collective: Collective, *, large: bool = False) -> Quotient:
    """The schedule by labels: what a node does depends on l(x) mod 7^i alone.

    Parameters
    ----------
    large : bool
        Whether to deliver by pieces.
    """
    i = side_depth(topology)
    assert i is not None, "the torus fits"
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
            moves.append(Send(senders[colours(senders, j) == -weight % 7], ((port, 7 ** (j - 1)),)))
            onward[colours(here, j) == -weight % 7, port // 2] += 7 ** (j - 1) * (1 - port % 2 * 2)
        gather.append(onward)
        steps.append(QuotientRound(tuple(moves)))
    return gather, steps


def runs_of(path: Path, dilation: int) -> tuple[tuple[int, int], ...]:
    """A path as runs of hops by out-ports, every hop repeated."""
    return tuple((2 * axis + (hops < 0), abs(hops) * dilation) for axis, hops in path)


def both_ways(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Paths, and those with every hop negated."""
    return paths + tuple(tuple((axis, -hops) for axis, hops in path) for path in paths)


def spread(i: int, j: int, paths: tuple[Path, ...]) -> QuotientRound:
    """Every node of P_j sends all it holds along six paths."""
    senders = np.arange(0, 7**i, 7**j)
    runs = [runs_of(path, 7 ** (j - 1)) for path in both_ways(paths)]
    return QuotientRound(tuple(Send(senders, each) for each in runs))


def deliver(i: int, j: int) -> QuotientRound:
    """Every node of P_j sends all it holds to its six neighbours at depth j."""
    senders = np.arange(0, 7**i, 7**j)
    return QuotientRound(tuple(Send(senders, ((port, 7 ** (j - 1)),)) for port in range(6)))


def deliver_pieces(i: int, j: int, gather: np.ndarray) -> list[QuotientRound]:
    """Every node of P_j sends each neighbour a piece; then all send theirs to all neighbours.

    The piece of a block is the colour at depth j of where it was after j - 1 rounds.
    """
    labels = np.arange(7**i)
    pieces = colours((labels + gather @ WEIGHTS) % 7**i, j)
    code, all_senders = labels[:: 7**j], labels[:: 7 ** (j - 1)]
    first = [
        Send(code, ((port, 7 ** (j - 1)),), np.full(len(code), weight % 7))
        for port, weight in enumerate(port_weights())
    ]
    second = [
        Send(all_senders, ((port, 7 ** (j - 1)),), colours(all_senders, j)) for port in range(6)
    ]
    return [QuotientRound(tuple(first), pieces), QuotientRound(tuple(second), pieces)]


#: The paths of a level as runs (axis, hops), a tuple a round; the others negate every hop.
LEVELS: dict[int, tuple[tuple[Path, ...], ...]] = {
    2: ((((0, 1), (1, 2)), ((1, -1), (0, 2))), (((0, 1),), ((1, 1),))),
    3: (SPREAD_A, SPREAD_B, (((0, 1),), ((1, 1),), ((2, 1),))),
}

#: One round that informs three more corners of a torus of two nodes a side.
DOUBLE: tuple[Path, ...] = (((0, 1),), ((1, 1),), ((0, -1), (1, -1)))


def levels(topology: Topology) -> tuple[int, bool] | None:
    """How many levels a torus takes and whether its sides are even, or None if it does not fit."""
    if not isinstance(topology, Torus) or len(topology.sides) not in LEVELS:
        return None
    side, dimensions = topology.sides[0], len(topology.sides)
    even = dimensions == 2 and side % 2 == 0
    count = exponent(side // 2 if even else side, 2 * dimensions + 1)
    if count is None or topology.sides != (side,) * dimensions:
        return None
    return count, even


def lee_code_broadcast(topology: Torus, collective: Collective, options: Options) -> Rounds:
    """Plan a broadcast on a square of side 5^p or 2 5^p, or a cube of side 7^p.

    Returns
    -------
    Rounds
        2 p rounds for squares of side 5^p, one more for 2 5^p, and 3 p for cubes.

    Notes
    -----
    ceil(log_(2k + 1) N) rounds, which is a lower bound.

    References
    ----------
    .. [1] J. G. Peters, M. Syska, "Circuit-switched broadcasting in torus networks", IEEE
       Transactions on Parallel and Distributed Systems 7(3), 1996, 246-255.
    .. [2] J. L. Park, H.-A. Choi, "Circuit-switched broadcasting in tori and meshes networks", same
       journal 7(2), 1996, 184-190.

    Examples
    --------
    >>> import torusfabric as tf
    >>> schedule = LEE_CODE(tf.parse_topology("25x25"), tf.parse_collective("broadcast", root=7))
    >>> schedule.round_count
    4
    """
    informed, rounds = np.array([collective.root]), []
    for dilation, paths in paths_of_rounds(topology):
        rounds.append(send(topology, informed, paths, dilation))
        informed = np.concatenate([informed, rounds[-1].walk(topology)[:, -1]])
    return Rounds(
        topology=topology,
        collective=collective,
        switching=Switching.CIRCUIT,
        transfers=tuple(rounds),
    )


def paths_of_rounds(topology: Torus) -> list[tuple[int, tuple[Path, ...]]]:
    """How far apart the informed nodes are after each round, in hops, and the paths of each."""
    fit = levels(topology)
    assert fit is not None, "the torus fits"
    count, even = fit
    dimensions = len(topology.sides)
    base = 2 * dimensions + 1
    rounds: list[tuple[int, tuple[Path, ...]]] = [(base**count, DOUBLE)] if even else []
    for level in reversed(range(count)):
        for half in LEVELS[dimensions]:
            rounds.append((base**level, both_ways(half)))
    return rounds


def send(
    topology: Topology, informed: np.ndarray, paths: Sequence[Path], dilation: int
) -> Transfers:
    """One round: all informed nodes send along the same paths, dilated."""
    runs = [Send(informed, runs_of(path, dilation)).hops for path in paths]
    hops = np.full((len(paths), max(map(len, runs))), -1, np.int8)
    for row, run in zip(hops, runs, strict=True):
        row[: len(run)] = run
    return Transfers(np.repeat(informed, len(paths)), np.tile(hops, (len(informed), 1)))


def misfit(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Which torus, collective and options are needed, or None."""
    if collective.from_each and collective.to_all:
        if side_depth(topology) is None:
            return "a torus of 7x7x7, 49x49x49 or 343x343x343"
    elif levels(topology) is None:
        return "a torus of 5^p x 5^p, (2 5^p) x (2 5^p) or 7^p x 7^p x 7^p nodes"
    elif options.large:
        return "--large left out"
    return every_port(options, topology.ports) or one_chunk(options)


def plan(topology: Torus, collective: Collective, options: Options) -> Schedule:
    """Plan a collective that fits: see `lee_code_allgather` and `lee_code_broadcast`."""
    if collective.from_each:
        return lee_code_allgather(topology, collective, options)
    return lee_code_broadcast(topology, collective, options)


LEE_CODE = Algorithm(
    name="lee-code",
    source="Delmas and Perennes 1996, sections 5 and 6; Peters and Syska 1996",
    summary="circuit-switched, by perfect Lee codes: all-gather on 7^i-cubes in 4 i rounds; "
    "broadcast on 5^p- and 2 5^p-squares and 7^p-cubes in the fewest rounds",
    collectives=("allgather", "broadcast", "gather", "reduce"),
    options=("ports", "chunks", "large"),
    misfit=misfit,
    plan=also_backwards(plan, BROADCAST),
)
