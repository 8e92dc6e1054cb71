"""The claim that a program keeps the rates of links that carry less than a flit a cycle.

It is checked on the values by which rows select the sources of out-ports. Other claims say that the
Verilog has these values in its ROMs, and acts on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..program.fields import Order
from .report import make_refutation

if TYPE_CHECKING:
    from ..program.fields import Loop
    from ..program.program import Program

__all__ = ["check_slow_links"]


def check_slow_links(program: Program) -> int:
    """Check that flits on slow links are as far apart as the rates demand, in all runs.

    A run may follow another one at once, so the flits at the beginning of the rows must also be far
    enough from those at the end of the rows before.

    Returns
    -------
    int
        The number of pairs of successive flits that are compared.

    Raises
    ------
    Refuted
        If a link carries two flits too close. The message names the link and the rows.
    """
    topology, count = program.topology, 0
    slow = np.argwhere((topology.spacing_of_arc > 1) & topology.linked).tolist()
    for form in program.forms:
        loop = form.loop
        used = loop.selected_sources >= 0
        for flits in range(1, loop.flits + 1) if form.any_length else [loop.flits]:
            begins, slots = _row_begins(loop, flits)
            for node, port in slow:
                rows = np.flatnonzero(used[:, program.variant_of[node], port])
                if not len(rows):
                    continue
                first = begins[rows]
                apart = np.diff(np.append(first, first[0] + slots))
                if loop.order is Order.ROW and flits > 1:
                    apart[:] = 1  # the flits of a block follow one another
                spacing = int(topology.spacing_of_arc[node, port])
                for wrong in np.flatnonzero(apart < spacing)[:1].tolist():
                    raise make_refutation(
                        "slow links",
                        f"{node}:{topology.port_names[port]}",
                        f"The flit in row {rows[wrong]} must be {spacing} cycles before the next, "
                        f"not {apart[wrong]}",
                    )
                count += len(rows)
    return count


def _row_begins(loop: Loop, flits: int) -> tuple[np.ndarray, int]:
    """Return the slot in which each row begins, and the slots of all rows.

    If all rows are repeated for each flit, these are the slots of one flit.
    """
    cycles = loop.row_cycles(flits)
    return np.cumsum(cycles) - cycles, int(cycles.sum())
