"""A fabric behind Wishbone, with a bridge from APB4 in front of it."""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib.wiring import In, Out

from torusfabric.adapters.bus.front import BusFront
from torusfabric.adapters.bus.options import Bus
from torusfabric.adapters.host.front import HostFront
from torusfabric.contract.adapter import System
from torusfabric.contract.ports import ports_by_name
from torusfabric.errors import InputError
from torusfabric.rtl.fabric import Fabric
from torusfabric.rtl.front import FrontFacts
from torusfabric.rtl.netlist import Leaf, Role, add_single_instance

from .options import ADAPTER

__all__ = ["ApbSystem"]

#: Most wait states of an access.
MOST_WAITS = 15

#: Ports of the bridge, in the order of the specification (ARM IHI 0024).
PORTS = ports_by_name({
    ("bus", "apb4"): {
        "paddr": "the address of the first byte of a word of 32 bits",
        "psel": "an access is asked for",
        "penable": "from its second cycle on",
        "pwrite": "it is a write",
        "pwdata": "the word to write",
        "pready": "the access is done",
        "prdata": "the word read, with pready",
        "pslverr": "with pready, the access is refused",
    },
})  # fmt: skip


class ApbBridge(Leaf):
    """Bridge that turns accesses of APB4 into accesses of Wishbone."""

    def __init__(self, address_bits: int, waits: int) -> None:
        self._waits = waits
        super().__init__({
            "paddr": In(address_bits + 2), "psel": In(1), "penable": In(1), "pwrite": In(1),
            "pwdata": In(32), "pready": Out(1), "prdata": Out(32), "pslverr": Out(1),
            "wb_adr": Out(address_bits), "wb_cyc": Out(1), "wb_stb": Out(1), "wb_we": Out(1),
            "wb_dat_w": Out(32), "wb_sel": Out(4), "wb_ack": In(1), "wb_dat_r": In(32),
            "wb_err": In(1),
        })  # fmt: skip

    def elaborate(self, platform: object) -> Module:
        """Build a counter of wait states, and wires."""
        m = Module()
        waited, access = Signal(range(self._waits + 1), name="waited"), Signal(name="access")
        asked = self.input_value("psel") & self.input_value("penable")
        m.d.comb += [
            access.eq(asked & (waited == self._waits)),
            *(net.eq(access) for net in (self.wb_cyc, self.wb_stb)),
            self.wb_adr.eq(self.input_value("paddr")[2:]),
            self.wb_we.eq(self.input_value("pwrite")),
            self.wb_dat_w.eq(self.input_value("pwdata")),
            self.wb_sel.eq(0xF),
            self.pready.eq(self.input_value("wb_ack") | self.input_value("wb_err")),
            self.prdata.eq(self.input_value("wb_dat_r")),
            self.pslverr.eq(self.input_value("wb_err")),
        ]
        with m.If(asked & ~access):
            m.d.sync += waited.eq(waited + 1)
        with m.If(self.pready):
            m.d.sync += waited.eq(0)
        return m


class ApbFront(BusFront):
    """A host port behind Wishbone, which is behind APB4."""

    def __init__(self, fabric: Fabric, waits: int) -> None:
        front = HostFront(fabric.program, fabric.width, fabric.beat, for_bus=True)
        super().__init__(Bus.WISHBONE, front)
        self._waits = waits

    def add_hardware(self) -> FrontFacts:
        """Add the bus, the bridge and the ports of APB4 to the netlist of the core."""
        built, build = super().add_hardware(), self.core.build
        build.turn_ports_into_nets()
        bridge = partial(ApbBridge, built.interface.registers.address_bits, self._waits)
        members = bridge().signature.members
        build.add_ports({"irq": Out(1)} | {name: members[name] for name in PORTS})
        build.declared |= PORTS
        add_single_instance(build, "apb_bridge", Role.BUS, bridge)
        return built


@dataclass(frozen=True)
class ApbSystem(System):
    """A fabric, and the same fabric behind APB4."""

    adapter = ADAPTER

    fabric: Fabric
    waits: int = 0

    def __post_init__(self) -> None:
        if self.waits > MOST_WAITS:
            raise InputError(f"Wait states must be from 0 to {MOST_WAITS}, not {self.waits}")

    @cached_property
    def behind_apb(self) -> Fabric:
        """Fabric behind APB4."""
        return Fabric(ApbFront(self.fabric, self.waits), prefix=self.fabric.prefix)

    def facts(self) -> dict[str, Any]:
        """Return the facts about the bus, as plain data."""
        return {"apb_waits": self.waits}
