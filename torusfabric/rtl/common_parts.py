# amaranth: UnusedElaboratable=no
"""What a fabric has once: host port, read tree, sequencer, root unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from amaranth.lib.wiring import Out

from .blueprint import Blueprint, Top
from .host import RADIX, Host, ReadMerge, merge_levels
from .host_layout import HostLayout
from .locators import Locator, locator_of, write_locator_of
from .memories import address_width
from .netlist import Fixed, Leaf, Part, Parts, Role
from .root_unit import RootUnit
from .sequencer import Sequencer

__all__ = ["add_host", "add_root_unit", "add_sequencer"]


def _add_single(
    plan: Blueprint,
    name: str,
    role: Role,
    make: Callable[[], Leaf],
    inputs: Mapping[str, Parts],
) -> dict[str, tuple[Part, ...]]:
    """A module of which there is one; returns its outputs, which are nets of their own names."""
    plan.netlist.add_module(name, make, role=role)
    leaf = make()
    outputs = {
        member: (member, len(getattr(leaf, member)))
        for member, flow in leaf.signature.members.items()
        if flow.flow is Out
    }
    plan.netlist.add(f"the_{name}", name, inputs=dict(inputs), outputs=outputs)
    return {member: plan.netlist.whole(member) for member in outputs}


def add_host(plan: Blueprint, layout: HostLayout) -> tuple[int, list[Callable[[], Locator]]]:
    """Add the host port, and the tree that brings read data to it.

    Returns
    -------
    read_latency : int
        Edges from an address to its data.
    locators : list of function of () -> Locator
        Those of what is received, and of what is sent if that is not in the order of addresses.
    """
    net = plan.netlist
    locator, writer = locator_of(plan.program), write_locator_of(plan.program)
    bits = {
        "host_we": 1,
        "host_node": address_width(plan.nodes),
        "host_addr": layout.address_bits,
        "host_wdata": plan.width,
    }
    inputs: dict[str, Parts] = {name: net.add_input(name, width) for name, width in bits.items()}
    if layout.part_is_root:
        inputs["sampled_root"] = (Part("sampled_root", 0, layout.root_bits),)

    def make() -> Host:
        answer = plan.control.endpoints.answer
        return Host(layout, locator(), plan.width, plan.address_bits, answer, writer and writer())

    _add_single(plan, "host", Role.HOST, make, inputs)
    _add_read_tree(plan)
    net.add_output("host_rdata", plan.width)
    return make().read_latency, [locator, *([writer] if writer else [])]


def _add_read_tree(plan: Blueprint) -> None:
    """Brings the word read at a node to `host_rdata`, level by level."""
    net, width = plan.netlist, plan.width
    words = [Part(plan.read_net(node), 0, width) for node in range(plan.nodes)]
    levels = merge_levels(plan.nodes)
    for level in range(len(levels)):
        groups = [words[start : start + RADIX] for start in range(0, len(words), RADIX)]
        words = []
        for number, group in enumerate(groups):
            module = f"read_merge_{len(group)}"
            net.add_module(module, partial(ReadMerge, len(group), width), role=Role.READ_TREE)
            name = f"read_{level}_{number}" if level < len(levels) - 1 else "host_rdata"
            net.add(
                f"read_merge_{level}_{number}",
                module,
                inputs={"data": tuple(group)},
                outputs={"word": (name, width)},
            )
            words.append(Part(name, 0, width))


def add_sequencer(plan: Blueprint) -> None:
    """Add the sequencer; at rest it passes on an address that the host reads."""
    net, bits = plan.netlist, plan.address_bits
    address: Parts = (Fixed(0, bits),)
    if plan.top is Top.HOST:
        address = net.low("read_address", bits)
    make = lambda: Sequencer(
        plan.program.timing,
        plan.control,
        address_bits=bits,
        lengths=plan.lengths,
        roots=plan.groups.size if plan.program.any_root else None,
        operators=plan.choosable,
    )
    chosen = net.inputs.keys() & make().signature.members.keys()
    inputs = {name: net.whole(name) for name in net.inputs if name in chosen}
    given = _add_single(plan, "sequencer", Role.SEQUENCER, make, inputs | {"idle_address": address})
    plan.sequenced.update(given)


def add_root_unit(plan: Blueprint) -> None:
    """Add what takes the root and gives every node its offset from it."""
    inputs = {name: plan.netlist.whole(name) for name in ("accepted", "root")}
    shown, offsets = plan.program.mode.part_is_root, plan.program.by_offset
    make = lambda: RootUnit(plan.groups.torus, shown=shown, offsets=offsets)
    _add_single(plan, "root_unit", Role.ROOT_UNIT, make, inputs)
