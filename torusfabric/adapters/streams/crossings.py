# amaranth: UnusedElaboratable=no
"""`ClockCrossing`: an asynchronous queue between the clock of a node and the clock of the fabric.

With ``clocks="per-node"`` each stream of each node passes through one crossing. Each side of the
queue counts the words that have passed its end, and sends the count to the other side in Gray code,
in which one bit changes at a time.

Both sides must be reset together, whichever reset is asserted, even for a time shorter than a clock
period, although their clocks are unrelated:

1. The reset of the fabric or of the node sets `held`, asynchronously; an edge of `clk` ends it.
2. `held` sets the reset of the side of the node, which ends three edges of its clock later.
3. That reset sets the reset of the side of the fabric, which ends three edges of `clk` later.

So there are edges of each clock at which both sides are in reset. Why three edges: the count of the
other side, which that side has reset, arrives through two registers. A side in reset neither
accepts nor offers a word.

The *watch* (`torusfabric.adapters.streams.readiness`) reports nodes for which others wait too long.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from amaranth.hdl import Cat, ClockDomain, ClockSignal, Module, ResetSignal, Signal, Value
from amaranth.lib.cdc import AsyncFFSynchronizer, FFSynchronizer
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ...rtl.arrays import Slice
from ...rtl.modules import Leaf
from ...rtl.netlist import Role

if TYPE_CHECKING:
    from ...rtl.core.core import CoreBuilder
    from ...topology import IntArray

__all__ = ["ClockCrossing", "QUEUE_DEPTH", "add_crossings"]

#: Words of a queue: the depth of distributed memory, and enough for a word in every cycle.
QUEUE_DEPTH = 16

#: Name of the clock domain of the node.
NODE_DOMAIN = "node"

#: Registers between the reset of one side and the reset of the other.
RESET_STAGES = 3


class ClockCrossing(Leaf):
    """Module that passes the words of a stream from one clock domain to another, in order.

    Parameters
    ----------
    fields : dict of str to int
        Widths of the payload signals of a word, keyed by name.
    inward : bool
        True for a stream from the node into the fabric, False for the other direction.
    watched : bool
        True to add the outputs `untaken` and `takes`. By them the watch, which reports late nodes,
        sees that the node does not accept its words.

    Members
    -------
    node_clk, node_rst : In(1)
        Clock and reset of the node.
    in_NAME, out_NAME : In, Out
        The stream into, and out of, the queue, signal by signal.
    untaken, takes : Out(1)
        `untaken` is high while the queue holds words that the node has not accepted. `takes` is
        high for a cycle after the node has accepted words. These outputs have the clock of the
        fabric, and exist only if `watched`.
    """

    def __init__(self, fields: Mapping[str, int], *, inward: bool, watched: bool = False) -> None:
        self._fields, self._inward, self._watched = dict(fields), inward, watched
        super().__init__(
            {
                "node_clk": In(1),
                "node_rst": In(1),
                "in_tvalid": In(1),
                "in_tready": Out(1),
                "out_tvalid": Out(1),
                "out_tready": In(1),
                "untaken": Out(int(watched)),
                "takes": Out(int(watched)),
            }
            | {f"in_{name}": In(bits) for name, bits in fields.items()}
            | {f"out_{name}": Out(bits) for name, bits in fields.items()}
        )

    def elaborate(self, platform: object) -> Module:
        """Build the queue between the clocks of the node and the fabric, and the resets."""
        m = Module()
        m.domains += ClockDomain(NODE_DOMAIN, local=True)
        m.d.comb += ClockSignal(NODE_DOMAIN).eq(self.input_value("node_clk"))
        held = Signal()
        resets = {each: Signal(name=f"{each}_resets") for each in (NODE_DOMAIN, "sync")}
        m.submodules.hold = AsyncFFSynchronizer(ResetSignal() | self.input_value("node_rst"), held)
        for domain, cause in ((NODE_DOMAIN, held), ("sync", resets[NODE_DOMAIN])):
            m.submodules[f"{domain}_reset"] = AsyncFFSynchronizer(
                cause, resets[domain], o_domain=domain, stages=RESET_STAGES
            )
        m.d.comb += ResetSignal(NODE_DOMAIN).eq(resets[NODE_DOMAIN])
        into, out = (NODE_DOMAIN, "sync") if self._inward else ("sync", NODE_DOMAIN)
        words = Memory(shape=sum(self._fields.values()), depth=QUEUE_DEPTH, init=[])
        m.submodules.words = words
        write, read = words.write_port(domain=into), words.read_port(domain=out)
        writes, reads = Signal(name="writes"), Signal(name="reads")
        written = _add_pointer(m, "written", writes, into, out)
        fetched = _add_pointer(m, "fetched", reads, out, into)
        ours = fetched if self._inward else written
        with m.If(resets["sync"]):
            m.d.sync += [ours.number.eq(0), ours.gray.eq(0)]
        # Counters whose difference is the depth of the queue differ, in Gray code, in exactly the
        # two highest bits.
        full = fetched.seen ^ (0b11 << len(fetched.seen) - 2)
        m.d.comb += [
            self.in_tready.eq((written.gray != full) & ~resets[into]),
            self.out_tvalid.eq((fetched.gray != written.seen) & ~resets[out]),
            writes.eq(self.input_value("in_tvalid") & self.in_tready),
            reads.eq(self.input_value("out_tready") & self.out_tvalid),
            write.en.eq(writes),
            write.addr.eq(written.number[:-1]),
            write.data.eq(Cat(self.input_value(f"in_{name}") for name in self._fields)),
            read.en.eq(1),
            read.addr.eq(fetched.following[:-1]),
            Cat(getattr(self, f"out_{name}") for name in self._fields).eq(read.data),
        ]
        if self._watched:
            before = Signal(len(fetched.seen), name="fetched_before")
            m.d.sync += [
                before.eq(fetched.seen),
                self.untaken.eq(written.gray != fetched.seen),
                self.takes.eq(fetched.seen != before),
            ]
        return m


class _QueuePointer(NamedTuple):
    """Counter of the words that have passed one end of a queue between two clocks.

    It counts modulo twice the depth of the queue.

    Parameters
    ----------
    number, gray : Signal
        Registers of the count, in binary and in Gray code.
    following : Signal
        Binary count after the next edge.
    seen : Signal
        Gray code of the count, synchronised to the clock of the other end.
    """

    number: Signal
    gray: Signal
    following: Signal
    seen: Signal


def _add_pointer(m: Module, name: str, passes: Value, domain: str, other: str) -> _QueuePointer:
    """Add the counter of the words that pass one end of a queue, and return its signals.

    The counter is in the clock domain `domain`, and increases when `passes` is high. Two registers
    in the domain `other` bring its Gray code to the clock of the other end. `name` is the prefix of
    the signals.
    """
    bits = QUEUE_DEPTH.bit_length()
    number, gray = Signal(bits, name=name), Signal(bits, name=f"{name}_gray")
    following, seen = Signal(bits, name=f"{name}_next"), Signal(bits, name=f"{name}_seen")
    m.d.comb += following.eq(number + passes)
    m.d[domain] += [number.eq(following), gray.eq(following ^ (following >> 1))]
    m.submodules[f"{name}_cdc"] = FFSynchronizer(gray, seen, o_domain=other)
    return _QueuePointer(number, gray, following, seen)


def add_crossings(build: CoreBuilder, nodes: IntArray, *, watched: bool) -> None:
    """Add a queue between the clocks of node and fabric to each stream of each node.

    On the node's side of the queue are the ports of the stream; on the fabric's side are nets with
    their names and the suffix ``_here``.

    Parameters
    ----------
    build : CoreBuilder
        The netlist, with the ports of the streams.
    nodes : ndarray of int
        The nodes with streams.
    watched : bool
        True to add the nets ``untaken_N`` and ``takes_N`` of each node N, for the watch that
        reports late nodes.
    """
    widths = {name: port.width for name, port in build.declared.items() if port.node == nodes[0]}
    for side in ("s_axis", "m_axis"):
        inputs, outputs = {}, dict[str, tuple[str, int]]()
        for name in ("clk", "rst"):
            inputs[f"node_{name}"] = (Slice(f"{name}_{{}}", nodes, 0, 1),)
        fields, inward = dict[str, int](), side == "s_axis"
        for port, bits in widths.items():
            if not port.startswith(side):
                continue
            name = port.rpartition("_")[2]
            if name not in ("tvalid", "tready"):
                fields[name] = bits
            forth, outside = name != "tready", f"{side}_{{}}_{name}"
            way = outside, f"{outside}_here"
            source, target = way if inward == forth else way[::-1]
            comes, goes = ("in", "out") if forth else ("out", "in")
            inputs[f"{comes}_{name}"] = (Slice(source, nodes, 0, bits),)
            outputs[f"{goes}_{name}"] = target, bits
        module, shows = f"{side}_crossing", watched and not inward
        if shows:
            outputs |= {name: (f"{name}_{{}}", 1) for name in ("untaken", "takes")}
        make = partial(ClockCrossing, fields, inward=inward, watched=shows)
        build.add_module(module, make, role=Role.STREAM)
        build.add_array(f"{module}_{{}}", module, nodes, inputs=inputs, outputs=outputs)
