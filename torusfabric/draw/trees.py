"""Pictures of the trees along which the message of one node spreads, a panel for each tree.

Each chunk of the message spreads along a tree of arcs. Chunks with the same arcs in the same order
share a panel.
"""

from collections.abc import Sequence

import numpy as np

from ..schedule import Listed, Schedule, Table
from ..topology import Arrowhead
from .frame import (
    BLACK,
    MAX_PANELS,
    ROUND_SCALE,
    WHITE,
    colour_bar,
    group_roots,
    make_panels,
    picture_with_titles,
)
from .picture import LegendEntry, Picture, Sketch, Stroke
from .svg import colour_at, mix_colours

__all__ = ["draw_trees"]

#: Colours of the arcs of two trees on an arrowhead torus, from the first step to the last.
TREE_SCALES = (("#7d0f22", "#d8334f", "#f29a86"), ("#0c2f66", "#2578c4", "#7fc0ea"))


def draw_trees(schedule: Schedule) -> Picture:
    """Return a picture of the trees from one node; the colour of an arc shows its step."""
    topology = schedule.topology
    trees = _distinct_trees(schedule)
    shown = trees[:MAX_PANELS]
    middles = group_roots(schedule)
    last = max(int(steps.max(initial=1)) for _, _, steps in shown)
    two = isinstance(topology, Arrowhead) and len(shown) == 2
    sketches: list[Sketch] = []
    keys: list[LegendEntry] = []
    for k, (chunks, arcs, steps) in enumerate(shown):
        stops = TREE_SCALES[k] if two else ROUND_SCALE
        strokes, fills = [], [WHITE] * topology.nodes
        for arc, step in zip(arcs.tolist(), steps.tolist(), strict=True):
            share = (step - 1) / max(last - 1, 1)
            node, port = divmod(arc, topology.ports)
            colour = colour_at(stops, share)
            strokes.append(Stroke(node, (port,), colour, offset=0.1, width=3.2 - 1.6 * share))
            fills[topology.neighbours[node, port]] = mix_colours(colour, WHITE, 0.72)
        for root in middles:
            fills[root] = BLACK
        title = f"tree {k + 1}" if len(trees) > 1 else "the tree"
        sketches.append(Sketch(f"{title}: {_chunk_names(chunks)}", strokes, fills))
        if two or not keys:
            keys.append(colour_bar(f"tree {k + 1}:" if two else "sent in", stops, "step", last))
    note = "; the message of node 0" if isinstance(schedule, Table) else ""
    if len(trees) > len(shown):
        note += f"; {len(shown)} of {len(trees)} trees"
    return picture_with_titles(
        schedule, make_panels(schedule, sketches, centre=middles[0]), keys, note=note
    )


def _arc_uses(schedule: Schedule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return uses of arcs as three arrays of int of equal length: arc, step and chunk.

    Each use is an arc (node times the number of ports, plus the port), a step from 1, and the
    number of the chunk that crosses the arc. In a table all nodes do the same, so the arrays have
    only the uses by the message of node 0. Of any other schedule they have all uses.
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
    """Return the different trees, each as a tuple (chunks, arcs, steps).

    `chunks` are the numbers of the chunks that share the tree, `arcs` the numbers of its arcs, and
    `steps` the step in which the first of these chunks first uses each arc. Two chunks share a tree
    if they use the same arcs in the same steps, or one of them later by a constant.
    """
    arc, step, chunk = _arc_uses(schedule)
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
    """Return chunk numbers as text.

    `chunks` has the numbers, ascending. Of several chunks, only the first and the last are named.
    """
    if len(chunks) == 1:
        return f"chunk {chunks[0]}"
    return f"{len(chunks)} chunks one after another, {chunks[0]} to {chunks[-1]}"
