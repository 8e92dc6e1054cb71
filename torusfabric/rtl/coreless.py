"""Fabrics that are not made of a core: those with loaded tables."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .fabric_builder import FabricBuilder
from .loaded.top import add_loaded_stream_top, add_loaded_top
from .top import Built, Top

if TYPE_CHECKING:
    from .fabric import Fabric

__all__ = ["add_top", "builder_of"]


def builder_of(fabric: Fabric) -> FabricBuilder:
    """Return what takes the parts of the netlist of a fabric."""
    make = partial(FabricBuilder, fabric.program, width=fabric.width, top=fabric.top)
    tables = fabric.tables
    assert tables
    # Nobody may take back words that streams have passed on.
    resets = fabric.bus is not None and fabric.top is Top.HOST
    placement = tables.layout.of_node.placement(fabric.program)
    return make(placement, add_rows=tables.add_rows, resets=resets)


def add_top(fabric: Fabric, build: FabricBuilder) -> Built:
    """Fill the netlist of a fabric."""
    tables = fabric.tables
    assert tables
    if fabric.top is Top.STREAM:
        return add_loaded_stream_top(build, tables, fabric.clocks, fabric.timeout)
    return add_loaded_top(build, tables)
