"""Declarations of streams: ports, manifest entries, test bench, simulation and proof.

The commands of the command line (``torusfabric verilog``, ``torusfabric prove``, ..) ask each
fabric for these declarations through the class `torusfabric.contract.interface.Interface`.

Loaders (engines that take packets from the user), unloaders (engines that send received words to
the user), the *control*, which starts runs, and the *readiness tree*, which combines the states of
all nodes, are modules of `torusfabric.adapters.streams`. A proof *harness* is Verilog around one of
them, with claims about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...contract.assertions import Assertion, handshake_assertions
from ...contract.interface import Interface
from ...contract.ports import Protocol, ports_by_name
from .members import connect_streams, stream_members
from .options import Clocks
from .ports import COMMAND_WORDS, LOAD_MODE, STATUS_WORDS, needs_commands, stream_ports

if TYPE_CHECKING:
    from amaranth.hdl import Module
    from amaranth.lib.wiring import Member

    from ...contract.claims import Claim
    from ...program import Program
    from ...proof.gates import GateText
    from ...proof.machine import SymbolicMachine
    from ...proof.runs import Runs
    from ...proof.solver import Harness
    from ...rtl import Fabric
    from ...rtl.assembly import Assembly
    from ...verilog.design import Design

__all__ = ["StreamInterface"]

#: Folder of the Python files that are copied into a test bench.
SOURCES = Path(__file__).parent / "bench" / "files"

#: Files of every test bench by their names in the bench, and the source of each.
BENCH_FILES = {
    "test_fabric.py": SOURCES / "test_streams.py",
    "stream_port.py": SOURCES / "stream_port.py",
    "packets.py": SOURCES.parent / "packets.py",
}

#: Additional file of a test bench behind a bus.
REGISTERS_FILE = "command_registers.py"

#: Purpose of each port of the watch.
WATCH_PORTS = ports_by_name(
    {
        ("status", Protocol.LEVEL): {
            "stalled": "high while a node has kept runs waiting for longer than the timeout",
            "stalled_node": "the number of that node, while stalled",
            "stalled_sends": "while stalled, 1: the node has not sent; 0: it has not taken the "
            "words that it received",
        },
    }
)


class StreamInterface(Interface):
    """Declarations of the streams of a fabric, for manifest, files, bench, simulation and proof.

    These are the streams of the nodes, and the command and status streams, if there are any.

    Parameters
    ----------
    program : Program
        The program of the fabric, which decides the ports.
    width : int
        Bits of a flit.
    clocks : Clocks
        Clocks of the node streams.
    beat : int
        Flits of a word of the node streams.
    has_run_port : bool
        True if registers of a bus start runs, in place of the command stream.
    """

    delivers = "receives the words that the collective brings it, while other runs go on"
    kernel = Path(__file__).parent / "drive" / "streams.cc"

    def __init__(
        self, program: Program, width: int, clocks: Clocks, beat: int, *, has_run_port: bool
    ) -> None:
        self._program, self._has_run_port = program, has_run_port
        self._width, self._beat = width, beat
        self.ports = WATCH_PORTS | stream_ports(program, width, clocks, beat=beat)

    def port_members(self) -> dict[str, Member]:
        """Return the Amaranth members of a fabric that stand for the ports of streams, by name."""
        found = stream_members(self._program, self._width, self._beat)
        return {"node": found["node"]} if self._has_run_port else found

    def is_in_member(self, port: str) -> bool:
        """Return True if the Verilog signal `port` is part of a stream, which has a member."""
        return port.startswith(("s_axis_", "m_axis_"))

    def connect_members(self, m: Module, fabric: Fabric, assembly: Assembly) -> None:
        """Connect the Amaranth streams of `fabric` to the ports of the netlist.

        The connections are added to the module `m`. The ports are those of `assembly`, the Amaranth
        module that contains all modules of the fabric.
        """
        connect_streams(m, fabric, assembly)

    @property
    def drive(self) -> Any:
        """The Python package that sends and receives packets in a simulation."""
        from . import drive  # here, since only simulations need it

        return drive

    def manifest_entries(self) -> dict[str, Any]:
        """Return the entries that streams add to the manifest.

        They are the names of the words of a command and of a status, and the numbers of special
        modes, such as the barrier.
        """
        program = self._program
        if not needs_commands(program):
            return {}
        barrier = {"barrier": len(program.modes)} if program.barrier else {}
        load = {"load_mode": LOAD_MODE} if program.writable else {}
        return {
            "command_words": list(COMMAND_WORDS),
            "status_words": list(STATUS_WORDS),
            **barrier,
            **load,
        }

    def bench_files(self) -> dict[str, Path]:
        """Return the files of a test bench that sends packets, and checks received ones."""
        return BENCH_FILES | (
            {REGISTERS_FILE: SOURCES / REGISTERS_FILE} if self._has_run_port else {}
        )

    def port_assertions(self, ports: Mapping[str, Mapping[str, Any]]) -> Iterator[Assertion]:
        """Yield the handshake rules of each AXI4-Stream, as assertions about its signals.

        `ports` has the manifest entry of each Verilog signal, keyed by name.
        """
        for valid in ports:
            prefix = valid.removesuffix("valid")
            if prefix.startswith(("s_axis_", "m_axis_")) and prefix != valid:
                payload = [name for name in ports if name.startswith(prefix)
                           and name not in (valid, f"{prefix}ready")]  # fmt: skip
                yield from handshake_assertions(ports, prefix, payload)

    def proof_harnesses(self, fabric: Fabric, design: Design) -> Iterable[Harness]:
        """Return the proof harnesses of the modules around the core, such as loaders and control.

        A harness is Verilog around one module, with claims about it.

        `design` is the emitted Verilog.
        """
        from .claims import stream_harnesses  # here, since only proofs need it

        return stream_harnesses(fabric, design)

    def wiring_claims(self, fabric: Fabric, text: GateText) -> Iterable[Claim]:
        """Return the claims about tables with locations of blocks, and about all wires of streams.

        The wires are those of `text`, the emitted Verilog, read as gates.
        """
        from .claims import stream_claims  # here, since only proofs need it

        return stream_claims(fabric, text)

    def symbolic_runs(self, fabric: Fabric, machine: SymbolicMachine) -> Runs | None:
        """Return the proof of whole runs: from loaders' writes of words to unloaders' reads.

        In the proof, `machine` executes runs with symbols in place of data.
        """
        from .claims.whole_runs import StreamAccess, StreamRuns  # here, since only proofs need it

        return StreamRuns(StreamAccess(fabric, machine))

    def assumptions(self) -> Iterator[str]:
        """Yield a sentence for each assumption that the proof makes."""
        if not self._program.writable:
            yield (
                "A run that begins in the last cycle of another does what it does after a rest; "
                "that is proved after the shortest and the longest runs of each mode."
            )
        if self._has_run_port:
            yield "The registers behind the bus give commands, and take statuses, as streams do."
