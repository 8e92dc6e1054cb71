# amaranth: UnusedElaboratable=no
"""The nodes of a fabric with streams: loaders, endpoints and unloaders, and the tree above them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from amaranth.lib.wiring import In, Out

from ...program.timing import DISTRIBUTION
from ..common_parts import add_sequencer, add_single
from ..endpoint_parts import EndpointWiring, endpoint_settings
from ..netlist import Fixed, Part, Parts, Role
from ..run_choices import ERROR_BITS
from ..tops import Built, add_inside
from .commands import Commands, CommandShape
from .crossings import add_crossings
from .endpoint import StreamEndpoint
from .loader import Loader
from .plan import StreamPlan, plan_streams
from .ports import Clocks
from .readiness import RADIX, ReadinessMerge, levels
from .stream_control import StreamControl
from .unloader import Unloader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..fabric_builder import FabricBuilder
    from ..leaf import Leaf
    from .packets import Packets
    from .shapes import LoaderShape, UnloaderShape

__all__ = ["add_stream_top"]

#: Cycles before the last one of a run in which nodes have to be told of its end, to unload the
#: first word as soon as the last has been stored: those on the way to them, and two in the unloader
#: of which one follows the run.
SOON = DISTRIBUTION + 1


def add_stream_top(build: FabricBuilder, clocks: Clocks) -> Built:
    """Every node has a stream of what it sends, and one of what it receives."""
    streams = plan_streams(build, clocks)
    _add_control(build, streams)
    # It is not the sequencer that finds out why a run cannot be carried out.
    given: dict[str, Parts] = {
        "idle_address": (Fixed(0, build.address_bits),), "over": (Part("over", 0, 1),)
    }  # fmt: skip
    add_sequencer(build, given, soon=SOON, renamed={"error": "start_error"})
    routers = add_inside(build, lambda build: _add_nodes(build, streams))
    for name, width in (("busy", 1), ("done", 1), ("cycles", 32), ("error", ERROR_BITS)):
        build.add_output(name, width)
    return Built(routers)


def _add_control(build: FabricBuilder, streams: StreamPlan) -> None:
    """Add what starts runs, and what takes commands if they need any."""
    loader, depth = streams.loader, levels(build.nodes)
    length_bits = build.choices.inputs.get("length", 0)
    make = partial(
        StreamControl,
        # To the nodes, into their registers, and up the tree.
        depth + 1,
        sections=streams.settings.sections,
        length_bits=length_bits,
        last_bits=loader.length_bits,
        commanded=streams.commands is not None,
        barrier=streams.commands is not None and streams.commands.barrier,
    )
    widths = {
        f"ready_{depth - 1}_0": ("ready", 1),
        f"bad_{depth - 1}_0": ("bad", 2),
        f"good_{depth - 1}_0": ("good", 1),
        f"length_{depth - 1}_0": ("last", loader.length_bits),
        "busy": ("busy", 1),
        "idle": ("idle", 1),
        "ending": ("ending", 1),
        "may_begin": ("may_begin", 1),
        "wanted": ("wanted", length_bits),
        "barrier": ("barrier", 1),
    }
    members = make().signature.members
    inputs: dict[str, Parts] = {
        port: (Part(net, 0, width),) for net, (port, width) in widths.items() if port in members
    }
    add_single(build, "stream_control", Role.STREAM, make, inputs)
    if streams.commands:
        _add_commands(build, streams.commands)


def _add_commands(build: FabricBuilder, shape: CommandShape) -> None:
    """Add what takes commands."""
    make = partial(Commands, shape)
    members = make().signature.members
    inputs: dict[str, Parts] = {
        name: build.add_input(_port_of(name), members[name].shape)
        for name in members
        if members[name].flow is In and _port_of(name)
    }
    for name, width in (("run_begins", 1), ("run_over", 1), ("error", ERROR_BITS), ("cycles", 32)):
        inputs[name] = (Part(name, 0, width),)
    renamed = {
        name: _port_of(name) for name in members if members[name].flow is Out and _port_of(name)
    }
    for name, port in renamed.items():
        build.add_output(port, members[name].shape)
    add_single(build, "commands", Role.STREAM, make, inputs, renamed)


def _port_of(name: str) -> str:
    """The port of the whole that a member of the commands is, if it is one."""
    if name.startswith("status_"):
        return f"m_axis_{name}"
    return f"s_axis_cmd_{name}" if name in ("tdata", "tvalid", "tready", "tlast") else ""


def _add_nodes(build: FabricBuilder, streams: StreamPlan) -> None:
    """Add loaders, unloaders and endpoints, and the tree."""
    settings = endpoint_settings(build)
    build.add_module("loader", partial(Loader, streams.loader), role=Role.STREAM)
    build.add_module("unloader", partial(Unloader, streams.unloader), role=Role.STREAM)
    wirings = []
    for number, (shape, kept) in enumerate(zip(streams.shapes, streams.keeps, strict=True)):
        make = partial(StreamEndpoint, shape, settings, streams.settings, kept=kept)
        build.add_module(f"endpoint_{number}", make, role=Role.ENDPOINT)
        wirings.append(_StreamWiring(build, number, make(), streams))
    for node in range(build.nodes):
        for end in _ends(streams, node):
            _add_end(build, streams, node, end)
        wirings[streams.shape_of[node]].add(node)
    _add_tree(build, streams)
    if streams.clocks is Clocks.PER_NODE:
        add_crossings(build, streams)


class _StreamWiring(EndpointWiring):
    """Adds instances of one endpoint module of nodes with streams."""

    def __init__(
        self, build: FabricBuilder, number: int, module: StreamEndpoint, streams: StreamPlan
    ) -> None:
        super().__init__(build, number, module)
        self._streams = streams

    def _connect(
        self, node: int, inputs: dict[str, Parts], outputs: dict[str, tuple[str, int]]
    ) -> None:
        """Connect what the loader writes, and the unloader reads."""
        for name in ("run_begins", "clear"):
            inputs[name] = self._build.distribution.near(name, node)
        for name, member in self._members.items():
            if name.startswith(("write_", "read_")) and name not in inputs and name != "read_data":
                inputs[name] = (Part(f"{name}_{node}", 0, member.shape),)
        bits = self._members["read_data"].shape
        outputs["read_data"] = (
            _stream_output(self._build, self._streams, node, "tdata", bits),
            bits,
        )


#: The two streams of a node: of what it sends, and of what it receives.
SENT, RECEIVED = "s_axis", "m_axis"


def _stream_input(
    build: FabricBuilder, streams: StreamPlan, side: str, node: int, name: str, bits: int
) -> Parts:
    """A signal of a stream that the fabric is given: a port, or a net of the crossing."""
    if streams.clocks is Clocks.ONE:
        return build.add_input(f"{side}_{{}}_{name}", bits, node=node)
    return (Part(f"{side}_{node}_{name}_here", 0, bits),)


def _stream_output(
    build: FabricBuilder, streams: StreamPlan, node: int, name: str, bits: int, side: str = RECEIVED
) -> str:
    """The net of a signal of a stream that the fabric gives: a port, or one for the crossing."""
    if streams.clocks is not Clocks.ONE:
        return f"{side}_{node}_{name}_here"
    build.add_output(f"{side}_{{}}_{name}", bits, node=node)
    return f"{side}_{node}_{name}"


def _stream_inputs(
    build: FabricBuilder, streams: StreamPlan, side: str, leaf: Leaf, node: int
) -> dict[str, Parts]:
    """The signals of a stream that are inputs of a leaf."""
    return {
        name: _stream_input(build, streams, side, node, name, member.shape)
        for name, member in leaf.signature.members.items()
        if name.startswith("t") and member.flow is In
    }


def _outputs(
    build: FabricBuilder, streams: StreamPlan, side: str, leaf: Leaf, node: int
) -> dict[str, tuple[str, int]]:
    """The nets that the outputs of a leaf drive."""
    outputs = {}
    for name, member in leaf.signature.members.items():
        if member.flow is Out:
            bits, net = member.shape, f"{name}_{node}"
            if name.startswith("t"):
                net = _stream_output(build, streams, node, name, bits, side)
            outputs[name] = (net, bits)
    return outputs


def _row(
    build: FabricBuilder, name: str, node: int, rows: Sequence[int], *, bits: int, key: int
) -> Parts:
    """What a ROM of a node shows; a single row is a constant."""
    if not key:
        return (Fixed(rows[0], bits),)
    net = f"{name}_row_{node}"
    address = (Part(f"{name}_key_{node}", 0, key),)
    build.add_rom(f"rom_{net}", rows=rows, width=bits, address=address, output=net, node=node)
    return build.whole(net)


def _flags(packets: Sequence[Packets], node: int) -> Parts:
    """Of each mode, whether a node has any packets in it."""
    return tuple(Fixed(int(of_mode.there[node]), 1) for of_mode in packets)


def _positions(build: FabricBuilder, node: int, bits: int) -> Parts:
    """The position of a node in its group in each mode; in a barrier nobody asks for it."""
    program = build.program
    positions = [int(mode.groups.position[node]) for mode in program.modes]
    return tuple(Fixed(each, bits) for each in positions + [0] * program.barrier)


def _nearby(build: FabricBuilder, node: int, leaf: Leaf) -> dict[str, Parts]:
    """What the control gives to a leaf of a node."""
    return {
        name: build.distribution.near(name, node)
        for name in leaf.signature.members
        if name.startswith(("clear", "run_", "load_", "unload_"))
    }


class _End(NamedTuple):
    """A loader or an unloader of a node.

    Parameters
    ----------
    verb : str
        What it does.
    side : str
        Its stream.
    leaf : Leaf
    shape : LoaderShape or UnloaderShape
        Of the leaf.
    rows : sequence of int
        Of its ROM.
    flags : dict of str to Parts
        The input that says in which modes anything passes.
    """

    verb: str
    side: str
    leaf: Leaf
    shape: LoaderShape | UnloaderShape
    rows: Sequence[int]
    flags: dict[str, Parts]


def _ends(streams: StreamPlan, node: int) -> tuple[_End, _End]:
    """The loader of a node, and its unloader."""
    load, loads = streams.loader, streams.loads[node]
    sends = {"sends": _flags(streams.sent, node)}
    unload, unloads = streams.unloader, streams.unloads[node]
    receives = {"receives": _flags(streams.received, node)}
    return (
        _End("load", SENT, Loader(load), load, loads, sends),
        _End("unload", RECEIVED, Unloader(unload), unload, unloads, receives),
    )


def _add_end(build: FabricBuilder, streams: StreamPlan, node: int, end: _End) -> None:
    """Add the loader of a node, or its unloader, and its ROM."""
    verb, side, leaf, shape, rows, flags = end
    inputs = _stream_inputs(build, streams, side, leaf, node) | _nearby(build, node, leaf) | flags
    if shape.position_bits:
        inputs["position"] = _positions(build, node, shape.facts.position_bits)
    if shape.row_bits:
        inputs["row"] = _row(build, verb, node, rows, bits=shape.row_bits, key=shape.key_bits)
    outputs = _outputs(build, streams, side, leaf, node)
    if "key" in outputs:
        outputs["key"] = (f"{verb}_key_{node}", shape.key_bits)
    build.add(f"{verb}er_at_{node}", f"{verb}er", inputs=inputs, outputs=outputs, node=node)


def _add_tree(build: FabricBuilder, streams: StreamPlan) -> None:
    """Add the tree that brings what nodes say to the control."""
    bits = streams.loader.length_bits
    some = streams.loader.some
    words: list[dict[str, Parts]] = []
    for node in range(build.nodes):
        word: dict[str, Parts] = {
            "ready": (Part(f"loaded_{node}", 0, 1), Part(f"free_{node}", 0, 1)),
            "bad": (Part(f"bad_{node}", 0, 2),),
        }
        if bits:
            word["length"] = (Part(f"length_{node}", 0, bits),)
            if some:
                word["sends"] = (Part(f"counts_{node}", 0, 1),)
        words.append(word)
    for level in range(levels(build.nodes)):
        groups = [words[start : start + RADIX] for start in range(0, len(words), RADIX)]
        words = []
        for number, group in enumerate(groups):
            module = f"readiness_{len(group)}" + ("" if level else "_of_nodes")
            make = partial(ReadinessMerge, len(group), bits, branches=level > 0, some=some)
            build.add_module(module, make, role=Role.STREAM)
            inputs = {
                name: tuple(part for word in group for part in word[name]) for name in group[0]
            }
            at = f"{level}_{number}"
            outputs = {
                "all_ready": (f"ready_{at}", 1),
                "any_bad": (f"bad_{at}", 2),
                "none_bad": (f"good_{at}", 1),
            }
            word = {
                "ready": (Part(f"ready_{at}", 0, 1),),
                "good": (Part(f"good_{at}", 0, 1),),
                "bad": (Part(f"bad_{at}", 0, 2),),
            }
            for name, width in (("length", bits), ("sends", int(bool(bits) and some))):
                if width:
                    outputs[f"any_{name}"] = (f"{name}_{at}", width)
                    word[name] = (Part(f"{name}_{at}", 0, width),)
            build.add(f"readiness_{at}", module, inputs=inputs, outputs=outputs)
            words.append(word)
