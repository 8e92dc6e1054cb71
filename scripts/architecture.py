"""Draw docs/project/architecture.svg: the packages of torusfabric, and the path of a value.

Example::

    python scripts/architecture.py docs/project/architecture.svg
"""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np

from torusfabric.draw.svg import Svg

#: The packages from the top; each imports only from packages below it. Packages of one colour work
#: together.
BLUE, GREEN, AMBER, GREY = "#eaf2fb", "#edf6ea", "#fdf3df", "#f1f3f4"
PACKAGES = (
    ("cli", "commands", GREY),
    ("sweep", "grids of work, comparisons, results, Dask", GREY),
    ("fabric", "fabrics with their adapters", AMBER),
    ("adapters", "capabilities around the core, a folder each", AMBER),
    ("fpga", "synthesis, boards, bridges to them", AMBER),
    ("simulation", "runs and engines, waveforms", AMBER),
    ("proof", "proof of the emitted Verilog", AMBER),
    ("verilog", "emitted Verilog and manifest", AMBER),
    ("rtl", "router, endpoint, sequencer, netlist", AMBER),
    ("contract", "declarations between core and adapters", AMBER),
    ("draw", "pictures and animations", GREEN),
    ("planning", "from a selection to a program", GREEN),
    ("program", "the actions of routers and endpoints", GREEN),
    ("algorithms", "a folder for each family, and the catalogue", GREEN),
    ("analysis", "checks, bounds, costs", GREEN),
    ("schedule", "patterns, tables, rounds, files", BLUE),
    ("collective", "collectives, blocks, operators", BLUE),
    ("topology", "Cayley graphs, torus, arrowhead", BLUE),
    ("toolchain", "external tools, cache, files", GREY),
)

#: The values on the path from a command to a bitstream: each with its package and its content.
VALUES = (
    ("bitstream", "fpga", "placed, routed, behind a bridge"),
    ("emitted Verilog", "verilog", "a module for each shape, ROM contents"),
    ("Fabric, netlist", "rtl", "modules, roles, nodes"),
    ("Program", "program", "rows, settings, addresses, timing"),
    ("Schedule", "schedule", "path and round of each block"),
    ("Topology, Collective", "topology", "8x8 allgather"),
)

#: Pixels: the height of a package, the gap to the next, and the columns' left edges and widths.
HEIGHT, GAP, TOP = 30, 6, 64
PACKAGE_LEFT, PACKAGE_WIDTH = 24, 430
VALUE_LEFT, VALUE_WIDTH = 520, 300
INK, PALE = "#202124", "#5f6368"


def middle(package: str) -> float:
    """Return the vertical middle of the box of a package, in pixels from the top of the page."""
    row = [name for name, _, _ in PACKAGES].index(package)
    return TOP + row * (HEIGHT + GAP) + HEIGHT / 2


def arrow(svg: Svg, x: float, start: float, end: float) -> None:
    """Draw a line upwards with a tip."""
    svg.add_lines([[(x, start), (x, end + 6)]], stroke=PALE, stroke_width=1.6)
    svg.add_areas([[(x, end), (x - 4.5, end + 8), (x + 4.5, end + 8)]], fill=PALE)


def architecture() -> str:
    """Return the whole picture as SVG."""
    svg = Svg()
    svg.add_text(PACKAGE_LEFT, 28, "The packages", 15, fill=INK, font_weight="bold")
    svg.add_text(PACKAGE_LEFT, 47, "each imports only from packages below it", 11, fill=PALE)
    svg.add_text(VALUE_LEFT, 28, "The path of a value", 15, fill=INK, font_weight="bold")
    svg.add_text(VALUE_LEFT, 47, "each is made from the one below it", 11, fill=PALE)
    for name, text, fill in PACKAGES:
        y = middle(name)
        svg.add_element(
            "rect",
            x=PACKAGE_LEFT,
            y=y - HEIGHT / 2,
            width=PACKAGE_WIDTH,
            height=HEIGHT,
            rx=4,
            fill=fill,
            stroke="#c9ccd1",
            stroke_width=1,
        )
        svg.add_text(PACKAGE_LEFT + 12, y + 4.5, name, 13, fill=INK, font_weight="bold")
        svg.add_text(PACKAGE_LEFT + 118, y + 4, text, 11.5, fill=PALE)
    heights = np.linspace(middle("fpga"), middle("topology"), len(VALUES)).tolist()
    centre = VALUE_LEFT + VALUE_WIDTH / 2
    for (name, package, text), y in zip(VALUES, heights, strict=True):
        ends = [(PACKAGE_LEFT + PACKAGE_WIDTH, middle(package)), (VALUE_LEFT, y)]
        svg.add_lines([ends], stroke=PALE, stroke_width=1, stroke_dasharray="3 3")
        svg.add_element("rect", x=VALUE_LEFT, y=y - 21, width=VALUE_WIDTH, height=42, rx=21,
                fill="#ffffff", stroke=INK, stroke_width=1.4)  # fmt: skip
        bold = {"fill": INK, "text_anchor": "middle", "font_weight": "bold"}
        svg.add_text(centre, y - 2.5, name, 13, **bold)
        svg.add_text(centre, y + 12.5, text, 10.5, fill=PALE, text_anchor="middle")
    for upper, lower in pairwise(heights):
        arrow(svg, centre, lower - 21, upper + 21)
    height = TOP + len(PACKAGES) * (HEIGHT + GAP) + 18
    return svg.render(VALUE_LEFT + VALUE_WIDTH + 24, height, "The architecture of torusfabric")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(architecture(), encoding="utf-8")
