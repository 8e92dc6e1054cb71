"""The hardware of a host port: a core whose nodes share one memory port.

The host port finds node, memory and address of a word. Its requests reach all nodes by registers
for groups of nodes; the word of the node that is asked comes back by a tree.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...contract.cut import Cut
from ...program import Program
from ...rtl.arrays import NodeGroups
from ...rtl.core import Core
from ...rtl.core.memory_port import SharedPort, enable_numbers
from ...rtl.core.run_port import RunPort
from ...rtl.netlist import Role, add_single
from ...rtl.run_choices import RunChoices
from ...rtl.top import Built
from .finders import HostLayout
from .port import add_host
from .requests import Requests

#: Nets of the run port whose names are not those of its members.
NETS = {
    "start": "accepted",
    "reset": "reset_run",
    "idle_address": "read_address",
    "last_entry": "run_form",
    "last_root": "sampled_root",
}

__all__ = ["add_fabric", "make_core"]


def make_core(
    program: Program,
    width: int,
    *,
    beat: int = 1,
    resets: bool = False,
    cut: Cut | None = None,
) -> Core:
    """Return the core of a fabric with a host port.

    Parameters
    ----------
    beat : int
        Flits of a word of the host port.
    resets : bool
        True if an input ends runs early.
    cut : Cut, optional
        The nodes that are built, if they are not all.
    """
    nodes = len(cut.here) if cut else program.topology.nodes
    layouts = range(1 + max(form.layout for form in program.forms))
    of_layout = [form.layout for form in program.forms].index
    words = [program.part(of_layout(layout)).send_words for layout in layouts]
    core = Core(
        program,
        width,
        beat=beat,
        nodes=cut.here if cut else None,
        # A part begins later anyway, after a start that closes the port.
        run_port=RunPort(program, lead=0, holds=cut is None, resets=resets),
        memory_port=SharedPort(
            program.memories,
            int(program.depth.max()),
            beat * width,
            nodes=nodes,
            place_bits=NodeGroups(nodes).place_bits,
            enables=enable_numbers(words),
        ),
    )
    core.build.cut = cut
    return core


def add_fabric(core: Core, layouts: Sequence[HostLayout], outside: str = "") -> Built:
    """Fill the netlist of a core with a host port.

    Parameters
    ----------
    layouts : sequence of HostLayout
        The address map of each form.
    outside : str
        Prefix of the nets `start` and `busy` that close the port to writes.
    """
    build, program, port = core.build, core.program, core.run_port
    choices = RunChoices.of(program)
    for name, bits in {"start": 1, **choices.inputs}.items():
        build.add_input(name, bits)
    if port.resets:
        build.add_input("reset_run")
    add_single(build, "requests", Role.SEQUENCER, lambda: Requests(program))
    latency, finders = add_host(build, layouts, outside)
    routers = core.add(NETS)
    for name in ("busy", "done", "cycles", "error", "round"):
        if name in build.nets:
            build.add_output(name, build.nets[name])
    return Built(routers, latency, finders)
