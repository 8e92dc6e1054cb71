"""Scatter and gather over arc-disjoint spanning trees, without a pause: farthest nodes first.

Rules of the model:

* store and forward: a step is one hop, and a block that arrives in a step leaves in the next;
* an arc carries one block a step, on all ports.

From each port of the root a tree reaches every node, and no two trees share an arc. A block goes
down one of them, see `schedule_down_trees`. In hardware a block passes a node in each cycle, and a
router never changes its selects. A gather is a scatter backwards.

Source: the trees are those of `spanning_trees`. Sending the farthest first is optimal on a tree, as
in Y. Saad and M. H. Schultz, "Data communication in parallel architectures", Parallel Computing 11,
1989.
"""

from __future__ import annotations

from ...collective import Collective
from ...schedule import Rounds
from ...topology import IntArray, Topology, Torus
from ..algorithm import Algorithm, Options, all_ports_reason
from ..down_trees import assign_blocks_to_trees, schedule_down_trees
from ..reversal import with_reversed_collectives
from .shallow_trees import Trees
from .spanning_trees import disjoint_trees

__all__ = ["FARTHEST_FIRST", "unsupported_reason", "plan"]


def unsupported_reason(topology: Topology, collective: Collective, options: Options) -> str | None:
    """Return the reason why this algorithm cannot plan a selection, or None if it can.

    The selection is `collective` on `topology` with `options`. The reason is a need, such as
    "a torus" or "at least two nodes".
    """
    if not isinstance(topology, Torus):
        return "a torus"
    if options.chunks not in (None, 1, 2, topology.ports):
        return f"--chunks 1, 2 or {topology.ports}"
    return all_ports_reason(options, topology.ports)


def plan(topology: Torus, collective: Collective, options: Options) -> Rounds:
    """Plan a scatter down spanning trees that share no arc, blocks for the farthest nodes first.

    Parameters
    ----------
    options : Options
        ``chunks`` of a message: 1 (the default), 2, or the number of ports.

    Returns
    -------
    Rounds
        The schedule. With P ports and M chunks, its number of steps is the larger of ceil(M (N - 1)
        / P), the lower bound, and the diameter. It is one larger if no choice of trees lets all
        blocks arrive by then, as on 3x3.

    Notes
    -----
    Blocks of a node go down different trees. Among the choices with the fewest steps, one with the
    least longest detour is taken.

    Examples
    --------
    The number of steps, and the lower bound before rounding:

    >>> from torusfabric.algorithms import find_algorithm
    >>> from torusfabric.collective import parse_collective
    >>> scatter = find_algorithm("farthest-first")(Torus(8, 8), parse_collective("scatter"))
    >>> scatter.round_count, (64 - 1) / 4
    (16, 15.75)
    """
    chunks, trees = options.chunks or 1, disjoint_trees(topology)
    choice, blocks = _choose_trees(topology, trees, chunks), collective.blocks(topology, chunks)
    transfers = schedule_down_trees(topology, collective.root or 0, blocks, trees, choice)
    return Rounds(topology=topology, collective=collective, chunks=chunks, transfers=transfers)


def _choose_trees(torus: Torus, trees: Trees, chunks: int) -> IntArray:
    """Choose a tree for each block of a scatter, so that all blocks arrive in the fewest steps.

    The result has the shape (2, blocks): the index of the tree, and the node that receives the
    block. Among such choices, one whose longest detour is shortest is returned. Each message is cut
    into `chunks` chunks, and `trees` are trees of `torus` from node 0.
    """

    def assign_with_detour(detour: int) -> IntArray | None:
        """Choose a tree for each block, as `_choose_trees` does, with limited detours.

        No path is more than `detour` hops longer than the shortest path; None if this is
        impossible.
        """
        able = trees.depth <= torus.distances + detour
        return assign_blocks_to_trees(trees, able, chunks, steps, most=1)

    steps = max(-(-chunks * (torus.nodes - 1) // torus.ports), torus.diameter)
    deepest = int(trees.depth.max())
    while (some := assign_with_detour(deepest)) is None:
        steps += 1
    found = (assign_with_detour(detour) for detour in range(deepest))
    return next((choice for choice in found if choice is not None), some)


FARTHEST_FIRST = Algorithm(
    name="farthest-first",
    source="beyond the papers; compare Saad and Schultz 1989",
    summary="blocks for the farthest nodes leave first, and move in every step",
    collectives=("scatter", "gather"),
    options=("ports", "chunks"),
    misfit=unsupported_reason,
    plan=with_reversed_collectives(plan, {"gather": "scatter"}),
    variants=lambda topology, collective: [
        {"chunks": chunks} for chunks in sorted({2, topology.ports})
    ],
)
