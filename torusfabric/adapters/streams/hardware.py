"""`StreamTop`: the builder that assembles core, engines, control and commands to a netlist.

A netlist is a circuit as data: modules and *nets*, the named wires between them. Each node has two
*engines*: the loader takes packets from the user and writes them into the memories of the node, and
the unloader sends received words as packets to the user. Their *packet tables* have the location of
each block of a packet, partly in ROMs. The *control* starts a run when the *readiness tree* reports
that all nodes are ready; the *watch* reports late nodes. `Commands` takes the choices of runs. Each
memory is divided into *sections*, one for each of some consecutive runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from amaranth.hdl import Module
from amaranth.lib.wiring import Out

from ...program import Program
from ...program.mode import Range
from ...program.timing import DISTRIBUTION
from ...rtl.arrays import Constants, Slice, Source
from ...rtl.core import Core
from ...rtl.memories import address_width
from ...rtl.modules import Leaf
from ...rtl.netlist import Part, Parts, Role, add_single_instance
from ...rtl.run_choices import RunChoices
from .commands import Commands, CommandShape
from .control import StreamControl
from .crossings import add_crossings
from .engine import Engine, EngineShape
from .loader import Loader
from .options import Clocks
from .own_block import OwnBlock
from .packets import (
    OWN_BLOCK,
    barrier_packets,
    packets_received,
    packets_sent,
)
from .ports import COMMAND_NETS, needs_commands, stream_ports
from .readiness import add_readiness_tree, add_stall_watch
from .run_facts import RunFacts
from .sections import Sections, stream_nodes, tree_levels
from .unloader import Unloader

if TYPE_CHECKING:
    from ...rtl.core.core import CoreBuilder

__all__ = ["LEAD_CYCLES", "StreamTop"]

#: Cycles before the last cycle of a run in which the control announces the end of the run, so that
#: unloaders read the first word as soon as the last word is stored: `DISTRIBUTION` to the nodes,
#: and two in the unloader, one of which follows the run.
LEAD_CYCLES = DISTRIBUTION + 1

#: Net of each member of the run port, where the names of net and member differ.
RUN_PORT_NETS = {"entry": "mode", "last": "last_flit"}


class StreamTop:
    """Builder of a fabric with streams: it adds modules to the netlist of a core.

    It adds a loader and an unloader for each node, which move words between streams and memories;
    the control, which starts runs; and, if runs have choices, the module that takes commands.

    Parameters
    ----------
    core : Core
        The core, whose memories have sections.
    clocks : Clocks
        Clocks of the node streams.
    timeout : int
        Cycles after which the watch names a node for which others wait; 0 for no watch.

    Attributes
    ----------
    loader, unloader : EngineShape
        Parameters that all loaders share, and those that all unloaders share.
    """

    #: The modules of loaders and unloaders. With commands, a high bit of the net requests a run.
    engine_classes: tuple[type[Loader], type[Unloader]] = (Loader, Unloader)
    request_net = "load_valid"

    def __init__(self, core: Core, clocks: Clocks, timeout: int) -> None:
        self._core, self._clocks, self._timeout = core, clocks, timeout
        self._build: CoreBuilder = core.build
        self._program: Program = core.program
        self._choices = RunChoices.from_program(core.program)
        #: The nodes that have streams.
        self._nodes = stream_nodes(core.program.topology)
        #: Suffix of the names of node ports, for their nets in the clock of the fabric.
        self._inner = "" if clocks is Clocks.ONE else "_here"
        self._facts = self._plan_facts()
        self.loader, self.unloader = self._plan_engines()

    def _plan_engines(self) -> tuple[EngineShape, EngineShape]:
        """Return the parameters that all loaders share, and those that all unloaders share."""
        core = self._core
        forms = range(len(core.program.forms))
        sent = [packets_sent(core, form) for form in forms]
        received = [packets_received(core, form) for form in forms]
        if core.program.barrier:
            own = [memory.own for memory in core.program.memories].index(True)
            sent.append(barrier_packets(len(core.nodes), self._nodes, own))
            received.append(barrier_packets(len(core.nodes), self._nodes, OWN_BLOCK))
        keeps = any(each.has_own_words.any() for each in received)
        facts = self._facts
        return (
            EngineShape("load", core, tuple(sent), facts, keeps=keeps),
            EngineShape("unload", core, tuple(received), facts, keeps=keeps),
        )

    def _plan_facts(self) -> RunFacts:
        """Return the widths of signals that tell loaders and unloaders a run's form and root."""
        program = self._program
        return RunFacts(
            commanded=needs_commands(program),
            form_bits=(len(program.forms) + program.barrier - 1).bit_length(),
            root_bits=self._choices.sampled_inputs.get("root", 0),
            position_bits=address_width(self._build.nodes),
            sections=Sections({2: 2, 4: 3}[self._core.sections]),
        )

    def add_modules(self) -> list[tuple[str, int]]:
        """Add all modules; return (name, number of instances) of each router module."""
        build = self._build
        self._add_ports()
        self._add_control()
        loader, unloader = self.engine_classes
        self._add_engines("loader", partial(loader, self.loader))
        self._add_engines("unloader", partial(unloader, self.unloader))
        self._add_own_blocks()
        self._add_idle_ports()
        add_readiness_tree(build, self.loader, self._nodes)  # type: ignore[arg-type]
        routers = self._add_core()
        for name in ("busy", "done", "cycles"):
            build.add_output(name, build.nets[name])
        build.add_output("error", build.nets["error"])
        apart = self._clocks is not Clocks.ONE
        if self._timeout:
            asked = self._request_bits()
            add_stall_watch(build, self._timeout, asked, self._nodes, apart=apart)  # type: ignore[arg-type]
        if apart:
            add_crossings(build, self._nodes, watched=self._timeout > 0)
        return routers

    def _add_core(self) -> list[tuple[str, int]]:
        """Add the modules of the core; return (name, number of instances) of each router module."""
        return self._core.add_modules(RUN_PORT_NETS)

    def _request_bits(self) -> Parts:
        """Return the bits by which the watch for late nodes knows that a run is requested.

        A run is requested while any of these bits is high. With commands, there is a bit for each
        waiting command. Otherwise there is a bit for each node that sends, which is high while a
        message of the node waits.
        """
        if self._facts.commanded:
            return self._build.all_bits(self.request_net)
        (packets,) = self.loader.packets
        senders = np.flatnonzero(packets.has_packets).tolist()
        return tuple(Part(f"loaded_{node}", 0, 1) for node in senders)

    def _add_ports(self) -> None:
        """Add the ports of node, command and status streams."""
        build = self._build
        core = self._core
        ports = stream_ports(self._program, core.width, self._clocks, beat=core.beat)
        build.declared |= ports
        for name, port in ports.items():
            if port.node is None and not name.startswith(("s_axis", "m_axis")):
                continue
            # The node number may be inside the name of a port: `s_axis_8_tdata`.
            general = name if port.node is None else name.replace(str(port.node), "{}", 1)
            add = build.add_output if port.output else build.add_input
            add(general, port.width, node=port.node)

    def _add_control(self) -> None:
        """Add the module that starts runs and, if runs have choices, the module `Commands`."""
        build, top = self._build, tree_levels(len(self._nodes)) - 1
        # Round trip: to the nodes, into their registers, and up the tree.
        make = self._make_control(top + 2)
        heard = {"ready": "ready", "bad": "bad", "good": "good", "last": "length"}
        nets = {name: f"{net}_{top}_0" for name, net in heard.items()}
        add_single_instance(build, "stream_control", Role.STREAM, make, renamed=nets)
        if self._facts.commanded:
            commands = partial(Commands, self._command_shape())
            nets = COMMAND_NETS | {"load_valid": self.request_net, "all_rest": f"rest_{top}_0"}
            nets |= self._command_nets()
            add_single_instance(build, "commands", Role.STREAM, commands, renamed=nets)

    def _command_nets(self) -> dict[str, str]:
        """Return those inputs and outputs of `Commands` whose nets have other names.

        The result is a dict from the name of the input or output to the name of the net that is
        connected to it. Here it is empty; a subclass for loadable tables overrides the method.
        """
        return {}

    def _make_control(self, round_trip: int) -> Callable[[], StreamControl]:
        """Return a function that makes the module `StreamControl`, which starts runs.

        `round_trip` is the number of cycles from the begin of a run until the control knows which
        nodes are ready for the next one.
        """
        return partial(StreamControl, self._program, round_trip, self.loader)

    def _command_shape(self) -> CommandShape:
        """Return the parameters of `Commands`, the module that takes commands.

        If the fabric has a barrier, commands can choose it as one further mode, behind all others.
        """
        program, choices = self._program, self._choices
        if program.barrier:
            choices = replace(
                choices,
                roots=(*choices.roots, None),
                combining=(*choices.combining, False),
                served=(*choices.served, (Range(1, len(program.forms)),)),
            )
        return CommandShape(choices, self._facts, program.flits, program.barrier)

    def _add_engines(self, name_of: str, make: Callable[[], Engine]) -> None:
        """Add the loaders, or the unloaders, of the nodes, and the ROMs with locations of blocks.

        `name_of` is the name of the module, ``loader`` or ``unloader``, and `make` a function that
        makes it.
        """
        build, leaf = self._build, make()
        nodes, shape = self._nodes, leaf.shape
        build.add_module(name_of, make, role=Role.STREAM)
        inputs: dict[str, Sequence[Source]] = {
            name: [each.at_instances(nodes) if isinstance(each, Constants) else each
                   for each in sources]
            for name, sources in self._constant_inputs(leaf).items()
        }  # fmt: skip
        outputs: dict[str, tuple[str, int]] = {}
        for name, member in leaf.signature.members.items():
            net = f"{name}_{{}}"
            if name.startswith("t"):
                net = f"{leaf.side}_{{}}_{name}{self._inner}"
            if member.flow is Out:
                outputs[name] = f"{shape.verb}_key_{{}}" if name == "key" else net, member.shape
            elif name.startswith("t"):
                inputs[name] = (Slice(net, nodes, 0, member.shape),)
            elif name not in inputs:
                inputs[name] = (build.distribution.group_registers(name, nodes),)
        build.add_array(f"{name_of}_at_{{}}", name_of, nodes, inputs=inputs, outputs=outputs)

    def _constant_inputs(self, leaf: Engine) -> dict[str, Sequence[Source]]:
        """Return, by name, sources of those inputs of a loader or unloader that differ by node.

        These inputs do not depend on the run. Examples are the position of the node in its group, a
        constant, and the output of the ROM with the locations of blocks. Constants are those of all
        nodes of the network. `leaf` is the loader or unloader.
        """
        shape, nodes, every = leaf.shape, self._nodes, np.arange(self._build.nodes)
        here = self._core.nodes
        inputs: dict[str, Sequence[Source]] = {
            leaf.passes: [Constants(each.has_packets.astype(int), 1) for each in shape.packets]
        }
        if shape.position_bits:
            # A barrier does not use the position.
            positions = [form.groups.position_of_node[here] for form in self._program.forms]
            positions += [0 * every] * self._program.barrier
            inputs["position"] = [Constants(each, self._facts.position_bits) for each in positions]
        if shape.has_unequal_packets and shape.verb == "unload":
            inputs |= _own_packet_inputs(shape, len(every))
        if shape.has_lengths:
            inputs |= _length_inputs(shape)
        if shape.rom_address_bits:
            rows = shape.packet_table.rom_rows[nodes]
            contents, which = np.unique(rows, axis=0, return_inverse=True)
            net = f"{shape.verb}_row_{{}}"
            self._build.add_roms(
                f"rom_{net}",
                nodes,
                contents=[tuple(rows) for rows in contents.tolist()],
                which=np.asarray(which).ravel(),
                width=shape.packet_table.rom_bits,
                address=[Slice(f"{shape.verb}_key_{{}}", nodes, 0, shape.rom_address_bits)],
                output=net,
            )
            inputs["row"] = (Slice(net, nodes, 0, shape.packet_table.rom_bits),)
        elif shape.packet_table.rom_bits:
            inputs["row"] = (
                Constants(shape.packet_table.rom_rows[:, 0], shape.packet_table.rom_bits),
            )
        return inputs

    def _add_own_blocks(self) -> None:
        """Add, at each node, the memory for words that it sends to itself; it also drives `tdata`.

        The module is an `OwnBlock`; `tdata` is the data of the node's stream of received words.
        Nodes that never send words to themselves get a variant without a memory, named ``outlet``.
        """
        build, shape = self._build, self.unloader
        keeps = np.any([each.has_own_words for each in shape.packets], axis=0)
        for name, nodes in (
            ("own_block", self._nodes[keeps[self._nodes]]),
            ("outlet", self._nodes[~keeps[self._nodes]]),
        ):
            if not len(nodes):
                continue
            make: Callable[[], Leaf] = partial(OwnBlock, shape, keeps=name == "own_block")
            build.add_module(name, make, role=Role.OUTLET)
            members, keep = make().signature.members, f"m_axis_{{}}_tkeep{self._inner}"
            inputs: Mapping[str, Sequence[Source]] = {
                port: (Slice(keep if port == "tkeep" else f"{port}_{{}}", nodes, 0, each.shape),)
                for port, each in members.items()
                if each.flow is not Out
            }
            net = f"m_axis_{{}}_tdata{self._inner}"
            outputs = {"tdata": (net, shape.data_bits)}
            build.add_array(f"{name}_at_{{}}", name, nodes, inputs=inputs, outputs=outputs)

    def _add_idle_ports(self) -> None:
        """Add, at each node that only relays, a module that leaves its memory port idle."""
        build, widths = self._build, self._idle_nets()
        relays = np.setdiff1d(np.arange(build.nodes), self._nodes)
        if len(relays):
            build.add_module("idle_port", partial(IdlePort, widths), role=Role.STREAM)
            outputs = {name: (f"{name}_{{}}", width) for name, width in widths.items()}
            build.add_array("idle_port_at_{}", "idle_port", relays, inputs={}, outputs=outputs)

    def _idle_nets(self) -> dict[str, int]:
        """Return the width of each net that loader and unloader of a node drive for the core."""
        return dict(self.loader.memory_port.inputs)


class IdlePort(Leaf):
    """Module that holds inputs of a memory port at 0, so that it neither writes nor reads.

    Parameters
    ----------
    widths : mapping of str to int
        The width of each input, by name.
    """

    def __init__(self, widths: Mapping[str, int]) -> None:
        super().__init__({name: Out(width) for name, width in widths.items()})

    def elaborate(self, platform: object) -> Module:
        """Drive all outputs with 0."""
        m = Module()
        m.d.comb += [getattr(self, name).eq(0) for name in self.signature.members]
        return m


def _length_inputs(shape: EngineShape) -> dict[str, Sequence[Source]]:
    """Return constants for each loader or unloader: the planned length of each of its packets.

    The keys are names of inputs. For each form, the input `lengths` has the number of the last flit
    of each packet. For loaders, the input `own_last` has the number, from 0, of the last packet.
    `shape` has the packets of each form.
    """
    planned = shape.planned_lengths.reshape(len(shape.core.nodes), -1)
    bits = shape.planned_length_bits
    lengths = [Constants((each - 1) % (1 << bits), bits) for each in planned.T]
    if shape.verb == "unload" or not shape.packet_bits:
        return {"lengths": lengths}
    counts = (np.maximum(each.packets_of_nodes, 1) for each in shape.packets)
    return {
        "lengths": lengths,
        "own_last": [Constants(count - 1, shape.packet_bits) for count in counts],
    }


def _own_packet_inputs(shape: EngineShape, nodes: int) -> dict[str, Sequence[Source]]:
    """Return constants for each unloader: how many packets the node receives, and their origins.

    The keys are names of inputs. For each form, the input `own_last` is the number, from 0, of the
    last packet that a node receives, and `own_numbers` has the origins of its packets. `shape` has
    the packets of each form, and `nodes` is the number of nodes.
    """
    last, numbers = list[Source](), list[Source]()
    for each in shape.packets:
        counts = (
            np.full(nodes, each.most_packets) if each.numbers is None else each.packets_of_nodes
        )
        last.append(Constants(np.maximum(counts, 1) - 1, shape.packet_bits))
        for k in range(1 << shape.packet_bits):
            number = np.full(nodes, k)
            if each.numbers is not None:
                number = each.numbers[:, min(k, each.most_packets - 1)]
            numbers.append(Constants(number | each.origin, shape.stream_id_bits))
    return {"own_last": last, "own_numbers": numbers}
