"""The way of the tester through the words of all nodes, in the order of the host's addresses."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Const, Module, Mux, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...rtl.memories import address_width, choose
from .of_mode import chosen, chosen_number

if TYPE_CHECKING:
    from ...program import Program
    from ...rtl.fabric import Fabric

__all__ = ["Walk"]


class Walk(wiring.Component):
    """Goes through the words that nodes send, or have received, in a run.

    Parameters
    ----------
    fabric : Fabric
        With a host port.

    Members
    -------
    mode, length, root : In
        Of the run; the root is a position in a group.
    received : In(1)
        Whether the words are those that nodes have received.
    begin, step : In(1)
        Goes to the first word, or to the next one.
    last : Out(1)
        High at the last word.
    node, address : Out
        Where the word lies, as of the host port.
    peer, flit : Out
        A node sends a message for, or has received one of, each peer; 0 where there is one message.
    position, group : Out(16)
        Of the node; all nodes are one group, unless the collective runs in several.
    receives : Out(1)
        Whether anything is delivered at the node.
    """

    def __init__(self, fabric: "Fabric") -> None:
        self._fabric, inputs = fabric, fabric.netlist.inputs
        modes = range(len(fabric.program.modes))
        self._parts = [fabric.program.part(mode) for mode in modes]
        nodes = max(fabric.nodes, 2)
        super().__init__(
            {
                "mode": In(address_width(len(modes))),
                "length": In(fabric.flits.bit_length()),
                "root": In(16),
                "received": In(1),
                "begin": In(1),
                "step": In(1),
                "last": Out(1),
                "node": Out(inputs["host_node"]),
                "address": Out(inputs["host_addr"]),
                "peer": Out(range(nodes)),
                "flit": Out(range(max(fabric.flits, 2))),
                "position": Out(16),
                "group": Out(16),
                "receives": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the counters, and what looks up the place of a node in its group."""
        m = Module()
        self._count(m)
        self._look_up_group(m)
        return m

    def _count(self, m: Module) -> None:
        """Count flits within messages, messages within nodes, and nodes."""
        layouts, flits = self._fabric.layouts, self._fabric.flits
        sent = chosen_number([layout.send_words // flits for layout in layouts], self.mode)
        received = chosen_number([layout.recv_words // flits for layout in layouts], self.mode)
        base = Mux(self.received, layouts[0].recv_base, layouts[0].send_base)
        first = Mux(self.received & self._alone, self.root, 0)
        # Messages lie as far apart as the longest are long.
        rest = flits - self.length + 1
        flit_ends = self.flit == self.length - 1
        peer_ends = self.peer == Mux(self.received, received, sent) - 1
        node_ends = self.node == Mux(self.received & self._alone, self.root, self._fabric.nodes - 1)
        m.d.comb += self.last.eq(flit_ends & peer_ends & node_ends)
        with m.If(self.step):
            m.d.sync += [self.flit.eq(self.flit + 1), self.address.eq(self.address + 1)]
            with m.If(flit_ends):
                m.d.sync += [self.flit.eq(0), self.peer.eq(self.peer + 1)]
                m.d.sync += self.address.eq(self.address + rest)
                with m.If(peer_ends):
                    m.d.sync += [self.peer.eq(0), self.node.eq(self.node + 1)]
                    m.d.sync += self.address.eq(base)
        with m.If(self.begin):
            m.d.sync += [self.peer.eq(0), self.flit.eq(0)]
            m.d.sync += [self.node.eq(first), self.address.eq(base)]

    @property
    def _alone(self) -> Value:
        """Whether the root is the only node that receives anything."""
        return chosen_number([_to_one(part) for part in self._parts], self.mode)

    def _look_up_group(self, m: Module) -> None:
        """Look up the node's position in its group, the group, and whether the node receives."""
        positions, groups, receives = [], [], []
        for part in self._parts:
            position, group = self._in_group(part)
            positions.append(position)
            groups.append(group)
            to_root = part.schedule.collective.to_root and not _to_one(part)
            receives.append(position == self.root if to_root else Const(1))
        m.d.comb += [
            self.position.eq(chosen(positions, self.mode)),
            self.group.eq(chosen(groups, self.mode)),
            self.receives.eq(chosen(receives, self.mode)),
        ]

    def _in_group(self, part: "Program") -> tuple[Value, Value]:
        """Position of the node in its group, and the number of that, in a mode."""
        groups = part.groups
        if groups.count == 1:
            return self.node, Const(0)
        position, group = (
            choose([Const(int(value), 16) for value in values], self.node)
            for values in (groups.position, groups.group)
        )
        return position, group


def _to_one(part: "Program") -> bool:
    """Whether a single node receives anything in a mode."""
    return part.schedule.collective.to_root and part.groups.count == 1
