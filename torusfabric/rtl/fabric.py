# amaranth: UnusedElaboratable=no
"""The fabric: routers, operators, endpoints, one sequencer, and a top around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..errors import InputError
from ..program import Program, RouteMap
from ..program.timing import WRITE
from ..toolchain.values import natural, of_type
from .assembly import Assembly
from .blueprint import Blueprint, Top
from .bus import Bus, RegisterMap, add_bus
from .common_parts import add_host, add_root_unit, add_sequencer
from .core_address_map import core_address_map
from .endpoint_parts import add_endpoints, add_streams
from .host_layout import HostLayout
from .locators import Locator
from .origins import Origins, tag_cost
from .placement import place
from .router_parts import add_combiners, add_routers
from .run_choices import ERROR_BITS
from .streams import Clocks
from .streams.nodes import add_stream_control, add_stream_nodes
from .streams.plan import plan_streams
from .streams.signatures import connect_streams, is_stream, stream_members

__all__ = ["Fabric", "Top", "check_prefix"]

#: The widest flit.
MAX_WIDTH = 1024

#: The longest prefix of names of modules, and all prefixes.
MAX_PREFIX = 64
PREFIX = rf"([a-z_]\w{{0,{MAX_PREFIX - 1}}})?"


def check_prefix(prefix: str) -> None:
    """Check that the names of modules in Verilog can begin with a prefix.

    Raises
    ------
    InputError
        If they cannot.

    Examples
    --------
    >>> check_prefix("left_")
    >>> check_prefix("2nd_")
    Traceback (most recent call last):
    torusfabric.errors.InputError: Prefix must be a letter or _, then letters, digits and _, \
up to 64 in all, not '2nd_'
    """
    if not isinstance(prefix, str) or not re.fullmatch(PREFIX, prefix, re.ASCII | re.IGNORECASE):
        raise InputError(
            "Prefix must be a letter or _, then letters, digits and _, up to "
            f"{MAX_PREFIX} in all, not {prefix!r}"
        )


class Fabric(wiring.Component):
    """The hardware of a program.

    It is a component: it can be a submodule of a design, be simulated in a testbench, and be
    converted. Everything is in the domain ``sync``. Engines and the `verilog` room read the same
    structure from `netlist`.

    Parameters
    ----------
    program : Program
    width : int
        Bits of a flit, 1 to 1024.
    top : {"host", "core", "stream"} or Top
        Whether one memory-mapped port serves all nodes, or every node has ports of its own: to its
        memories, or streams; see `torusfabric.rtl.streams`.
    prefix : str
        What the names of all modules begin with in Verilog, up to 64 letters, digits and
        underscores. Fabrics with different prefixes can be parts of one design.
    bus : {"wishbone", "axi-lite"} or Bus, optional
        What the host port stands behind.
    clocks : {"one", "per-node"} or Clocks
        Of the streams of nodes: that of the fabric, or each node one of its own; stream top only.

    Attributes
    ----------
    register_map : RegisterMap or None
        What lies at which address of the bus, if there is one.

    Members
    -------
    start : In(1)
        A pulse of one cycle starts a run; ignored while busy.
    busy, done : Out(1)
        Busy from the edge after the start until done; done stays until the next start.
    cycles : Out(32)
        Clock edges from the start pulse to done.
    host_we, host_node, host_addr, host_wdata : In
        One write an edge into a node's memory; host top only.
    host_rdata : Out(width)
        The word at `host_node`, `host_addr`, `read_latency` edges later; host top only.
    length : In
        Flits of the messages of a run, sampled with `start`, where it is chosen anew for each.
    operation : In
        The number of an operator, sampled with `start`, where there are several.
    error : Out(4)
        Why the last start was not carried out, where `length`, `root` or `operation` is chosen: 2
        for a root that is no node, 3 for a length that is 0 or too long, 4 for an operator that
        there is not, 5 because a run was under way; else 0.
    round : Out
        The row of the program that is under way, where `length` is chosen.
    root : In
        The root, sampled with `start`, where any is possible; in groups, its position in each.
    node : array of (send : In(stream), receive : Out(stream))
        The streams of each node, in place of `start` and what is sampled with it; stream top only.
        Payloads have `data`, `last`, and `destination` or `origin`.
    command : In(stream)
    status : Out(stream)
        Streams of words, where runs choose a mode, a root or an operator; stream top only.

    Raises
    ------
    InputError
        If the width is out of range, or the prefix cannot begin a name.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan(tf.Torus(2, 3), "allgather"))
    >>> fabric = tf.Fabric(program, width=8)
    >>> fabric.nodes, fabric.read_latency
    (6, 15)
    """

    # Amaranth shall not warn of fabrics that are simulated or written, and so never elaborated.
    _MustUse__silence = True

    def __init__(
        self,
        program: Program,
        *,
        width: int = 32,
        top: Top | str = Top.HOST,
        prefix: str = "",
        bus: Bus | str | None = None,
        clocks: Clocks | str = Clocks.ONE,
    ) -> None:
        of_type("Program", program, Program, "a Program, as tf.compile returns it")
        width = natural("Width", width)
        if not 1 <= width <= MAX_WIDTH:
            raise InputError(f"Width must be from 1 to {MAX_WIDTH} bits, not {width}")
        for operator in program.operators:
            operator.check_width(width)
        check_prefix(prefix)
        self.prefix = prefix
        if program.any_length and Top(top) is Top.CORE:
            raise InputError("Top must be host for messages of any length, not core")
        if program.mode.part_is_root and Top(top) is Top.CORE:
            kind = program.schedule.collective.kind
            raise InputError(f"Top must be host for {kind} from any root, not core")
        if len(program.operators) > 1 and Top(top) is Top.CORE:
            raise InputError("Top must be host for several operators, not core")
        self.program, self.width, self.flits = program, width, program.flits
        self.top, self.bus = Top(top), None if bus is None else Bus(bus)
        if self.bus and self.top is not Top.HOST:
            raise InputError(f"Top must be host for a fabric behind a bus, not {self.top}")
        self.clocks = Clocks(clocks)
        if program.barrier and self.top is not Top.STREAM:
            raise InputError(f"Top must be stream for a barrier, not {self.top}")
        if self.clocks is not Clocks.ONE and self.top is not Top.STREAM:
            raise InputError(f"Top must be stream for clocks of the nodes, not {self.top}")
        self.register_map: RegisterMap | None = None
        self.nodes, self.ports = program.topology.nodes, program.ports
        parts = [program.part(mode) for mode in range(len(program.modes))]
        words = max(max(part.send_words, part.recv_words) for part in parts)
        self.layouts = tuple(HostLayout(part, words) for part in parts)
        self.layout = self.layouts[0]
        plan = Blueprint(program, place(program), width, self.top)
        self.netlist, self.read_latency = plan.netlist, 0
        self._locators: list[Callable[[], Locator]] = []
        self._build(plan)
        streams = stream_members(program, width) if self.top is Top.STREAM else {}
        super().__init__(
            {name: In(bits) for name, bits in self._levels(self.netlist.inputs)}
            | {name: Out(bits) for name, bits in self._levels(self.netlist.outputs)}
            | streams
        )

    def _levels(self, ports: Mapping[str, int]) -> list[tuple[str, int]]:
        """Ports that are none of a stream, with their widths."""
        apart = self.top is Top.STREAM
        return [(name, bits) for name, bits in ports.items() if not (apart and is_stream(name))]

    def _build(self, plan: Blueprint) -> None:
        """Fill the netlist."""
        net, program = plan.netlist, self.program
        if self.top is not Top.STREAM:
            net.add_input("start")
            for name, bits in plan.choices.inputs.items():
                net.add_input(name, bits)
        if self.top is Top.HOST:
            self.read_latency, self._locators = add_host(plan, self.layouts)
        elif self.top is Top.STREAM:
            streams = plan_streams(plan, self.clocks)
            add_stream_control(plan, streams)
        elif not self.streaming:
            self.read_latency = 1 + plan.placement.endpoints.answer
        add_sequencer(plan)
        if program.by_offset or any(mode.part_is_root for mode in program.modes):
            add_root_unit(plan)
        if self.top is Top.STREAM:
            add_stream_nodes(plan, streams)
        elif self.streaming:
            add_streams(plan)
        else:
            add_endpoints(plan)
        if program.loop.sources.results:
            add_combiners(plan)
        self.router_classes = add_routers(plan)
        plan.distribution.add()
        for name, width in (("busy", 1), ("done", 1), ("cycles", 32)):
            net.add_output(name, width)
        if self.top is Top.STREAM:
            net.add_output("error", ERROR_BITS)
        for name in ("error", "round"):
            if name in plan.sequenced and self.top is not Top.STREAM:
                net.add_output(name, net.nets[name])
        if self.bus:
            latencies = {"read_latency": self.read_latency, "write_latency": self.write_latency}
            self.register_map = add_bus(
                net, self.bus, self.layouts, flits=self.flits, latencies=latencies
            )

    @property
    def predicted_cycles(self) -> int:
        """Clock edges from the start pulse to done, of the longest messages in the slowest mode."""
        return max(self.program.cycles(mode=mode) for mode in range(len(self.program.modes)))

    @property
    def streaming(self) -> bool:
        """Whether nodes have ports for what they send and receive, in place of memories."""
        return self.top is Top.CORE and isinstance(self.program.mode.receive_map, RouteMap)

    @property
    def write_latency(self) -> int:
        """Edges that a write takes, that into the memory included; host top only."""
        return WRITE + self.program.mode.write_delay

    @cached_property
    def origins(self) -> Origins:
        """How origins are known, and what that costs."""
        rom_bits = sum(make().rom_bits() for make in self._locators)
        if self.top is Top.HOST:
            rom_bits += sum(layout.position_bits for layout in self.layouts)
        known_by = dict.fromkeys(mode.known_by for mode in self.program.modes)
        return Origins(" or ".join(known_by), rom_bits, *tag_cost(self.program))

    def elaborate(self, platform: object) -> Module:
        """Connect the ports to those of the assembly."""
        m = Module()
        m.submodules.assembly = assembly = Assembly(self.netlist)
        for name, _ in self._levels(self.netlist.inputs):
            m.d.comb += getattr(assembly, name).eq(getattr(self, name))
        for name, _ in self._levels(self.netlist.outputs):
            m.d.comb += getattr(self, name).eq(getattr(assembly, name))
        if self.top is Top.STREAM:
            connect_streams(m, self, assembly, self.nodes)
        return m

    def address_map(self) -> dict[str, Any]:
        """Where each block arrives, or lies, in a core; see `torusfabric.rtl.core_address_map`."""
        return core_address_map(self.program)
