# amaranth: UnusedElaboratable=no
"""The tops of fabrics, with one builder for each, and what a fabric has once: the host port, the
tree that brings it words, the sequencer, and what finds offsets from the root. What goes together
with which top is checked here.

That of streams is in `torusfabric.rtl.streams.nodes`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from amaranth.hdl import Const, Module, Signal
from amaranth.lib.wiring import In, Out

from ..errors import InputError
from ..program import Program
from ..toolchain.values import shown
from ..topology import CayleyGraph, cayley
from .arrays import Slice
from .fabric_builder import FabricBuilder, Top
from .finders import Finder, HostLayout, finder_of
from .host import RADIX, Host, ReadMerge, merge_levels
from .memories import address_width, choose
from .netlist import Fixed, Leaf, NetlistBuilder, Part, Parts, Role
from .node_parts import add_combiners, add_endpoints, add_routers
from .sequencer import Sequencer
from .streams import Clocks

if TYPE_CHECKING:
    from ..program.frame import Frame
    from ..program.loadable import LoadableMode
    from .core.core import CoreBuilder
    from .loaded.image import Image

__all__ = ["Built", "RootUnit", "add_core_top", "add_host", "add_host_port", "add_host_top",
           "add_inside", "add_read_tree", "add_root_unit", "add_sequencer", "add_single",
           "add_starts", "add_status", "check_prefix", "check_top",
           "loaded_tables"]  # fmt: skip


def add_single(
    build: NetlistBuilder,
    name: str,
    role: Role,
    make: Callable[[], Leaf],
    inputs: Mapping[str, Parts] = MappingProxyType({}),
    renamed: Mapping[str, str] = MappingProxyType({}),
    instance: str = "",
) -> dict[str, tuple[Part, ...]]:
    """An instance of a module, by default the only one; returns its outputs.

    Members are joined to nets of their own names, or of the names that some of them are given, as
    far as `inputs` does not say what drives them.
    """
    build.add_module(name, make, role=role)
    leaf, given, outputs = make(), dict[str, Parts](), dict[str, tuple[str, int]]()
    for member, each in leaf.signature.members.items():
        net, bits = renamed.get(member, member), len(getattr(leaf, member))
        if each.flow is Out:
            outputs[member] = net, bits
        elif member not in inputs:
            given[member] = (Part(net, 0, bits),)
    build.add(instance or f"the_{name}", name, inputs={**inputs, **given}, outputs=outputs)
    return {member: build.whole(net) for member, (net, _) in outputs.items()}


def add_host(
    build: FabricBuilder | CoreBuilder,
    layouts: Sequence[HostLayout],
    outside: str = "",
    *,
    core: bool = False,
) -> tuple[int, list[Finder]]:
    """Add the host port, and the tree that brings read data to it.

    Parameters
    ----------
    layouts : sequence of HostLayout
        Of each form.
    outside : str
        Prefix of the nets `start` and `busy` that close the port to writes.
    core : bool
        True for the nodes of a core: the port gives them whole addresses, and none of them early.

    Returns
    -------
    read_latency : int
        Edges from an address to its data.
    finders : list of Finder
        Those of what is received in each form, and of what is sent by each send map.
    """
    program = build.program
    forms = range(len(program.forms))
    #: The first form of each send map.
    first = {program.forms[form].layout: form for form in reversed(forms)}
    sending = [first[layout] for layout in sorted(first)]
    views, writes = (
        [finder_of(layouts[form], program, form, received=received, whole=core) for form in some]
        for some, received in ((forms, True), (sending, False))
    )
    given: dict[str, Parts] = {}
    if any(view.by_root for view in views):
        given["sampled_root"] = (Part("sampled_root", 0, layouts[0].root_bits),)
    if program.several:
        given["form"] = (Part("run_form", 0, address_width(len(forms))),)
    make = partial(
        Host,
        views,
        writes,
        width=build.word,
        address_bits=build.address_bits,
        answer=build.answer,
        hold=build.hold,
        blocks=build.cut.nodes if build.cut else None,
        early=not core,
    )
    return add_host_port(build, make, given, outside), [*views, *writes]


def add_host_port(
    build: FabricBuilder | CoreBuilder,
    make: Callable[[], Host],
    given: Mapping[str, Parts] = MappingProxyType({}),
    outside: str = "",
) -> int:
    """Add a host port and what brings it read data; the edges from an address to its data."""
    host, names = make(), ("host_we", "host_node", "host_addr", "host_wdata")
    inputs: dict[str, Parts] = {
        name: build.add_input(name, len(getattr(host, name))) for name in names
    }
    inputs |= {name: (Part(outside + name, 0, 1),) for name in ("start", "busy")}
    if build.cut:
        inputs["block"] = build.add_input("block", address_width(len(build.cut.nodes)))
    build.from_host.extend(add_single(build, "host", Role.HOST, make, {**inputs, **given}))
    add_read_tree(build)
    build.add_output("host_rdata", build.word)
    return host.read_latency


def add_read_tree(build: FabricBuilder | CoreBuilder) -> None:
    """Brings the word read at a node to `host_rdata`, level by level."""
    width, words = build.word, build.nodes
    net, levels = build.read_net, len(merge_levels(build.nodes))
    for level in range(levels):
        whole, rest = divmod(words, RADIX)
        last = level == levels - 1
        name = "host_rdata" if last else f"read_{level}_{{}}"
        for size, numbers in ((RADIX, np.arange(whole)), (rest, np.array([whole]))):
            if not size or not len(numbers):
                continue
            module = f"read_merge_{size}"
            build.add_module(module, partial(ReadMerge, size, width), role=Role.READ_TREE)
            data = tuple(Slice(net, numbers * RADIX + k, 0, width) for k in range(size))
            build.add_array(
                f"read_merge_{level}_{{}}",
                module,
                numbers,
                inputs={"data": data},
                outputs={"word": (name, width)},
                scope=f"tree_{level}",
            )
        net, words = name, whole + (rest > 0)


def add_sequencer(
    build: FabricBuilder,
    given: Mapping[str, Parts],
    *,
    soon: int = 0,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Add the sequencer, given what drives inputs that depend on the top."""
    make = lambda: Sequencer(
        [form.timing for form in build.program.forms],
        build.placement,
        build.choices,
        address_bits=build.address_bits,
        soon=soon,
        resets=build.resets,
        holds=build.hold > 0,
    )
    starts = {name: build.low(name, bits) for name, bits in
              {"start": 1, **build.choices.inputs}.items()}  # fmt: skip
    inputs = {**starts, **given}
    build.sequenced.update(add_single(build, "sequencer", Role.SEQUENCER, make, inputs, renamed))


def add_root_unit(build: FabricBuilder) -> None:
    """Add what takes the root and gives every node its offset from it."""
    program = build.program
    shown, offsets = any(form.part_is_root for form in program.forms), program.by_offset
    make = lambda: RootUnit(cayley(program.root_groups.torus), shown=shown, offsets=offsets)
    add_single(build, "root_unit", Role.ROOT_UNIT, make)


class RootUnit(Leaf):
    """Samples the root at the start, and gives every node its offset from it.

    Parameters
    ----------
    shown, offsets : bool
        Whether the root itself is wanted, and offsets from it.

    Members
    -------
    accepted : In(1)
        The root is sampled with a start that is accepted.
    root : In
        The number of a node.
    sampled_root : Out
        The root of the last run, if it is wanted.
    offset_k_x : Out
        Coordinate k of the offset of nodes whose coordinate k is x, if wanted.
    """

    def __init__(self, topology: CayleyGraph, *, shown: bool = False, offsets: bool = True) -> None:
        self._topology, self._shown, self._offsets = topology, shown, offsets
        bits = address_width(topology.nodes)
        super().__init__(
            {"accepted": In(1), "root": In(bits), "sampled_root": Out(bits * shown)}
            | {
                f"offset_{axis}_{at}": Out(address_width(side))
                for axis, side in enumerate(topology.moduli if offsets else ())
                for at in range(side)
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build a lookup of coordinates, and a register for each offset."""
        m = Module()
        topology, root = self._topology, self.value("root")
        if self._shown:
            with m.If(self.value("accepted")):
                m.d.sync += self.sampled_root.eq(root)
        coordinates = topology.coordinates(np.arange(topology.nodes))
        for axis, side in enumerate(topology.moduli if self._offsets else ()):
            bits = address_width(side)
            at = Signal(bits, name=f"root_{axis}")
            table = [Const(coordinate, bits) for coordinate in coordinates[axis].tolist()]
            m.d.comb += at.eq(choose(table, root))
            for coordinate in range(side):
                offsets = [Const((coordinate - k) % side, bits) for k in range(side)]
                with m.If(self.value("accepted")):
                    m.d.sync += getattr(self, f"offset_{axis}_{coordinate}").eq(choose(offsets, at))
        return m


class Built(NamedTuple):
    """What is known of a top once it is built.

    Parameters
    ----------
    router_classes : list of (str, int)
        The modules of routers, and of how many nodes each is.
    read_latency : int
        Edges from an address to its data; 0 where nothing is read at addresses.
    finders : list of Finder
        What finds words for the host.
    """

    router_classes: list[tuple[str, int]]
    read_latency: int = 0
    finders: Sequence[Finder] = ()


def add_host_top(build: FabricBuilder, layouts: Sequence[HostLayout], outside: str = "") -> Built:
    """One memory-mapped port serves all nodes; `outside` is that of `add_host`."""
    add_starts(build)
    latency, finders = add_host(build, layouts, outside)
    # Of several forms, the sequencer takes it a cycle early.
    idle = "next_read_address" if build.program.several else "read_address"
    add_sequencer(build, {"idle_address": build.low(idle, build.address_bits)})
    routers = add_inside(build, add_endpoints)
    add_status(build)
    return Built(routers, latency, finders)


def add_core_top(build: FabricBuilder) -> Built:
    """Every node has a port to its memories."""
    add_starts(build)
    add_sequencer(build, {"idle_address": (Fixed(0, build.address_bits),)})
    routers = add_inside(build, add_endpoints)
    add_status(build)
    return Built(routers, 1 + build.placement.endpoints.answer)


def add_inside(
    build: FabricBuilder, add_nodes: Callable[[FabricBuilder], None]
) -> list[tuple[str, int]]:
    """What all tops stand around, once the sequencer is there; the modules of routers."""
    program = build.program
    if program.by_offset or any(form.part_is_root for form in program.forms):
        add_root_unit(build)
    add_nodes(build)
    if build.sources.results:
        add_combiners(build)
    routers = add_routers(build)
    if (build.topology.cycles_of_arc > 1).any():
        from .links import add_links

        add_links(build)
    build.distribution.add()
    return routers


def add_starts(build: FabricBuilder) -> None:
    """The inputs that start a run, and say which."""
    for name, bits in {"start": 1, **build.choices.inputs}.items():
        build.add_input(name, bits)
    if build.resets:
        build.add_input("reset_run")


def add_status(build: FabricBuilder) -> None:
    """The outputs that say what became of it."""
    for name in ("busy", "done", "cycles", "error", "round"):
        if name in build.sequenced:
            build.add_output(name, build.nets[name])


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


def check_top(program: Program, top: Top, *, bus: bool, clocks: Clocks, timeout: int) -> None:
    """Check that a top is one for a program, and for what else is wanted.

    Raises
    ------
    InputError
        If it is not.
    """
    kind = program.schedule.collective.kind
    of_host = {
        "messages of any length": program.any_length,
        f"{kind} from any root": program.form.part_is_root,
        "several operators": len(program.operators) > 1,
    }
    for what, wanted in of_host.items():
        if wanted and top is Top.CORE:
            raise InputError(f"Top must be host for {what}, not core")
    if bus and top is Top.CORE:
        raise InputError("Top must be host or stream for a fabric behind a bus, not core")
    of_stream = {
        "a barrier": program.barrier,
        "clocks of the nodes": clocks is not Clocks.ONE,
        "a timeout of nodes": timeout > 0,
    }
    for what, wanted in of_stream.items():
        if wanted and top is not Top.STREAM:
            raise InputError(f"Top must be stream for {what}, not {top}")


def loaded_tables(
    program: Program, tables: Frame | Image | str, top: Top, *, bus: bool
) -> tuple[Frame | None, Sequence[LoadableMode]]:
    """What may be loaded, and what is; nothing where tables are fixed.

    Raises
    ------
    InputError
        If tables are not loaded with the top, or with what else is wanted.
    """
    if isinstance(tables, str) and tables == "rom":
        return None, ()
    if isinstance(tables, str) and tables != "ram":
        raise InputError(f"Tables must be rom or ram, not {shown(tables)}")
    if top is Top.CORE:
        raise InputError(f"Tables must be rom for a fabric with the top {top}, not ram")
    if top is Top.STREAM and bus:
        raise InputError("Bus must be left out for streams with loaded tables, not given")
    from ..program.fitting import loadable_modes  # a guest
    from ..program.frame import Frame
    from .loaded.image import Image

    if not isinstance(tables, str | Frame | Image):
        raise InputError(f"Tables must be rom, ram, a Frame or an Image, not {shown(tables)}")
    streams = top is Top.STREAM
    given = tables.frame if isinstance(tables, Image) else tables
    frame = given if isinstance(given, Frame) else None
    if frame and frame.streams is not streams:
        of = "streams" if streams else "a host port"
        raise InputError(f"Tables must be those of a fabric with {of}, not another")
    if isinstance(tables, Image):
        return tables.frame, tables.modes
    modes = loadable_modes(program, frame)
    return frame or Frame.of(modes, streams=streams), modes
