"""The modules of a fabric with streams that are proved by induction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...rtl.streams.sections import levels
from .commands import commands_harness
from .controls import control_harness, crossing_harness, tree_harness
from .loaders import loader_harness
from .unloaders import unloader_harness

if TYPE_CHECKING:
    from ...rtl import Fabric
    from ...verilog.design import Design
    from ..solver import Harness

__all__ = ["stream_harnesses"]


def stream_harnesses(fabric: Fabric, design: Design) -> Iterator[Harness]:
    """What is proved of the streams of a fabric by induction.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "allgather")), width=2, top="stream")
    >>> [harness.name for harness in stream_harnesses(fabric, tf.emit(fabric))]
    ['loader', 'unloader', 'stream_control', 'readiness_3_of_nodes']
    """
    modules = fabric.netlist.modules

    def shape(name: str) -> Any:
        return modules[name]().shape

    # What those of loaded tables know of a form is data.
    if not fabric.frame:
        yield loader_harness(design, shape("loader"))
        yield unloader_harness(design, shape("unloader"))
    yield control_harness(design, levels=levels(fabric.nodes))
    if "commands" in modules and not fabric.frame:
        yield commands_harness(design, shape("commands"))
    for name in modules:
        if name.startswith("readiness"):
            yield tree_harness(design, name)
        if name.endswith("_crossing"):
            yield crossing_harness(design, name)
