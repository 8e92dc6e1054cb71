"""Circuit-switched all-gathers and broadcasts by perfect Lee codes.

Rules of the model:

- A round is a set of paths that share no arc; a link carries a message each way.
- A node sends up to 2k messages and receives up to 2k in a round, on a torus of k dimensions.
- A message is all data that its sender held before the round, or one named piece of it. A piece is
  the set of those blocks that have the same colour (see `piece_delivery_rounds`).

The all-gather is for the torus with three sides of 7^i. The nodes x with l(x) = x1 + 2 x2 + 3 x3 =
0 mod 7 are a perfect code: every node is a code node or next to exactly one. First all data is
concentrated on the code. The code consists of tori with sides 7^(i-1), dilated by 7: each of their
hops is seven hops of the whole torus. In each of them the all-gather is repeated. Then two rounds
spread all data over the code, and the last round delivers it to the neighbours of code nodes.

The broadcast takes the least number of rounds. Let b = 2k + 1. A level of k rounds starts from
informed nodes whose coordinates are multiples of b d, and informs all multiples of d. It first
informs a perfect code among these: the nodes with x + 2y = 0 mod b (k = 2) or x + 2y + 3z = 0 mod b
(k = 3). Then it informs the neighbours of code nodes at distance d. In every round all messages
reach new nodes, so no schedule has fewer rounds.

P_j below is the set of all nodes x with l(x) = 0 mod 7^j. The *depth* of a round is the j of its
P_j; hops at depth j are dilated by 7^(j-1). The *label* of a node is l(x) mod 7^i.
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ...collective import Collective
from ...schedule import Rounds, Schedule, Switching, Transfers
from ...schedule.quotient import Quotient, QuotientRound, Send
from ...topology import Topology, Torus
from ..algorithm import Algorithm, Options, all_ports_reason, single_chunk_reason
from ..reversal import REVERSED_BROADCASTS, with_reversed_collectives

__all__ = ["LEE_CODE", "lee_code_quotient"]

#: A path as runs (axis, signed number of hops).
Path: TypeAlias = tuple[tuple[int, int], ...]

#: l(x) is the sum of weight times coordinate.
WEIGHTS = (1, 2, 3)

#: Spreading paths of section 5.1.3 as runs (axis, hops). The other three paths negate every hop and
#: keep the order of the runs.
SPREAD_A: tuple[Path, ...] = (((1, 1), (0, -2)), ((2, -1), (1, 2), (2, 2)), ((0, 1), (1, 3)))
SPREAD_B: tuple[Path, ...] = (
    ((0, -3), (2, 1)),
    ((1, -1), (2, 2), (0, 1), (1, 1)),
    ((2, 3), (0, -2)),
)

#: The largest i for which all transfers are listed; the lists of larger tori take too much memory.
LISTED_DEPTH = 1


def exact_log(number: int, base: int) -> int | None:
    """Return the p >= 0 for which `number` is `base`^p, or None."""
    p = round(math.log(number, base))
    return p if base**p == number else None


def cube_exponent(topology: Topology) -> int | None:
    """Return the i for which a topology is the torus with three sides of 7^i, or None."""
    if not isinstance(topology, Torus) or topology.sides != (topology.sides[0],) * 3:
        return None
    return exact_log(topology.sides[0], 7)


def lee_code_allgather(
    topology: Torus, collective: Collective, options: Options
) -> Rounds | Quotient:
    """Plan an all-gather on the torus with three sides of 7^i.

    Parameters
    ----------
    collective : Collective
        The all-gather.
    options : Options
        With ``large``, nodes deliver their data in pieces: more rounds with shorter messages.

    Returns
    -------
    Rounds or Quotient
        4 i rounds, or 5 i if ``large``. For i = 1 they are listed transfer by transfer (`Rounds`).
        For larger tori they are in a compact form in which nodes with equal labels behave alike
        (`Quotient`).

    Notes
    -----
    Add up the hops of the longest path of each round: the sum is 12/9 of the diameter, or 13/9 if
    ``large``. Add up the lengths of the longest message of each round: for i = 1, 2 and 3 the sum
    is 400, 139658 and 47919558 times the message that a node contributes, or 155, 53908 and
    18495303 times if ``large``. (From i = 3 on the closed forms of Propositions 5.17 and 6.4 differ
    from their own recurrences, which are right.) For i = 1 no schedule has fewer than 4 rounds.

    References
    ----------
    .. [1] O. Delmas, S. Perennes, "Circuit-switched gossiping in the 3-dimensional torus networks",
       1996, sections 5 and 6.

    Examples
    --------
    On 7x7x7 there are four rounds, or five with shorter messages:

    >>> from torusfabric.algorithms import Options, find_algorithm
    >>> import torusfabric as tf
    >>> torus, allgather = tf.parse_topology("7x7x7"), tf.parse_collective("allgather")
    >>> find_algorithm("lee-code")(torus, allgather).round_count
    4
    >>> find_algorithm("lee-code")(torus, allgather, Options(large=True)).round_count
    5
    """
    schedule = lee_code_quotient(topology, collective, large=options.large)
    if schedule.modulus > 7**LISTED_DEPTH:
        return schedule
    return Rounds(**schedule.head, transfers=tuple(schedule.rounds()))


def lee_code_quotient(topology: Torus, collective: Collective, *, large: bool = False) -> Quotient:
    """Return the all-gather in a form in which nodes with the same label do the same.

    The label of node (x1, x2, x3) is x1 + 2 x2 + 3 x3 modulo the side of the torus, 7^i.

    Parameters
    ----------
    collective : Collective
        The all-gather.
    large : bool
        True for more rounds with shorter messages, in which nodes deliver their data in pieces.
    """
    i = cube_exponent(topology)
    assert i is not None, "the torus fits"
    gather, steps = concentration_rounds(i)
    for j in range(i, 0, -1):
        steps += [spread_round(i, j, SPREAD_A), spread_round(i, j, SPREAD_B)]
        steps += piece_delivery_rounds(i, j, gather[j - 1]) if large else [delivery_round(i, j)]
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
    """Return the change of l(x) = x1 + 2 x2 + 3 x3 along each port: [1, -1, 2, -2, 3, -3]."""
    return np.asarray(np.repeat(WEIGHTS, 2) * np.tile([1, -1], 3))


def label_colours(labels: np.ndarray, j: int) -> np.ndarray:
    """Return the colours of nodes at depth j: digit j - 1 of their labels to base 7, from 0 to 6.

    The label of a node is x1 + 2 x2 + 3 x3; `labels` must be multiples of 7^(j-1). Nodes of colour
    0 are code nodes at this depth. The nodes at 7^(j-1) hops from a code node have the six other
    colours.
    """
    return np.asarray(labels // 7 ** (j - 1) % 7)


def concentration_rounds(i: int) -> tuple[list[np.ndarray], list[QuotientRound]]:
    """Return the rounds that bring all data together on fewer and fewer nodes.

    After round j the data are at the nodes whose label x1 + 2 x2 + 3 x3 is a multiple of 7^j.

    Parameters
    ----------
    i : int
        The sides of the torus are 7^i.

    Returns
    -------
    gather : list of ndarray of int, shape (7^i, 3)
        ``gather[j][label]`` is the offset, along the three axes, from an origin with this label to
        the node that has its data after j rounds.
    steps : list of QuotientRound
        The rounds, in order.
    """
    gather, steps = [np.zeros((7**i, 3), int)], []
    for j in range(1, i + 1):
        senders = np.arange(0, 7**i, 7 ** (j - 1))
        here = (np.arange(7**i) + gather[-1] @ WEIGHTS) % 7**i
        onward, moves = gather[-1].copy(), []
        for port, weight in enumerate(port_weights()):
            moves.append(
                Send(senders[label_colours(senders, j) == -weight % 7], ((port, 7 ** (j - 1)),))
            )
            onward[label_colours(here, j) == -weight % 7, port // 2] += 7 ** (j - 1) * (
                1 - port % 2 * 2
            )
        gather.append(onward)
        steps.append(QuotientRound(tuple(moves)))
    return gather, steps


def path_runs(path: Path, dilation: int) -> tuple[tuple[int, int], ...]:
    """Return a path as pairs (out-port, number of hops), with each hop repeated `dilation` times.

    `path` has pairs (axis, signed number of hops).
    """
    return tuple((2 * axis + (hops < 0), abs(hops) * dilation) for axis, hops in path)


def with_negated_paths(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return the given paths, and the same paths with every hop in the opposite direction."""
    return paths + tuple(tuple((axis, -hops) for axis, hops in path) for path in paths)


def spread_round(i: int, j: int, paths: tuple[Path, ...]) -> QuotientRound:
    """Return the round in which every code node sends all data that it has along six paths.

    Code nodes at depth j are those whose label x1 + 2 x2 + 3 x3 is a multiple of 7^j. The six paths
    are `paths` and their negatives, with each hop repeated 7^(j-1) times. The sides of the torus
    are 7^i.
    """
    senders = np.arange(0, 7**i, 7**j)
    runs = [path_runs(path, 7 ** (j - 1)) for path in with_negated_paths(paths)]
    return QuotientRound(tuple(Send(senders, each) for each in runs))


def delivery_round(i: int, j: int) -> QuotientRound:
    """Return the round in which every code node sends all data that it has by each of its ports.

    Code nodes at depth j are those whose label x1 + 2 x2 + 3 x3 is a multiple of 7^j. The paths are
    straight, with 7^(j-1) hops. The sides of the torus are 7^i.
    """
    senders = np.arange(0, 7**i, 7**j)
    return QuotientRound(tuple(Send(senders, ((port, 7 ** (j - 1)),)) for port in range(6)))


def piece_delivery_rounds(i: int, j: int, gather: np.ndarray) -> list[QuotientRound]:
    """Return the two rounds in which code nodes deliver their data in pieces.

    First every code node at depth j sends a piece to each node at 7^(j-1) hops. Then these nodes,
    and the code nodes, send their piece to all nodes at this distance. The piece of a block is the
    colour (see `label_colours`) of the node at which the block was after j - 1 rounds of
    concentration. `gather` is the entry j - 1 of the result `gather` of `concentration_rounds`. The
    sides of the torus are 7^i.
    """
    labels = np.arange(7**i)
    pieces = label_colours((labels + gather @ WEIGHTS) % 7**i, j)
    code, all_senders = labels[:: 7**j], labels[:: 7 ** (j - 1)]
    first = [
        Send(code, ((port, 7 ** (j - 1)),), np.full(len(code), weight % 7))
        for port, weight in enumerate(port_weights())
    ]
    second = [
        Send(all_senders, ((port, 7 ** (j - 1)),), label_colours(all_senders, j))
        for port in range(6)
    ]
    return [QuotientRound(tuple(first), pieces), QuotientRound(tuple(second), pieces)]


#: The paths of a level as runs (axis, hops), one tuple for each round. The paths in the opposite
#: directions negate every hop.
LEVEL_PATHS: dict[int, tuple[tuple[Path, ...], ...]] = {
    2: ((((0, 1), (1, 2)), ((1, -1), (0, 2))), (((0, 1),), ((1, 1),))),
    3: (SPREAD_A, SPREAD_B, (((0, 1),), ((1, 1),), ((2, 1),))),
}

#: The paths of one round that informs the three other corners of a torus of two nodes a side.
DOUBLING_PATHS: tuple[Path, ...] = (((0, 1),), ((1, 1),), ((0, -1), (1, -1)))


def fitting_levels(topology: Topology) -> tuple[int, bool] | None:
    """Return the number p of levels of a broadcast on a torus, and True if its sides are even.

    A level is a sequence of rounds that multiplies the informed nodes of each axis by 5 or 7. The
    sides are 5^p or 2 5^p in two dimensions, and 7^p in three. The result is None for any other
    topology.
    """
    if not isinstance(topology, Torus) or len(topology.sides) not in LEVEL_PATHS:
        return None
    side, dimensions = topology.sides[0], len(topology.sides)
    even = dimensions == 2 and side % 2 == 0
    count = exact_log(side // 2 if even else side, 2 * dimensions + 1)
    if count is None or topology.sides != (side,) * dimensions:
        return None
    return count, even


def lee_code_broadcast(topology: Torus, collective: Collective, options: Options) -> Rounds:
    """Plan a broadcast on a square of side 5^p or 2 5^p, or a cube of side 7^p.

    Parameters
    ----------
    collective : Collective
        The broadcast.
    options : Options
        The options, none of which changes the plan.

    Returns
    -------
    Rounds
        2 p rounds for squares of side 5^p, one more for 2 5^p, and 3 p for cubes.

    Notes
    -----
    With N nodes and k axes, the number of rounds is ceil(log_(2k + 1) N), which is a lower bound.

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
        rounds.append(send_round(topology, informed, paths, dilation))
        informed = np.concatenate([informed, rounds[-1].walk(topology)[:, -1]])
    return Rounds(
        topology=topology,
        collective=collective,
        switching=Switching.CIRCUIT,
        transfers=tuple(rounds),
    )


def paths_of_rounds(topology: Torus) -> list[tuple[int, tuple[Path, ...]]]:
    """Return the paths of each round of a broadcast, as a pair (dilation, paths).

    In the round, all informed nodes send along these paths, with each hop repeated ``dilation``
    times. A path has pairs (axis, signed number of hops).
    """
    fit = fitting_levels(topology)
    assert fit is not None, "the torus fits"
    count, even = fit
    dimensions = len(topology.sides)
    base = 2 * dimensions + 1
    rounds: list[tuple[int, tuple[Path, ...]]] = [(base**count, DOUBLING_PATHS)] if even else []
    for level in reversed(range(count)):
        for half in LEVEL_PATHS[dimensions]:
            rounds.append((base**level, with_negated_paths(half)))
    return rounds


def send_round(
    topology: Topology, informed: np.ndarray, paths: Sequence[Path], dilation: int
) -> Transfers:
    """Return a round in which all informed nodes send along paths of the same shape.

    Parameters
    ----------
    informed : ndarray of int
        The nodes that have the message.
    paths : sequence of Path
        The paths, as runs (axis, signed number of hops).
    dilation : int
        Number of links for each hop of a path.
    """
    runs = [Send(informed, path_runs(path, dilation)).hops for path in paths]
    hops = np.full((len(paths), max(map(len, runs))), -1, np.int8)
    for row, run in zip(hops, runs, strict=True):
        row[: len(run)] = run
    return Transfers(np.repeat(informed, len(paths)), np.tile(hops, (len(informed), 1)))


def unsupported_reason(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Return the reason why this algorithm cannot plan a selection, or None if it can.

    The selection is `collective` on `topology` with `options`. The reason is a need, such as
    "a torus" or "at least two nodes".
    """
    if collective.from_each and collective.to_all:
        if cube_exponent(topology) is None:
            return "a torus of 7x7x7, 49x49x49 or 343x343x343"
    elif fitting_levels(topology) is None:
        return "a torus of 5^p x 5^p, (2 5^p) x (2 5^p) or 7^p x 7^p x 7^p nodes"
    elif options.large:
        return "--large left out"
    return all_ports_reason(options, topology.ports) or single_chunk_reason(options)


def plan(topology: Torus, collective: Collective, options: Options) -> Schedule:
    """Plan an all-gather by `lee_code_allgather`, or a broadcast by `lee_code_broadcast`."""
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
    misfit=unsupported_reason,
    plan=with_reversed_collectives(plan, REVERSED_BROADCASTS),
)
