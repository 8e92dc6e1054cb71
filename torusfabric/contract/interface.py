"""Declaration of the outermost ports of a fabric, made by the adapter in front of the core.

Its readers are the prover, the simulators, and the code that writes manifest, files and bench.
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
    """The files that an adapter adds to a bench, beside those that all benches share.

    Parameters
    ----------
    files : mapping of str to (str or path)
        Source of each additional file, by its name in the bench. A string is a path within the
        folder of sources for all benches.
    top : str
        Name of the Verilog module whose ports the bench drives.
    verilog : mapping of str to str
        Text of each Verilog file that belongs to the bench itself, by file name.
    """

    files: Mapping[str, str | Path]
    top: str
    verilog: Mapping[str, str] = MappingProxyType({})


class Interface:
    """Declaration of the outermost ports of a fabric, for manifest, files, bench and proof.

    An adapter derives a class from it, and overrides the attributes and methods for which it has
    something to declare. The defaults describe a fabric without registers, additional files,
    assertions or claims.

    A *member* is an attribute of the fabric, as an Amaranth component, that stands for several
    ports: for example a stream of Amaranth for the ports of an AXI4-Stream.

    Attributes
    ----------
    registers : RegisterMap or None
        Registers and windows of a bus, with their addresses.
    ports : mapping of str to Port
        Declaration of each port, by its name. A port that every node has is entered once, without
        the number of the node.
    delivers : str
        Text for the report of a proof: the words behind "every node" in the sentence that states
        the proved result of a run, such as "then holds what the collective brings it where the
        address map says".
    drive : module or None
        Module that simulates the fabric, if the simulators cannot drive its ports by themselves.
        ``draw_jobs(fabric, count, seed=..)`` returns random jobs. ``simulate(fabric, jobs=..,
        seed=.., engine=.., progress=.., **choices)`` returns a report; ``engine`` is the name of
        the simulator.
    access : function or None
        Generator function that performs runs through a host port. It asks the simulator for clock
        edges by yielding requests. Parameters: the fabric, messages and jobs of the runs, the
        simulated memories (`MemoryCells`), and whether every word goes through the port.
    kernel : Path or None
        C++ file that drives these ports of a compiled model, in place of the file that drives a
        host port.
    """

    delivers = "then holds what the collective brings it where the address map says"
    drive: Any = None
    kernel: Path | None = None
    access: Any = None
    registers: RegisterMap | None = None
    ports: Mapping[str, Port] = MappingProxyType({})

    def port_members(self) -> Mapping[str, Any]:
        """Return the Amaranth members of a fabric that stand for ports of the adapter, by name.

        For example, one member is a stream, in place of the ports ``tdata``, ``tvalid``, ``tready``
        and so on.
        """
        return {}

    def is_in_member(self, port: str) -> bool:
        """Return True if an Amaranth member, such as a stream, stands for the port `port`."""
        del port
        return False

    def connect_members(self, m: Any, fabric: Any, assembly: Any) -> None:
        """Connect each Amaranth member of `fabric`, such as a stream, to the ports it replaces.

        The ports are those of `assembly`, the Amaranth module that contains all modules of the
        fabric. The connections are added to the module `m`.
        """

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
        """Return the files that the adapter adds to a bench.

        A key is the name of the file in the bench, the value the file that is copied: a path, or a
        string with a path within the folder of sources, as in `BenchAdditions.files`.
        """
        return {}

    def port_assertions(self, ports: Mapping[str, Mapping[str, Any]]) -> Iterable[Assertion]:
        """Return SystemVerilog assertions about ports, for the fabric or the logic around it.

        Parameters
        ----------
        ports : mapping of str to mapping
            Entries of the manifest for all ports, by port name.
        """
        del ports
        return ()

    def proof_harnesses(self, fabric: Any, design: Any) -> Iterable[Any]:
        """Return the proof harnesses of the adapter.

        A *harness* connects a solver to one module of the fabric, and contains claims about it.
        There is one for each such module of the adapter in `design`, the emitted Verilog.
        """
        del fabric, design
        return ()

    def wiring_claims(self, fabric: Any, text: Any) -> Iterable[Claim]:
        """Return claims about the wires and the tables of the adapter.

        The claims are proved of `text`, a `GateText`: the emitted Verilog, read as gates.
        """
        del fabric, text
        return ()

    def symbolic_runs(self, fabric: Any, machine: Any) -> Any:
        """Return the proof of whole runs through the ports, or None if the adapter has none.

        In the proof, `machine` executes runs with symbols in place of data.
        """
        del fabric, machine

    def assumptions(self) -> Iterable[str]:
        """Return the properties of the adapter that the proof assumes, one sentence for each."""
        return ()
