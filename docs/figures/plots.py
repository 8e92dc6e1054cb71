"""Plots of comparisons, from measurements in ``sim/measured`` or from plans made for the plot."""

import io
import json
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib as mpl
from hardware_targets import REFERENCES
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

import torusfabric as tf
from torusfabric.analysis.facts import schedule_facts

__all__ = ["engines", "measured", "message_times", "published", "routers", "steps"]

MEASURED = Path(__file__).parents[2] / "sim" / "measured"

#: Colours of torusfabric, of others, and of bounds; and colours of several torusfabric lines.
OURS, OTHERS, BOUND = "#c8324a", "#2578c4", "#5f6368"
COLOURS = (OURS, "#2578c4", "#2e8b57", "#b8860b", "#7b4ab0")
MARKS = "osD^v"

#: Letters stay text, so that they follow the font of the page and a search finds them. Names within
#: a picture are the same in every build.
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "torusfabric",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e5e8",
    "axes.axisbelow": True,
}

#: Fonts of the page, in place of the font by which Matplotlib measures text.
FONTS = "'DejaVu Sans', Verdana, Helvetica, sans-serif"

#: Points of a line: x and y.
Points: TypeAlias = Sequence[tuple[float, float]]


def measured(name: str) -> list[dict[str, Any]]:
    """Return the rows of a file of measurements."""
    found = json.loads((MEASURED / f"{name}.json").read_text(encoding="utf-8"))
    rows: list[dict[str, Any]] = found["rows"]
    return rows


def routers() -> str:
    """Return a plot of size and clock of routers, of torusfabric and other networks on chip."""
    found: dict[str, dict[str, float]] = {}
    for row in measured("routers"):
        topology, collective, algorithm = row["program"].split()
        if collective == "allgather":
            found.setdefault(f"{algorithm}, {topology}", {})[row["what"]] = row["measured"]
    ours = {name: (at["LUT4"], at["MHz"]) for name, at in found.items()}
    figure, (axes,) = _figure(1, height=4.2)
    for name, points, colour in (("torusfabric", ours, OURS), ("others", REFERENCES, OTHERS)):
        axes.plot(*zip(*points.values(), strict=True), "o", color=colour, label=name)
        by_clock = sorted(points, key=lambda text: points[text][1])
        for text, below in zip(by_clock, cycle((-11, 5)), strict=False):
            axes.annotate(text, points[text], (7, below), textcoords="offset points", fontsize=8.5)
    axes.set_xscale("log")
    axes.set_xlim(80, 4000)
    axes.set_ylim(0, 500)
    _plain(axes.xaxis)
    axes.set_xlabel("4-input look-up tables of a router")
    axes.set_ylabel("MHz, a router by itself")
    axes.legend()
    return _svg(
        figure,
        "Routers: clock in MHz against size in 4-input look-up tables, for torusfabric "
        "and for other networks on chip",
    )


def message_times(sides: Sequence[int], algorithms: Sequence[str]) -> str:
    """Return a plot of the time of an all-gather on n x n nodes, over its lower bound."""
    lines: dict[str, list[tuple[float, float]]] = {name: [] for name in algorithms}
    for side in sides:
        for name, line in lines.items():
            try:
                plan = tf.plan(tf.Torus(side, side), "allgather", algorithm=name)
            except tf.InputError:  # it does not serve this size
                continue
            facts = schedule_facts(plan)
            line.append((side, float(facts["tau"] / facts["tau_bound"])))
    figure, (axes,) = _figure(1)
    _lines(axes, lines)
    axes.axhline(1, color=BOUND, linewidth=1, linestyle="--", label="bound")
    axes.set_xlabel("n, on a torus of n x n")
    axes.set_ylabel("time, over the bound")
    axes.set_ylim(0.9)
    axes.legend()
    return _svg(
        figure,
        "All-gather on n x n nodes: time over the bound against n, a line for each algorithm",
    )


def steps(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a plot of steps beyond the bound, and of planning time: TACOS and torusfabric."""
    nodes = {row["torus"]: tf.parse_topology(row["torus"]).nodes for row in rows}
    figure, (left, right) = _figure(2)
    pairs = (("TACOS, best try", "tacos", OTHERS, "s"), ("matching", "ours", OURS, "o"))
    for name, key, colour, mark in pairs:
        beyond = [(nodes[row["torus"]], row[key] - row["bound"]) for row in rows]
        left.plot(*zip(*beyond, strict=True), mark, color=colour, label=name)
    left.set_ylabel("steps beyond the bound")
    left.set_yticks([0, 1])
    left.set_ylim(-0.2, 1.4)
    times = (("TACOS, one try", "seconds a try", OTHERS, "s"), ("matching", "seconds", OURS, "o"))
    for name, key, colour, mark in times:
        taken = [(nodes[row["torus"]], row[key]) for row in rows if row[key]]
        right.plot(*zip(*taken, strict=True), mark, color=colour, label=name)
    right.set_yscale("log")
    right.set_ylabel("seconds of planning")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlabel("nodes")
        _plain(axes.xaxis)
        axes.legend()
    return _svg(
        figure,
        "TACOS and matching, against the number of nodes: steps beyond the bound on the "
        "left, seconds of planning on the right",
    )


def published(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a bar chart of cycles of imported published algorithms and of the best own plans."""
    figure, (axes,) = _figure(1, height=0.6 + 0.45 * len(rows))
    places = range(len(rows))[::-1]
    for shift, key, name, colour in ((0.2, "cycles", "as published", OTHERS),
                                     (-0.2, "our cycles", "our plan", OURS)):  # fmt: skip
        values = [row[key] for row in rows]
        bars = axes.barh([at + shift for at in places], values, 0.36, color=colour, label=name)
        axes.bar_label(bars, padding=3, fontsize=8.5)
    axes.set_yticks(places, [f"{row['algorithm']}, {row['torus']}" for row in rows])
    axes.set_xscale("log")
    axes.set_xlim(5, 600)
    _plain(axes.xaxis)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("clock cycles")
    axes.legend(loc="upper right")
    return _svg(
        figure,
        "Clock cycles as bars, a pair for each algorithm: as published, and our plan "
        "for the same collective",
    )


def engines() -> str:
    """Return a plot of the speed of engines, and of their build times, by size."""
    figure, panels = _figure(2)
    rows = measured("engine_speed")
    names = list(dict.fromkeys(row["engine"] for row in rows))
    shown = {
        "node_cycles_per_second": "cycles of nodes a second",
        "build_processor": "seconds to build",
    }
    for axes, (key, label) in zip(panels, shown.items(), strict=True):
        lines = {
            name: [
                (tf.parse_topology(row["topology"]).nodes, row[key])
                for row in rows
                if row["engine"] == name
            ]
            for name in names
        }
        _lines(axes, lines)
        axes.set_xscale("log")
        axes.set_yscale("log")
        _plain(axes.xaxis)
        axes.set_xlabel("nodes")
        axes.set_ylabel(label)
    panels[0].legend(fontsize=8.5)
    return _svg(
        figure,
        "Simulators, against the number of nodes: cycles of nodes a second on the left, "
        "seconds to build on the right",
    )


def _figure(panels: int, *, height: float = 3.4) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure with some panels side by side."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, height), layout="constrained")
        axes = figure.subplots(1, panels, squeeze=False)[0]
    return figure, axes


def _lines(axes: Axes, lines: Mapping[str, Points]) -> None:
    """Draw lines by name, each with its own colour and marker."""
    for (name, points), colour, mark in zip(lines.items(), COLOURS, MARKS, strict=False):
        if points:
            style: dict[str, Any] = {
                "color": colour,
                "marker": mark,
                "markersize": 5,
                "label": name,
            }
            axes.plot(*zip(*points, strict=True), **style)


def _plain(axis: Any) -> None:
    """Write the numbers of a logarithmic axis out, at powers of ten and three times these."""
    axis.set_major_locator(LogLocator(subs=(1, 3)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _svg(figure: Figure, title: str) -> str:
    """Return the text of a figure, with a title for readers who do not see it."""
    text = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(text, format="svg", metadata={"Date": None, "Title": title})
    return text.getvalue().replace("'DejaVu Sans'", FONTS)
