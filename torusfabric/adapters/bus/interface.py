"""Declarations of a bus, from which manifest, SystemRDL file, test bench and proof are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...contract.assertions import Assertion, handshake
from ...contract.interface import Interface
from ...contract.registers import DATA_BITS, Field, Register, RegisterMap, Window
from .options import Bus

if TYPE_CHECKING:
    from ...contract.claims import Claim
    from ...proof.gates import GateText
    from ...proof.machine import Machine
    from ...proof.solver import Harness
    from ...rtl import Fabric
    from ...verilog.design import Design

__all__ = ["BusInterface"]

#: Folder of the Python files that are copied into a test bench.
SOURCES = Path(__file__).parent / "bench" / "files"

#: Name of the written file with the register map.
SYSTEM_RDL = "fabric.rdl"

#: Payload ports of the AXI4-Lite channels, without the prefix of their channel.
PAYLOAD = ("addr", "prot", "data", "strb", "resp")

#: For each bus, the files of a test bench by their names in the bench, and the source of each.
BENCHES = {
    Bus.WISHBONE: {"fabric_port.py": "bus_port.py", "bus.py": "wishbone.py"},
    Bus.AXI_LITE: {"fabric_port.py": "bus_port.py", "bus.py": "axi_lite.py"},
    Bus.AXI4: {"fabric_port.py": "axi4.py", "bus_port.py": "bus_port.py", "bus.py": "axi_lite.py"},
}


class BusInterface(Interface):
    """Declarations of a bus, and of the ports of nodes that stay beside the bus.

    Parameters
    ----------
    bus : Bus
        The bus, which decides the ports.
    registers : RegisterMap
        The addresses of registers and windows.
    latencies : mapping of str to int
        ``read_latency`` and ``write_latency`` of the windows, in clock edges.
    behind : Interface
        Declarations of the ports of nodes.
    stride : int
        Words of the longest message.
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

    def members(self) -> Mapping[str, Any]:
        """Return the Amaranth members that represent ports of nodes."""
        return self._behind.members()

    def is_in_member(self, port: str) -> bool:
        """Return True if an Amaranth member represents a port of the netlist."""
        return self._behind.is_in_member(port)

    def connect(self, m: Any, fabric: Any, assembly: Any) -> None:
        """Connect the Amaranth members that represent ports of nodes to the netlist."""
        self._behind.connect(m, fabric, assembly)

    def facts(self) -> dict[str, Any]:
        """Return protocol, registers and windows for the manifest.

        Offsets and strides under ``bus`` count bytes.
        """
        bus, registers = self.bus, self.registers
        windows = {window.name: _facts(window) for window in registers.windows}
        return {
            "stride": self._stride,
            **self._behind.facts(),
            "bus": {
                "protocol": bus.value,
                "data_width": DATA_BITS,
                **({"beat_width": 8 * registers.flit_bytes} if bus.bursts and windows else {}),
                "address_unit": bus.address_unit,
                "size": registers.size,
                **(self.latencies if windows else {}),
                "registers": {each.name: _register(each) for each in registers.registers},
                "windows": windows,
            },
        }

    def files(self, top: str, title: str) -> dict[str, str]:
        """Return the register map as a SystemRDL file."""
        from .system_rdl import system_rdl  # here, since only written files need it

        return {SYSTEM_RDL: system_rdl(self.registers, top, title)}

    def bench(self) -> dict[str, str | Path]:
        """Return the files of a test bench that drive the bus, by their names in the bench."""
        # AXI4 without windows has only the AXI4-Lite port of the registers.
        has_bursts = self.bus.bursts and self.registers.windows
        bus = Bus.AXI_LITE if self.bus.bursts and not has_bursts else self.bus
        files = {name: SOURCES / source for name, source in BENCHES[bus].items()}
        return {**self._behind.bench(), **files}

    def assertions(self, ports: Mapping[str, Mapping[str, Any]]) -> Iterator[Assertion]:
        """Yield the protocol rules of the bus, and those of the ports of nodes, as assertions."""
        yield from self._behind.assertions(ports)
        for channel in ("aw", "w", "b", "ar", "r"):
            prefix = f"s_axil_{channel}"
            if f"{prefix}valid" in ports:
                payload = [name for name in ports if name.removeprefix(prefix) in PAYLOAD]
                yield from handshake(ports, prefix, payload)
        if "wb_cyc" in ports:
            asked, ended = "wb_cyc && wb_stb", "wb_ack || wb_err"
            yield Assertion("wb_answers_what_is_asked", f"{ended} |-> {asked}")
            yield Assertion("wb_has_one_answer", "!(wb_ack && wb_err)")
            stays = f"$past({asked} && !wb_ack && !wb_err) && !$past(rst) && wb_cyc |-> wb_stb"
            yield Assertion("wb_stb_stays", stays, environment=True)

    def harnesses(self, fabric: Fabric, design: Design) -> Iterator[Harness]:
        """Yield the proof harness of the bridge, and those of the ports of nodes."""
        from .claims import bridge_harness  # here, since only proofs need it

        yield bridge_harness(design, self.bus)
        yield from self._behind.harnesses(fabric, design)

    def claims(self, fabric: Fabric, text: GateText) -> Iterable[Claim]:
        """Return the claims about the ports of nodes."""
        return self._behind.claims(fabric, text)

    def runs(self, fabric: Fabric, machine: Machine) -> Any:
        """Return the proof of whole runs through the host port or the ports of nodes."""
        return self._behind.runs(fabric, machine)

    def assumptions(self) -> Iterator[str]:
        """Yield a sentence for each assumption that the proof makes."""
        yield from self._behind.assumptions()
        if not self.registers.windows:
            return
        yield "The registers behind the bus do with the host port what each access asks for."
        if self.bus.bursts:
            yield "The windows behind the bus do with the host port what each burst asks for."


def _register(register: Register) -> dict[str, Any]:
    """Return the entry of a register in the manifest."""
    return {
        "offset": register.offset,
        "access": register.access.value,
        "meaning": register.meaning,
        "fields": {field.name: _facts(field) for field in register.fields},
    }


def _facts(value: Field | Window) -> dict[str, Any]:
    """Return the entry of a field or a window in the manifest, without its name."""
    return {name: each for name, each in asdict(value).items() if name not in ("name", "port")}
