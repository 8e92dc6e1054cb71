"""The modules of a fabric with streams that are proved by induction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...rtl.streams.readiness import levels
from .commands import commands_harness
from .controls import control_harness, tree_harness
from .loaders import loader_harness
from .unloaders import unloader_harness

if TYPE_CHECKING:
    from ...rtl import Fabric
    from ...verilog.design import Design
    from ..solver import Harness

__all__ = ["stream_harnesses"]

#: What the claims about a module come to.
SAYS = {
    "loader": "every word that is accepted is written once, where its row says, never into what a "
    "run uses; a message waits for its run, with what is wrong with it",
    "unloader": "every word of a run that has ended is handed over once, in order, with its tlast "
    "and tid, and stays until it is taken; none is read of what a run writes",
    "stream_control": "a run begins only when every node has a good message and room, ends once, "
    "and says of what length it is, or what was wrong",
    "commands": "every command has one status, in their order, and its run is what it asks for",
    "readiness": "it shows a cycle later what all below say together",
}


def stream_harnesses(fabric: Fabric, design: Design) -> list[Harness]:
    """What is proved of the streams of a fabric by induction.

    Parameters
    ----------
    fabric : Fabric
        One whose nodes have streams.
    design : Design
        Its text.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "allgather")), width=2, top="stream")
    >>> [harness.name for harness in stream_harnesses(fabric, tf.emit(fabric))]
    ['loader', 'unloader', 'stream_control', 'readiness_3_of_nodes']
    """
    modules, prefix = fabric.netlist.modules, fabric.prefix

    def shape(name: str) -> Any:
        return modules[name]().shape

    found = [
        loader_harness(design, prefix + "loader", shape("loader")),
        unloader_harness(design, prefix + "unloader", shape("unloader")),
        control_harness(design, prefix + "stream_control", levels=levels(fabric.nodes)),
    ]
    if "commands" in modules:
        found.append(commands_harness(design, prefix + "commands", shape("commands")))
    trees = [name for name in modules if name.startswith("readiness")]
    found += [tree_harness(design, prefix + name) for name in trees]
    return [_named(harness, prefix) for harness in found]


def _named(harness: Harness, prefix: str) -> Harness:
    """A harness by the name of its module, and with what it says."""
    name = harness.name.removeprefix(prefix)
    says = next(text for each, text in SAYS.items() if name.startswith(each))
    return replace(harness, name=name, says=says)
