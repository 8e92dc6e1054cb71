"""The way of a fabric behind a bus: its ports become nets, and the bus has ports in their place.

Where nodes have streams, these stay, and registers send the commands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from amaranth.hdl import Const, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from ...errors import InputError
from ...rtl.finders import HostLayout
from ...rtl.memories import address_width, choose
from ...rtl.netlist import Leaf, Role, add_single
from ...rtl.run_choices import ERROR_BITS, RunChoices
from ...rtl.streams.ports import COMMAND, COMMAND_BITS, COMMAND_NETS, STATUS, command_members
from .bridges import BRIDGES
from .interface import BusInterface
from .options import Bus
from .ports import INTERRUPT, MOST_BEAT, burst_ports, members, word_ports
from .register_map import register_map
from .registers import Registers
from .windows import Windows

if TYPE_CHECKING:
    from ...program import Program
    from ...rtl.core.core import CoreBuilder
    from ...rtl.fabric_builder import FabricBuilder

__all__ = ["CommandPort", "add_bus", "command_choices"]

#: What is known of the last run, and its bits.
STATES = {"busy": 1, "done": 1, "error": ERROR_BITS, "cycles": 32}


def add_bus(
    net: FabricBuilder | CoreBuilder,
    bus: Bus,
    layouts: Sequence[HostLayout],
    *,
    flits: int,
    digest: int,
    latencies: Mapping[str, int],
    choices: Mapping[str, int] = MappingProxyType({}),
) -> BusInterface:
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
            add_single(net, name, Role.BUS, make, renamed=nets)
    return BusInterface(bus, registers, latencies, of_streams=not layouts)


def _behind_streams(
    net: FabricBuilder | CoreBuilder,
    inputs: Mapping[str, int],
    outputs: Mapping[str, int],
    choices: Mapping[str, int],
) -> tuple[dict[str, int], dict[str, int], dict[str, str]]:
    """What registers drive and show where nodes have streams, and the nets of that.

    Where runs need commands, a module sends them.
    """
    if not inputs:
        return {}, dict(outputs), {}
    nets = {name: f"bus_{name}" for name in ("start", *choices, *STATES)} | COMMAND_NETS
    add_single(net, "bus_commands", Role.BUS, partial(CommandPort, choices), renamed=nets)
    others = {name: bits for name, bits in outputs.items() if name.startswith("stalled")}
    return {"start": 1} | dict(choices), STATES | others, nets


def command_choices(program: Program) -> dict[str, int]:
    """What commands choose, and its bits."""
    found = RunChoices.of(program).inputs
    modes = len(program.modes) + program.barrier
    return found | ({"mode": address_width(modes)} if modes > 1 else {})


class CommandPort(Leaf):
    """Sends a command for each start, and keeps what its status says.

    Parameters
    ----------
    choices : mapping of str to int
        What is chosen for a run, by the names of `COMMAND`, and its bits.

    Members
    -------
    start : In(1)
        A pulse of one cycle sends a command; ignored while busy.
    mode, length, root, operation : In
        Sampled with it, as far as there is a choice.
    busy, done, error, cycles : Out
        From the edge after the start until the status has come; then done, until the next start.
    tdata, tvalid, tlast, tready : Out, In
    status_tdata, status_tvalid, status_tlast, status_tready : In, Out
        The streams of commands and of statuses.
    """

    def __init__(self, choices: Mapping[str, int]) -> None:
        self._choices = dict(choices)
        super().__init__(
            {
                "start": In(1),
                **{name: In(bits) for name, bits in choices.items()},
                **{name: Out(bits) for name, bits in STATES.items()},
                **{name: each.flip() for name, each in command_members().items()},
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the words that are sent, and what is kept of those that come."""
        m = Module()
        number, begins = Signal(range(len(COMMAND)), name="number"), Signal(name="begins")
        words: list[Value] = []
        m.d.comb += begins.eq(self.value("start") & ~self.busy)
        for name in COMMAND:
            kept: Value = Const(0, COMMAND_BITS)
            if name in self._choices:
                kept = Signal(self._choices[name], name=f"kept_{name}", reset_less=True)
                with m.If(begins):
                    m.d.sync += kept.eq(self.value(name))
            words.append(kept)
        comes = self.value("status_tvalid")
        beat = Signal(range(len(STATUS)), name="status_beat")
        m.d.comb += [
            self.tdata.eq(choose(words, number)),
            self.tlast.eq(number == len(COMMAND) - 1),
            self.status_tready.eq(1),
        ]
        with m.If(begins):
            m.d.sync += [self.busy.eq(1), self.done.eq(0), self.tvalid.eq(1)]
        with m.If(self.tvalid & self.value("tready")):
            m.d.sync += [self.tvalid.eq(~self.tlast), number.eq(number + 1)]
            with m.If(self.tlast):
                m.d.sync += number.eq(0)
        with m.If(comes):
            m.d.sync += beat.eq(beat + 1)
            with m.If(beat == STATUS.index("error")):
                m.d.sync += self.error.eq(self.value("status_tdata"))
            with m.If(self.value("status_tlast")):
                m.d.sync += [beat.eq(0), self.cycles.eq(self.value("status_tdata"))]
                m.d.sync += [self.busy.eq(0), self.done.eq(1)]
        return m
