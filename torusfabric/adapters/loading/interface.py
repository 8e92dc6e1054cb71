"""What streams of a loaded fabric tell a proof."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..streams import interface
from ..streams.sections import levels

if TYPE_CHECKING:
    from ...proof.gates import GateText
    from ...proof.machine import Machine
    from ...proof.runs import Runs
    from ...proof.solver import Harness
    from ...verilog.design import Design

__all__ = ["StreamInterface"]


class StreamInterface(interface.StreamInterface):
    """The ports of nodes with streams whose tables are loaded."""

    def harnesses(self, fabric: Any, design: Design) -> Iterable[Harness]:
        """Yield the harnesses of the control, and of what lies between it and nodes."""
        from ..streams.claims import between_harnesses  # when it is asked for
        from ..streams.claims.control import control_harness

        yield control_harness(design, None, levels=levels(fabric.nodes))
        yield from between_harnesses(fabric, design)

    def claims(self, fabric: Any, text: GateText) -> Iterable[Any]:
        """Return the claims about wires of nodes and of the control."""
        from ..streams.claims.wires import wire_claims  # when it is asked for

        return wire_claims(fabric, text)

    def runs(self, fabric: Any, machine: Machine) -> Runs | None:
        """Return whole runs from loaders to unloaders."""
        from ..streams.claims.whole_runs import StreamRuns  # when it is asked for
        from .claims import RoomAccess

        return StreamRuns(RoomAccess(fabric, machine))

    def assumptions(self) -> Iterator[str]:
        """Yield what is not proved."""
        yield (
            "Loaders, unloaders and commands do what those of fixed tables do by constants, and "
            "the control divides packets into blocks as the image says."
        )
        yield "A run that begins in the last cycle of another does what it does after a rest."
