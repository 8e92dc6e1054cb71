"""The hardware of a bare core: its run port and memory ports are the ports of the fabric.

Where a run chooses its root, starts pass `Requests`, which refuses what is no node. What nodes
receive in a broadcast from any root lies in the upper half of their memories, and what they would
send in the lower one. A table at each node says which half shows what the last run delivered there:
the lower one at its root. So an address is the same for all roots.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...program import Program
from ...rtl.core import Core
from ...rtl.core.run_port import RunPort
from ...rtl.finders import HostLayout
from ...rtl.netlist import Role
from ...rtl.run_choices import RunChoices
from ...rtl.tops import Built, add_single
from ..host.requests import Requests
from .memory_port import BarePort

__all__ = ["add_bare_fabric", "bare_core"]

#: Nets of the run port whose names are not those of its members, if there are requests.
NETS = {"start": "accepted", "last_root": "sampled_root"}


def bare_core(program: Program, width: int, *, resets: bool) -> Core:
    """Return the core of a fabric whose nodes have ports of their own.

    Parameters
    ----------
    resets : bool
        True if an input ends runs early.
    """
    return Core(
        program,
        width,
        run_port=RunPort(program, lead=0, resets=resets),
        memory_port=BarePort(
            program.memories,
            int(program.depth.max()),
            width,
            half=program.form.upper_half,
        ),
    )


def add_bare_fabric(core: Core, layouts: Sequence[HostLayout]) -> Built:
    """Fill the netlist of a core whose ports are those of the fabric."""
    del layouts  # the address map says where words lie
    build, port = core.build, core.memory_port
    assert isinstance(port, BarePort)
    choices = RunChoices.of(core.program).inputs
    for name, bits in {"start": 1, **choices}.items():
        build.add_input(name, bits)
    if choices:
        add_single(build, "requests", Role.SEQUENCER, lambda: Requests(core.program))
    for node in range(build.nodes):
        for name, bits in port.outside.items():
            build.add_input(name, bits, node=node)
        build.add_output("read_data", build.word, node=node)
    routers = core.add(NETS if choices else {})
    if "upper" in port.inputs:
        _add_halves(core)
    for name in ("busy", "done", "cycles", "error"):
        if name in build.nets:
            build.add_output(name, build.nets[name])
    return Built(routers, port.answer)


def _add_halves(core: Core) -> None:
    """Add the tables by which nodes read the upper half of their memories, given the root."""
    build, nodes = core.build, np.arange(core.build.nodes)
    groups = core.program.root_groups
    positions, which = np.unique(groups.position[core.nodes], return_inverse=True)
    roots = range(groups.size)
    build.add_roms(
        "rom_upper_{}",
        nodes,
        contents=[tuple(int(root != own) for root in roots) for own in positions.tolist()],
        which=np.asarray(which).ravel(),
        width=1,
        address=(build.distribution.near_each("node_root", nodes),),
        output="upper_{}",
    )
