"""Construction of a `BoardSystem` from the choices of a command, or from a manifest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...rtl import Fabric
from ...topology import CayleyGraph, parse_topology, with_rates
from ...topology.boards import Boards
from .hardware.link_plan import PHYS
from .hardware.system import BoardSystem, plan_links

__all__ = ["make_system", "read_system"]

#: Latency of cut arcs, in cycles, with which the search for the least latency begins.
FIRST_LATENCY = 8

#: Options of nodes and links by which a torus does not look the same from each node.
SINGLED_OUT = ("relay", "broken_link", "broken_links", "broken_node")


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

    The choices may contain a link latency, or a plan with one. Otherwise cut arcs take the least
    latency that the hardware of the links and the drift of the clocks allow, and other arcs take
    one cycle. If the torus looks the same from each node, all arcs along an axis with several
    boards take this latency, so that algorithms for such tori serve.

    Parameters
    ----------
    make : callable
        Function that makes the fabric on one chip. Its keywords replace choices of the user, for
        example ``link_latency="0:8,1:1"``.
    choices : mapping
        Values of all options of the command, by their keywords of Python.
    """
    names = ("ppm", "retries", "start_timeout")
    how: dict[str, Any] = {name: choices[name] for name in names if choices[name] is not None}
    how["phy"] = PHYS[choices["phy"] or "parallel"]
    cut = lambda topology: Boards.parse(choices["boards"], topology)
    if choices["link_latency"] is not None or choices["plan"] is not None:
        fabric = make()
        return BoardSystem(fabric, cut(fabric.program.topology), **how)
    network, latency = parse_topology(choices["topology"]), FIRST_LATENCY
    network = network if choices["rate"] is None else with_rates(network, choices["rate"])
    alike = isinstance(network, CayleyGraph) and not any(choices[name] for name in SINGLED_OUT)
    counts = cut(network).counts
    while True:
        each = enumerate(latency if count > 1 else 1 for count in counts)
        by_axis = ",".join(f"{axis}:{cycles}" for axis, cycles in each)
        fabric = make(link_latency=by_axis if alike else f"{choices['boards']}={latency}")
        boards = cut(fabric.program.topology)
        least = plan_links(fabric, boards, **how).least_latency
        if least <= latency:
            return BoardSystem(fabric, boards, **how)
        # Repeat: longer links make longer runs, in which clocks drift further apart.
        latency = least
