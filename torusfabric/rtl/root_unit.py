"""What a fabric with any root has once for all nodes."""

import numpy as np
from amaranth.hdl import Const, Module, Signal
from amaranth.lib.wiring import In, Out

from ..topology import Topology
from .memories import address_width, choose
from .netlist import Leaf

__all__ = ["RootUnit"]


class RootUnit(Leaf):
    """Samples the root at the start, and gives every node its offset from it.

    Parameters
    ----------
    topology : Topology
    shown, offsets : bool
        Whether the root itself is wanted, and offsets from it.

    Members
    -------
    accepted : In(1)
        The root is sampled with a start that is accepted.
    root : In
        The number of a node.
    sampled_root : Out
        The root of the last run, if it is wanted.
    offset_k_x : Out
        Coordinate k of the offset of nodes whose coordinate k is x, if wanted.
    """

    def __init__(self, topology: Topology, *, shown: bool = False, offsets: bool = True) -> None:
        self._topology, self._shown, self._offsets = topology, shown, offsets
        bits = address_width(topology.nodes)
        super().__init__(
            {"accepted": In(1), "root": In(bits)}
            | ({"sampled_root": Out(bits)} if shown else {})
            | {
                f"offset_{axis}_{at}": Out(address_width(side))
                for axis, side in enumerate(topology.moduli if offsets else ())
                for at in range(side)
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build a lookup of coordinates, and a register for each offset."""
        m = Module()
        topology, root = self._topology, self.value("root")
        if self._shown:
            with m.If(self.value("accepted")):
                m.d.sync += self.sampled_root.eq(root)
        coordinates = topology.coordinates(np.arange(topology.nodes))
        for axis, side in enumerate(topology.moduli if self._offsets else ()):
            bits = address_width(side)
            at = Signal(bits, name=f"root_{axis}")
            table = [Const(coordinate, bits) for coordinate in coordinates[axis].tolist()]
            m.d.comb += at.eq(choose(table, root))
            for coordinate in range(side):
                offsets = [Const((coordinate - k) % side, bits) for k in range(side)]
                with m.If(self.value("accepted")):
                    m.d.sync += getattr(self, f"offset_{axis}_{coordinate}").eq(choose(offsets, at))
        return m
