"""The tops of fabrics: what stands around sequencer and routers, with one builder for each.

That of streams is in `torusfabric.rtl.streams.nodes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..program import RouteMap
from .common_parts import add_host, add_root_unit, add_sequencer
from .endpoint_parts import add_endpoints, add_streams
from .netlist import Fixed
from .router_parts import add_combiners, add_routers

if TYPE_CHECKING:
    from ..program import Program
    from .fabric_builder import FabricBuilder
    from .host_layout import HostLayout
    from .locators import Locator

__all__ = ["Built", "add_core_top", "add_host_top", "add_inside", "is_direct"]


class Built(NamedTuple):
    """What is known of a top once it is built.

    Parameters
    ----------
    router_classes : list of (str, int)
        The modules of routers, and of how many nodes each is.
    read_latency : int
        Edges from an address to its data; 0 where nothing is read at addresses.
    locators : list of function of () -> Locator
        What finds words for the host.
    """

    router_classes: list[tuple[str, int]]
    read_latency: int = 0
    locators: list[Callable[[], Locator]] = []  # noqa: RUF012  nobody adds to it


def add_host_top(build: FabricBuilder, layouts: Sequence[HostLayout]) -> Built:
    """One memory-mapped port serves all nodes."""
    _add_starts(build)
    latency, locators = add_host(build, layouts)
    # Of several forms, the sequencer takes it a cycle early.
    idle = "next_read_address" if build.program.several else "read_address"
    add_sequencer(build, {"idle_address": build.low(idle, build.address_bits)})
    routers = add_inside(build, add_endpoints)
    _add_status(build)
    return Built(routers, latency, locators)


def add_core_top(build: FabricBuilder) -> Built:
    """Every node has ports of its own: to its memories, or for the words that it sends."""
    _add_starts(build)
    add_sequencer(build, {"idle_address": (Fixed(0, build.address_bits),)})
    direct = is_direct(build.program)
    routers = add_inside(build, add_streams if direct else add_endpoints)
    _add_status(build)
    return Built(routers, 0 if direct else 1 + build.placement.endpoints.answer)


def is_direct(program: Program) -> bool:
    """Whether nodes of a core have ports for what they send and receive, in place of memories."""
    return isinstance(program.form.receive_map, RouteMap)


def add_inside(
    build: FabricBuilder, add_nodes: Callable[[FabricBuilder], None]
) -> list[tuple[str, int]]:
    """What all tops stand around, once the sequencer is there; the modules of routers."""
    program = build.program
    if program.by_offset or any(form.part_is_root for form in program.forms):
        add_root_unit(build)
    add_nodes(build)
    if build.sources.results:
        add_combiners(build)
    routers = add_routers(build)
    build.distribution.add()
    return routers


def _add_starts(build: FabricBuilder) -> None:
    """The inputs that start a run, and say which."""
    for name, bits in {"start": 1, **build.choices.inputs}.items():
        build.add_input(name, bits)


def _add_status(build: FabricBuilder) -> None:
    """The outputs that say what became of it."""
    for name in ("busy", "done", "cycles", "error", "round"):
        if name in build.sequenced:
            build.add_output(name, build.nets[name])
