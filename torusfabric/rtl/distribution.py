"""Distribution of signals from the sequencer and the host port to all nodes.

Each such signal passes two registers: one for each group of nodes (`ControlStage`) and one at each
node (`torusfabric.rtl.core.node_module.NodeModule.node_register`)::

    sequencer --+--> control_stage_0 --+--> node 0
                |                      +--> node 1 ..
                +--> control_stage_1 --+--> ..

A *group* here is a set of nodes with consecutive numbers (`torusfabric.rtl.arrays.NodeGroups`). For
a net ``X``, the net ``X_near_K`` is the output of the register of group K.

The module also has `WordNets`, the nets that an input of many nodes is made of.
"""

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
from .arrays import NodeGroups, Slice, SliceChoice
from .modules import UNMERGED, Leaf
from .netlist import NetlistBuilder, Part, Parts, Role

__all__ = ["ControlStage", "Distribution", "WordNets", "has_bit_per_group"]

#: Pulses that change a lasting state of nodes. Their registers are cleared by a reset, so that no
#: pulse arrives after the reset.
STROBES = frozenset({"run_begins", "run_ends", "load_valid", "message_valid"})

#: Names of the nets that have a bit for each group of nodes. A group is given its own bit only.
BIT_PER_GROUP = re.compile(r"write_enable(_\d+)?")

assert DISTRIBUTION >= 2, "groups of nodes have a register, and nodes have one"

#: The net that resets the nodes. Its registers start as 1, so that nodes start after a reset.
RESET_NET = "clear"


def has_bit_per_group(net: str) -> bool:
    """Return True if a net has one bit for each group of nodes, such as a decoded write enable.

    Only the write enables of the host port are such nets.

    Examples
    --------
    >>> has_bit_per_group("write_enable_1"), has_bit_per_group("write_node")
    (True, False)
    """
    return BIT_PER_GROUP.fullmatch(net) is not None


#: Words that a node of the read tree combines, with one 4-input LUT for each bit.
READ_TREE_RADIX = 4


def tree_level_sizes(nodes: int) -> list[int]:
    """Return the number of tree nodes on each level of the read tree.

    The read tree combines the words read at all nodes of a fabric into one. Each tree node combines
    up to `READ_TREE_RADIX` words of the level below, so each level has a quarter of its size.

    Parameters
    ----------
    nodes : int
        Number of nodes of the fabric.

    Examples
    --------
    16 tree nodes combine the words of four nodes each, 4 the words of these, and 1 the rest.

    >>> tree_level_sizes(64)
    [16, 4, 1]
    """
    levels = []
    while nodes > 1:
        nodes = -(-nodes // READ_TREE_RADIX)
        levels.append(nodes)
    return levels


class WordNets(NamedTuple):
    """The nets that drive an input of several nodes, word by word.

    The input is a concatenation of words. Each word is `width` adjacent bits of a net, and the net
    can differ from node to node.

    Parameters
    ----------
    nets : list of str
        Names of nets, with ``{}`` in the place of a number.
    which : ndarray of int, shape (nodes, words)
        The net of each word, as an index into `nets`.
    number : ndarray of int, shape (nodes, words)
        The number in the name of the net.
    start : ndarray of int, shape (nodes, words)
        The lowest bit of the word in the net.
    """

    nets: list[str]
    which: IntArray
    number: IntArray
    start: IntArray

    def word_slices(self, width: int) -> list[Slice | SliceChoice]:
        """Return the driver of each word of the input: one `Slice` or `SliceChoice` for all nodes.

        A word has `width` bits.
        """
        found: list[Slice | SliceChoice] = []
        for which, number, start in zip(self.which.T, self.number.T, self.start.T, strict=True):
            used, of_each = np.unique(which, return_inverse=True)
            slices = tuple(
                Slice.from_starts(self.nets[k], number, start, width) for k in used.tolist()
            )
            found.append(slices[0] if len(slices) == 1 else SliceChoice(slices, of_each.ravel()))
        return found


class ControlStage(Leaf):
    """The registers of a group of nodes for the signals from the sequencer and the host port.

    Parameters
    ----------
    widths : dict of str to int
        The name and width of each signal.

    Members
    -------
    NAME : In
        The signal.
    NAME_near : Out
        The signal one cycle later.
    """

    def __init__(self, widths: Mapping[str, int]) -> None:
        self._names = tuple(widths)
        super().__init__(
            {name: In(width) for name, width in widths.items()}
            | {f"{name}_near": Out(width) for name, width in widths.items()}
        )
        for name, width in widths.items():
            # The registers of all groups hold the same values, and synthesis must not merge them.
            near = Signal(
                width,
                name=f"{name}_near",
                init=int(name == RESET_NET),
                reset_less=name not in STROBES,
                attrs=UNMERGED,
            )
            setattr(self, f"{name}_near", near)

    def elaborate(self, platform: object) -> Module:
        """Build one register for each signal."""
        m = Module()
        near = Cat(getattr(self, f"{name}_near") for name in self._names)
        m.d.sync += near.eq(Cat(self.input_value(name) for name in self._names))
        return m


class Distribution:
    """The registers between the sequencer and host port, which exist once, and the nodes.

    A signal takes `program.timing.DISTRIBUTION` cycles to the nodes: the last cycle is a register
    in the node, the cycles before are registers of the group of the node. Why groups: the nodes
    are spread over the device, and no register shall have a large fan-out.

    The write enable of the host port has a bit for each group, decoded in front of the registers.
    A node thus compares only the low bits of the node number, within its group.

    Methods `group_register`, `group_registers` and `group_registers_of_nets` request a signal;
    `add_registers` then adds the registers of all requested signals.

    Parameters
    ----------
    netlist : NetlistBuilder
        The netlist that takes the registers.
    nodes : int
        Number of nodes that the signals are distributed to.

    Attributes
    ----------
    groups : NodeGroups
        The groups of nodes.

    Examples
    --------
    Node 5 of 16 is in group 1, whose register holds bit 1 of the write enable.

    >>> netlist = NetlistBuilder()
    >>> distribution = Distribution(netlist, 16)
    >>> _ = netlist.add_input("write_enable", distribution.groups.n_groups)
    >>> distribution.group_register("write_enable", 5)
    (Part(net='write_enable_near_1', start=0, width=1),)
    >>> distribution.add_registers()
    >>> netlist.make_netlist().instances[1].inputs
    {'write_enable': (Part(net='write_enable', start=1, width=1),)}
    """

    def __init__(self, netlist: NetlistBuilder, nodes: int) -> None:
        self._netlist, self.groups = netlist, NodeGroups(nodes)
        self._widths: dict[str, int] = {}

    def group_register(self, net: str, node: int, width: int | None = None) -> Parts:
        """Return the register that brings a net to a node, or the low bits of this register.

        A group of nodes with consecutive numbers shares the register.

        For a net with a bit for each group (`has_bit_per_group`), the register holds the bit of the
        group.

        Parameters
        ----------
        net : str
            The net to distribute.
        node : int
            The node whose group is meant.
        width : int, optional
            The number of low bits; by default all bits.
        """
        whole = self._request_net(net)
        return (Part(f"{net}_near_{self.groups.group_of(node)}", 0, width or whole),)

    def group_registers(self, net: str, nodes: IntArray, width: int | None = None) -> Slice:
        """Return the driver of an input at some nodes: registers that bring a signal to the nodes.

        Each group of nodes with consecutive numbers has such a register; at each node, the input
        is driven by the register of its group. See `group_register`.

        Parameters
        ----------
        net : str
            The net of the signal.
        nodes : ndarray of int
            The numbers of the nodes that read the signal.
        width : int, optional
            The number of lowest bits of the signal to take, by default all.
        """
        return self.group_registers_of_nets([net], nodes, width)[0]

    def group_registers_of_nets(
        self, nets: Sequence[str], nodes: IntArray, width: int | None = None
    ) -> tuple[Slice, ...]:
        """Return, for each of several nets, the registers that bring it to some nodes.

        The result has one `Slice` for each net, as `group_registers` returns it.

        Parameters
        ----------
        nets : sequence of str
            The nets of the signals.
        nodes, width
            The same as in `group_registers`.
        """
        groups = self.groups.group_of(nodes)
        return tuple(
            Slice(f"{net}_near_{{}}", groups, 0, width or whole)
            for net, whole in zip(nets, map(self._request_net, nets), strict=True)
        )

    def _request_net(self, net: str) -> int:
        """Record that a net is needed in each group, and return the bits of a group's register."""
        return self._widths.setdefault(
            net, 1 if has_bit_per_group(net) else self._netlist.nets[net]
        )

    def add_registers(self) -> None:
        """Add the registers of all requested nets to the netlist.

        Each group of nodes gets `DISTRIBUTION` - 1 registers in series for a net.
        """
        net, widths, groups = self._netlist, self._widths, np.arange(self.groups.n_groups)
        net.add_module("control_stage", partial(ControlStage, widths), role=Role.CONTROL)
        given = {
            name: (Slice(name, None, groups if has_bit_per_group(name) else 0, width),)
            for name, width in widths.items()
        }
        # The last of the `DISTRIBUTION` registers is in the node.
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
