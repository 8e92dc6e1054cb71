"""Declaration of the outermost ports of a fabric, made by the adapter in front of the core.

The writers of manifest, files and bench, the prover and the simulator read the ports from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .assertions import Assertion
    from .claims import Claim
    from .ports import Port
    from .registers import RegisterMap

__all__ = ["BenchAdditions", "Interface"]


class BenchAdditions(NamedTuple):
    """Additions of an adapter to the emitted bench, beside the files that all benches share.

    Parameters
    ----------
    files : mapping of str to (str or path)
        Source of each additional file, by its name in the bench. A string is a path within the
        folder of sources for all benches.
    top : str
        Name of the module that the bench drives.
    verilog : mapping of str to str
        Text of each Verilog file that belongs to the bench itself, by file name.
    """

    files: Mapping[str, str | Path]
    top: str
    verilog: Mapping[str, str] = MappingProxyType({})


class Interface:
    """Description of the outermost ports of a fabric, for manifest, files, bench and proof.

    An adapter derives a class from it and overrides the members that apply. The defaults describe a
    fabric without registers, additional files, assertions or claims.

    A *member* is an attribute of the fabric, as an Amaranth component, that stands for several
    ports: for example a stream of Amaranth for the ports of an AXI4-Stream.

    Attributes
    ----------
    registers : RegisterMap or None
        Registers and windows of a bus, with their addresses.
    ports : mapping of str to Port
        Purpose of each port, by its name. A port that every node has is entered once, without the
        number of the node.
    delivers : str
        End of the sentence with which a proof states the result of a run: "every node", then this
        text, such as "then holds what the collective brings it where the address map says".
    drive : module or None
        Simulation of ports that the engines cannot drive. ``draw_jobs(fabric, count, seed=..)``
        returns jobs. ``simulate(fabric, jobs=.., seed=.., engine=.., progress=.., **choices)``
        returns a report.
    access : function or None
        Generator function that performs runs through a host port. It yields requests for clock
        edges to the engine. Parameters: the fabric, messages and jobs of the runs, the memories
        (`MemoryCells`) of the engine, and whether every word goes through the port.
    kernel : Path or None
        C++ file that drives these ports of a compiled model, in place of the engine's own.
    """

    delivers = "then holds what the collective brings it where the address map says"
    drive: Any = None
    kernel: Path | None = None
    access: Any = None
    registers: RegisterMap | None = None
    ports: Mapping[str, Port] = MappingProxyType({})

    def port_members(self) -> Mapping[str, Any]:
        """Return the members of the fabric that stand for ports, by attribute."""
        return {}

    def is_in_member(self, port: str) -> bool:
        """Return True if a member stands for the port with this name."""
        del port
        return False

    def connect_members(self, m: Any, fabric: Any, assembly: Any) -> None:
        """Connect the members of a fabric to the ports of its assembly, in the module `m`."""

    def manifest_entries(self) -> Mapping[str, Any]:
        """Return the top-level entries that the adapter adds to the manifest, by key."""
        return {}

    def description_files(self, top: str, title: str) -> Mapping[str, str]:
        """Return files that describe the ports: the text of each, by file name.

        Parameters
        ----------
        top : str
            Name of the top module.
        title : str
            Description of the fabric on one line, for the heads of the files.
        """
        del top, title
        return {}

    def bench_files(self) -> Mapping[str, str | Path]:
        """Return the source of each additional file of the emitted bench, by its name there.

        A string is a path within the folder of sources, as in `BenchAdditions.files`.
        """
        return {}

    def port_assertions(self, ports: Mapping[str, Mapping[str, Any]]) -> Iterable[Assertion]:
        """Return SystemVerilog assertions that the fabric, or its user, must keep at the ports.

        Parameters
        ----------
        ports : mapping of str to mapping
            Entries of the manifest for all ports, by port name.
        """
        del ports
        return ()

    def proof_harnesses(self, fabric: Any, design: Any) -> Iterable[Any]:
        """Return the proof harnesses for those modules of a `Design` that belong to the adapter."""
        del fabric, design
        return ()

    def wiring_claims(self, fabric: Any, text: Any) -> Iterable[Claim]:
        """Return claims about the wiring and the tables of the adapter in a `GateText`."""
        del fabric, text
        return ()

    def symbolic_runs(self, fabric: Any, machine: Any) -> Any:
        """Return the `Runs` that a `Machine` executes symbolically through the ports, or None."""
        del fabric, machine

    def assumptions(self) -> Iterable[str]:
        """Return the properties of the adapter that remain unproved, one sentence each."""
        return ()
