"""A picture that moves: how the message of one node spreads, in scalable vector graphics.

It plays by itself, again and again, wherever a browser shows a picture: no script is needed.
"""

import numpy as np

from ..errors import InputError
from ..program import Program
from ..program.trace import Arrival, arrivals
from .frame import BLACK, COLOURS, PLAIN, titled
from .graph_layout import layout_of
from .page import paint
from .picture import Film, Panel, Stroke

__all__ = ["moving_picture"]

#: Seconds for which the whole is shown before it begins again, at most for a round, and at most for
#: all rounds.
REST, ROUND, LONGEST = 2.0, 0.8, 9.0

#: How far beside the middle of a link a path is drawn, in hops.
ASIDE = 0.07


def moving_picture(program: Program, node: int = 0) -> str:
    """The message of a node on its way, round by round.

    A path grows in its round, each link for as long. A node changes its colour when the last that
    it gets of the message has come.

    Parameters
    ----------
    program : Program
        Of one root.
    node : int
        Whose blocks are shown.

    Raises
    ------
    InputError
        If there is no such node.
    """
    schedule, nodes = program.schedule, program.topology.nodes
    if not 0 <= node < nodes:
        raise InputError(f"Node must be from 0 to {nodes - 1}, not {node}")
    count = schedule.round_count
    seconds = min(ROUND, LONGEST / max(count, 1))
    strokes, reached = list[Stroke](), dict[int, float]()
    for move in arrivals(program):
        chunk = _chunk(program, move, node)
        if chunk < 0:
            continue
        reached[move.node] = move.round * seconds
        begin, each = (move.round - 1) * seconds, seconds / len(move.hops)
        colour = COLOURS[chunk % len(COLOURS)]
        for number, (start, port) in enumerate(zip(move.path, move.hops, strict=False)):
            moment = begin + number * each, begin + (number + 1) * each
            strokes.append(Stroke(start, (port,), colour, ASIDE, 3.0, arrow=False, grows=moment))
    reached.pop(node, None)
    fills = [BLACK if each == node else PLAIN for each in range(nodes)]
    layout = layout_of(program.topology, root=schedule.collective.root or 0)
    panel = Panel("", strokes, fills, layout, Film(seconds * count + REST, reached))
    return paint(titled(schedule, [panel], [], note=f"; the message of node {node}"))


def _chunk(program: Program, move: Arrival, node: int) -> int:
    """Which chunk of the node's message a transfer carries; -1 if none."""
    blocks, ids = program.blocks, np.asarray(move.blocks)
    members = blocks.groups.members[int(blocks.groups.group[move.path[0]])]
    mine = ids[members[blocks.origin(ids)] == node]
    return int(blocks.chunk(mine[:1])[0]) if mine.size else -1
