"""The readiness tree, which combines the states of all nodes, and the watch for late nodes.

A node of the network is *ready* for a run if its loader holds a complete message, which waits for
the run (`loaded`), and its unloader has a free buffer for the received words (`free`).

The tree consists of levels of `ReadinessMerge`. Each merge combines the signals of some nodes of
the network, or of some *branches*: merges of the level below. The last merge tells the control,
which starts all runs, when every node is ready, and reports length and faults of the waiting
messages. The optional `StallWatch` has direct wires from all nodes of the network, and reports the
number of a node for which the others have waited too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Protocol

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ...rtl.distribution import READ_TREE_RADIX
from ...rtl.memories import address_width
from ...rtl.modules import Leaf
from ...rtl.netlist import Part, Parts, Role, add_single_instance
from .sections import tree_levels

if TYPE_CHECKING:
    from ...rtl.core.core import CoreBuilder
    from ...topology import IntArray
    from .run_facts import RunFacts

__all__ = ["ReadinessMerge", "add_readiness_tree", "add_stall_watch"]


class MessageShape(Protocol):
    """Protocol of the parameters that decide which signals the readiness tree has.

    The tree combines the states of all nodes. `EngineShape` implements the protocol.
    """

    @property
    def has_idle_senders(self) -> bool:
        """True if some nodes send nothing in a run, so that their length must not be compared."""

    @property
    def length_bits(self) -> int:
        """Bits of the number of the last flit of a packet; 0 if the length is fixed."""

    @property
    def facts(self) -> RunFacts:
        """Widths of the signals that tell loaders and unloaders the form and root of a run."""


class ReadinessMerge(Leaf):
    """One module of the readiness tree, which combines the states of some nodes in one cycle.

    Parameters
    ----------
    inputs : int
        Number of nodes of the network, or of branches (modules of the level below), that are
        combined.
    shape : MessageShape
        Decides the members `length`, `sends` and `rest`.
    branches : bool
        True if the inputs come from merges of the level below, False if from nodes of the network.

    Members
    -------
    ready : In
        Without `branches`, two bits for each node: a complete message waits (`loaded`), and there
        is space for received words (`free`). With `branches`, one bit for each branch, high if all
        of its nodes are ready.
    bad : In
        For each node or branch two bits: `BAD_LENGTH` and `BAD_DESTINATION`, the faults of its
        waiting messages.
    good : In
        For each branch one bit, high if it has no fault; only with `branches`.
    length, sends : In
        One field for each node or branch. `length` is the number of the last flit of its packets;
        it exists only if runs choose their length. `sends` is high if the node or branch has
        packets; it exists only if some nodes may send none.
    rest : In
        High for each input that has sent all received words; only with loadable tables.
    all_ready, none_bad, any_bad, any_length, any_sends, all_rest : Out
        The combined values. Bit 0 of `any_bad` (`BAD_LENGTH`) is also high if lengths differ.
    """

    def __init__(self, inputs: int, shape: MessageShape, *, branches: bool) -> None:
        self._shape, self._branches, some = shape, branches, shape.has_idle_senders
        # An image may be loaded only when nodes have sent all received words.
        self._rests, length_bits = not shape.facts.has_form_constants, shape.length_bits
        super().__init__(
            {
                "ready": In(inputs if branches else 2 * inputs),
                "good": In(inputs * branches),
                "bad": In(2 * inputs),
                "length": In(inputs * length_bits),
                "sends": In(inputs * some),
                "rest": In(inputs * self._rests),
                "all_ready": Out(1),
                "any_bad": Out(2),
                "none_bad": Out(1),
                "any_length": Out(length_bits),
                "any_sends": Out(int(some)),
                "all_rest": Out(int(self._rests)),
            }
        )
        # No reset: after a reset the control waits until states of nodes arrive here.
        self.all_ready = Signal(reset_less=True, name="all_ready")
        self.any_bad = Signal(2, reset_less=True, name="any_bad")
        self.none_bad = Signal(init=1, reset_less=True, name="none_bad")
        if length_bits:
            self.any_length = Signal(length_bits, reset_less=True, name="any_length")

    def elaborate(self, platform: object) -> Module:
        """Build the comparison of lengths, and the registers."""
        m = Module()
        bad = reduce(or_, self.input_words("bad", 2))
        # Branches provide `good` beside `bad`, which spares a level of logic behind long wires.
        good = self.input_value("good").all() if self._branches else bad == 0
        m.d.sync += self.all_ready.eq(self.input_value("ready").all())
        if self._rests:
            m.d.sync += self.all_rest.eq(self.input_value("rest").all())
        if not self._shape.length_bits:
            m.d.sync += [self.any_bad.eq(bad), self.none_bad.eq(good)]
            return m
        lengths = self.input_words("length", self._shape.length_bits)
        if not self._shape.has_idle_senders:
            differs = [length != lengths[0] for length in lengths[1:]]
            m.d.sync += self.any_length.eq(lengths[0])
        else:
            sends = self.input_words("sends", 1)
            chosen = Signal.like(self.any_length, name="chosen")
            for sent, length in zip(reversed(sends), reversed(lengths), strict=True):
                with m.If(sent):
                    m.d.comb += chosen.eq(length)
            differs = [s & (n != chosen) for s, n in zip(sends, lengths, strict=True)]
            m.d.sync += [self.any_length.eq(chosen), self.any_sends.eq(reduce(or_, sends))]
        differ = reduce(or_, differs, Const(0))
        m.d.sync += [self.any_bad.eq(bad | differ), self.none_bad.eq(good & ~differ)]
        return m


def add_readiness_tree(build: CoreBuilder, shape: MessageShape, nodes: IntArray) -> None:
    """Add the readiness tree to a netlist: levels of modules that combine the states of `nodes`.

    The last level is a single module; its outputs are the nets ``ready_<level>_0``,
    ``bad_<level>_0`` and so on, where ``<level>`` is the number of the level. `build` is the
    netlist under construction, and `shape` decides which signals the tree has.
    """
    widths = {
        "ready": 1,
        "bad": 2,
        "good": 1,
        "length": shape.length_bits,
        "sends": shape.has_idle_senders,
    }
    widths["rest"] = not shape.facts.has_form_constants
    widths = {name: int(width) for name, width in widths.items() if width}
    shown = {"ready": "all_ready", "good": "none_bad", "rest": "all_rest"}
    of_node = {"bad": "bad", "length": "length", "sends": "counts", "rest": "rests"}
    words: list[dict[str, Parts]] = [
        {"ready": (Part(f"loaded_{node}", 0, 1), Part(f"free_{node}", 0, 1))}
        | {
            name: (Part(f"{net}_{node}", 0, widths[name]),)
            for name, net in of_node.items()
            if name in widths
        }
        for node in nodes.tolist()
    ]
    for level in range(tree_levels(len(nodes))):
        groups = [
            words[start : start + READ_TREE_RADIX]
            for start in range(0, len(words), READ_TREE_RADIX)
        ]
        words = []
        for number, group in enumerate(groups):
            module = f"readiness_{len(group)}" + ("" if level else "_of_nodes")
            make = partial(ReadinessMerge, len(group), shape, branches=level > 0)
            build.add_module(module, make, role=Role.STREAM)
            at = f"{level}_{number}"
            build.add_instance(
                f"readiness_{at}",
                module,
                inputs={name: tuple(p for word in group for p in word[name]) for name in group[0]},
                outputs={shown.get(name, f"any_{name}"): (f"{name}_{at}", width)
                         for name, width in widths.items()},
            )  # fmt: skip
            words.append({name: build.all_bits(f"{name}_{at}") for name in widths})


def watch_outputs(nodes: int) -> dict[str, int]:
    """Return the widths of the outputs of `StallWatch`, in bits, keyed by name.

    Parameters
    ----------
    nodes : int
        Number of nodes of the network. It decides the width of `stalled_node`.
    """
    return {"stalled": 1, "stalled_node": address_width(nodes), "stalled_sends": 1}


class StallWatch(Leaf):
    """Module that reports the number of a node for which the other nodes wait.

    A run is *requested* while a command waits for its run, or, without commands, while a node has a
    message. The watch counts cycles in which no run is under way. After `timeout` such cycles it
    searches, one node a cycle:

    - If a run is requested, for a node without a free buffer for received words. If all nodes have
      one, for a node that has not sent its message.
    - If no run is requested, for a node that has not accepted a received word in all this time.

    It reports the node until a run begins, or until the others no longer wait for this node.

    Parameters
    ----------
    nodes : sequence of int
        The nodes with streams, ascending.
    timeout : int
        Cycles without a run before the search begins.
    bits : int
        Bits of the input `asked`, each of which can request a run.

    Members
    -------
    loaded, free : In
        One bit for each node: it has a message, and a free buffer for received words.
    asked : In
        A run is requested if any bit is high.
    offered, taken : In
        Each with one bit for each node: a received word is offered to the node, and the node
        accepts one.
    busy, run_begins : In(1)
        High while a run is under way, and when one begins.
    stalled : Out(1)
        High while a node is reported.
    stalled_node : Out
        Number of the reported node.
    stalled_sends : Out(1)
        High if the node has not sent its message, low if it has not accepted received words.
    """

    def __init__(self, nodes: Sequence[int], timeout: int, bits: int) -> None:
        self._numbers, self._timeout = nodes, timeout
        #: One more than the largest number of a node with streams.
        self._nodes = nodes[-1] + 1
        given = dict.fromkeys(("loaded", "free", "offered", "taken"), len(nodes))
        given |= {"asked": bits, "busy": 1, "run_begins": 1}
        super().__init__(
            {name: In(width) for name, width in given.items()}
            | {name: Out(width) for name, width in watch_outputs(self._nodes).items()}
        )

    def elaborate(self, platform: object) -> Module:
        """Build the counter of cycles without a run, and the search for a late node."""
        m = Module()
        # Long wires from all nodes end in these registers.
        loaded = Signal(self._nodes, name="loaded_here", reset_less=True)
        free = Signal(self._nodes, name="free_here", reset_less=True)
        asked, was_asked = Signal(name="asked_here"), Signal(name="was_asked")
        m.d.sync += [
            loaded.eq(self._by_node("loaded", idle=1)),
            free.eq(self._by_node("free", idle=1)),
            asked.eq(self.input_value("asked").any()),
        ]
        count, number = Signal(range(self._timeout + 1), name="count"), self.stalled_node
        # Receivers that have accepted nothing since the count began.
        stuck = Signal(self._nodes, name="stuck")
        begun = count != 0
        waiting = self._by_node("offered") & ~self._by_node("taken")
        m.d.sync += stuck.eq(waiting & (stuck | (~begun).replicate(self._nodes)))
        waits, late, sends = Signal(name="waits"), Signal(name="late"), Signal(name="of_senders")
        moves = self.input_value("busy") | self.input_value("run_begins")
        m.d.sync += [waits.eq((asked | stuck.any()) & ~moves), was_asked.eq(asked)]
        m.d.comb += late.eq(count == self._timeout)
        of_all = Mux(was_asked, ~free, stuck)
        of_senders = ~loaded & (was_asked & free.all()).replicate(self._nodes)
        blamed = Mux(sends, of_senders, of_all).bit_select(number, 1)
        with m.If(~waits | (asked != was_asked)):
            m.d.sync += [count.eq(0), number.eq(0), sends.eq(0), self.stalled.eq(0)]
        with m.Elif(~late):
            m.d.sync += count.eq(count + 1)
        with m.Elif(blamed):
            m.d.sync += [self.stalled.eq(1), self.stalled_sends.eq(sends)]
        with m.Else():
            m.d.sync += [self.stalled.eq(0), number.eq(number + 1)]
            with m.If(number == self._nodes - 1):
                m.d.sync += [number.eq(0), sends.eq(~sends)]
        return m

    def _by_node(self, name: str, *, idle: int = 0) -> Value:
        """Return the bits of an input by node number, with `idle` for nodes without streams."""
        value = self.input_value(name)
        bits = {node: value[at] for at, node in enumerate(self._numbers)}
        return Cat(bits.get(node, Const(idle, 1)) for node in range(self._nodes))


def add_stall_watch(
    build: CoreBuilder, timeout: int, asked: Parts, nodes: IntArray, *, apart: bool
) -> None:
    """Add `StallWatch`, which reports late nodes, and its outputs to a netlist.

    Parameters
    ----------
    build : CoreBuilder
        The netlist under construction.
    timeout : int
        Cycles without a run before a node is named.
    asked : tuple of Part
        Bits of which at least one is high while a run is requested.
    nodes : ndarray of int
        The nodes with streams.
    apart : bool
        True if nodes have clocks of their own. The queues between the clocks (`ClockCrossing`) then
        report offered and accepted words.
    """
    offered, taken = (
        ("untaken_{}", "takes_{}") if apart else ("m_axis_{}_tvalid", "m_axis_{}_tready")
    )
    nets = {"loaded": "loaded_{}", "free": "free_{}", "offered": offered, "taken": taken}
    inputs: dict[str, Parts] = {
        name: tuple(Part(net.format(node), 0, 1) for node in nodes.tolist())
        for name, net in nets.items()
    }
    bits = sum(part.width for part in asked)
    make = partial(StallWatch, nodes.tolist(), timeout, bits)
    add_single_instance(build, "watch", Role.STREAM, make, inputs | {"asked": asked})
    for name, width in watch_outputs(int(nodes[-1]) + 1).items():
        build.add_output(name, width)
