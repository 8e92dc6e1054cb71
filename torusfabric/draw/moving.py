"""Moving pictures: the spread of one node's message as an animated SVG.

The animation repeats by itself in any browser, and needs no script.
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

#: Seconds: pause before the animation repeats, longest duration of a round, and longest duration of
#: all rounds.
REST, ROUND, LONGEST = 2.0, 0.8, 9.0

#: Distance of a path from the middle of its link, in hops.
ASIDE = 0.07


def moving_picture(program: Program, node: int = 0) -> str:
    """Return an animated SVG of the message of one node, round by round.

    A path grows during its round; each of its links takes the same time. A node changes its colour
    when the last part of the message that it receives has arrived.

    Parameters
    ----------
    program : Program
        A program of one schedule with a fixed root.
    node : int
        The origin of the message.

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
    """Return the first chunk of the node's message that a transfer carries; -1 if none."""
    blocks, ids = program.blocks, np.asarray(move.blocks)
    members = blocks.groups.members[int(blocks.groups.group[move.path[0]])]
    mine = ids[members[blocks.origin(ids)] == node]
    return int(blocks.chunk(mine[:1])[0]) if mine.size else -1
