"""`BusFront`: the front that puts a bus before another front.

A *front* is the hardware of an adapter around a core. The front behind the bus, of a host port or
of streams, builds its hardware as usual. Its ports then become nets inside the fabric, and the
fabric gets the ports of the bus instead. `Registers` and `Windows` drive those nets that were
inputs. Streams of nodes stay ports of the fabric.
"""

from __future__ import annotations

from functools import partial

from ...errors import InputError
from ...rtl.front import Front, FrontFacts
from ...rtl.netlist import Role, add_single_instance
from .bridges import BRIDGES
from .interface import BusInterface
from .options import Bus
from .ports import INTERRUPT, MOST_BEAT_BITS, burst_ports, members_of_ports, word_ports
from .register_map import register_map
from .registers import Registers
from .windows import Windows

__all__ = ["BusFront"]


class BusFront(Front):
    """The hardware of a fabric behind a bus: a host port or streams, and the bus in front of them.

    Parameters
    ----------
    bus : Bus
        The bus, which decides bridge and ports.
    front : Front
        The hardware behind the bus: a `HostFront` or `StreamFront` that was made with
        ``for_bus=True``.
    """

    def __init__(self, bus: Bus, front: Front) -> None:
        super().__init__(front.core, front.layouts)
        self.bus, self._front = bus, front
        self.top, self.tables = front.top, front.tables

    @property
    def name(self) -> str:
        """The name of the bus."""
        return self.bus.value

    @property
    def digest(self) -> int:
        """The digest of the fabric, by which software recognises it.

        A fabric has the same digest behind every bus.
        """
        return self._front.digest

    def add_hardware(self) -> FrontFacts:
        """Add the core with its host port or streams to the netlist, then the bus in front of it.

        The bus consists of bridge, registers and windows.

        Raises
        ------
        InputError
            If a word of the host port is wider than `MOST_BEAT_BITS` behind AXI4, or if byte
            addresses need more than 32 bits.
        """
        front, bus, net = self._front, self.bus, self.core.build
        built = front.add_hardware()
        latencies = {"read_latency": built.read_latency, "write_latency": self.write_latency}
        inputs, outputs = net.turn_ports_into_nets()
        width, bursts = outputs.get("host_rdata", 0), bus.has_bursts and len(front.windows) > 0
        if bus.has_bursts and width > MOST_BEAT_BITS:
            raise InputError(
                f"Words behind {bus} must have at most {MOST_BEAT_BITS} bits, not {width}; "
                "choose a "
                "smaller --width or --beat"
            )
        registers = register_map(
            inputs | outputs,
            front.windows,
            width=width,
            flits=self.core.program.flits,
            digest=self.digest,
            nodes=net.nodes,
            declared=net.registers,
            load_words=front.tables.layout.image_words if front.tables else 0,
        )
        bits = registers.address_bits
        ports = word_ports(bus, bits) | {"irq": INTERRUPT}
        if bursts:
            # Windows drive the host port; registers drive all other ports.
            del outputs["host_rdata"]
            inputs = {name: width for name, width in inputs.items() if not name.startswith("host_")}
            ports |= burst_ports(bits, registers.flit_bytes)
        net.declared |= ports
        net.add_ports(members_of_ports(ports))
        modules = {
            "bus_bridge": partial(BRIDGES[bus], bus, bits),
            "bus_registers": partial(
                Registers, registers, inputs=inputs, outputs=outputs, **latencies
            ),
            "bus_windows": partial(Windows, registers, width=width, **latencies),
        }
        for name, make in modules.items():
            if bursts or name != "bus_windows":
                add_single_instance(net, name, Role.BUS, make)
        behind, stride = built.interface, self.layouts[0].flits
        return built._replace(interface=BusInterface(bus, registers, latencies, behind, stride))
