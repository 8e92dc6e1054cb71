"""Declarations of a bus: ports, manifest entries, SystemRDL file, test bench and proof.

The commands ask for them through `torusfabric.contract.interface.Interface`.

A *front* is the hardware around a core, with the ports that users see: here the host port, or the
streams of nodes, in front of which the bus stands. A *bridge* is the module that translates
transfers of the bus into accesses of `Registers`. A proof *harness* is Verilog around one module,
with claims about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...contract.assertions import Assertion, handshake_assertions
from ...contract.interface import Interface
from ...contract.registers import DATA_BITS, Field, Register, RegisterMap, Window
from .options import Bus

if TYPE_CHECKING:
    from ...contract.claims import Claim
    from ...proof.gates import GateText
    from ...proof.machine import SymbolicMachine
    from ...proof.solver import Harness
    from ...rtl import Fabric
    from ...verilog.design import Design

__all__ = ["BusInterface"]

#: Folder of the Python files that are copied into a test bench.
SOURCES = Path(__file__).parent / "bench" / "files"

#: Name of the written file with the register map.
SYSTEM_RDL = "fabric.rdl"

#: Payload ports of the AXI4-Lite channels, without the prefix of their channel.
PAYLOAD_PORTS = ("addr", "prot", "data", "strb", "resp")

#: For each bus, the files of a test bench by their names in the bench, and the source of each.
BENCH_FILES = {
    Bus.WISHBONE: {"fabric_port.py": "bus_port.py", "bus.py": "wishbone.py"},
    Bus.AXI_LITE: {"fabric_port.py": "bus_port.py", "bus.py": "axi_lite.py"},
    Bus.AXI4: {"fabric_port.py": "axi4.py", "bus_port.py": "bus_port.py", "bus.py": "axi_lite.py"},
}


class BusInterface(Interface):
    """Declarations of a fabric behind a bus, for manifest, files, test bench and proof.

    If the nodes have streams, which are ports of the fabric beside the bus, these are included.

    Parameters
    ----------
    bus : Bus
        The bus, which decides the ports.
    registers : RegisterMap
        The addresses of registers and windows (address ranges for the memories of nodes).
    latencies : mapping of str to int
        ``read_latency`` and ``write_latency`` of the windows, in clock edges.
    behind : Interface
        Declarations of the hardware behind the bus: a host port or streams. Each method returns
        them together with the declarations of the bus.
    stride : int
        Words of the longest message: the distance, in words of the host port, from one message to
        the next in a window.
    """

    registers: RegisterMap

    def __init__(
        self,
        bus: Bus,
        registers: RegisterMap,
        latencies: Mapping[str, int],
        behind: Interface,
        stride: int,
    ) -> None:
        self.bus, self.registers, self._stride = bus, registers, stride
        self.latencies, self._behind = latencies, behind
        self.ports, self.delivers = behind.ports, behind.delivers

    def port_members(self) -> Mapping[str, Any]:
        """Return the Amaranth members of a fabric that stand for the streams of its nodes, by name.

        A member is an attribute of the fabric that stands for several ports: here a stream of
        Amaranth.
        """
        return self._behind.port_members()

    def is_in_member(self, port: str) -> bool:
        """Return True if a port belongs to a stream of a node.

        An Amaranth member of the fabric, a stream, then stands for the port.
        """
        return self._behind.is_in_member(port)

    def connect_members(self, m: Any, fabric: Any, assembly: Any) -> None:
        """Connect the Amaranth members for the streams of nodes to the ports of the netlist.

        The connections are added to the module `m`. The ports are those of `assembly`, the Amaranth
        module that contains all modules of `fabric`.
        """
        self._behind.connect_members(m, fabric, assembly)

    def manifest_entries(self) -> dict[str, Any]:
        """Return the entries that the fabric adds to the manifest.

        They are ``bus``, with protocol, registers and windows; ``stride``; and the entries of the
        host port or streams behind the bus. Addresses and strides in ``bus`` count bytes; the entry
        ``stride`` beside it counts words of the host port.
        """
        bus, registers = self.bus, self.registers
        windows = {window.name: _entry_facts(window) for window in registers.windows}
        return {
            "stride": self._stride,
            **self._behind.manifest_entries(),
            "bus": {
                "protocol": bus.value,
                "data_width": DATA_BITS,
                **({"beat_width": 8 * registers.flit_bytes} if bus.has_bursts and windows else {}),
                "address_unit": bus.address_unit_bytes,
                "size": registers.size_bytes,
                **(self.latencies if windows else {}),
                "registers": {each.name: _register_facts(each) for each in registers.registers},
                "windows": windows,
            },
        }

    def description_files(self, top: str, title: str) -> dict[str, str]:
        """Return the register map as a SystemRDL file.

        `top` is the name of the top module, and `title` describes the fabric on one line.
        """
        from .system_rdl import system_rdl  # here, since only written files need it

        return {SYSTEM_RDL: system_rdl(self.registers, top, title)}

    def bench_files(self) -> dict[str, str | Path]:
        """Return the files by which a test bench drives the bus, by their names in the bench."""
        # AXI4 without windows has only the AXI4-Lite port of the registers.
        has_bursts = self.bus.has_bursts and self.registers.windows
        bus = Bus.AXI_LITE if self.bus.has_bursts and not has_bursts else self.bus
        files = {name: SOURCES / source for name, source in BENCH_FILES[bus].items()}
        return {**self._behind.bench_files(), **files}

    def port_assertions(self, ports: Mapping[str, Mapping[str, Any]]) -> Iterator[Assertion]:
        """Yield the rules of the bus protocol, and those of the streams of nodes, as assertions.

        `ports` has the entries of the manifest for all ports, by port name.
        """
        yield from self._behind.port_assertions(ports)
        for channel in ("aw", "w", "b", "ar", "r"):
            prefix = f"s_axil_{channel}"
            if f"{prefix}valid" in ports:
                payload = [name for name in ports if name.removeprefix(prefix) in PAYLOAD_PORTS]
                yield from handshake_assertions(ports, prefix, payload)
        if "wb_cyc" in ports:
            asked, ended = "wb_cyc && wb_stb", "wb_ack || wb_err"
            yield Assertion("wb_answers_what_is_asked", f"{ended} |-> {asked}")
            yield Assertion("wb_has_one_answer", "!(wb_ack && wb_err)")
            stays = f"$past({asked} && !wb_ack && !wb_err) && !$past(rst) && wb_cyc |-> wb_stb"
            yield Assertion("wb_stb_stays", stays, environment=True)

    def proof_harnesses(self, fabric: Fabric, design: Design) -> Iterator[Harness]:
        """Yield the proof harness of the bridge, then those of the streams behind the bus.

        A harness is Verilog around one module, with claims about it.

        `design` is the emitted Verilog of the fabric.
        """
        from .claims import bridge_harness  # here, since only proofs need it

        yield bridge_harness(design, self.bus)
        yield from self._behind.proof_harnesses(fabric, design)

    def wiring_claims(self, fabric: Fabric, text: GateText) -> Iterable[Claim]:
        """Return the claims about wires of the host port or streams behind the bus.

        The bus itself adds none.

        The claims are proved of `text`, the emitted Verilog, read as gates.
        """
        return self._behind.wiring_claims(fabric, text)

    def symbolic_runs(self, fabric: Fabric, machine: SymbolicMachine) -> Any:
        """Return the proof of whole runs, from the written words to the words that are read.

        The words pass through the host port or the streams behind the bus; the bus itself is not
        part of this proof. In the proof, `machine` executes runs with symbols in place of data.
        """
        return self._behind.symbolic_runs(fabric, machine)

    def assumptions(self) -> Iterator[str]:
        """Yield a sentence for each assumption that the proof makes."""
        yield from self._behind.assumptions()
        if not self.registers.windows:
            return
        yield "The registers behind the bus do with the host port what each access asks for."
        if self.bus.has_bursts:
            yield "The windows behind the bus do with the host port what each burst asks for."


def _register_facts(register: Register) -> dict[str, Any]:
    """Return the manifest entry of a register: its address, access, meaning and fields."""
    return {
        "offset": register.offset,
        "access": register.access.value,
        "meaning": register.meaning,
        "fields": {field.name: _entry_facts(field) for field in register.fields},
    }


def _entry_facts(value: Field | Window) -> dict[str, Any]:
    """Return the entry of a field or a window in the manifest: its attributes, without the name.

    `value` is the field or the window.
    """
    return {name: each for name, each in asdict(value).items() if name not in ("name", "port")}
