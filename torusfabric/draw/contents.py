"""What to draw of a schedule: panels of strokes with a key, whatever form the schedule has."""

from collections.abc import Iterator, Sequence

import numpy as np

from ..errors import InputError
from ..schedule import Listed, Pattern, Schedule, Switching, Table, Transfers
from ..topology import Arrowhead, Torus
from .cycles import number_cycles
from .layout import arrowhead_layout, as_arrowhead, hexagon_layout, torus_layout
from .picture import Key, Panel, Picture, Sketch, Stroke
from .svg import mix, ramp

__all__ = ["contents"]

#: Colours of things without an order, easy to distinguish.
COLOURS = ("#c8324a", "#1f6fb4", "#2b8a3e", "#d9820a", "#7a47a8", "#0b8f8a", "#8a5a34", "#c2459b",
           "#5f6b10", "#3b3f9e")  # fmt: skip

#: Colours of things in an order, first to last.
SEQUENCE = ("#30123b", "#3f5fd0", "#1aa6b7", "#35b34a", "#c9a40a", "#e8651a", "#a01818")

#: The same for each of two trees: from the root outwards.
TREE_SEQUENCES = (("#7d0f22", "#d8334f", "#f29a86"), ("#0c2f66", "#2578c4", "#7fc0ea"))

#: More rounds than this are drawn in one panel.
MAX_PANELS = 12

#: More nodes than this are a picture that nobody can read.
MAX_NODES = 4096

GREY = "#9aa0a6"
PLAIN = "#ffffff"


def contents(schedule: Schedule) -> Picture:
    """The picture of a schedule.

    Parameters
    ----------
    schedule : Schedule
        On at most 4096 nodes.

    Returns
    -------
    Picture

    Raises
    ------
    InputError
        If the topology has too many nodes for a picture.
    """
    topology = schedule.topology
    if topology.nodes > MAX_NODES:
        raise InputError(f"Drawing must have at most {MAX_NODES} nodes, not {topology.nodes}")
    if isinstance(schedule, Pattern):
        return _cycles(schedule)
    if isinstance(schedule, Table) or (
        schedule.blocks.single_origin and schedule.switching == Switching.STORE_AND_FORWARD
    ):
        return _trees(schedule)
    if isinstance(topology, Arrowhead) and schedule.blocks.single_origin:
        return _forests(schedule)
    if schedule.round_count <= MAX_PANELS:
        return _rounds(schedule)
    return _first_use(schedule)


def _unit(schedule: Schedule) -> str:
    """What the rounds of a schedule are called."""
    return "step" if schedule.switching == Switching.STORE_AND_FORWARD else "round"


def _titled(
    schedule: Schedule,
    panels: list[Panel],
    keys: list[Key],
    *,
    note: str = "",
    stacked: bool = False,
) -> Picture:
    """A picture with what it shows above it."""
    kind = _unit(schedule)
    chunks = f", {schedule.chunks} chunks" if schedule.chunks > 1 else ""
    return Picture(
        title=f"{schedule.topology} {schedule.collective}, {schedule.algorithm}",
        subtitle=f"{schedule.round_count} {kind}{'s' * (schedule.round_count != 1)}, "
        f"{schedule.switching}, {schedule.duplex} duplex, {schedule.ports} ports{chunks}{note}",
        panels=panels,
        keys=keys,
        stacked=stacked,
    )


def _panels(
    schedule: Schedule, sketches: Sequence[Sketch], *, centre: int | None = None
) -> list[Panel]:
    """Panels for sketches: one each on a torus; the arrowhead and its folding for one or two."""
    topology = schedule.topology
    if isinstance(topology, Torus):
        layout = torus_layout(topology, centre=centre, in_one_row=len(sketches) > 1)
        return [Panel(layout, sketch.title, sketch.strokes, sketch.fills) for sketch in sketches]
    root, topology = centre or 0, as_arrowhead(topology)
    hexagon = hexagon_layout(topology, root)
    if len(sketches) > 2:
        return [Panel(hexagon, sketch.title, sketch.strokes, sketch.fills) for sketch in sketches]
    panels = []
    for turned, sketch in enumerate(sketches):
        layout = arrowhead_layout(topology, root, turned=bool(turned))
        panels.append(Panel(layout, sketch.title, sketch.strokes, sketch.fills))
    both = [stroke for sketch in sketches for stroke in sketch.strokes]
    title = "both, folded to a hexagon" if len(sketches) > 1 else "folded to a hexagon"
    return [*panels, Panel(hexagon, title, both, sketches[0].fills)]


def _cycles(schedule: Pattern) -> Picture:
    """A pattern: one colour a cycle, thin arrows for copies that leave it."""
    topology = schedule.topology
    number, on_cycle, count = number_cycles(schedule)
    colours = [COLOURS[k % len(COLOURS)] for k in range(count)] + [GREY]
    used = (schedule.inject >= 0) | (schedule.feed >= 0)
    there = topology.neighbours, topology.opposite
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
        keys.append(Key(f"cycle {k + 1}: {links} links, {way}", [colours[k]]))
    if (used & ~on_cycle & (number >= 0)).any():
        keys.append(Key("thin arrows: copies to a node beside the cycle", [GREY]))
    if (used & (number < 0)).any():
        keys.append(Key("grey: fed by no cycle", [GREY]))
    sketch = Sketch("", strokes, [PLAIN] * topology.nodes)
    return _titled(schedule, _panels(schedule, [sketch]), keys)


def _uses(schedule: Schedule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every use of an arc with the chunk that it carries, as arrays (arc, step, chunk).

    Of a table only what becomes of the message of node 0: the rest is its translation.
    """
    topology, blocks = schedule.topology, schedule.blocks
    if isinstance(schedule, Table):
        step, port = np.nonzero(schedule.offset >= 0)
        there = schedule.offset[step, port]
        source = topology.subtract(there, topology.generators[port])
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
    """The arcs that each chunk takes, and when first; chunks that do the same count as one.

    Returns
    -------
    list of (list of chunks, arcs, steps)
    """
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


def _trees(schedule: Schedule) -> Picture:
    """Trees from one node: the later the step, the farther along a row of colours."""
    topology = schedule.topology
    trees = _distinct_trees(schedule)
    shown = trees[:MAX_PANELS]
    root = schedule.collective.root or 0
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
        fills[root] = "#202124"
        title = f"tree {k + 1}" if len(trees) > 1 else "the tree"
        sketches.append(Sketch(f"{title}: {_chunk_names(chunks)}", strokes, fills))
        if two or not keys:
            keys.append(_bar(f"tree {k + 1}:" if two else "sent in", stops, "step", last))
    note = "; the message of node 0" if isinstance(schedule, Table) else ""
    if len(trees) > len(shown):
        note += f"; {len(shown)} of {len(trees)} trees"
    return _titled(schedule, _panels(schedule, sketches, centre=root), keys, note=note)


def _bar(text: str, stops: Sequence[str], unit: str, last: int) -> Key:
    """The colours of steps or rounds 1 to last, as an entry of the legend."""
    if last == 1:
        return Key(f"{text} {unit} 1", [stops[0]])
    return Key(text, [ramp(stops, s / 31) for s in range(32)], f"{unit} 1", f"{unit} {last}")


def _chunk_names(chunks: Sequence[int]) -> str:
    """Chunks in words."""
    if len(chunks) == 1:
        return f"chunk {chunks[0]}"
    return f"{len(chunks)} chunks one after another, {chunks[0]} to {chunks[-1]}"


def _arrivals(schedule: Schedule) -> np.ndarray:
    """The round in which each node first receives anything, 0 for never."""
    topology = schedule.topology
    arrival = np.zeros(topology.nodes, int)
    for number, transfers in enumerate(schedule.rounds(), 1):
        reached = transfers.walk(topology)[:, -1]
        arrival[reached[arrival[reached] == 0]] = number
    if schedule.blocks.single_origin:
        arrival[schedule.collective.root] = 0
    return arrival


def _colours(schedule: Schedule) -> list[str]:
    """One colour a round."""
    count = schedule.round_count
    if count <= len(COLOURS):
        return list(COLOURS[:count])
    return [ramp(SEQUENCE, k / (count - 1)) for k in range(count)]


def _paths(transfers: Transfers) -> Iterator[tuple[int, list[int]]]:
    """Sender and out-ports of each transfer."""
    for node, hops in zip(transfers.source.tolist(), transfers.hops.tolist(), strict=True):
        yield node, [port for port in hops if port >= 0]


def _round_keys(schedule: Schedule, colours: Sequence[str]) -> list[Key]:
    """What happens in each round."""
    keys = []
    for number, transfers in enumerate(schedule.rounds(), 1):
        longest = int(transfers.lengths.max(initial=0))
        many = f"{len(transfers)} paths" if len(transfers) != 1 else "1 path"
        hops = f"up to {longest} hops" if longest > 1 else "1 hop each"
        keys.append(Key(f"round {number}: {many}, {hops}", [colours[number - 1]]))
    return keys


def _rounds(schedule: Schedule) -> Picture:
    """A panel for each round; a node has the colour of the round in which it is reached."""
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
            fills[schedule.collective.root or 0] = "#202124"
        else:
            for node in np.unique(transfers.source).tolist():
                fills[node] = mix(colour, PLAIN, 0.55)
        strokes = [Stroke(node, ports, colour) for node, ports in _paths(transfers)]
        sketches.append(Sketch(f"round {number}", strokes, fills))
    sketches = sketches or [Sketch("", [], [PLAIN] * topology.nodes)]
    centre = schedule.collective.root if single else None
    panels = _panels(schedule, sketches, centre=centre)
    stacked = isinstance(topology, Torus) and len(topology.sides) > 2
    return _titled(schedule, panels, _round_keys(schedule, colours), stacked=stacked)


def _forests(schedule: Schedule) -> Picture:
    """All rounds of a broadcast in one panel, early ones farther out; a panel for each half."""
    topology, colours = schedule.topology, _colours(schedule)
    fills = [PLAIN] * topology.nodes
    for node, number in enumerate(_arrivals(schedule).tolist()):
        if number:
            fills[node] = mix(colours[number - 1], PLAIN, 0.45)
    fills[schedule.collective.root or 0] = "#202124"
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
    panels = _panels(schedule, sketches, centre=schedule.collective.root)
    note = "; the second half in paler colours" if len(sketches) > 1 else ""
    return _titled(schedule, panels, _round_keys(schedule, colours), note=note)


def _first_use(schedule: Schedule) -> Picture:
    """All rounds in one panel: each arc has the colour of the round in which it is first used."""
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
    key = _bar("arcs used first in", SEQUENCE, _unit(schedule), count)
    return _titled(schedule, _panels(schedule, [sketch]), [key])
