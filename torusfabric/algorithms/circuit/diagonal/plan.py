"""Circuit-switched broadcast on any torus, from diagonal to diagonal or by ever finer levels.

Rules of the model:

- A round is a set of paths that share no arc; a link carries a message each way.
- A node sends up to alpha messages and receives up to alpha in a round, with alpha from 1 to 2k for
  k dimensions.

*Levels* are coordinates on an axis whose nodes have the message; between them, nodes at new levels
are informed. There are these ways to broadcast:

- On squares and cubes: from diagonal to diagonal. With clog x = ceil(log_(alpha + 1) x), at least
  0, and n nodes a side, this takes k clog n rounds.
- In two dimensions: to the diagonals of a square grid of levels, then by finer levels.
- On any torus: by ever finer levels on all axes or, with two ports, on one axis after another.

The number of rounds of each way is known without planning, and the way with the fewest rounds is
taken. The levels replace stages of Wang, Tseng, Ni and Sheu that are unspecified or fail for some
sizes, and stay within the counts of their theorems in up to three dimensions.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import TypeAlias

import numpy as np

from ....collective import Collective
from ....schedule import Rounds, Switching, Transfers
from ....topology import Topology, Torus
from ...algorithm import Algorithm, Options, port_count_reason, single_chunk_reason
from ...reversal import REVERSED_BROADCASTS, with_reversed_collectives
from ..circuits import (
    CircuitRounds,
    LevelGrid,
    ceil_log,
    inform_axis_by_axis,
    inform_diagonals,
    inform_square_grid,
    translate_rounds,
)
from .levels import (
    cut_into_gaps,
    inform_around_plane,
    inform_by_flow,
    inform_grid,
    inform_parity_classes,
    inform_planes,
    refine_axis,
)

__all__ = ["DIAGONAL", "diagonal_rounds", "candidate_builds"]

#: A way to broadcast: its number of rounds, and a function that adds them to `CircuitRounds`.
CandidateBuild: TypeAlias = tuple[int, Callable[[CircuitRounds], None]]


def diagonal_broadcast(topology: Torus, collective: Collective, options: Options) -> Rounds:
    """Plan a circuit-switched broadcast on any torus.

    Parameters
    ----------
    collective : Collective
        The broadcast.
    options : Options
        ``ports`` is alpha, the number of messages that a node may send in a round.

    Returns
    -------
    Rounds
        `diagonal_rounds` rounds in up to three dimensions.

    Notes
    -----
    No schedule has fewer than ceil(log_(alpha + 1) N) rounds; squares and cubes of n = (alpha +
    1)^p nodes a side meet this bound.

    References
    ----------
    .. [1] S.-Y. Wang, Y.-C. Tseng, S.-Y. Ni, J.-P. Sheu, "Circuit-switched broadcasting in
       multi-port multi-dimensional torus networks", The Journal of Supercomputing 20, 2001.

    Examples
    --------
    >>> import torusfabric as tf
    >>> schedule = DIAGONAL(tf.parse_topology("7x9"), tf.parse_collective("broadcast", root=20))
    >>> schedule.round_count, diagonal_rounds((7, 9), 4)
    (4, 4)
    """
    ports = options.ports or topology.ports
    best: list[Transfers] | None = None
    for count, build in sorted(candidate_builds(topology.sides, ports), key=lambda way: way[0]):
        if best is not None and count >= len(best):
            break
        circuits = CircuitRounds(topology)
        build(circuits)
        if best is None or len(circuits.rounds) < len(best):
            best = circuits.rounds
    return Rounds(
        topology=topology,
        collective=collective,
        switching=Switching.CIRCUIT,
        ports=ports,
        transfers=translate_rounds(topology, collective.root or 0, best or []),
    )


def diagonal_rounds(sides: Sequence[int], ports: int) -> int:
    """Return the number of rounds of `diagonal_broadcast` on a torus with these sides.

    In four or more dimensions the plan may take 1 or 2 rounds more.

    Parameters
    ----------
    sides : sequence of int
        The sides of the torus.
    ports : int
        alpha, the messages that a node may send in a round.
    """
    return min(count for count, _ in candidate_builds(sides, ports))


def candidate_builds(sides: Sequence[int], ports: int) -> Iterator[CandidateBuild]:
    """Yield the ways to broadcast on a torus, as pairs (rounds, function).

    ``function(circuits)`` adds the rounds of the broadcast to a `CircuitRounds`; ``rounds`` is
    their number, known before.

    Parameters
    ----------
    sides : sequence of int
        The sides of the torus.
    ports : int
        alpha, the messages that a node may send in a round.
    """
    few = min(ports, 2)
    yield (
        sum(ceil_log(n, few) for n in sides),
        partial(inform_axis_by_axis, grid=LevelGrid(sides), alpha=few),
    )
    for alpha in range(3, ports + 1):
        if len(set(sides)) == 1:
            count = len(sides) * ceil_log(sides[0], alpha)
            yield count, partial(inform_square_grid, grid=LevelGrid(sides), alpha=alpha)
        if len(sides) == 2:
            yield _diagonal_build(sides, alpha)
        yield from _level_builds(sides, alpha)


def _diagonal_build(sides: Sequence[int], alpha: int) -> CandidateBuild:
    """Return a way to broadcast in two dimensions, as a pair (number of rounds, function).

    A square grid of nodes is chosen on the torus. A diagonal of it is a set of nodes with an equal
    sum of their numbers along both axes. First every other diagonal is informed, then the nodes
    between grid lines on the longer axis, then all others. `sides` are the two sides of the torus,
    and a node sends at most `alpha` messages in a round.

    Let s be the shorter side, less 1 if it is odd, n the longer side, and clog x = ceil(log_(alpha
    + 1) x). The number of rounds is clog s + clog(s / 2) + clog(n / s) + 1: at most the count of
    Theorem 3 or 4. (For an odd shorter side the stages of the paper itself can take up to two
    rounds more than its theorems say.)
    """
    short, long = (0, 1) if sides[0] <= sides[1] else (1, 0)
    without = [short] if sides[short] % 2 else []
    count = sides[short] - len(without)
    rounds = ceil_log(Fraction(sides[long], count), alpha)

    def build_diagonals(circuits: CircuitRounds) -> None:
        gaps = cut_into_gaps(sides[long], [0, 1] * (count // 2), rounds, alpha, least_even=2)
        grid = LevelGrid(sides, None, without).with_levels(long, np.cumsum(gaps) - gaps)
        inform_diagonals(circuits, grid, alpha, 1)
        inform_diagonals(circuits, grid, alpha, 2, stride=2)
        grid = _refine_axes(circuits, grid, alpha, {long: rounds})
        _inform_rest(circuits, grid, alpha)

    return ceil_log(count, alpha) + ceil_log(count // 2, alpha) + rounds + 1, build_diagonals


def _level_builds(sides: Sequence[int], alpha: int) -> Iterator[CandidateBuild]:
    """Yield ways to broadcast on any torus, as pairs (number of rounds, function).

    The nodes at two coordinates of each axis are informed first, then nodes at more and more
    coordinates between these, axis by axis, and in the end all nodes. `sides` are the sides n_i of
    the torus, and a node sends at most `alpha` messages in a round.

    With clog x = ceil(log_(alpha + 1) x), the rounds in k dimensions are 1 + clog(2^(k-1)) + the
    sum of clog(n_i / 2). To make an odd side even, a plane of nodes may be left out at first;
    informing it can take one round more. In three dimensions this is at most the count of Theorems
    7 to 9.
    """
    dimensions = len(sides)
    odd = [axis for axis in range(dimensions) if sides[axis] % 2]
    if dimensions <= 3:
        choices = [some for size in range(3) for some in combinations(odd, size)]
        most = dimensions - (alpha + 1) // 2 + 1
        choices = [some for some in choices if len(odd) - len(some) <= most]
    else:
        choices = [tuple(odd)]
    for without in choices:
        rounds = {
            axis: ceil_log(Fraction(side - (axis in without), 2), alpha)
            for axis, side in enumerate(sides)
        }
        filling = ceil_log(2 ** (dimensions - 1), alpha)
        count = 1 + sum(rounds.values()) + filling + _extra_plane_rounds(dimensions, without, alpha)
        yield (
            count,
            partial(_build_levels, sides=sides, alpha=alpha, rounds=rounds, without=without),
        )


def _extra_plane_rounds(dimensions: int, without: Collection[int], alpha: int) -> int:
    """Return the number of additional rounds for planes that were left out, 0 or 1.

    A plane of nodes is left out on an axis with an odd side, to make the side even. It may be
    possible to inform one plane together with all other nodes. `dimensions` is the number of axes
    of the torus, `without` has the axes at right angles to the planes, and `alpha` is the number of
    messages that a node may send in a round.
    """
    together = len(without) <= 1 and (dimensions == 2 or (dimensions == 3 and alpha >= 5))
    return int(bool(without) and not together)


def _build_levels(
    circuits: CircuitRounds,
    sides: Sequence[int],
    alpha: int,
    rounds: dict[int, int],
    without: Collection[int],
) -> None:
    """Add the rounds of a broadcast by finer and finer levels, with some planes left out at first.

    Levels are the coordinates on an axis whose nodes have the message.

    Parameters
    ----------
    circuits : CircuitRounds
        The rounds so far, to which others are added.
    sides : sequence of int
        The sides of the torus.
    alpha : int
        Number of messages that a node may send in a round.
    rounds : dict of int to int
        For each axis, the number of rounds that inform nodes between its levels.
    without : collection of int
        Axes on which the plane with coordinate 1 is left out.
    """
    levels = []
    for axis, side in enumerate(sides):
        gaps = cut_into_gaps(side - (axis in without), [0, 1], rounds[axis], alpha, least_even=2)
        levels.append(np.array([0, gaps[0]]))
    grid = LevelGrid(sides, levels, without)
    corner = np.zeros((len(sides), 1), int)
    circuits.send_between_levels(grid, corner, [(axis, 1) for axis in range(len(sides))])
    circuits.end_round()
    _inform_rest(circuits, _refine_axes(circuits, grid, alpha, rounds), alpha)


def _refine_axes(
    circuits: CircuitRounds, grid: LevelGrid, alpha: int, rounds: dict[int, int]
) -> LevelGrid:
    """Add rounds that inform nodes between the levels of each axis, until no node lies between.

    Levels are the coordinates whose nodes have the message. The rounds are added to `circuits`.
    Return the grid with all levels. Axes with an even number of coordinates come first, because an
    odd number ends with two levels at one coordinate, and no detour may use such an axis.
    ``rounds[axis]`` is the number of rounds for an axis, and `alpha` the number of messages that a
    node may send in a round.
    """
    spans, doubled = grid.spans, set()
    for axis in sorted(rounds, key=lambda axis: spans[axis] % 2):
        asides = [a for a in range(len(spans)) if a != axis and a not in doubled]
        for left in reversed(range(rounds[axis])):
            grid = refine_axis(circuits, grid, axis, left, alpha, asides)
        if spans[axis] % 2:
            doubled.add(axis)
    return grid


def _inform_rest(circuits: CircuitRounds, grid: LevelGrid, alpha: int) -> None:
    """Add the last rounds to `circuits`, after which all nodes have the message.

    `grid` has levels (coordinates) one link apart, except at planes that were left out; nodes with
    all level numbers even or all odd have the message. `alpha` is the number of messages that a
    node may send in a round.
    """
    dimensions, without = len(grid.sides), sorted(grid.without)
    if dimensions > 3:
        inform_parity_classes(circuits, grid, alpha)
        if without:
            inform_by_flow(circuits, alpha)
    elif without and not _extra_plane_rounds(dimensions, without, alpha):
        inform_around_plane(circuits, grid, without[0])
    else:
        inform_grid(circuits, grid)
        if without:
            inform_planes(circuits, without)


def unsupported_reason(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Return the reason why this algorithm cannot plan a selection, or None if it can.

    The selection is `collective` on `topology` with `options`. The reason is a need, such as
    "a torus" or "at least two nodes".
    """
    if not isinstance(topology, Torus):
        return "a torus"
    return port_count_reason(options, topology.ports) or single_chunk_reason(options)


DIAGONAL = Algorithm(
    name="diagonal",
    source="Wang, Tseng, Ni and Sheu 2001",
    summary="circuit-switched broadcast on any torus with any number of ports, by diagonals",
    collectives=("broadcast", "gather", "reduce"),
    options=("ports", "chunks"),
    misfit=unsupported_reason,
    plan=with_reversed_collectives(diagonal_broadcast, REVERSED_BROADCASTS),
)
