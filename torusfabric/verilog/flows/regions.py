"""Regions for the nodes on a device, as hints for placement: the torus, folded.

The nodes of a ring lie in the order 0, 1, 2, .. there and .. back in between, so that no link, not
even the one around, is longer than two regions. Axes of even number go across the device, the
others up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...rtl.netlist import Netlist
from ...topology import Topology, Torus

__all__ = ["HINTS", "REGIONS", "cells_of_nodes", "folded", "in_rows", "longest_link",
           "nextpnr_regions", "vivado_regions"]  # fmt: skip

#: The files for Vivado, and for nextpnr.
REGIONS, HINTS = "vivado/regions.tcl", "nextpnr/regions.py"

VIVADO = """\
# Hints for placement: a region for each node, side by side as in the folded torus. After
# synth_design, or for the synthesized design of a project: source vivado/regions.tcl
set columns {columns}
set rows {rows}
if {{![info exists inside]}} {{ set inside "" }}
set widest 0
set highest 0
foreach site [get_sites SLICE_X*Y*] {{
  regexp {{SLICE_X(\\d+)Y(\\d+)}} $site all x y
  if {{$x > $widest}} {{ set widest $x }}
  if {{$y > $highest}} {{ set highest $y }}
}}
# The number of a node, its column and row, and its cells; inside is where the fabric is, "top/".
foreach {{node column row cells}} {{
{nodes}
}} {{
  set region [create_pblock node_$node]
  set x0 [expr {{$column * ($widest + 1) / $columns}}]
  set x1 [expr {{($column + 1) * ($widest + 1) / $columns - 1}}]
  set y0 [expr {{$row * ($highest + 1) / $rows}}]
  set y1 [expr {{($row + 1) * ($highest + 1) / $rows - 1}}]
  resize_pblock $region -add SLICE_X${{x0}}Y${{y0}}:SLICE_X${{x1}}Y${{y1}}
  set_property IS_SOFT TRUE $region
  foreach cell $cells {{ add_cells_to_pblock $region [get_cells -quiet $inside$cell] }}
}}
"""

NEXTPNR = """\
# Hints for placement: a region for each node, side by side as in the folded torus. For a
# nextpnr-ecp5 or nextpnr-ice40 with Python: --placer heap --pre-place nextpnr/regions.py
COLUMNS, ROWS = {columns}, {rows}
INSIDE = ""  # where the fabric is, "top."
# The column and the row of each node, and its cells.
NODES = {{
{nodes}
}}
# Block RAMs have columns or rows of their own, and stay free.
TYPES = {{"TRELLIS_COMB", "TRELLIS_FF", "TRELLIS_RAMW", "ICESTORM_LC"}}

sites = [ctx.getBelLocation(bel) for bel in ctx.getBels()]
wide, high = 1 + max(site.x for site in sites), 1 + max(site.y for site in sites)
node_of = {{}}
for node, (column, row, cells) in NODES.items():
    left, right = column * wide // COLUMNS, (column + 1) * wide // COLUMNS - 1
    low, top = row * high // ROWS, (row + 1) * high // ROWS - 1
    ctx.createRectangularRegion("node_%d" % node, left, low, right, top)
    node_of.update((INSIDE + cell, node) for cell in cells.split())
for name, cell in ctx.cells:
    node = node_of.get(INSIDE + name[len(INSIDE) :].split(".")[0])
    if node is not None and name.startswith(INSIDE) and cell.type in TYPES:
        ctx.constrainCellToRegion(name, "node_%d" % node)
"""


def cells_of_nodes(netlist: Netlist) -> dict[int, list[str]]:
    """The instances of each node."""
    cells: dict[int, list[str]] = {}
    for instance in netlist.instances:
        if instance.node is not None:
            cells.setdefault(instance.node, []).append(instance.name)
    return cells


def nextpnr_regions(topology: Topology, cells: Mapping[int, Sequence[str]]) -> str:
    """The script for nextpnr that gives each node, which has these instances, a region."""
    return _filled(NEXTPNR, '    {}: ({}, {}, "{}"),', topology, cells)


def vivado_regions(topology: Topology, cells: Mapping[int, Sequence[str]]) -> str:
    """The same for Vivado."""
    return _filled(VIVADO, "  {} {} {} {{{}}}", topology, cells)


def _filled(script: str, entry: str, topology: Topology, cells: Mapping[int, Sequence[str]]) -> str:
    """A script with an entry for each node: its column, its row and its instances."""
    at = folded(topology)
    columns, rows = (at.max(axis=0) + 1).tolist()
    nodes = (entry.format(node, *at[node], " ".join(cells[node])) for node in sorted(cells))
    return script.format(columns=columns, rows=rows, nodes="\n".join(nodes))


def in_rows(topology: Topology) -> list[list[int | str]]:
    """Which node, if any, lies in each column of each row of regions, as they are folded.

    Examples
    --------
    >>> in_rows(Torus(4, 2))
    [[0, 6, 2, 4], [1, 7, 3, 5]]
    """
    at = folded(topology)
    columns, rows = (at.max(axis=0) + 1).tolist()
    table: list[list[int | str]] = [["-"] * columns for _ in range(rows)]
    for node, (column, row) in enumerate(at.tolist()):
        table[row][column] = node
    return table


def longest_link(topology: Topology) -> int:
    """From how many regions to the next the longest link goes, along columns and rows.

    Examples
    --------
    >>> longest_link(Torus(8, 8)), longest_link(Torus(4, 4, 4))
    (2, 8)
    """
    at, ends = folded(topology), topology.neighbours
    ways = np.abs(at[:, None] - at[ends]).sum(axis=2)
    return int(ways[ends >= 0].max(initial=0))


def folded(topology: Topology) -> np.ndarray:
    """Column and row of the region of each node; of what is no torus, in a square by number.

    Examples
    --------
    >>> folded(Torus(5))[:, 0].tolist()
    [0, 2, 4, 3, 1]
    >>> folded(Torus(2, 4))[4].tolist()
    [1, 0]
    """
    numbers = np.arange(topology.nodes)
    if not isinstance(topology, Torus):
        side = int(np.ceil(np.sqrt(topology.nodes)))
        return np.stack(np.divmod(numbers, side), axis=1)[:, ::-1]
    at = np.zeros((topology.nodes, 2), int)
    coordinates = np.unravel_index(numbers, topology.sides)
    for axis, (side, each) in enumerate(zip(topology.sides, coordinates, strict=True)):
        place = np.where(2 * each < side, 2 * each, 2 * (side - each) - 1)
        at[:, axis % 2] = at[:, axis % 2] * side + place
    return at
