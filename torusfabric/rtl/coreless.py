"""Fabrics that are not made of a core: those with streams, loaded tables or beats."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .fabric_builder import FabricBuilder
from .loaded.top import add_loaded_stream_top, add_loaded_top
from .placement import place
from .streams.nodes import add_stream_top
from .top import Built, Top
from .tops import add_core_top, add_host_top

if TYPE_CHECKING:
    from .fabric import Fabric

__all__ = ["add_top", "builder_of"]


def builder_of(fabric: Fabric) -> FabricBuilder:
    """Return what takes the parts of the netlist of a fabric."""
    make = partial(FabricBuilder, fabric.program, width=fabric.width, top=fabric.top)
    if fabric.cut:
        return make(place(fabric.program, fabric.beat), cut=fabric.cut)
    # Nobody may take back words that streams have passed on.
    resets = fabric.bus is not None and fabric.top is Top.HOST
    if fabric.tables:
        placement = fabric.tables.layout.of_node.placement(fabric.program)
        return make(placement, add_rows=fabric.tables.add_rows, resets=resets)
    return make(place(fabric.program, fabric.beat), resets=resets)


def add_top(fabric: Fabric, build: FabricBuilder) -> Built:
    """Fill the netlist of a fabric."""
    if fabric.tables:
        if fabric.top is Top.STREAM:
            return add_loaded_stream_top(build, fabric.tables, fabric.clocks, fabric.timeout)
        return add_loaded_top(build, fabric.tables)
    if fabric.top is Top.HOST:
        return add_host_top(build, fabric.form_layouts)
    if fabric.top is Top.CORE:
        return add_core_top(build)
    return add_stream_top(build, fabric.clocks, fabric.timeout)
