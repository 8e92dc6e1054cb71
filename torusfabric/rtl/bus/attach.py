"""The way of a fabric behind a bus: its ports become nets, and the bus has ports in their place.

Where nodes have streams, these stay, and registers send the commands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from amaranth.lib.wiring import In, Out

from ...errors import InputError
from ..locators import HostLayout
from ..memories import address_width
from ..netlist import Leaf, NetlistBuilder, Part, Role
from ..run_choices import RunChoices
from .bridge import ANSWERS, AxiLiteBridge, Bridge, WishboneBridge, accesses
from .commands import STATES, CommandPort
from .protocol import MOST_BEAT, Bus, burst_inputs, burst_outputs, bus_inputs, bus_outputs
from .register_map import RegisterMap, register_map
from .registers import Registers
from .windows import Windows

if TYPE_CHECKING:
    from ...program import Program
    from ..fabric_builder import FabricBuilder

__all__ = ["add_bus", "command_choices"]

#: What speaks the protocol of each bus.
BRIDGES: dict[Bus, type[Bridge]] = {
    **{each.bus: each for each in (WishboneBridge, AxiLiteBridge)},
    Bus.AXI4: AxiLiteBridge,
}

#: The stream of commands.
COMMAND_STREAM = ("tdata", "tvalid", "tready", "tlast")

#: What begins the names of ports of the host port.
HOST = "host_"


def add_bus(
    net: FabricBuilder,
    bus: Bus,
    layouts: Sequence[HostLayout],
    *,
    flits: int,
    digest: int,
    latencies: Mapping[str, int],
    choices: Mapping[str, int] = MappingProxyType({}),
) -> RegisterMap:
    """Put a fabric with a host port, or with streams, complete as it is, behind a bus.

    Parameters
    ----------
    layouts : sequence of HostLayout
        Of each mode; none where nodes have streams.
    flits : int
        The most flits of a message.
    digest : int
        What tells which fabric it is.
    latencies : mapping of str to int
        ``read_latency`` and ``write_latency``.
    choices : mapping of str to int
        What commands choose, where there are any, and its bits.
    """
    inputs, outputs = net.enclose()
    nets: dict[str, str] = {}
    if not layouts:
        inputs, outputs, nets = _behind_streams(net, inputs, outputs, choices)
    width, bursts_too = outputs.get("host_rdata", 0), bus.bursts and len(layouts) > 0
    if bus.bursts and width > MOST_BEAT:
        raise InputError(f"Width behind {bus} must be at most {MOST_BEAT} bits, not {width}")
    registers = register_map(
        inputs | outputs, layouts, width=width, flits=flits, digest=digest, nodes=net.nodes
    )
    bits = registers.address_bits
    bridge_inputs, bridge_outputs = bus_inputs(bus, bits), bus_outputs(bus)
    port_inputs, port_outputs = bridge_inputs, bridge_outputs | {"irq": 1}
    if bursts_too:
        # They have the host port, and the registers have the rest.
        given = {"busy": 1, "host_rdata": outputs.pop("host_rdata")}
        gives = {name: inputs.pop(name) for name in [*inputs] if name.startswith(HOST)}
        bursts = burst_inputs(bits, registers.flit_bytes)
        answers = burst_outputs(registers.flit_bytes)
        port_inputs, port_outputs = port_inputs | bursts, port_outputs | answers
    for name, port_bits in port_inputs.items():
        net.add_input(name, port_bits)

    def make() -> Leaf:
        return Registers(registers, inputs=inputs, outputs=outputs, **latencies)

    _add(
        net, "bus_bridge", lambda: BRIDGES[bus](bits),
        given=bridge_inputs | ANSWERS, gives=bridge_outputs | accesses(bits),
    )  # fmt: skip
    _add(
        net, "bus_registers", make,
        given=accesses(bits) | outputs, gives=ANSWERS | {"irq": 1} | inputs, nets=nets,
    )  # fmt: skip
    if bursts_too:
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
    nets: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Add a module of which there is one, and which is connected to nets of its ports' names.

    Some may have nets of other names.
    """
    net.add_module(name, make, role=Role.BUS)
    net.add(
        f"the_{name}",
        name,
        inputs={port: (Part(nets.get(port, port), 0, bits),) for port, bits in given.items()},
        outputs={port: (nets.get(port, port), bits) for port, bits in gives.items()},
    )


def _behind_streams(
    net: NetlistBuilder,
    inputs: Mapping[str, int],
    outputs: Mapping[str, int],
    choices: Mapping[str, int],
) -> tuple[dict[str, int], dict[str, int], dict[str, str]]:
    """What registers drive and show where nodes have streams, and the nets of that.

    Where runs need commands, a module sends them.
    """
    if not inputs:
        return {}, dict(outputs), {}
    members = CommandPort(choices).signature.members
    nets = {name: _net(name) for name in members}
    given, gives = (
        {name: each.shape for name, each in members.items() if each.flow is flow}
        for flow in (In, Out)
    )
    _add(net, "bus_commands", lambda: CommandPort(choices), given=given, gives=gives, nets=nets)
    others = {name: bits for name, bits in outputs.items() if name.startswith("stalled")}
    return {"start": 1} | dict(choices), STATES | others, nets


def command_choices(program: Program) -> dict[str, int]:
    """What commands choose, and its bits."""
    found = RunChoices.of(program).inputs
    modes = len(program.modes) + program.barrier
    return found | ({"mode": address_width(modes)} if modes > 1 else {})


def _net(member: str) -> str:
    """The net of a member of what sends commands."""
    if member.startswith("status_"):
        return f"m_axis_{member}"
    return f"s_axis_cmd_{member}" if member in COMMAND_STREAM else f"bus_{member}"
