"""Circuit-switched broadcast on any torus, from diagonal to diagonal or by ever finer levels.

Rules of the model:

- A round is a set of paths that share no arc; a link carries a message each way.
- A node sends up to alpha messages and receives up to alpha in a round, with alpha from 1 to 2k for
  k dimensions.

The number of rounds is known without planning: it is the least over all ways that apply. Let clog x
= ceil(log_(alpha + 1) x), at least 0. Squares and cubes of n nodes a side take k clog n rounds. In
two dimensions there are also the diagonals of a square grid of levels, followed by finer levels.
Any torus has ever finer levels on all axes or, with two ports, one axis after another. The levels
replace stages of Wang, Tseng, Ni and Sheu that are unspecified or fail for some sizes, and stay
within the counts of their theorems in up to three dimensions.
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
from ...algorithm import Algorithm, Options, one_chunk, some_ports
from ...reversal import BROADCAST, also_backwards
from ..circuits import Circuits, Grid, axis_rounds, clog, diagonal_stage, square_rounds, translated
from .levels import (
    fill,
    fill_around_plane,
    fill_by_classes,
    refine,
    serve_by_flow,
    serve_planes,
    spaced,
)

__all__ = ["DIAGONAL", "diagonal_rounds", "ways"]

#: A way to broadcast: its number of rounds, and a function that adds these rounds to `Circuits`.
Way: TypeAlias = tuple[int, Callable[[Circuits], None]]


def diagonal_broadcast(topology: Torus, collective: Collective, options: Options) -> Rounds:
    """Plan a broadcast on any torus.

    Parameters
    ----------
    options : Options
        ``ports`` is alpha.

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
    for count, build in sorted(ways(topology.sides, ports), key=lambda way: way[0]):
        if best is not None and count >= len(best):
            break
        circuits = Circuits(topology)
        build(circuits)
        if best is None or len(circuits.rounds) < len(best):
            best = circuits.rounds
    return Rounds(
        topology=topology,
        collective=collective,
        switching=Switching.CIRCUIT,
        ports=ports,
        transfers=translated(topology, collective.root or 0, best or []),
    )


def diagonal_rounds(sides: Sequence[int], ports: int) -> int:
    """Return the rounds on a torus; in four or more dimensions the plan may take 1 or 2 more."""
    return min(count for count, _ in ways(sides, ports))


def ways(sides: Sequence[int], ports: int) -> Iterator[Way]:
    """Yield the ways to broadcast on a torus."""
    few = min(ports, 2)
    yield sum(clog(n, few) for n in sides), partial(axis_rounds, grid=Grid(sides), alpha=few)
    for alpha in range(3, ports + 1):
        if len(set(sides)) == 1:
            count = len(sides) * clog(sides[0], alpha)
            yield count, partial(square_rounds, grid=Grid(sides), alpha=alpha)
        if len(sides) == 2:
            yield _by_diagonals(sides, alpha)
        yield from _by_levels(sides, alpha)


def _by_diagonals(sides: Sequence[int], alpha: int) -> Way:
    """Return the way by every other diagonal of a square grid, then finer levels of one axis.

    For two dimensions; the longer axis is refined. Let s be the shorter side, less 1 if it is odd,
    and n the longer side. The rounds are clog s + clog(s / 2) + clog(n / s) + 1: at most the count
    of Theorem 3 or 4. (For an odd shorter side the stages of the paper itself can take up to two
    rounds more than its theorems say.)
    """
    short, long = (0, 1) if sides[0] <= sides[1] else (1, 0)
    without = [short] if sides[short] % 2 else []
    count = sides[short] - len(without)
    rounds = clog(Fraction(sides[long], count), alpha)

    def build(circuits: Circuits) -> None:
        gaps = spaced(sides[long], [0, 1] * (count // 2), rounds, alpha, least_even=2)
        grid = Grid(sides, None, without).with_levels(long, np.cumsum(gaps) - gaps)
        diagonal_stage(circuits, grid, alpha, 1)
        diagonal_stage(circuits, grid, alpha, 2, stride=2)
        grid = _refined(circuits, grid, alpha, {long: rounds})
        _finish(circuits, grid, alpha)

    return clog(count, alpha) + clog(count // 2, alpha) + rounds + 1, build


def _by_levels(sides: Sequence[int], alpha: int) -> Iterator[Way]:
    """Yield ways on any torus: two levels on each axis, then finer levels, axis by axis.

    The rounds are 2 + the sum of clog(n_i / 2). One more is needed where planes are left out and
    cannot be informed together with other nodes. In three dimensions this is at most the count of
    Theorems 7 to 9.
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
            axis: clog(Fraction(side - (axis in without), 2), alpha)
            for axis, side in enumerate(sides)
        }
        filling = clog(2 ** (dimensions - 1), alpha)
        count = 1 + sum(rounds.values()) + filling + _planes_extra(dimensions, without, alpha)
        yield (
            count,
            partial(_build_levels, sides=sides, alpha=alpha, rounds=rounds, without=without),
        )


def _planes_extra(dimensions: int, without: Collection[int], alpha: int) -> int:
    """Return 1 if the planes that are left out take a round of their own, else 0."""
    together = len(without) <= 1 and (dimensions == 2 or (dimensions == 3 and alpha >= 5))
    return int(bool(without) and not together)


def _build_levels(
    circuits: Circuits,
    sides: Sequence[int],
    alpha: int,
    rounds: dict[int, int],
    without: Collection[int],
) -> None:
    """Add the rounds for one choice of planes to leave out.

    Parameters
    ----------
    rounds : dict of int to int
        Number of rounds that refine each axis.
    without : collection of int
        Axes on which the plane with coordinate 1 is left out.
    """
    levels = []
    for axis, side in enumerate(sides):
        gaps = spaced(side - (axis in without), [0, 1], rounds[axis], alpha, least_even=2)
        levels.append(np.array([0, gaps[0]]))
    grid = Grid(sides, levels, without)
    corner = np.zeros((len(sides), 1), int)
    circuits.send_levels(grid, corner, [(axis, 1) for axis in range(len(sides))])
    circuits.end_round()
    _finish(circuits, _refined(circuits, grid, alpha, rounds), alpha)


def _refined(circuits: Circuits, grid: Grid, alpha: int, rounds: dict[int, int]) -> Grid:
    """Return a grid in which all gaps have one link, and add the rounds that refine it.

    Axes with even spans come first, because an odd span ends with two levels at one coordinate, and
    no detour may use such an axis.
    """
    spans, doubled = grid.spans, set()
    for axis in sorted(rounds, key=lambda axis: spans[axis] % 2):
        asides = [a for a in range(len(spans)) if a != axis and a not in doubled]
        for left in reversed(range(rounds[axis])):
            grid = refine(circuits, grid, axis, left, alpha, asides)
        if spans[axis] % 2:
            doubled.add(axis)
    return grid


def _finish(circuits: Circuits, grid: Grid, alpha: int) -> None:
    """Inform all other nodes."""
    dimensions, without = len(grid.sides), sorted(grid.without)
    if dimensions > 3:
        fill_by_classes(circuits, grid, alpha)
        if without:
            serve_by_flow(circuits, alpha)
    elif without and not _planes_extra(dimensions, without, alpha):
        fill_around_plane(circuits, grid, without[0])
    else:
        fill(circuits, grid)
        if without:
            serve_planes(circuits, without)


def misfit(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Return the topology or options that are needed, or None if the selection fits."""
    if not isinstance(topology, Torus):
        return "a torus"
    return some_ports(options, topology.ports) or one_chunk(options)


DIAGONAL = Algorithm(
    name="diagonal",
    source="Wang, Tseng, Ni and Sheu 2001",
    summary="circuit-switched broadcast on any torus with any number of ports, by diagonals",
    collectives=("broadcast", "gather", "reduce"),
    options=("ports", "chunks"),
    misfit=misfit,
    plan=also_backwards(diagonal_broadcast, BROADCAST),
)
