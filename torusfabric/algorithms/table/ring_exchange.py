"""All-reduce in about diameter steps: sums are exchanged along each axis in turn, and kept.

Along an axis every node sends both ways what it began the axis with, passes on what it receives,
and adds it up. After floor(s / 2) hops on a ring of s nodes, the last of them one way only where s
is even, it has seen each node of its ring once, and begins the next axis with their sum. So it
takes the diameter, which is the least, but L (s - 1) / 2 flits pass an arc: it is for short
messages. Chunks take the axes in rotated orders, so that all links are in use.
"""

from collections.abc import Iterator

import numpy as np

from ...collective import Collective
from ...schedule import SumTable
from ...topology import Topology, Torus
from ..algorithm import Algorithm, Options, every_port

__all__ = ["RING_EXCHANGE", "misfit", "plan"]

#: More chunks in the same order of the axes are not worth a try.
MOST_TURNS = 16


def misfit(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Why a selection does not fit, or None."""
    if not isinstance(topology, Torus):
        return "a torus"
    axes, chunks = len(topology.sides), options.chunks or 1
    if chunks > 1 and (chunks % axes or chunks > MOST_TURNS * axes):
        return f"--chunks 1 or a multiple of {axes} up to {MOST_TURNS * axes}"
    return every_port(options, topology.ports)


def _usual(torus: Torus) -> int:
    """The number of chunks where none is asked for: more serve longer messages.

    Where sides differ much, rotated orders cost the shortest messages more than that is worth.
    """
    axes = len(torus.sides)
    waiting = axes * (max(torus.sides) // 2) - torus.diameter
    return 1 if waiting > 1 else 2 * axes


def plan(topology: Torus, collective: Collective, options: Options) -> SumTable:
    """Plan an all-reduce.

    Parameters
    ----------
    options : Options
        ``chunks`` of a message: 1, or as many for each axis; by default two for each, or 1 where
        rotated orders take two steps more than the diameter or longer still.

    Notes
    -----
    D steps for one chunk. Of d chunks each begins with another axis, in d times the longest half;
    2d chunks take twice as many steps, but in hardware, where they alternate, hardly more cycles.
    More take more cycles, and less for each flit.

    Examples
    --------
    >>> import torusfabric as tf
    >>> torus, collective = tf.parse_topology("5x7"), tf.parse_collective("allreduce")
    >>> RING_EXCHANGE(torus, collective, Options(chunks=1)).round_count, torus.diameter
    (5, 5)
    >>> RING_EXCHANGE(torus, collective).chunks
    4
    """
    chunks, axes = options.chunks or _usual(topology), len(topology.sides)
    halves = [side // 2 for side in topology.sides]
    together = -(-chunks // axes)
    table, passed = np.full((2, axes * max(halves) * together, topology.ports), -1)
    for chunk in range(chunks):
        turn, first = divmod(chunk, axes)
        start = 0
        for axis in [*range(first, axes), *range(first)]:
            for step, port, by in _one_axis(topology, axis):
                row = (start + step) * together + turn
                assert table[row, port] < 0, "chunks are on different axes at any time"
                table[row, port], passed[row, port] = chunk, by
            start += halves[axis] if chunks == 1 else max(halves)
    moving = (table >= 0).any(axis=1)
    return SumTable(
        topology=topology,
        collective=collective,
        chunks=chunks,
        chunk=table[moving],
        passed=passed[moving],
    )


def _one_axis(torus: Torus, axis: int) -> Iterator[tuple[int, int, int]]:
    """Step, out-port, and the in-port of what is passed on, -1 for the sum.

    The last hop on an even side is the same way for all chunks: if they took turns, a run would
    take few cycles less, and results would lie in twice as many memories.
    """
    hops, even = torus.sides[axis] // 2, torus.sides[axis] % 2 == 0
    for hop in range(hops):
        ways = 1 if hop == hops - 1 and even else 2
        for port in range(2 * axis, 2 * axis + ways):
            yield hop, port, int(torus.opposite[port]) if hop else -1


RING_EXCHANGE = Algorithm(
    name="ring-exchange",
    source="beyond the papers",
    summary="sums are exchanged along each axis in turn, and kept: for short messages",
    collectives=("allreduce",),
    options=("ports", "chunks"),
    misfit=misfit,
    plan=plan,
    variants=lambda topology, collective: ({"chunks": 1},),
)
