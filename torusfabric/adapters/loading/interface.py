"""Declarations of loaded fabrics: ports, manifest entries, test benches and proofs.

A loaded fabric has tables in RAMs, and the *loader* is the module that writes images into them. The
commands of the command line ask each fabric for its declarations, through the class `Interface`.
Each class here adds the ports of the loader to the declarations of a fabric with fixed tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ...contract.interface import Interface
from ...contract.ports import Protocol, ports_by_name
from ..host.interface import HostInterface, HostProofs
from ..streams.interface import StreamInterface
from ..streams.sections import stream_nodes, tree_levels
from .image import mode_entry

if TYPE_CHECKING:
    from ...proof.gates import GateText
    from ...proof.machine import SymbolicMachine
    from ...proof.runs import Runs
    from ...proof.solver import Harness
    from ...verilog.design import Design
    from .hardware import Loading

__all__ = ["LoadedHostInterface", "LoadedHostProofs", "LoadedStreamInterface"]

#: The purpose of each port that takes images or reports the loaded state.
PORTS = ports_by_name(
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


class LoadedInterface(Interface):
    """Base class for loaded fabrics: adds the ports and manifest entries of the image loader.

    A subclass has a second base class, which declares the other ports: the interface of the same
    fabric with fixed tables.

    Parameters
    ----------
    loading : Loading
        The loaded tables.
    *facts, **choices
        Arguments of the second base class.
    """

    def __init__(self, loading: Loading, *facts: Any, **choices: Any) -> None:
        super().__init__(*facts, **choices)
        self._loading = loading
        self.ports = {**self.ports, **PORTS}

    def manifest_entries(self) -> dict[str, Any]:
        """Return the entries of the manifest, by name.

        A loaded fabric has the entries of a fabric with fixed tables, and one more: ``tables``. It
        has the capacity of the tables, their digest, and the modes of the first image.
        """
        loading = self._loading
        program, room = loading.program, loading.room
        tables = {
            "digest": f"{room.digest(loading.width):08x}",
            "program": program.digest[:8],
            "node_bits": -(-loading.layout.table_bits // room.nodes),
            "load_cycles": len(loading.image.words),
            "modes": [*map(mode_entry, program.modes)],
            "frame": room.to_json(),
        }
        return {**super().manifest_entries(), "tables": tables}


class LoadedHostProofs(LoadedInterface, HostProofs):
    """Declarations of a loaded fabric with a host port behind a bus.

    The bus declares the ports, so this class declares only the proofs.
    """


class LoadedHostInterface(LoadedInterface, HostInterface):
    """Declarations of a loaded fabric with a host port: its ports, manifest entries and proofs."""


class LoadedStreamInterface(LoadedInterface, StreamInterface):
    """Declarations of a loaded fabric with streams: its ports, manifest entries and proofs."""

    def proof_harnesses(self, fabric: Any, design: Design) -> Iterable[Harness]:
        """Yield the proofs of the stream control, and of the paths between it and the nodes.

        Each is a harness. A harness is a small circuit around some modules, with assertions that
        are proved. `design` is the emitted Verilog.
        """
        from ..streams.claims import tree_and_crossing_harnesses  # here, since only proofs need it
        from ..streams.claims.control import control_harness

        yield control_harness(
            design, None, levels=tree_levels(len(stream_nodes(fabric.program.topology)))
        )
        yield from tree_and_crossing_harnesses(fabric, design)

    def wiring_claims(self, fabric: Any, text: GateText) -> Iterable[Any]:
        """Return the claims that nodes and stream control are wired as planned.

        The claims are checked on `text`, the emitted Verilog, read as gates.
        """
        from ..streams.claims.wires import wire_claims  # here, since only proofs need it

        return wire_claims(fabric, text)

    def symbolic_runs(self, fabric: Any, machine: SymbolicMachine) -> Runs | None:
        """Return the proof of whole runs: the words of loaders arrive at the right unloaders.

        A loader takes the words of a node from the user, an unloader gives received words to the
        user. In the proof, `machine` executes runs with symbols in place of data.
        """
        from ..streams.claims.whole_runs import StreamRuns  # here, since only proofs need it
        from .claims.whole_runs import LoadedStreamAccess

        return StreamRuns(LoadedStreamAccess(fabric, machine))

    def assumptions(self) -> Iterator[str]:
        """Yield the assumptions that the proof does not check, one sentence each."""
        yield (
            "Loaders, unloaders and commands do what those of fixed tables do by constants, and "
            "the control divides packets into blocks as the image says."
        )
        yield "A run that begins in the last cycle of another does what it does after a rest."
