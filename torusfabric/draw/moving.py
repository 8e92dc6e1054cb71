"""Moving pictures: the spread of one node's message as an animated SVG.

The animation repeats by itself in any browser, and needs no script.
"""

import numpy as np

from ..errors import InputError
from ..program import Program
from ..program.trace import MessageArrival, list_arrivals
from .frame import BLACK, COLOURS, WHITE, picture_with_titles
from .graph_layout import layout_of
from .page import paint_picture
from .picture import MotionTimes, Panel, Stroke

__all__ = ["moving_picture"]

#: Seconds: pause before the animation repeats, longest duration of a round, and longest duration of
#: all rounds.
REST_SECONDS, ROUND_SECONDS, MOST_SECONDS = 2.0, 0.8, 9.0

#: Distance of a path from the middle of its link, in hops.
STROKE_OFFSET = 0.07


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
    seconds = min(ROUND_SECONDS, MOST_SECONDS / max(count, 1))
    strokes, reached = list[Stroke](), dict[int, float]()
    for move in list_arrivals(program):
        chunk = _first_chunk(program, move, node)
        if chunk < 0:
            continue
        reached[move.node] = move.round * seconds
        begin, each = (move.round - 1) * seconds, seconds / len(move.hops)
        colour = COLOURS[chunk % len(COLOURS)]
        for number, (start, port) in enumerate(zip(move.path, move.hops, strict=False)):
            moment = begin + number * each, begin + (number + 1) * each
            strokes.append(
                Stroke(start, (port,), colour, STROKE_OFFSET, 3.0, arrow=False, grows=moment)
            )
    reached.pop(node, None)
    fills = [BLACK if each == node else WHITE for each in range(nodes)]
    layout = layout_of(program.topology, root=schedule.collective.root or 0)
    panel = Panel("", strokes, fills, layout, MotionTimes(seconds * count + REST_SECONDS, reached))
    return paint_picture(
        picture_with_titles(schedule, [panel], [], note=f"; the message of node {node}")
    )


def _first_chunk(program: Program, move: MessageArrival, node: int) -> int:
    """Return the number of the first chunk of `node`'s message that a transfer carries.

    `move` is the transfer. The result is -1 if it carries no block of this message.
    """
    blocks, ids = program.blocks, np.asarray(move.blocks)
    copies = blocks.nodes_at(blocks.origin(ids), ids).reshape(-1, len(ids))
    mine = ids[copies[blocks.copy_at(move.path[0])] == node]
    return int(blocks.chunk(mine[:1])[0]) if mine.size else -1
