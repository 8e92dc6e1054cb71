"""All-reduce in about diameter steps: sums are exchanged along each axis in turn, and kept.

Along an axis every node sends the sum with which it began the axis in both directions. It passes on
the sums that arrive, and adds them up. On a ring of s nodes each node has the sums of all others
after floor(s / 2) hops, of which the last goes one way only if s is even. The node begins the next
axis with the new sum. This takes as many steps as the diameter, the fewest possible. But for
messages of L flits, L (s - 1) / 2 flits pass an arc of the axis, so the algorithm is for short
messages. Chunks take the axes in *rotated* orders, so that all links are in use: on three axes, the
orders are 0 1 2, 1 2 0 and 2 0 1.
"""

from collections.abc import Iterator

import numpy as np

from ...collective import Collective
from ...schedule import SumTable
from ...topology import Topology, Torus
from ..algorithm import Algorithm, Options, all_ports_reason

__all__ = ["RING_EXCHANGE", "unsupported_reason", "plan"]

#: The largest number of chunks that take the axes in the same order; more are not worth a try.
MOST_TURNS = 16


def unsupported_reason(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Return the reason why this algorithm cannot plan a selection, or None if it can.

    The selection is `collective` on `topology` with `options`. The reason is a need, such as
    "a torus" or "at least two nodes".
    """
    if not isinstance(topology, Torus):
        return "a torus"
    axes, chunks = len(topology.sides), options.chunks or 1
    if chunks > 1 and (chunks % axes or chunks > MOST_TURNS * axes):
        return f"--chunks 1 or a multiple of {axes} up to {MOST_TURNS * axes}"
    return all_ports_reason(options, topology.ports)


def _default_chunks(torus: Torus) -> int:
    """Return the default number of chunks of a message on `torus`: 1 or 2 d, with d axes.

    One chunk takes as many steps as the diameter. Each of d chunks begins with another axis, and
    every axis then takes as long as the longest one, of side s: d chunks take d floor(s / 2) steps.
    If these are at least two steps more than the diameter, the result is 1, because short messages
    would lose more than long messages gain. Otherwise it is 2 d. Examples: 4 on 5x7, where two
    chunks take 6 steps and the diameter is 5; 1 on 3x9, where they take 8 and the diameter is 5.
    """
    axes = len(torus.sides)
    waiting = axes * (max(torus.sides) // 2) - torus.diameter
    return 1 if waiting > 1 else 2 * axes


def plan(topology: Torus, collective: Collective, options: Options) -> SumTable:
    """Plan an all-reduce for short messages: nodes exchange their sums along each axis in turn.

    Parameters
    ----------
    options : Options
        ``chunks`` of a message: 1 or a multiple of d, the number of axes. The default is 2 d, or 1
        if d chunks would take at least two steps more than the diameter.

    Notes
    -----
    One chunk takes as many steps as the diameter. On d axes, each of d chunks begins with another
    axis; together they take d floor(s / 2) steps, where s is the longest side. 2 d chunks take
    twice as many steps, but in hardware, where the two chunks of an axis alternate, hardly more
    cycles. Further chunks cost more cycles in all, and fewer cycles for each flit.

    Examples
    --------
    In one chunk, it takes as many steps as the diameter; the default is four chunks:

    >>> import torusfabric as tf
    >>> torus, collective = tf.parse_topology("5x7"), tf.parse_collective("allreduce")
    >>> RING_EXCHANGE(torus, collective, Options(chunks=1)).round_count, torus.diameter
    (5, 5)
    >>> RING_EXCHANGE(torus, collective).chunks
    4
    """
    chunks, axes = options.chunks or _default_chunks(topology), len(topology.sides)
    halves = [side // 2 for side in topology.sides]
    together = -(-chunks // axes)
    table, passed = np.full((2, axes * max(halves) * together, topology.ports), -1)
    for chunk in range(chunks):
        turn, first = divmod(chunk, axes)
        start = 0
        for axis in [*range(first, axes), *range(first)]:
            for step, port, by in _axis_hops(topology, axis):
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


def _axis_hops(torus: Torus, axis: int) -> Iterator[tuple[int, int, int]]:
    """Yield the hops along one `axis` of `torus`, as triples (step, out-port, in-port).

    In each step, the node sends by the out-port the sum that came by the in-port in the step
    before. The in-port is -1 in step 0, in which the node sends its own sum. On an axis with an
    even number of nodes, the last step has a hop in one direction only, the same for all chunks.
    Why: if half of the chunks took the other direction, a run would save few cycles, and results
    would lie in twice as many memories.
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
    misfit=unsupported_reason,
    plan=plan,
    variants=lambda topology, collective: ({"chunks": 1},),
)
