"""Pictures of circuit-switched collectives.

A collective of few rounds has a panel for each round (`draw_rounds`). On an arrowhead torus, a
broadcast has a panel for each half of its message, with all rounds (`draw_forests`). A collective
of many rounds has one panel in which each arc shows its first use (`draw_first_use`).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ..schedule import Listed, Schedule, Transfers
from ..topology import Torus
from .frame import BLACK, COLOURS, PLAIN, SEQUENCE, colour_bar, panels_of, roots, titled
from .picture import Key, Picture, Sketch, Stroke
from .svg import mix, ramp

__all__ = ["draw_first_use", "draw_forests", "draw_rounds"]


def draw_rounds(schedule: Schedule) -> Picture:
    """Return a picture with a panel for each round.

    If there is one origin, a node has the colour of the round that reaches it, paler in later
    rounds. Else the senders of a round are coloured.
    """
    topology, colours = schedule.topology, _colours(schedule)
    single = schedule.blocks.single_origin
    arrival = _arrivals(schedule)
    sketches = []
    for number, transfers in enumerate(schedule.rounds(), 1):
        colour = colours[number - 1]
        fills = [PLAIN] * topology.nodes
        if single:
            for node in np.flatnonzero((arrival > 0) & (arrival <= number)).tolist():
                own = colours[arrival[node] - 1]
                fills[node] = own if arrival[node] == number else mix(own, PLAIN, 0.65)
            for root in roots(schedule):
                fills[root] = BLACK
        else:
            for node in np.unique(transfers.source).tolist():
                fills[node] = mix(colour, PLAIN, 0.55)
        strokes = [Stroke(node, ports, colour) for node, ports in _paths(transfers)]
        sketches.append(Sketch(f"round {number}", strokes, fills))
    sketches = sketches or [Sketch("", [], [PLAIN] * topology.nodes)]
    centre = roots(schedule)[0] if single else None
    panels = panels_of(schedule, sketches, centre=centre)
    stacked = isinstance(topology, Torus) and len(topology.sides) > 2
    return titled(schedule, panels, _round_keys(schedule, colours), stacked=stacked)


def draw_forests(schedule: Schedule) -> Picture:
    """Return a picture of a broadcast with a panel for each half of the message.

    A panel has all rounds: paths of early rounds are drawn farther from the links.
    """
    topology, colours = schedule.topology, _colours(schedule)
    fills = [PLAIN] * topology.nodes
    for node, number in enumerate(_arrivals(schedule).tolist()):
        if number:
            fills[node] = mix(colours[number - 1], PLAIN, 0.45)
    fills[schedule.collective.root or 0] = BLACK
    count = schedule.round_count
    apart = min(0.085, 0.26 / max(count - 1, 1))
    strokes: list[list[Stroke]] = [[] for _ in range(min(schedule.chunks, 2))]
    for number, transfers in enumerate(schedule.rounds(), 1):
        offset = 0.26 + apart * (count - number)
        payload = transfers.payload
        for k, (node, ports) in enumerate(_paths(transfers)):
            first = payload.ids[payload.indptr[k]] if isinstance(payload, Listed) else 0
            half = int(schedule.blocks.chunk(first)) % len(strokes)
            colour = mix(colours[number - 1], PLAIN, 0.35 * half)
            strokes[half].append(Stroke(node, ports, colour, offset=offset))
    names = ["first half", "second half"] if len(strokes) > 1 else ["all rounds"]
    sketches = []
    for name, sketch in zip(names, strokes, strict=True):
        ports = sorted({port for stroke in sketch for port in stroke.ports})
        along = ", ".join(topology.port_names[port] for port in ports)
        sketches.append(Sketch(f"{name}: {along}" if along else name, sketch, fills))
    panels = panels_of(schedule, sketches, centre=schedule.collective.root)
    note = "; the second half in paler colours" if len(sketches) > 1 else ""
    return titled(schedule, panels, _round_keys(schedule, colours), note=note)


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
        Stroke(node, (port,), ramp(SEQUENCE, (number - 1) / (count - 1)), offset=0.13)
        for (node, port), number in first.items()
    ]
    sketch = Sketch("", strokes, [PLAIN] * topology.nodes)
    key = colour_bar("arcs used first in", SEQUENCE, schedule.switching.unit, count)
    return titled(schedule, panels_of(schedule, [sketch]), [key])


def _arrivals(schedule: Schedule) -> np.ndarray:
    """Return the round in which each node first receives a block; 0 for none, and for roots."""
    topology = schedule.topology
    arrival = np.zeros(topology.nodes, int)
    for number, transfers in enumerate(schedule.rounds(), 1):
        reached = transfers.walk(topology)[:, -1]
        arrival[reached[arrival[reached] == 0]] = number
    if schedule.blocks.single_origin:
        arrival[roots(schedule)] = 0
    return arrival


def _colours(schedule: Schedule) -> list[str]:
    """Return a colour for each round."""
    count = schedule.round_count
    if count <= len(COLOURS):
        return list(COLOURS[:count])
    return [ramp(SEQUENCE, k / (count - 1)) for k in range(count)]


def _paths(transfers: Transfers) -> Iterator[tuple[int, list[int]]]:
    """Yield the sender and the out-ports of each transfer."""
    for node, hops in zip(transfers.source.tolist(), transfers.hops.tolist(), strict=True):
        yield node, [port for port in hops if port >= 0]


def _round_keys(schedule: Schedule, colours: Sequence[str]) -> list[Key]:
    """Return the legend: for each round the number of paths and the longest path."""
    keys = []
    for number, transfers in enumerate(schedule.rounds(), 1):
        longest = int(transfers.lengths.max(initial=0))
        many = f"{len(transfers)} paths" if len(transfers) != 1 else "1 path"
        hops = f"up to {longest} hops" if longest > 1 else "1 hop each"
        keys.append(Key(f"round {number}: {many}, {hops}", [colours[number - 1]]))
    return keys
