"""The modules of streams with loaded tables that are proved by induction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...rtl.streams.sections import levels
from .controls import control_harness, crossing_harness, tree_harness

if TYPE_CHECKING:
    from ...rtl import Fabric
    from ...verilog.design import Design
    from ..solver import Harness

__all__ = ["loaded_stream_harnesses"]


def loaded_stream_harnesses(fabric: Fabric, design: Design) -> Iterator[Harness]:
    """Yield the harnesses of the control, and of what lies between it and nodes.

    What loaders and unloaders of loaded tables know of a form is data.
    """
    yield control_harness(design, levels=levels(fabric.nodes))
    for name in fabric.netlist.modules:
        if name.startswith("readiness"):
            yield tree_harness(design, name)
        if name.endswith("_crossing"):
            yield crossing_harness(design, name)
