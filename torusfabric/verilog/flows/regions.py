"""Regions for the nodes on a device, as hints for placement: the torus, folded.

The nodes of a ring lie in the order 0, 1, 2, .. there and .. back in between, so that no link, not
even the one around, is longer than two regions. Axes of even number go across the device, the
others up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...topology import Topology, Torus

__all__ = ["REGIONS", "folded", "vivado_regions"]

#: The file for Vivado.
REGIONS = "vivado/regions.tcl"

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


def vivado_regions(topology: Topology, cells: Mapping[int, Sequence[str]]) -> str:
    """The script that gives each node a region.

    Parameters
    ----------
    cells : mapping of int to sequence of str
        The instances of each node.
    """
    at = folded(topology)
    columns, rows = (at.max(axis=0) + 1).tolist()
    nodes = "\n".join(
        f"  {node} {at[node][0]} {at[node][1]} {{{' '.join(names)}}}"
        for node, names in sorted(cells.items())
    )
    return VIVADO.format(columns=columns, rows=rows, nodes=nodes)


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
