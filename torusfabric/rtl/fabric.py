# amaranth: UnusedElaboratable=no
"""The fabric: routers, operators, endpoints, one sequencer, and a top around them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..contract.interface import Interface
from ..errors import InputError
from ..program import Program
from ..program.program import require_width
from ..program.timing import WRITE
from ..toolchain.public import public_class
from ..toolchain.values import Choice, flag, natural, of_type, shown
from .assembly import Assembly
from .core_address_map import core_address_map
from .flit_rows import AUTO, by_beats
from .inventory import Origins, tag_cost
from .top import Built, Clocks, Top, check_prefix, check_top, is_direct

if TYPE_CHECKING:
    from ..contract.cut import Cut
    from ..contract.registers import RegisterMap
    from .core.core import Core, CoreBuilder

__all__ = ["Fabric", "Top", "short_digest"]


def short_digest(text: str) -> int:
    """Return a number of 32 bits that tells a text from others."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


#: The adapter that makes the core of a fabric, by its top.
CORES = {Top.HOST: "host", Top.CORE: "bare", Top.STREAM: "streams"}

#: The package of the adapter that loads tables.
LOADING = "torusfabric.adapters.loading"

#: The package of the adapter that puts fabrics behind a bus.
BUS = "torusfabric.adapters.bus"

#: The package of the adapter that knows where the words of nodes lie.
HOST = "torusfabric.adapters.host"

#: Cycles of the longest timeout: a counter of 32 bits.
MOST_TIMEOUT = 2**32 - 1


@public_class
class Fabric(wiring.Component):
    """The hardware of a program.

    It is a component: it can be a submodule of a design, be simulated in a testbench, and be
    converted. Everything is in the domain ``sync``. Engines and the `verilog` room read the same
    structure from `netlist`.

    Parameters
    ----------
    width : int
        Bits of a flit, 1 to 1024.
    top : {"host", "core", "stream"} or Top
        Whether one memory-mapped port serves all nodes, or every node has ports of its own: to its
        memories, or streams; see `torusfabric.adapters.streams`.
    prefix : str
        What the names of all modules begin with in Verilog, up to 64 letters, digits and
        underscores. Fabrics with different prefixes can be parts of one design.
    bus : {"wishbone", "axi-lite", "axi4"}, optional
        What the host port stands behind; with streams, what shows how runs go and sends commands.
    clocks : {"one", "per-node"} or Clocks
        Of the streams of nodes: that of the fabric, or each node one of its own; stream top only.
    beat : int or "auto"
        Flits of a word of the streams of nodes, of the host port and the bus behind it, or of the
        ports of a core with memories, a power of two. By default the least with which streams do
        not limit the runs, else 1.
    timeout : int
        Cycles after which a node is named, by `stalled_node`, that has not sent its message, or not
        taken what it has received, while no run is under way; 0 for never. Stream top only.
    tables : {"rom", "ram"}, Room or Image
        Whether what nodes do is fixed, or loaded; then a room says what there is room for, by
        default what the program needs, or an image what is there at first. Not of a core.
    empty : bool
        Whether an image has to be loaded first; else the program is there at first.

    Attributes
    ----------
    interface : Interface
        What the adapter in front of the core says of its ports.
    answer : int
        Cycles from a read at the inputs of a node to its word.
    core : Core
    room : Room or None
        What may be loaded, where tables are.
    hold : int
        Clock edges by which a run begins later if it is started with the edge after a write of the
        host; one fewer for each edge between.
    operator_unit : OperatorUnit or None
        What combines words, where anything can, whatever is loaded.

    Members
    -------
    start : In(1)
        A pulse of one cycle starts a run; ignored while busy.
    busy, done : Out(1)
        Busy from the edge after the start until done; done stays until the next start.
    cycles : Out(32)
        Clock edges from the begin of the run to done. A run begins with its start; behind a host
        port up to `hold` edges later, if words that were written just before are on their way.
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
        Payloads have `data`, `last`, and `destination` or `origin`. Of a core, the ports of each
        node by their names without its number: `node[3].read_data` is `read_data_3`.
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
    (6, 14)
    """

    #: The nodes that are built, if they are not all; the system that they are a part of.
    cut: Cut | None = None
    system: Any = None

    # Amaranth shall not warn of fabrics that are simulated or written, and so never elaborated.
    _MustUse__silence = True

    def __init__(  # noqa: PLR0913 (one choice of a user each)
        self,
        program: Program,
        *,
        width: int = 32,
        top: Top | str = Top.HOST,
        prefix: str = "",
        bus: str | None = None,
        clocks: Clocks | str = Clocks.ONE,
        beat: int | str = AUTO,
        timeout: int | str = 0,
        tables: Any = "rom",
        empty: bool = False,
    ) -> None:
        of_type("Program", program, Program, "a Program, as tf.compile returns it")
        self._given: dict[str, Any] = {
            "width": width, "top": top, "prefix": prefix, "bus": bus, "clocks": clocks,
            "beat": beat, "timeout": timeout, "tables": tables, "empty": empty,
        }  # fmt: skip
        self._given_program = program
        self.width, self.prefix = require_width(width, program.operators), prefix
        check_prefix(prefix)
        self.program, self.flits, self.top = program, program.flits, Top(top)
        self.bus: Choice | None = None
        if bus is not None:
            self.bus = import_module(f"{BUS}.options").Bus(bus)
        self.clocks = Clocks(clocks)
        self.timeout = natural("Timeout", timeout, most=MOST_TIMEOUT)
        check_top(program, self.top, bus=bool(self.bus), clocks=self.clocks, timeout=self.timeout)
        self.empty = flag("Empty", empty)
        self.tables = self._loaded_tables(program, tables, beat)
        self.room = self.tables and self.tables.room
        if self.tables:
            self.program = program = self.tables.program
        self.beat, self.program = self._by_beats(program, beat)
        program = self.program
        self.ports = program.ports
        self.form_layouts = self._form_layouts()
        # Addresses are the same for all forms of a mode.
        self.layouts = tuple(self.form_layouts[mode.first] for mode in program.modes)
        self.layout = self.layouts[0]
        self.core = self._core()
        build = self.core.build
        self.nodes, self.answer, self.operator_unit = build.nodes, build.answer, build.operator_unit
        self.here = self.cut.here if self.cut else [*range(self.nodes)]
        self.hold = build.hold
        self.router_classes, self.read_latency, self._finders = self.add_top(build)
        self.interface = self.add_bus(build, self.bus) if self.bus else self._interface()
        build.declared |= self.interface.ports
        self.netlist = build.done()
        super().__init__(
            {name: In(bits) for name, bits in self._levels(self.netlist.inputs)}
            | {name: Out(bits) for name, bits in self._levels(self.netlist.outputs)}
            | dict(self.interface.members())
        )
        if self.top is Top.CORE:
            self.node = self._ports_of_nodes()

    def _loaded_tables(self, program: Program, tables: Any, beat: int | str) -> Any:
        """Return the tables that are loaded, None if they are fixed.

        Raises
        ------
        InputError
            If tables are not loaded with the top, or with what else is wanted.
        """
        if isinstance(tables, str) and tables == "rom":
            return None
        if isinstance(tables, str) and tables != "ram":
            raise InputError(f"Tables must be rom or ram, not {shown(tables)}")
        if self.top is Top.CORE:
            raise InputError(f"Tables must be rom for a fabric with the top {self.top}, not ram")
        make = import_module(f"{LOADING}.hardware").make_tables
        streams = self.top is Top.STREAM
        return make(program, tables, self.width, beat, streams=streams, empty=self.empty)

    def __reduce__(self) -> tuple[Callable[..., Fabric], tuple[Program]]:
        """A fabric is pickled as what it is made from, and made anew: hardware is functions."""
        return partial(type(self), **self._given), (self._given_program,)

    def __copy__(self) -> Fabric:
        same = object.__new__(type(self))
        same.__dict__.update(self.__dict__)
        return same

    @classmethod
    def holding(cls, image: Any, *, bus: str | None = None, empty: bool = False) -> Fabric:
        """The fabric that an image is for, which holds it or, if empty, is to be loaded with it."""
        top = Top.STREAM if image.room.streams else Top.HOST
        return cls(image.program, width=image.width, top=top, bus=bus, tables=image, empty=empty)

    def behind(self, bus: str | None) -> Fabric:
        """What carries out the same behind another bus, or none."""
        how: dict[str, Any] = {"tables": self.image, "empty": self.empty} if self.room else {}
        return type(self)(self.program, width=self.width, top=self.top, bus=bus, **how)

    def _by_beats(self, program: Program, beat: int | str) -> tuple[int, Program]:
        """The flits of a word of a port, and the program for it."""
        if self.room:
            return self.room.beat, program
        beat = beat if isinstance(beat, str) and beat == AUTO else natural("Beat", beat)
        if self.top is not Top.STREAM and beat in (1, AUTO):
            return 1, program
        if self.streaming:
            what = "a core without memories, whose words are those of links"
            raise InputError(f"Beat must be 1 for {what}, not {beat}")
        if beat == AUTO:
            streams = import_module("torusfabric.adapters.streams.sections")
            found: tuple[int, Program] = streams.least_beat(program, self.width)
            return found
        return int(beat), by_beats(program, self.width, int(beat))

    @property
    def _adapter(self) -> Any:
        """The module of the adapter that makes the core, and adds the ports in front of it."""
        return import_module(f"torusfabric.adapters.{CORES[self.top]}.hardware")

    def _core(self) -> Core:
        """Return the core with the choices of its adapter."""
        if self.tables:
            loaded: Core = self.tables.make_core(resets=self.bus is not None)
            return loaded
        choices: dict[str, Any] = {"beat": self.beat}
        if self.top is Top.HOST:
            choices |= {"resets": bool(self.bus and not self.cut), "cut": self.cut}
        core: Core = self._adapter.make_core(self.program, self.width, **choices)
        return core

    def _form_layouts(self) -> tuple[Any, ...]:
        """What lies where in the memories of nodes, in each form, as a `HostLayout`."""
        program, of = self.program, import_module(f"{HOST}.finders").HostLayout.of
        parts = [program.part(form) for form in range(len(program.forms))]
        # Of streams, addresses are nobody's, and words are counted as flits.
        beat = 1 if self.top is Top.STREAM else self.beat
        layouts = [of(part, beat=beat) for part in parts]
        words = max(max(layout.send_words, layout.recv_words) for layout in layouts)
        if self.room:
            words = program.topology.nodes * -(-self.flits // beat)
        return tuple(of(part, words, beat) for part in parts)

    def _ports_of_nodes(self) -> tuple[SimpleNamespace, ...]:
        """The ports of each node of a core, by their names without its number."""
        found: list[dict[str, Any]] = [{} for _ in range(self.nodes)]
        for port in (*self.netlist.inputs, *self.netlist.outputs):
            name, _, node = port.rpartition("_")
            if node.isdecimal():
                found[int(node)][name] = getattr(self, port)
        return tuple(SimpleNamespace(**ports) for ports in found)

    def _levels(self, ports: Mapping[str, int]) -> list[tuple[str, int]]:
        """Ports for which no member of the interface stands, with their widths."""
        inside = self.interface.is_in_member
        return [(name, bits) for name, bits in ports.items() if not inside(name)]

    def add_top(self, build: Any) -> Built:
        """Fill the netlist."""
        facts: dict[str, Any] = {"layouts": self.form_layouts}
        if self.top is Top.STREAM:
            facts = {"clocks": self.clocks, "timeout": self.timeout}
            facts["has_run_port"] = bool(self.bus)
        adapter = self.tables or self._adapter
        built: Built = adapter.add_fabric(self.core, **facts)
        return built

    def close(self, m: Module, design: Assembly, platform: object) -> None:
        """Drive those ports that do not stand behind the bus, in a design that has all of it."""

    def _interface(self) -> Interface:
        """Return what is said of the ports in front of the core, or of nodes."""
        adapter: Any = import_module(f"torusfabric.adapters.{CORES[self.top]}.interface")
        if self.top is Top.HOST:
            found: Interface = adapter.HostInterface(self.layouts, self._latencies)
        elif self.top is Top.CORE:
            found = adapter.BareInterface(self.program, self.flits, self.read_latency)
        else:
            if self.tables:
                adapter = import_module(f"{LOADING}.interface")
            found = adapter.StreamInterface(
                self.program, self.width, self.clocks, self.beat, has_run_port=bool(self.bus)
            )
        return found

    @property
    def _latencies(self) -> dict[str, int]:
        """Edges that a read and a write of the host port take."""
        return {"read_latency": self.read_latency, "write_latency": self.write_latency}

    @property
    def register_map(self) -> RegisterMap | None:
        """What lies at which address of the bus, if there is one."""
        return self.interface.registers

    def add_bus(self, build: CoreBuilder, bus: Choice) -> Interface:
        """Put the host port, or the run port of nodes with ports of their own, behind a bus."""
        hardware = import_module(f"{BUS}.hardware")
        of_host = self.top is Top.HOST
        layouts: Sequence[Any] = self.layouts if of_host else ()
        if self.tables and of_host:
            layouts = self.tables.host_layouts()
        behind = self._interface()
        if of_host:
            behind = import_module(f"{HOST}.interface").HostProofs()
        interface: Interface = hardware.add_bus(
            build,
            bus,
            layouts,
            flits=self.flits,
            digest=self.digest,
            latencies=self._latencies,
            behind=behind,
            load_words=self.tables.layout.image_words if self.tables else 0,
        )
        return interface

    @property
    def runs_alone(self) -> bool:
        """True if it needs no other fabrics to run."""
        return True

    @property
    def digest(self) -> int:
        """A number of 32 bits that tells which fabric it is: of the program and the width."""
        if self.room:
            digest: int = self.room.digest(self.width)
            return digest
        return short_digest(f"{self.program.digest} {self.width}")

    @cached_property
    def image(self) -> Any:
        """The image of its program, where tables are loaded.

        Raises
        ------
        InputError
            If they are not.
        """
        if self.tables is None:
            raise InputError("Tables must be ram for an image, not rom")
        return self.tables.image

    @property
    def predicted_cycles(self) -> int:
        """Clock edges from the begin of a run to done, of the longest in the slowest mode."""
        return max(self.cycles_of(mode=mode) for mode in range(len(self.program.modes)))

    def cycles_of(self, length: int | None = None, *, mode: int | None = None) -> int:
        """Clock edges from the begin of a run to done; see `Program.cycles`."""
        return self.program.cycles(length, mode=mode)

    def delivered(self, words: np.ndarray, **chosen: int) -> tuple[np.ndarray, np.ndarray]:
        """What nodes receive, and which of it is known; see `Program.delivered`."""
        return self.program.delivered(words, **chosen, width=self.width)

    @property
    def streaming(self) -> bool:
        """Whether nodes have ports for what they send and receive, in place of memories."""
        return self.top is Top.CORE and is_direct(self.program)

    @property
    def write_latency(self) -> int:
        """Edges that a write takes, that into the memory included; host top only."""
        return WRITE + self.program.form.write_delay

    @cached_property
    def origins(self) -> Origins:
        """How origins are known, and what that costs."""
        rom_bits = sum(finder.rom_bits() for finder in self._finders)
        known_by = dict.fromkeys(form.known_by for form in self.program.forms)
        # Forms that are loaded are not of common variants.
        parts = self.program.parts if self.room else (self.program,)
        tags = max(tag_cost(part) for part in parts)
        return Origins(" or ".join(known_by), rom_bits, *tags)

    def elaborate(self, platform: object) -> Module:
        """Connect the ports to those of the assembly."""
        m = Module()
        m.submodules.assembly = assembly = Assembly(self.netlist)
        for name, _ in self._levels(self.netlist.inputs):
            m.d.comb += getattr(assembly, name).eq(getattr(self, name))
        for name, _ in self._levels(self.netlist.outputs):
            m.d.comb += getattr(self, name).eq(getattr(assembly, name))
        self.interface.connect(m, self, assembly)
        return m

    def address_map(self) -> dict[str, Any]:
        """Where each block arrives, or lies, in a core; see `torusfabric.rtl.core_address_map`."""
        return core_address_map(self.program)
