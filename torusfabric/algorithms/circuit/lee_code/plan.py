"""Circuit-switched broadcast over perfect Lee codes, in the least number of rounds.

Rules of the model:

- A round is a set of paths that share no arc; a link carries a message each way.
- A node sends up to 2k messages and receives up to 2k in a round, on a torus of k dimensions.

Where the informed nodes are those whose coordinates are multiples of b d, with b = 2k + 1, a level
of k rounds informs all multiples of d: first the nodes with x + 2y = 0 mod b (k = 2) or x + 2y + 3z
= 0 mod b (k = 3) among them, which form a perfect code, and then the neighbours of these at
distance d. All messages of a round reach new nodes, so no schedule has fewer rounds.
"""

from collections.abc import Sequence

import numpy as np

from ....collective import Collective
from ....schedule import Rounds, Schedule, Switching, Transfers
from ....topology import Topology, Torus
from ...algorithm import Algorithm, Options
from ...requirements import every_port, one_chunk
from ...reversal import BROADCAST, also_backwards
from .allgather import SPREAD_A, SPREAD_B, Path, exponent, lee_code_allgather, side_depth

__all__ = ["LEE_CODE"]

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
    """How far apart the informed nodes are after each round, in hops, and the paths of the round.

    Raises
    ------
    ValueError
        If the torus does not fit.
    """
    fit = levels(topology)
    if fit is None:
        raise ValueError(f"Torus must have a perfect code, not {topology}")
    count, even = fit
    dimensions = len(topology.sides)
    base = 2 * dimensions + 1
    rounds: list[tuple[int, tuple[Path, ...]]] = [(base**count, DOUBLE)] if even else []
    for level in reversed(range(count)):
        for half in LEVELS[dimensions]:
            opposite = tuple(tuple((axis, -hops) for axis, hops in path) for path in half)
            rounds.append((base**level, half + opposite))
    return rounds


def send(
    topology: Topology, informed: np.ndarray, paths: Sequence[Path], dilation: int
) -> Transfers:
    """One round: all informed nodes send along the same paths, dilated."""
    longest = dilation * max(sum(abs(hops) for _, hops in path) for path in paths)
    hops = np.full((len(paths), longest), -1, np.int8)
    for row, path in zip(hops, paths, strict=True):
        ports = [2 * axis + (count < 0) for axis, count in path]
        run = np.repeat(ports, [abs(count) * dilation for _, count in path])
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
