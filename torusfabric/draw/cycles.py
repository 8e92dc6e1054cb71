"""Pictures of patterns: the cycles of arcs along which messages flow, each in one colour.

A pattern repeats the same step. Each arc carries on the words of one other arc, so arcs form
cycles. Some arcs carry copies of words from a cycle without being part of it.
"""

import numpy as np

from ..schedule import Pattern, SumPattern
from ..schedule.pattern import Flows
from .frame import COLOURS, GREY, WHITE, make_panels, picture_with_titles
from .picture import LegendEntry, Picture, Sketch, Stroke

__all__ = ["draw_cycles", "number_cycles"]


def draw_cycles(schedule: Pattern | SumPattern) -> Picture:
    """Return the picture of a pattern: thick lines for cycles, thin arrows for copies.

    Each arc always carries on the words of one other arc, so arcs form cycles. Copies of the words
    also go to nodes beside a cycle.
    """
    topology = schedule.topology
    number, on_cycle, count = number_cycles(schedule)
    colours = [COLOURS[k % len(COLOURS)] for k in range(count)] + [GREY]
    used = (schedule.inject >= 0) | (schedule.feed >= 0)
    there = topology.upstream
    both = on_cycle & on_cycle[there] & (number == number[there])
    strokes = []
    for node, port in np.argwhere(used).tolist():
        colour = colours[number[node, port]]
        if not on_cycle[node, port]:
            strokes.append(Stroke(node, (port,), colour, offset=0.13, width=1.2))
        elif not both[node, port]:
            strokes.append(Stroke(node, (port,), colour, offset=0.08, width=3.0))
        elif (node, port) <= (topology.neighbours[node, port], topology.opposite[port]):
            strokes.append(Stroke(node, (port,), colour, offset=0, width=4.0, arrow=False))
    keys = []
    for k in range(count):
        mine = on_cycle & (number == k)
        two_ways = both[mine].all()
        links, way = int(mine.sum()) // (1 + two_ways), "both ways" if two_ways else "one way"
        keys.append(LegendEntry(f"cycle {k + 1}: {links} links, {way}", [colours[k]]))
    if (used & ~on_cycle & (number >= 0)).any():
        keys.append(LegendEntry("thin arrows: copies to a node beside the cycle", [GREY]))
    if (used & (number < 0)).any():
        keys.append(LegendEntry("grey: fed by no cycle", [GREY]))
    sketch = Sketch("", strokes, [WHITE] * topology.nodes)
    return picture_with_titles(schedule, make_panels(schedule, [sketch]), keys)


def number_cycles(pattern: Pattern | SumPattern) -> tuple[np.ndarray, np.ndarray, int]:
    """Number the cycles of arcs along which the words of a pattern flow.

    Each arc always carries on the words of one other arc, so arcs form cycles. Two cycles that take
    the same links in opposite directions have the same number.

    Parameters
    ----------
    pattern : Pattern or SumPattern
        A pattern on any topology.

    Returns
    -------
    number : ndarray of int, shape (nodes, ports)
        Number of the cycle whose words each arc carries, as a part of the cycle or as copies; -1
        for none.
    on_cycle : ndarray of bool, shape (nodes, ports)
        True if the arc is part of its cycle.
    count : int
        Number of cycles.
    """
    flows, topology = Flows.from_pattern(pattern), pattern.topology
    endless = np.append(flows.length > 0, False)[flows.flow]
    on_cycle = flows.on_cycle & endless
    there = topology.upstream
    opposite = np.where(on_cycle[there], flows.flow[there], -1)[on_cycle]
    along = flows.flow[on_cycle]
    least = np.full(len(flows), len(flows))
    most = np.full(len(flows), -1)
    np.minimum.at(least, along, opposite)
    np.maximum.at(most, along, opposite)
    own = np.arange(len(flows))
    partner = np.where((least == most) & (least >= 0), least, own)
    first = np.where(partner[partner] == own, np.minimum(partner, own), own)
    number = np.where(endless, np.append(first, -1)[flows.flow], -1)
    found, compact = np.unique(number[endless], return_inverse=True)
    number[endless] = compact
    return number, on_cycle, len(found)
