"""The distribution of control: what all nodes are given passes a register near them.

The sequencer and the host port are in one place, the nodes are everywhere. So whatever they give to
all nodes is registered once for each group of nodes, and decoded and registered again in every
node. It comes `program.timing.DISTRIBUTION` cycles later; where these are more than two, groups
have as many registers more. Nodes are grouped by the upper half of the bits of their numbers, so
that no register has a large fan-out, and the group of a node that the host writes is decoded in
front of the first: a node tells itself from its group only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out

from ..program.timing import DISTRIBUTION
from ..topology import IntArray
from .arrays import Slice
from .memories import address_width
from .modules import Leaf
from .netlist import NetlistBuilder, Part, Parts, Role

__all__ = ["BY_GROUP", "ControlStage", "Distribution", "NodeGroups"]


#: What changes a state of nodes that stays, so that nothing may be left of it after a reset.
STROBES = frozenset({"run_begins", "run_ends", "load_valid", "message_valid"})

#: What has a bit for each group of nodes; the nodes of a group are given that of theirs.
BY_GROUP = frozenset({"write_enable"})

assert DISTRIBUTION >= 2, "groups of nodes have a register, and nodes have one"

_Node = TypeVar("_Node", int, IntArray)

#: The reset of nodes: they start as after one.
RESET = "clear"


@dataclass(frozen=True)
class NodeGroups:
    """The groups of nodes that have a register in common.

    Examples
    --------
    >>> groups = NodeGroups(9)
    >>> groups.size, groups.count, [groups.of(node) for node in (0, 3, 4, 8)]
    (4, 3, [0, 0, 1, 2])
    """

    nodes: int

    @cached_property
    def size(self) -> int:
        """Nodes of a group: a power of two, not far from the square root of all."""
        return 1 << ((self.nodes - 1).bit_length() + 1) // 2

    @property
    def count(self) -> int:
        """Number of groups; the last one may have fewer nodes."""
        return -(-self.nodes // self.size)

    @property
    def place_bits(self) -> int:
        """The low bits of the number of a node that tell it from the others of its group."""
        return address_width(self.size)

    def of(self, node: _Node) -> _Node:
        """The group of a node, or of each of some nodes."""
        return node // self.size


class ControlStage(Leaf):
    """Registers what is given to a group of nodes.

    Parameters
    ----------
    widths : dict of str to int
        Bits of everything that is passed on.

    Members
    -------
    NAME : In
    NAME_near : Out
        The same one cycle later.
    """

    # It holds what those of other groups hold.
    kept = True

    def __init__(self, widths: Mapping[str, int]) -> None:
        self._names = tuple(widths)
        super().__init__(
            {name: In(width) for name, width in widths.items()}
            | {f"{name}_near": Out(width) for name, width in widths.items()}
        )
        for name, width in widths.items():
            near = Signal(
                width, name=f"{name}_near", init=int(name == RESET), reset_less=name not in STROBES
            )
            setattr(self, f"{name}_near", near)

    def elaborate(self, platform: object) -> Module:
        """Build the registers."""
        m = Module()
        near = Cat(getattr(self, f"{name}_near") for name in self._names)
        m.d.sync += near.eq(Cat(self.value(name) for name in self._names))
        return m


class Distribution:
    """The registers between what a fabric has once and its nodes.

    Attributes
    ----------
    groups : NodeGroups

    Examples
    --------
    >>> netlist = NetlistBuilder()
    >>> distribution = Distribution(netlist, 16)
    >>> _ = netlist.add_input("write_enable", distribution.groups.count)
    >>> distribution.near("write_enable", 5)
    (Part(net='write_enable_near_1', start=0, width=1),)
    >>> distribution.add()
    >>> netlist.done().instances[1].inputs
    {'write_enable': (Part(net='write_enable', start=1, width=1),)}
    """

    def __init__(self, netlist: NetlistBuilder, nodes: int) -> None:
        self._netlist, self.groups = netlist, NodeGroups(nodes)
        self._widths: dict[str, int] = {}

    def near(self, net: str, node: int, width: int | None = None) -> Parts:
        """A net of what is there once, or its low bits, as a node is given it: one cycle later.

        Of a net `BY_GROUP` that is the bit of the node's group.
        """
        whole = self._whole(net)
        return (Part(f"{net}_near_{self.groups.of(node)}", 0, width or whole),)

    def near_each(self, net: str, nodes: IntArray, width: int | None = None) -> Slice:
        """The same for some nodes."""
        return self.one_near([net], nodes, width)[0]

    def one_near(
        self, nets: Sequence[str], nodes: IntArray, width: int | None = None
    ) -> tuple[Slice, ...]:
        """The same of each of some nets."""
        groups = self.groups.of(nodes)
        return tuple(
            Slice(f"{net}_near_{{}}", groups, 0, width or whole)
            for net, whole in zip(nets, map(self._whole, nets), strict=True)
        )

    def _whole(self, net: str) -> int:
        """The bits of a net that nodes are given."""
        return self._widths.setdefault(net, 1 if net in BY_GROUP else self._netlist.nets[net])

    def add(self) -> None:
        """Add the registers for all that nodes are given: a chain for each group of nodes."""
        net, widths, groups = self._netlist, self._widths, np.arange(self.groups.count)
        net.add_module("control_stage", partial(ControlStage, widths), role=Role.CONTROL)
        given = {
            name: (Slice(name, None, groups if name in BY_GROUP else 0, width),)
            for name, width in widths.items()
        }
        with net.together():
            # The last register is that in the node.
            for left in reversed(range(1, DISTRIBUTION)):
                number = "{}" if left == 1 else f"{{}}_before_{left - 1}"
                nets = {name: f"{name}_near_{number}" for name in widths}
                net.add_array(
                    f"control_stage_{number}",
                    "control_stage",
                    groups,
                    inputs=given,
                    outputs={f"{name}_near": (nets[name], widths[name]) for name in widths},
                    scope="group",
                )
                given = {name: (Slice(nets[name], groups, 0, widths[name]),) for name in widths}
