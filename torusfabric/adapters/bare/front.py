"""`BareFront`: a core whose own ports are the ports of the fabric.

These are the run port, which starts runs, and the ports of each node. In a *direct core*, nodes
have no memories: their ports are inputs for words to send, and outputs for words that arrive.

If a run chooses its root, `Requests` checks the start, and refuses a root that is no node.

In a broadcast from any root the memories of a node have two halves. The lower half holds the node's
own message, which the node sends if it is the root. The upper half takes received words. The root
receives nothing; its result is its own message, in the lower half. A ROM at each node, addressed by
the root of the last run, therefore selects the half that a read accesses. So the user reads the
same address for all roots.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ...errors import InputError
from ...program import Program
from ...rtl.core import Core
from ...rtl.core.core import CoreBuilder
from ...rtl.core.direct_port import DirectPort, is_direct
from ...rtl.core.memory_port import MemoryPort
from ...rtl.core.run_port import RunPort
from ...rtl.flit_rows import AUTO, choose_beat
from ...rtl.front import Front, FrontFacts
from ...rtl.netlist import Part, Role, add_single_instance
from ...rtl.run_choices import RunChoices
from ..host.finders import host_layouts
from ..host.requests import Requests
from .direct import FlitCounter
from .interface import BareInterface
from .memory_port import NodeMemoryPort

__all__ = ["BareFront"]

#: Net of each member of the run port, where the names differ; only with `Requests`.
RUN_PORT_NETS = {"start": "accepted", "last_root": "sampled_root"}


class BareFront(Front):
    """The hardware of a fabric with the top ``core``: a core whose nodes have ports of their own.

    Parameters
    ----------
    program : Program
        The program that the core executes.
    width : int
        Bits of a flit.
    beat : int or "auto"
        Number of flits in one word of a memory port.

    Raises
    ------
    InputError
        If the beat is larger than 1 and nodes have no memories.
    """

    top = "core"

    def __init__(self, program: Program, width: int, beat: int | str = AUTO) -> None:
        if is_direct(program) and beat not in (1, AUTO):
            what = "a core without memories, whose words are those of links"
            raise InputError(f"Beat must be 1 for {what}, not {beat}")
        beat, program = choose_beat(program, width, beat)
        port: MemoryPort | DirectPort = DirectPort(program, width)
        if not is_direct(program):
            depth, half = int(program.depth.max()), program.form.upper_half_address
            port = NodeMemoryPort(program.memories, depth, beat * width, half=half)
        run_port = RunPort(program, lead=0, resets=False)
        core = Core(program, width, beat=beat, run_port=run_port, memory_port=port)
        super().__init__(core, host_layouts(program, beat=beat))

    def add_hardware(self) -> FrontFacts:
        """Add the check of starts (`Requests`), node ports, core and outputs to the netlist."""
        core = self.core
        build, program, port = core.build, core.program, core.memory_port
        assert isinstance(port, NodeMemoryPort | DirectPort)
        choices = RunChoices.from_program(program).sampled_inputs
        for name, bits in {"start": 1, **choices}.items():
            build.add_input(name, bits)
        if choices:
            add_single_instance(build, "requests", Role.SEQUENCER, lambda: Requests(program))
        for node in range(build.nodes):
            for name, bits in port.outside.items():
                build.add_input(name, bits, node=node)
        routers = core.add_modules(RUN_PORT_NETS if choices else {})
        if isinstance(port, DirectPort):
            _add_direct_outputs(build, port)
        for node in range(build.nodes if isinstance(port, NodeMemoryPort) else 0):
            build.add_output("read_data", build.word, node=node)
        if "upper" in port.inputs:
            _add_half_roms(core)
        for name in ("busy", "done", "cycles", "error"):
            if name in build.nets:
                build.add_output(name, build.nets[name])
        return FrontFacts(routers, BareInterface(program, port.read_cycles), port.read_cycles)


def _add_half_roms(core: Core) -> None:
    """Add a ROM at each node that says, for each root, which half of the memories is read.

    In a broadcast from any root, received words are in the upper half of a memory, and the node's
    own message is in the lower half. The ROM has a bit for each root: 1 (the upper half) unless the
    node itself is the root, which receives nothing. `core` is the core to which the ROMs are added.
    """
    build, nodes = core.build, np.arange(core.build.nodes)
    groups = core.program.root_groups
    positions, which = np.unique(groups.position_of_node[core.nodes], return_inverse=True)
    roots = range(groups.group_size)
    build.add_roms(
        "rom_upper_{}",
        nodes,
        contents=[tuple(int(root != own) for root in roots) for own in positions.tolist()],
        which=np.asarray(which).ravel(),
        width=1,
        address=(build.distribution.group_registers("node_root", nodes),),
        output="upper_{}",
    )


def _add_direct_outputs(build: CoreBuilder, port: DirectPort) -> None:
    """Add the outputs of a core without memories: arriving words, and the counters of cycles.

    The arriving words are those at the in-ports of nodes. The counters are the outputs of
    `FlitCounter`. `build` is the netlist under construction; `port` has the widths of the counters.
    """
    arriving = build.arriving_nets(np.arange(build.nodes))
    words_of = zip(*(each.instance_parts(build.nodes) for each in arriving), strict=True)
    for node, words in enumerate(words_of):
        build.wire_output("receive", words, node=node)
    count = add_single_instance(
        build,
        "direct_count",
        Role.SEQUENCER,
        partial(FlitCounter, port),
        {
            "flit": (Part("counters", 0, port.flit_bits),),
            "arrives": (Part("valids", 0, 1),),
        },
    )
    for name in ("tx_address", "rx_enable", "rx_address"):
        build.add_output(name, sum(part.width for part in count[name]))
