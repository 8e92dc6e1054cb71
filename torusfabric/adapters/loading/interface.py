"""Interfaces of loaded fabrics: their ports, manifest entries, test benches and proofs.

Each class adds the ports of the loader to the interface of a fabric with fixed tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ...contract.interface import Interface
from ...contract.ports import Protocol, grouped_ports
from ..host.interface import HostInterface, HostProofs
from ..streams.interface import StreamInterface
from ..streams.sections import levels

if TYPE_CHECKING:
    from ...proof.gates import GateText
    from ...proof.machine import Machine
    from ...proof.runs import Runs
    from ...proof.solver import Harness
    from ...verilog.design import Design
    from .hardware import Loading

__all__ = ["LoadedHost", "LoadedHostProofs", "LoadedStreams"]

#: The purpose of each port that takes images or reports the loaded state.
PORTS = grouped_ports(
    {
        ("control", Protocol.PULSE): {
            "load_we": "writes load_data as the next word of an image",
            "load_first": "high with load_we for the first word of an image",
            "load_data": "a word of the image",
        },
        ("status", Protocol.LEVEL): {
            "loaded": "a complete image is loaded",
            "loaded_program": "the digest of the program of the image; 0 if no image is loaded",
            "modes": "a bit for each mode that is loaded",
        },
    }
)


class Loaded(Interface):
    """Base of the interfaces of loaded fabrics: adds the ports and facts of the loader.

    Parameters
    ----------
    loading : Loading
        The loaded tables.
    *facts, **choices
        Arguments of the interface of a fabric with fixed tables, the other base of a subclass.
    """

    def __init__(self, loading: Loading, *facts: Any, **choices: Any) -> None:
        super().__init__(*facts, **choices)
        self._loading = loading
        self.ports = {**self.ports, **PORTS}

    def facts(self) -> dict[str, Any]:
        """Return the facts for the manifest, with the room and the modes loaded at first."""
        loading = self._loading
        program, room = loading.program, loading.room
        modes = [
            [mode.collective.name, "any" if mode.any_root else mode.collective.root]
            for mode in program.modes
        ]
        tables = {
            "digest": f"{room.digest(loading.width):08x}",
            "program": program.digest[:8],
            "node_bits": -(-loading.layout.table_bits // room.nodes),
            "load_cycles": len(loading.image.words),
            "modes": modes,
            "frame": room.to_json(),
        }
        return {**super().facts(), "tables": tables}


class LoadedHostProofs(Loaded, HostProofs):
    """Interface of a loaded fabric with a host port behind a bus: only the proofs."""


class LoadedHost(Loaded, HostInterface):
    """Interface of a loaded fabric with one host port for all nodes."""


class LoadedStreams(Loaded, StreamInterface):
    """Interface of a loaded fabric with streams at every node."""

    def harnesses(self, fabric: Any, design: Design) -> Iterable[Harness]:
        """Yield the proof harnesses of the control, and of the paths between control and nodes."""
        from ..streams.claims import between_harnesses  # when it is asked for
        from ..streams.claims.control import control_harness

        yield control_harness(design, None, levels=levels(fabric.nodes))
        yield from between_harnesses(fabric, design)

    def claims(self, fabric: Any, text: GateText) -> Iterable[Any]:
        """Return the claims about the wiring of nodes and of the control."""
        from ..streams.claims.wires import wire_claims  # when it is asked for

        return wire_claims(fabric, text)

    def runs(self, fabric: Any, machine: Machine) -> Runs | None:
        """Return the whole runs, from loaders to unloaders, that are proved."""
        from ..streams.claims.whole_runs import StreamRuns  # when it is asked for
        from .claims.whole_runs import RoomAccess

        return StreamRuns(RoomAccess(fabric, machine))

    def assumptions(self) -> Iterator[str]:
        """Yield the assumptions that the proof does not check, one sentence each."""
        yield (
            "Loaders, unloaders and commands do what those of fixed tables do by constants, and "
            "the control divides packets into blocks as the image says."
        )
        yield "A run that begins in the last cycle of another does what it does after a rest."
