# amaranth: UnusedElaboratable=no
"""The nodes of a fabric with streams: loaders, endpoints and unloaders, and the tree above them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from amaranth.lib.wiring import Out

from ...program.timing import DISTRIBUTION
from ...topology import IntArray
from ..arrays import Numbers, Slice, Source
from ..netlist import Fixed, Part, Parts, Role, add_single
from ..node_parts import add_endpoint_array, add_endpoint_module, endpoint_settings
from ..sequencer import Sequencer
from ..top import Built
from ..tops import add_inside
from .commands import Commands
from .control import StreamControl, add_tree, add_watch
from .crossings import add_crossings
from .endpoint import StreamEndpoint, StreamEnds
from .loader import Loader
from .plan import EndPlan, plan_streams
from .ports import COMMAND_NETS, Clocks, stream_ports
from .sections import levels
from .shapes import LoaderShape, UnloaderShape
from .unloader import Unloader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..endpoint_shape import EndpointShape
    from ..fabric_builder import FabricBuilder
    from ..modules import Leaf
    from .packets import Packets

__all__ = ["OVER", "RENAMED", "SOON", "add_around", "add_control", "add_nodes", "add_ports",
           "add_stream_top"]  # fmt: skip

#: Cycles before the last one of a run in which nodes have to be told of its end, to unload the
#: first word as soon as the last has been stored: those on the way to them, and two in the unloader
#: of which one follows the run.
SOON = DISTRIBUTION + 1

#: What the sequencer is given by the control, and what of it has another name.
OVER: Mapping[str, Parts] = {"over": (Part("over", 0, 1),)}
RENAMED = {"error": "start_error"}


def add_stream_top(build: FabricBuilder, clocks: Clocks, timeout: int = 0) -> Built:
    """Every node has a stream of what it sends, and one of what it receives.

    A node for which others have waited for more than `timeout` cycles is named, if that is not 0.
    """
    streams = plan_streams(build)
    commands = partial(Commands, streams.commands) if streams.commands else None
    add_ports(build, clocks)
    add_control(build, streams.ends.loader, commands, barrier=build.program.barrier)
    # It is not the sequencer that finds out why a run cannot be carried out.
    _add_sequencer(build)
    given = lambda leaf: _constants(build, leaf, streams.by_verb[leaf.verb])
    nodes = partial(add_nodes, ends=streams.ends, shapes=streams.endpoints, given=given)
    if commands:
        asked: Parts = build.whole("load_valid")
    else:
        (packets,) = streams.by_verb[Loader.verb].packets
        senders = np.flatnonzero(packets.there).tolist()
        asked = tuple(Part(f"loaded_{node}", 0, 1) for node in senders)
    return add_around(build, clocks, timeout, nodes, asked)


def _add_sequencer(build: FabricBuilder) -> None:
    """Add the sequencer."""
    make = lambda: Sequencer(
        [form.timing for form in build.program.forms],
        build.placement,
        build.choices,
        address_bits=build.address_bits,
        soon=SOON,
    )
    starts = {"start": 1, **build.choices.inputs}
    given: dict[str, Parts] = {name: build.low(name, bits) for name, bits in starts.items()}
    given |= {**OVER, "idle_address": (Fixed(0, build.address_bits),)}
    build.sequenced.update(add_single(build, "sequencer", Role.SEQUENCER, make, given, RENAMED))


def add_ports(build: FabricBuilder, clocks: Clocks) -> None:
    """Add the ports of nodes, and those of commands."""
    ports = stream_ports(build.program, build.width, clocks, beat=build.beat)
    build.declared |= ports
    for name, port in ports.items():
        # In the name of a port of a node, the number is not always at the end.
        general = name if port.node is None else name.replace(str(port.node), "{}", 1)
        add = build.add_output if port.output else build.add_input
        add(general, port.width, node=port.node)


def add_around(
    build: FabricBuilder,
    clocks: Clocks,
    timeout: int,
    add_nodes: Callable[[FabricBuilder, str], None],
    asked: Parts,
) -> Built:
    """Add nodes, once there is what controls them, and what stands around these.

    The nets of the streams of nodes have the names of ports, and what `add_nodes` is given behind.
    Any of the bits `asked` says that a run is asked for.
    """
    inner = "" if clocks is Clocks.ONE else "_here"
    routers = add_inside(build, lambda build: add_nodes(build, inner))
    if timeout:
        add_watch(build, timeout, asked, apart=bool(inner))
    if inner:
        add_crossings(build, watched=timeout > 0)
    return Built(routers)


def add_control(
    build: FabricBuilder,
    shape: LoaderShape,
    commands: Callable[[], Leaf] | None,
    *,
    barrier: bool = False,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Add what starts runs, and what takes commands if they need any.

    Some of what commands give has other names.
    """
    top = levels(build.nodes) - 1
    # To the nodes, into their registers, and up the tree.
    make = partial(StreamControl, top + 2, shape, barrier=barrier)
    heard = {"ready": "ready", "bad": "bad", "good": "good", "last": "length", "all_rest": "rest"}
    nets = {name: f"{net}_{top}_0" for name, net in heard.items()}
    add_single(build, "stream_control", Role.STREAM, make, renamed=nets)
    if commands:
        nets = {**COMMAND_NETS, "all_rest": nets["all_rest"], **renamed}
        add_single(build, "commands", Role.STREAM, commands, renamed=nets)


def add_nodes(
    build: FabricBuilder, inner: str, ends: StreamEnds,
    shapes: Sequence[tuple[EndpointShape, bool, IntArray]],
    given: Callable[[Loader | Unloader], Mapping[str, Sequence[Source]]],
) -> None:  # fmt: skip
    """Add the loaders and unloaders of nodes by what each is given alone, endpoints, and the tree.

    With a shape of endpoints comes whether any gets anything from itself, and which nodes they are.
    """
    settings = endpoint_settings(build)
    for make in (partial(Loader, ends.loader), partial(Unloader, ends.unloader)):
        _add_ends(build, make, given(make()), inner)
    for number, (shape, kept, nodes) in enumerate(shapes):
        make_one = partial(StreamEndpoint, shape, settings, ends, kept=kept)
        _add_endpoints(build, number, make_one, nodes, inner)
    add_tree(build, ends.loader)


def _add_endpoints(
    build: FabricBuilder,
    number: int,
    make: Callable[[], StreamEndpoint],
    nodes: IntArray,
    inner: str,
) -> None:
    """Add the endpoints of some nodes, and their module."""
    ports = add_endpoint_module(build, number, make)
    near = build.distribution.near_each
    inputs: dict[str, Sequence[Source]] = {
        name: (near(name, nodes),) for name in ("run_begins", "clear")
    }
    for name, bits in ports.items():
        # Columns of the sequencer have numbers.
        column = name.rpartition("_")[2].isdecimal()
        if name.startswith(("write_", "read_")) and name != "read_data" and not column:
            inputs[name] = (Slice(f"{name}_{{}}", nodes, 0, bits),)
    word = {"read_data": (f"m_axis_{{}}_tdata{inner}", ports["read_data"])}
    add_endpoint_array(build, number, ports, nodes, inputs, word)


def _add_ends(
    build: FabricBuilder,
    make: Callable[[], Loader | Unloader],
    given: Mapping[str, Sequence[Source]],
    inner: str,
) -> None:
    """Add the loader of each node, or its unloader, by what it alone is given."""
    leaf, nodes = make(), np.arange(build.nodes)
    name_of = f"{leaf.verb}er"
    build.add_module(name_of, make, role=Role.STREAM)
    inputs, outputs = {**given}, {}
    for name, member in leaf.signature.members.items():
        streamed = name.startswith("t")
        net = f"{leaf.side}_{{}}_{name}{inner}" if streamed else f"{name}_{{}}"
        if member.flow is Out:
            outputs[name] = f"{leaf.verb}_key_{{}}" if name == "key" else net, member.shape
        elif name in inputs:
            continue
        elif streamed:
            inputs[name] = (Slice(net, nodes, 0, member.shape),)
        elif name.startswith(("clear", "run_", "load_", "unload_")):
            inputs[name] = (build.distribution.near_each(name, nodes),)
    build.add_array(f"{name_of}_at_{{}}", name_of, nodes, inputs=inputs, outputs=outputs)


def _constants(
    build: FabricBuilder, leaf: Loader | Unloader, plan: EndPlan
) -> dict[str, Sequence[Source]]:
    """What a loader, or an unloader, is given of forms, and the row of its ROM."""
    shape, verb, nodes = leaf.shape, leaf.verb, np.arange(build.nodes)
    inputs: dict[str, Sequence[Source]] = {
        leaf.passes: [Numbers(of_form.there.astype(int), 1) for of_form in plan.packets]
    }
    if shape.position_bits:
        # In a barrier nobody asks for it.
        positions = [form.groups.position for form in build.program.forms]
        positions += [0 * nodes] * build.program.barrier
        inputs["position"] = [Numbers(each, shape.facts.position_bits) for each in positions]
    if isinstance(shape, UnloaderShape) and shape.lacking:
        inputs |= _own_packets(shape, plan.packets, nodes)
    if shape.key_bits:
        key, row = f"{verb}_key_{{}}", f"{verb}_row_{{}}"
        contents = {each: number for number, each in enumerate(dict.fromkeys(plan.rows))}
        which = np.array([contents[each] for each in plan.rows])
        address = Slice(key, nodes, 0, shape.key_bits)
        build.add_roms(f"rom_{row}", nodes, contents=[*contents], which=which,
                       width=shape.row_bits, address=[address], output=row)  # fmt: skip
        inputs["row"] = (Slice(row, nodes, 0, shape.row_bits),)
    elif shape.row_bits:
        inputs["row"] = (Numbers(np.array([each[0] for each in plan.rows]), shape.row_bits),)
    return inputs


def _own_packets(
    shape: UnloaderShape, packets: Sequence[Packets], nodes: IntArray
) -> dict[str, Sequence[Source]]:
    """The index of the last packet of nodes in each form, and the numbers of their packets."""
    last, numbers = list[Source](), list[Source]()
    for form, each in enumerate(packets):
        counts = np.full(len(nodes), each.count) if each.counts is None else each.counts
        last.append(Numbers(np.maximum(counts, 1) - 1, shape.count_bits))
        for k in range(1 << shape.count_bits):
            number = np.full(len(nodes), k)
            if each.numbers is not None:
                number = each.numbers[:, min(k, each.count - 1)]
            numbers.append(Numbers(number | shape.roots[form], shape.id_bits))
    return {"own_last": last, "own_numbers": numbers}
