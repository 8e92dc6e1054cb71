"""The way of a fabric behind a bus: its ports become nets, and the bus has ports in their place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ...errors import InputError
from ..host import HostLayout
from ..netlist import Leaf, NetlistBuilder, Part, Role
from .bridge import ANSWERS, AxiLiteBridge, Bridge, WishboneBridge, accesses
from .protocol import MOST_BEAT, Bus, burst_inputs, burst_outputs, bus_inputs, bus_outputs
from .register_map import RegisterMap, register_map
from .registers import Registers
from .windows import Windows

__all__ = ["add_bus"]

#: What speaks the protocol of each bus.
BRIDGES: dict[Bus, type[Bridge]] = {
    **{each.bus: each for each in (WishboneBridge, AxiLiteBridge)},
    Bus.AXI4: AxiLiteBridge,
}

#: What begins the names of ports of the host port.
HOST = "host_"


def add_bus(
    net: NetlistBuilder,
    bus: Bus,
    layouts: Sequence[HostLayout],
    *,
    flits: int,
    digest: int,
    latencies: Mapping[str, int],
) -> RegisterMap:
    """Put a fabric with a host port, complete as it is, behind a bus.

    Parameters
    ----------
    layouts : sequence of HostLayout
        Of each mode.
    flits : int
        The most flits of a message.
    digest : int
        What tells which fabric it is.
    latencies : mapping of str to int
        ``read_latency`` and ``write_latency``.
    """
    width = net.outputs["host_rdata"]
    if bus.bursts and width > MOST_BEAT:
        raise InputError(f"Width behind {bus} must be at most {MOST_BEAT} bits, not {width}")
    ports = net.inputs | net.outputs
    registers = register_map(ports, layouts, width=width, flits=flits, digest=digest)
    inputs, outputs = net.enclose()
    bits = registers.address_bits
    bridge_inputs, bridge_outputs = bus_inputs(bus, bits), bus_outputs(bus)
    port_inputs, port_outputs, shown = bridge_inputs, bridge_outputs | {"irq": 1}, registers
    if bus.bursts:
        # They have the host port, and the registers have the rest.
        shown = replace(registers, windows=())
        given = {"busy": 1, "host_rdata": outputs.pop("host_rdata")}
        gives = {name: inputs.pop(name) for name in [*inputs] if name.startswith(HOST)}
        bursts = burst_inputs(bits, registers.flit_bytes)
        answers = burst_outputs(registers.flit_bytes)
        port_inputs, port_outputs = port_inputs | bursts, port_outputs | answers
    for name, port_bits in port_inputs.items():
        net.add_input(name, port_bits)

    def make() -> Leaf:
        return Registers(shown, inputs=inputs, outputs=outputs, **latencies)

    _add(
        net, "bus_bridge", lambda: BRIDGES[bus](bits),
        given=bridge_inputs | ANSWERS, gives=bridge_outputs | accesses(bits),
    )  # fmt: skip
    _add(
        net, "bus_registers", make,
        given=accesses(bits) | outputs, gives=ANSWERS | {"irq": 1} | inputs,
    )  # fmt: skip
    if bus.bursts:
        _add(
            net, "bus_windows",
            lambda: Windows(registers, width=width, given=given, gives=gives, **latencies),
            given=bursts | given, gives=answers | gives,
        )  # fmt: skip
    for name, port_bits in port_outputs.items():
        net.add_output(name, port_bits)
    return registers


def _add(
    net: NetlistBuilder,
    name: str,
    make: Callable[[], Leaf],
    *,
    given: Mapping[str, int],
    gives: Mapping[str, int],
) -> None:
    """Add a module of which there is one, and which is connected to nets of its ports' names."""
    net.add_module(name, make, role=Role.BUS)
    net.add(
        f"the_{name}",
        name,
        inputs={port: (Part(port, 0, width),) for port, width in given.items()},
        outputs={port: (port, width) for port, width in gives.items()},
    )
