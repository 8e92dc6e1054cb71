"""The distribution of control: what all nodes are given passes a register near them.

The sequencer and the host port are in one place, the nodes are everywhere. So whatever they give to
all nodes is registered once for each group of nodes, and decoded and registered again in every
node. The two stages are the `DISTRIBUTION` of `program.timing`. Nodes are grouped by their numbers;
the size of a group is about the square root of their number, so that neither stage has a large
fan-out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from amaranth.hdl import Cat, Module
from amaranth.lib.wiring import In, Out

from .apart import held_signal
from .leaf import Leaf
from .netlist import Netlist, Part, Parts, Role

__all__ = ["ControlStage", "Distribution"]


#: What changes a state of nodes that stays, so that nothing may be left of it after a reset.
STROBES = frozenset({"swap", "write_commit", "run_begins", "run_ends", "load_valid"})

#: The reset of nodes: they start as after one.
RESET = "clear"


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
            near = held_signal(
                width, name=f"{name}_near", reset=name in STROBES, init=int(name == RESET)
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

    Parameters
    ----------
    netlist : Netlist
    nodes : int

    Attributes
    ----------
    size : int
        Nodes of a group.

    Examples
    --------
    >>> distribution = Distribution(Netlist(), 16)
    >>> distribution.size, [distribution.group(node) for node in (0, 3, 4, 15)]
    (4, [0, 0, 1, 3])
    """

    def __init__(self, netlist: Netlist, nodes: int) -> None:
        self._netlist, self._nodes = netlist, nodes
        self.size = math.isqrt(nodes - 1) + 1
        self._widths: dict[str, int] = {}

    def group(self, node: int) -> int:
        """The group of a node."""
        return node // self.size

    def near(self, net: str, node: int, width: int | None = None) -> Parts:
        """A net of what is there once, or its low bits, as a node is given it: one cycle later."""
        self._widths.setdefault(net, self._netlist.nets[net])
        return (Part(f"{net}_near_{self.group(node)}", 0, width or self._widths[net]),)

    def add(self) -> None:
        """Add the registers for all that nodes are given."""
        net = self._netlist
        net.add_module("control_stage", partial(ControlStage, self._widths), role=Role.CONTROL)
        for group in range(-(-self._nodes // self.size)):
            net.add(
                f"control_stage_{group}",
                "control_stage",
                inputs={name: net.whole(name) for name in self._widths},
                outputs={
                    f"{name}_near": (f"{name}_near_{group}", width)
                    for name, width in self._widths.items()
                },
            )
