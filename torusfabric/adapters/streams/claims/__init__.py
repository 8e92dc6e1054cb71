"""Proof of a fabric with streams.

A *claim* is a statement about the hardware that is proved. A *harness* is Verilog around one
module: a *model*, which computes the expected behaviour, and the claims. The *engines* of a node
are its loader, which takes packets from the user and writes them into memories, and its unloader,
which sends received words to the user. The *packet table* of an engine has the location of each
block of a packet.

The proof has three parts:

- Each module keeps its claims, by induction (`stream_harnesses`).
- The packet tables agree with the program, and the wires with the plan of the netlist
  (`stream_claims`).
- Whole runs of the core deliver the right words, by symbolic simulation
  (`torusfabric.adapters.streams.claims.whole_runs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ....contract.claims import Claim
from ..sections import stream_nodes, tree_levels
from .commands import commands_harness
from .control import control_harness
from .loader import loader_harness
from .readiness import crossing_harness, tree_harness
from .tables import check_tables
from .unloader import unloader_harness
from .wires import wire_claims

if TYPE_CHECKING:
    from ....proof.gates import GateText
    from ....proof.solver import Harness
    from ....rtl import Fabric
    from ....verilog.design import Design

__all__ = ["tree_and_crossing_harnesses", "stream_claims", "stream_harnesses"]


def stream_harnesses(fabric: Fabric, design: Design) -> Iterator[Harness]:
    """Yield the proof harnesses of the modules around the core of a fabric with streams.

    A harness is Verilog around one module, with the statements to prove about it. The modules are
    loader, unloader, the control of runs, `Commands`, the modules of the tree that combines the
    states of all nodes, and the queues between clocks. `design` is the emitted Verilog.

    Examples
    --------
    A small fabric has one harness for each of four modules.

    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3", "allgather")), width=2, top="stream")
    >>> [harness.name for harness in stream_harnesses(fabric, tf.emit(fabric))]
    ['loader', 'unloader', 'stream_control', 'readiness_3_of_nodes']
    """
    modules = fabric.netlist.modules

    def engine_shape(name: str) -> Any:
        return modules[name]().shape

    yield loader_harness(design, engine_shape("loader"))
    yield unloader_harness(design, engine_shape("unloader"))
    yield control_harness(
        design, fabric.program, levels=tree_levels(len(stream_nodes(fabric.program.topology)))
    )
    if "commands" in modules:
        yield commands_harness(design, engine_shape("commands"))
    yield from tree_and_crossing_harnesses(fabric, design)


def tree_and_crossing_harnesses(fabric: Fabric, design: Design) -> Iterator[Harness]:
    """Yield the proof harnesses of the readiness tree and of the queues between clocks.

    A harness is Verilog around one module, with the statements to prove about it. The readiness
    tree combines the states of all nodes. `design` is the emitted Verilog.
    """
    for name in fabric.netlist.modules:
        if name.startswith("readiness"):
            yield tree_harness(design, name)
        if name.endswith("_crossing"):
            yield crossing_harness(design, name)


def stream_claims(fabric: Fabric, text: GateText) -> Iterator[Claim]:
    """Yield the claims about packet tables, with the locations of blocks, and about wires.

    The wires are those of `text`, the emitted Verilog, read as gates.
    """
    for name in ("loader", "unloader"):
        says = f"each {name} finds all words of its node where they lie at the memory port"
        shape = fabric.netlist.modules[name]().shape
        check = partial(check_tables, fabric.core, shape)
        yield Claim(f"packet table of the {name}", "all words", says, check)
    yield from wire_claims(fabric, text)
