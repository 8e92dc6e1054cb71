"""Pictures of circuit-switched collectives.

A collective of few rounds has a panel for each round (`draw_rounds`). On an arrowhead torus, a
broadcast has a panel for each half of its message, with all rounds (`draw_forests`). A collective
of many rounds has one panel in which each arc shows its first use (`draw_first_use`).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ..schedule import Listed, Schedule, Transfers
from ..topology import Torus
from .frame import (
    BLACK,
    COLOURS,
    ROUND_SCALE,
    WHITE,
    colour_bar,
    group_roots,
    make_panels,
    picture_with_titles,
)
from .picture import LegendEntry, Picture, Sketch, Stroke
from .svg import colour_at, mix_colours

__all__ = ["draw_first_use", "draw_forests", "draw_rounds"]


def draw_rounds(schedule: Schedule) -> Picture:
    """Return a picture with a panel for each round.

    If all blocks come from one origin, each node that has been reached has the colour of the round
    that reached it, in full in that round and paler in later ones. In other collectives, the nodes
    that send in the round are coloured.
    """
    topology, colours = schedule.topology, _round_colours(schedule)
    single = schedule.blocks.single_origin
    arrival = _first_arrivals(schedule)
    sketches = []
    for number, transfers in enumerate(schedule.rounds(), 1):
        colour = colours[number - 1]
        fills = [WHITE] * topology.nodes
        if single:
            for node in np.flatnonzero((arrival > 0) & (arrival <= number)).tolist():
                own = colours[arrival[node] - 1]
                fills[node] = own if arrival[node] == number else mix_colours(own, WHITE, 0.65)
            for root in group_roots(schedule):
                fills[root] = BLACK
        else:
            for node in np.unique(transfers.source).tolist():
                fills[node] = mix_colours(colour, WHITE, 0.55)
        strokes = [Stroke(node, ports, colour) for node, ports in _transfer_paths(transfers)]
        sketches.append(Sketch(f"round {number}", strokes, fills))
    sketches = sketches or [Sketch("", [], [WHITE] * topology.nodes)]
    centre = group_roots(schedule)[0] if single else None
    panels = make_panels(schedule, sketches, centre=centre)
    stacked = isinstance(topology, Torus) and len(topology.sides) > 2
    return picture_with_titles(schedule, panels, _round_keys(schedule, colours), stacked=stacked)


def draw_forests(schedule: Schedule) -> Picture:
    """Return a picture of a broadcast with a panel for each half of the message.

    Nodes and paths have the colour of their round. A panel has the paths of all rounds; those of
    early rounds are farther from the links. A message of one chunk has a single panel.
    """
    topology, colours = schedule.topology, _round_colours(schedule)
    fills = [WHITE] * topology.nodes
    for node, number in enumerate(_first_arrivals(schedule).tolist()):
        if number:
            fills[node] = mix_colours(colours[number - 1], WHITE, 0.45)
    fills[schedule.collective.root or 0] = BLACK
    count = schedule.round_count
    apart = min(0.085, 0.26 / max(count - 1, 1))
    strokes: list[list[Stroke]] = [[] for _ in range(min(schedule.chunks, 2))]
    for number, transfers in enumerate(schedule.rounds(), 1):
        offset = 0.26 + apart * (count - number)
        payload = transfers.payload
        for k, (node, ports) in enumerate(_transfer_paths(transfers)):
            first = payload.ids[payload.indptr[k]] if isinstance(payload, Listed) else 0
            half = int(schedule.blocks.chunk(first)) % len(strokes)
            colour = mix_colours(colours[number - 1], WHITE, 0.35 * half)
            strokes[half].append(Stroke(node, ports, colour, offset=offset))
    names = ["first half", "second half"] if len(strokes) > 1 else ["all rounds"]
    sketches = []
    for name, sketch in zip(names, strokes, strict=True):
        ports = sorted({port for stroke in sketch for port in stroke.ports})
        along = ", ".join(topology.port_names[port] for port in ports)
        sketches.append(Sketch(f"{name}: {along}" if along else name, sketch, fills))
    panels = make_panels(schedule, sketches, centre=schedule.collective.root)
    note = "; the second half in paler colours" if len(sketches) > 1 else ""
    return picture_with_titles(schedule, panels, _round_keys(schedule, colours), note=note)


def draw_first_use(schedule: Schedule) -> Picture:
    """Return a picture with one panel: each arc has the colour of the round of its first use."""
    topology, count = schedule.topology, schedule.round_count
    first: dict[tuple[int, int], int] = {}
    for number, transfers in enumerate(schedule.rounds(), 1):
        nodes = transfers.walk(topology)[:, :-1]
        used = transfers.hops >= 0
        for arc in zip(nodes[used].tolist(), transfers.hops[used].tolist(), strict=True):
            first.setdefault(arc, number)
    strokes = [
        Stroke(node, (port,), colour_at(ROUND_SCALE, (number - 1) / (count - 1)), offset=0.13)
        for (node, port), number in first.items()
    ]
    sketch = Sketch("", strokes, [WHITE] * topology.nodes)
    key = colour_bar("arcs used first in", ROUND_SCALE, schedule.switching.unit, count)
    return picture_with_titles(schedule, make_panels(schedule, [sketch]), [key])


def _first_arrivals(schedule: Schedule) -> np.ndarray:
    """Return the number of the round in which each node first receives a block, from 1.

    The result has the shape (nodes,). It is 0 for a node that receives nothing, and for the roots.
    """
    topology = schedule.topology
    arrival = np.zeros(topology.nodes, int)
    for number, transfers in enumerate(schedule.rounds(), 1):
        reached = transfers.walk(topology)[:, -1]
        arrival[reached[arrival[reached] == 0]] = number
    if schedule.blocks.single_origin:
        arrival[group_roots(schedule)] = 0
    return arrival


def _round_colours(schedule: Schedule) -> list[str]:
    """Return a colour for each round: distinct colours for few rounds, else a colour scale."""
    count = schedule.round_count
    if count <= len(COLOURS):
        return list(COLOURS[:count])
    return [colour_at(ROUND_SCALE, k / (count - 1)) for k in range(count)]


def _transfer_paths(transfers: Transfers) -> Iterator[tuple[int, list[int]]]:
    """Yield the sender and the out-ports of each of the `transfers` of one round."""
    for node, hops in zip(transfers.source.tolist(), transfers.hops.tolist(), strict=True):
        yield node, [port for port in hops if port >= 0]


def _round_keys(schedule: Schedule, colours: Sequence[str]) -> list[LegendEntry]:
    """Return the entries of the legend, one for each round.

    An entry has the colour of the round, its number of paths, and the hops of its longest path.
    `colours` has the colour of each round.
    """
    keys = []
    for number, transfers in enumerate(schedule.rounds(), 1):
        longest = int(transfers.lengths.max(initial=0))
        many = f"{len(transfers)} paths" if len(transfers) != 1 else "1 path"
        hops = f"up to {longest} hops" if longest > 1 else "1 hop each"
        keys.append(LegendEntry(f"round {number}: {many}, {hops}", [colours[number - 1]]))
    return keys
