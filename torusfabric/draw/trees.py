"""The picture of a collective as the trees along which messages spread."""

from collections.abc import Sequence

import numpy as np

from ..schedule import Listed, Schedule, Table
from ..topology import Arrowhead
from .frame import BLACK, MAX_PANELS, PLAIN, SEQUENCE, colour_bar, panels_of, roots, titled
from .picture import Key, Picture, Sketch, Stroke
from .svg import mix, ramp

__all__ = ["draw_trees"]

#: Colours of the arcs of each of two trees, from the root outwards.
TREE_SEQUENCES = (("#7d0f22", "#d8334f", "#f29a86"), ("#0c2f66", "#2578c4", "#7fc0ea"))


def draw_trees(schedule: Schedule) -> Picture:
    """Trees from one node: the later the step, the farther along a row of colours."""
    topology = schedule.topology
    trees = _distinct_trees(schedule)
    shown = trees[:MAX_PANELS]
    middles = roots(schedule)
    last = max(int(steps.max(initial=1)) for _, _, steps in shown)
    two = isinstance(topology, Arrowhead) and len(shown) == 2
    sketches: list[Sketch] = []
    keys: list[Key] = []
    for k, (chunks, arcs, steps) in enumerate(shown):
        stops = TREE_SEQUENCES[k] if two else SEQUENCE
        strokes, fills = [], [PLAIN] * topology.nodes
        for arc, step in zip(arcs.tolist(), steps.tolist(), strict=True):
            share = (step - 1) / max(last - 1, 1)
            node, port = divmod(arc, topology.ports)
            colour = ramp(stops, share)
            strokes.append(Stroke(node, (port,), colour, offset=0.1, width=3.2 - 1.6 * share))
            fills[topology.neighbours[node, port]] = mix(colour, PLAIN, 0.72)
        for root in middles:
            fills[root] = BLACK
        title = f"tree {k + 1}" if len(trees) > 1 else "the tree"
        sketches.append(Sketch(f"{title}: {_chunk_names(chunks)}", strokes, fills))
        if two or not keys:
            keys.append(colour_bar(f"tree {k + 1}:" if two else "sent in", stops, "step", last))
    note = "; the message of node 0" if isinstance(schedule, Table) else ""
    if len(trees) > len(shown):
        note += f"; {len(shown)} of {len(trees)} trees"
    return titled(schedule, panels_of(schedule, sketches, centre=middles[0]), keys, note=note)


def _uses(schedule: Schedule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every use of an arc with the chunk that it carries, as arrays (arc, step, chunk).

    Of a table only what becomes of the message of node 0: the rest is its translation.
    """
    topology, blocks = schedule.topology, schedule.blocks
    if isinstance(schedule, Table):
        step, port = np.nonzero(schedule.offset >= 0)
        there = schedule.offset[step, port]
        source = schedule.topology.subtract(there, schedule.topology.generators[port])
        return source * topology.ports + port, step + 1, schedule.chunk[step, port]
    arcs, steps, chunks = [], [], []
    for number, transfers in enumerate(schedule.rounds(), 1):
        if not len(transfers):
            continue
        arc = transfers.source * topology.ports + transfers.hops[:, 0]
        if isinstance(transfers.payload, Listed):
            arc = np.repeat(arc, np.diff(transfers.payload.indptr))
            chunk = blocks.chunk(transfers.payload.ids)
        else:
            chunk = np.zeros(len(arc), int)
        arcs.append(arc)
        steps.append(np.full(len(arc), number))
        chunks.append(chunk)
    if not arcs:
        return np.zeros(0, int), np.zeros(0, int), np.zeros(0, int)
    return np.concatenate(arcs), np.concatenate(steps), np.concatenate(chunks)


def _distinct_trees(schedule: Schedule) -> list[tuple[list[int], np.ndarray, np.ndarray]]:
    """Chunks that do the same, the arcs that they take, and the step in which they first do."""
    arc, step, chunk = _uses(schedule)
    trees: dict[bytes, tuple[list[int], np.ndarray, np.ndarray]] = {}
    order = np.lexsort((step, arc, chunk))
    arc, step, chunk = arc[order], step[order], chunk[order]
    bounds = np.searchsorted(chunk, np.arange(schedule.chunks + 1))
    for k in range(schedule.chunks):
        mine = slice(bounds[k], bounds[k + 1])
        arcs, first = np.unique(arc[mine], return_index=True)
        steps = step[mine][first]
        shape = arcs.tobytes() + (steps - steps[:1]).tobytes()
        trees.setdefault(shape, ([], arcs, steps))[0].append(k)
    return list(trees.values())


def _chunk_names(chunks: Sequence[int]) -> str:
    """Chunks in words."""
    if len(chunks) == 1:
        return f"chunk {chunks[0]}"
    return f"{len(chunks)} chunks one after another, {chunks[0]} to {chunks[-1]}"
