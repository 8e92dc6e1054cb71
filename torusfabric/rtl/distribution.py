"""The way from what a fabric has once to its nodes, and the words of nodes as columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out

from ..program.timing import DISTRIBUTION
from ..topology import IntArray
from .arrays import NodeGroups, OneOf, Slice
from .modules import APART, Leaf
from .netlist import NetlistBuilder, Part, Parts, Role

__all__ = ["ControlStage", "Distribution", "Words", "is_by_group"]

#: What changes a state of nodes that stays, so that nothing may be left of it after a reset.
STROBES = frozenset({"run_begins", "run_ends", "load_valid", "message_valid"})

#: Nets with a bit for each group of nodes; the nodes of a group are given that of theirs.
BY_GROUP = re.compile(r"write_enable(_\d+)?")

assert DISTRIBUTION >= 2, "groups of nodes have a register, and nodes have one"

#: The reset of nodes: they start as after one.
RESET = "clear"


def is_by_group(net: str) -> bool:
    """True if a net from the host port has a bit for each group of nodes.

    Examples
    --------
    >>> is_by_group("write_enable_1"), is_by_group("write_node")
    (True, False)
    """
    return BY_GROUP.fullmatch(net) is not None


#: Words that a node of the read tree combines: a 4-input look-up table a bit.
RADIX = 4


def merge_levels(nodes: int) -> list[int]:
    """Numbers of nodes on each level of the tree over the read data of all nodes of a fabric.

    Examples
    --------
    >>> merge_levels(64)
    [16, 4, 1]
    """
    levels = []
    while nodes > 1:
        nodes = -(-nodes // RADIX)
        levels.append(nodes)
    return levels


class Words(NamedTuple):
    """Words of nodes, one column for each place in an input.

    Parameters
    ----------
    which, number, start : ndarray of int, shape (nodes, words)
        The net of each word, the number that stands in its name, and the lowest bit.
    """

    nets: list[str]
    which: IntArray
    number: IntArray
    start: IntArray

    def slices(self, width: int) -> list[Slice | OneOf]:
        """Each column as a slice, or one of several."""
        found: list[Slice | OneOf] = []
        for which, number, start in zip(self.which.T, self.number.T, self.start.T, strict=True):
            used, of_each = np.unique(which, return_inverse=True)
            slices = tuple(Slice.made(self.nets[k], number, start, width) for k in used.tolist())
            found.append(slices[0] if len(slices) == 1 else OneOf(slices, of_each.ravel()))
        return found


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

    def __init__(self, widths: Mapping[str, int]) -> None:
        self._names = tuple(widths)
        super().__init__(
            {name: In(width) for name, width in widths.items()}
            | {f"{name}_near": Out(width) for name, width in widths.items()}
        )
        for name, width in widths.items():
            # Other groups hold the same.
            near = Signal(
                width,
                name=f"{name}_near",
                init=int(name == RESET),
                reset_less=name not in STROBES,
                attrs=APART,
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

    The sequencer and the host port are in one place, the nodes are everywhere. So whatever they
    give to all nodes is registered once for each group of nodes, and decoded and registered again
    in every node. It comes `program.timing.DISTRIBUTION` cycles later; where these are more than
    two, groups have as many registers more. Nodes are grouped by the upper half of the bits of
    their numbers, so that no register has a large fan-out, and the group of a node that the host
    writes is decoded in front of the first: a node tells itself from its group only.

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

        Of a net by group, as of `is_by_group`, that is the bit of the node's group.
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
        return self._widths.setdefault(net, 1 if is_by_group(net) else self._netlist.nets[net])

    def add(self) -> None:
        """Add the registers for all that nodes are given: a chain for each group of nodes."""
        net, widths, groups = self._netlist, self._widths, np.arange(self.groups.count)
        net.add_module("control_stage", partial(ControlStage, widths), role=Role.CONTROL)
        given = {
            name: (Slice(name, None, groups if is_by_group(name) else 0, width),)
            for name, width in widths.items()
        }
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
