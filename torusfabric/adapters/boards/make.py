"""Construction of a `BoardSystem` from the choices of a command, or from a manifest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...rtl import Fabric
from ...topology import equal_links_as_text, parse_topology, with_rates
from ...topology.boards import Boards
from .hardware.link_plan import PHYS
from .hardware.system import BoardSystem, plan_links

__all__ = ["make_system", "read_system"]

#: Latency of cut arcs, in cycles, with which the search for the least latency begins.
FIRST_LATENCY = 8


def read_system(fabric: Fabric, manifest: Mapping[str, Any]) -> BoardSystem:
    """Return a fabric, cut into boards with the properties that a manifest states.

    The properties are the number of boards along each axis, the kind of links, the largest
    frequency error of the oscillators, the number of times that a run may be repeated, and the
    timeout of starts.
    """
    boards = Boards.parse("x".join(map(str, manifest["blocks"])), fabric.program.topology)
    how = {name: manifest[name] for name in ("ppm", "retries", "start_timeout")}
    return BoardSystem(fabric, boards, phy=PHYS[manifest["phy"]], **how)


def make_system(make: Callable[..., Fabric], choices: Mapping[str, Any]) -> BoardSystem:
    """Return a fabric that is cut into boards.

    The choices may contain a link latency, or a plan with one. Otherwise arcs along an axis with
    several boards take the least latency that the hardware of the links and the drift of the clocks
    allow, and arcs along other axes take one cycle.

    Parameters
    ----------
    make : callable
        Function that makes the fabric on one chip. Its keywords replace choices of the user, for
        example ``link_latency="0:8,1:1"``.
    choices : mapping
        Values of all options of the command, by their keywords of Python.
    """
    changes = equal_links_as_text(choices["topology"], choices["link_latency"])
    known, names = {**choices, **changes}, ("ppm", "retries", "start_timeout")
    how: dict[str, Any] = {name: choices[name] for name in names if choices[name] is not None}
    how["phy"] = PHYS[choices["phy"] or "parallel"]
    cut = lambda topology: Boards.parse(choices["boards"], topology)
    if known["link_latency"] is not None or choices["plan"] is not None:
        fabric = make(**changes)
        return BoardSystem(fabric, cut(fabric.program.topology), **how)
    network, latency = parse_topology(known["topology"]), FIRST_LATENCY
    counts = cut(with_rates(network, known["rate"]) if known["rate"] else network).counts
    while True:
        each = enumerate(latency if count > 1 else 1 for count in counts)
        fabric = make(link_latency=",".join(f"{axis}:{cycles}" for axis, cycles in each))
        boards = cut(fabric.program.topology)
        least = plan_links(fabric, boards, **how).least_latency
        if least <= latency:
            return BoardSystem(fabric, boards, **how)
        # Repeat: longer links make longer runs, in which clocks drift further apart.
        latency = least
