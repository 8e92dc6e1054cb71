"""The way of a fabric behind a bus: its ports become nets, and the bus has ports in their place.

Ports of nodes stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ...contract.interface import Interface
from ...errors import InputError
from ...rtl.netlist import Role, add_single
from ..host.finders import HostLayout
from .bridges import BRIDGES
from .interface import BusInterface
from .options import Bus
from .ports import INTERRUPT, MOST_BEAT, burst_ports, members, word_ports
from .register_map import register_map
from .registers import Registers
from .windows import Windows

if TYPE_CHECKING:
    from ...rtl.core.core import CoreBuilder

__all__ = ["add_bus"]


def add_bus(  # noqa: PLR0913 (one fact each)
    net: CoreBuilder,
    bus: Bus,
    layouts: Sequence[HostLayout],
    *,
    flits: int,
    digest: int,
    latencies: Mapping[str, int],
    behind: Interface,
    load_words: int = 0,
) -> BusInterface:
    """Put a fabric, complete as it is, behind a bus.

    Parameters
    ----------
    layouts : sequence of HostLayout
        Of each mode; none without a host port.
    flits : int
        The most flits of a message.
    digest : int
        What tells which fabric it is.
    latencies : mapping of str to int
        ``read_latency`` and ``write_latency``.
    behind : Interface
        The interface of the ports of nodes, which stay.
    load_words : int
        The most words that load tables.
    """
    inputs, outputs = net.enclose()
    width, bursts = outputs.get("host_rdata", 0), bus.bursts and len(layouts) > 0
    if bus.bursts and width > MOST_BEAT:
        raise InputError(f"Width behind {bus} must be at most {MOST_BEAT} bits, not {width}")
    registers = register_map(
        inputs | outputs,
        layouts,
        width=width,
        flits=flits,
        digest=digest,
        nodes=net.nodes,
        declared=net.registers,
        load_words=load_words,
    )
    bits = registers.address_bits
    ports = word_ports(bus, bits) | {"irq": INTERRUPT}
    if bursts:
        # They have the host port, and the registers have the rest.
        del outputs["host_rdata"]
        inputs = {name: width for name, width in inputs.items() if not name.startswith("host_")}
        ports |= burst_ports(bits, registers.flit_bytes)
    net.declared |= ports
    net.add_ports(members(ports))
    modules = {
        "bus_bridge": partial(BRIDGES[bus], bus, bits),
        "bus_registers": partial(Registers, registers, inputs=inputs, outputs=outputs, **latencies),
        "bus_windows": partial(Windows, registers, width=width, **latencies),
    }
    for name, make in modules.items():
        if bursts or name != "bus_windows":
            add_single(net, name, Role.BUS, make)
    return BusInterface(bus, registers, latencies, behind)
