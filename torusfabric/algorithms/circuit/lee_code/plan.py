"""Circuit-switched broadcast over perfect Lee codes, in the least number of rounds.

Rules of the model:

- A round is a set of paths that share no arc; a link carries a message each way.
- A node sends up to 2k messages and receives up to 2k in a round, on a torus of k dimensions.

Where the informed nodes are those whose coordinates are multiples of b d, with b = 2k + 1, a level
of k rounds informs all multiples of d: first the nodes with x + 2y = 0 mod b (k = 2) or x + 2y + 3z
= 0 mod b (k = 3) among them, which form a perfect code, and then the neighbours of these at
distance d. All messages of a round reach new nodes, so no schedule has fewer rounds.
"""

import numpy as np

from ....schedule import Rounds, Switching, Transfers
from ....topology import Torus
from ...algorithm import Algorithm
from ...requirements import every_port, one_chunk
from ...reversal import from_broadcast
from .allgather import SPREAD_A, SPREAD_B, exponent, lee_code_allgather, side_depth

__all__ = ["LEE_CODE"]

#: The paths of a level as runs (axis, hops), a tuple a round; the others negate every hop.
LEVELS = {
    2: ((((0, 1), (1, 2)), ((1, -1), (0, 2))), (((0, 1),), ((1, 1),))),
    3: (SPREAD_A, SPREAD_B, (((0, 1),), ((1, 1),), ((2, 1),))),
}

#: One round that informs three more corners of a torus of two nodes a side.
DOUBLE = (((0, 1),), ((1, 1),), ((0, -1), (1, -1)))


def levels(topology):
    """How many levels a torus takes and whether its sides are even, or None if it does not fit."""
    if not isinstance(topology, Torus) or len(topology.sides) not in LEVELS:
        return None
    side, dimensions = topology.sides[0], len(topology.sides)
    even = dimensions == 2 and side % 2 == 0
    count = exponent(side // 2 if even else side, 2 * dimensions + 1)
    if count is None or topology.sides != (side,) * dimensions:
        return None
    return count, even


def lee_code_broadcast(topology, collective, options):
    """Plan a broadcast on a square of side 5^p or 2 5^p, or a cube of side 7^p.

    Parameters
    ----------
    topology : Torus
        One of these.
    collective : Collective
        Broadcast from any root.
    options : Options
        Nothing is left to choose.

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
    """
    dimensions = len(topology.sides)
    count, even = levels(topology)
    base = 2 * dimensions + 1
    rounds_of_paths: list[tuple] = [(base**count, DOUBLE)] if even else []
    for level in reversed(range(count)):
        for half in LEVELS[dimensions]:
            opposite = tuple(tuple((axis, -hops) for axis, hops in path) for path in half)
            rounds_of_paths.append((base**level, half + opposite))
    informed, rounds = np.array([collective.root]), []
    for dilation, paths in rounds_of_paths:
        rounds.append(send(topology, informed, paths, dilation))
        informed = np.concatenate([informed, rounds[-1].walk(topology)[:, -1]])
    return Rounds(
        topology=topology,
        collective=collective,
        algorithm="lee-code",
        switching=Switching.CIRCUIT,
        ports=topology.ports,
        transfers=tuple(rounds),
    )


def send(topology, informed, paths, dilation):
    """One round: all informed nodes send along the same paths, dilated."""
    longest = dilation * max(sum(abs(hops) for _, hops in path) for path in paths)
    hops = np.full((len(paths), longest), -1, np.int8)
    for row, path in zip(hops, paths, strict=True):
        ports = [2 * axis + (count < 0) for axis, count in path]
        run = np.repeat(ports, [abs(count) * dilation for _, count in path])
        row[: len(run)] = run
    return Transfers(np.repeat(informed, len(paths)), np.tile(hops, (len(informed), 1)))


def misfit(topology, collective, options):
    """Which torus, collective and options are needed, or None."""
    if collective.from_each and collective.to_all:
        if side_depth(topology) is None:
            return "a torus of 7x7x7, 49x49x49 or 343x343x343"
    elif levels(topology) is None:
        return "a torus of 5^p x 5^p, (2 5^p) x (2 5^p) or 7^p x 7^p x 7^p nodes"
    elif options.large:
        return "--large left out"
    return every_port(options, topology.ports) or one_chunk(options)


def plan(topology, collective, options):
    """Plan a collective that fits."""
    if collective.from_each and collective.to_all:
        return lee_code_allgather(topology, collective, options)
    return from_broadcast(lee_code_broadcast)(topology, collective, options)


LEE_CODE = Algorithm(
    name="lee-code",
    source="Delmas and Perennes 1996, sections 5 and 6; Peters and Syska 1996",
    summary="circuit-switched, by perfect Lee codes: all-gather on 7^i-cubes in 4 i rounds; "
    "broadcast on 5^p- and 2 5^p-squares and 7^p-cubes in the fewest rounds",
    collectives=("allgather", "broadcast", "gather", "reduce"),
    options=("ports", "chunks", "large"),
    misfit=misfit,
    plan=plan,
)
