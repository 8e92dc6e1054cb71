"""The tree that finds out whether every node is ready for a run, and the watch over nodes.

The tree also says what messages are like; the watch names a node for which all others have waited
too long.
"""

from __future__ import annotations

from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Protocol

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ...rtl.distribution import RADIX
from ...rtl.memories import address_width
from ...rtl.modules import Leaf
from ...rtl.netlist import Part, Parts, Role, add_single
from .sections import levels

if TYPE_CHECKING:
    from ...rtl.core.core import CoreBuilder
    from .run_facts import RunFacts

__all__ = ["ReadinessMerge", "add_tree", "add_watch"]


class MessageShape(Protocol):
    """What is said of the messages of nodes."""

    @property
    def some(self) -> bool:
        """True if some nodes send nothing in a run, which matters for the length."""

    @property
    def length_bits(self) -> int:
        """Bits of the number of the last flit of a packet, where that is to be found out."""

    @property
    def facts(self) -> RunFacts:
        """The choices of commands."""


class ReadinessMerge(Leaf):
    """Combines what nodes, or branches of the tree, say; it shows it a cycle later.

    Parameters
    ----------
    branches : bool
        Whether its inputs are of branches; else of nodes, which have a message, and room, or not.
    shape : MessageShape
        Says of which lengths packets may be, and whether all nodes send any.

    Members
    -------
    ready, good, bad, length, sends, rest : In
        Of each branch, or node: whether it is ready; of branches, whether nothing is bad; two bits
        of what is; the length, and whether there is one; and whether all has been passed on.
    all_ready, none_bad, any_bad, any_length, any_sends, all_rest : Out
        The same of all of them; bit 0 of `any_bad` is high as well where lengths differ.
    """

    def __init__(self, inputs: int, shape: MessageShape, *, branches: bool) -> None:
        self._shape, self._branches, some = shape, branches, shape.some
        # Before an image is loaded, nodes have to have passed on all that runs have brought.
        self._rests, length_bits = not shape.facts.by_form, shape.length_bits
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
        # After a reset the control waits until all of these say what nodes say.
        self.all_ready = Signal(reset_less=True, name="all_ready")
        self.any_bad = Signal(2, reset_less=True, name="any_bad")
        self.none_bad = Signal(init=1, reset_less=True, name="none_bad")
        if length_bits:
            self.any_length = Signal(length_bits, reset_less=True, name="any_length")

    def elaborate(self, platform: object) -> Module:
        """Build the comparison, and the registers."""
        m = Module()
        bad = reduce(or_, self.words("bad", 2))
        # Known of branches, which spares a level of logic behind long wires.
        good = self.value("good").all() if self._branches else bad == 0
        m.d.sync += self.all_ready.eq(self.value("ready").all())
        if self._rests:
            m.d.sync += self.all_rest.eq(self.value("rest").all())
        if not self._shape.length_bits:
            m.d.sync += [self.any_bad.eq(bad), self.none_bad.eq(good)]
            return m
        lengths = self.words("length", self._shape.length_bits)
        if not self._shape.some:
            differs = [length != lengths[0] for length in lengths[1:]]
            m.d.sync += self.any_length.eq(lengths[0])
        else:
            sends = self.words("sends", 1)
            chosen = Signal.like(self.any_length, name="chosen")
            for sent, length in zip(reversed(sends), reversed(lengths), strict=True):
                with m.If(sent):
                    m.d.comb += chosen.eq(length)
            differs = [s & (n != chosen) for s, n in zip(sends, lengths, strict=True)]
            m.d.sync += [self.any_length.eq(chosen), self.any_sends.eq(reduce(or_, sends))]
        differ = reduce(or_, differs, Const(0))
        m.d.sync += [self.any_bad.eq(bad | differ), self.none_bad.eq(good & ~differ)]
        return m


def add_tree(build: CoreBuilder, shape: MessageShape) -> None:
    """Add the tree that brings what nodes say to the control, as of `ReadinessMerge`."""
    widths = {"ready": 1, "bad": 2, "good": 1, "length": shape.length_bits, "sends": shape.some}
    widths["rest"] = not shape.facts.by_form
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
        for node in range(build.nodes)
    ]
    for level in range(levels(build.nodes)):
        groups = [words[start : start + RADIX] for start in range(0, len(words), RADIX)]
        words = []
        for number, group in enumerate(groups):
            module = f"readiness_{len(group)}" + ("" if level else "_of_nodes")
            make = partial(ReadinessMerge, len(group), shape, branches=level > 0)
            build.add_module(module, make, role=Role.STREAM)
            at = f"{level}_{number}"
            build.add(
                f"readiness_{at}",
                module,
                inputs={name: tuple(p for word in group for p in word[name]) for name in group[0]},
                outputs={shown.get(name, f"any_{name}"): (f"{name}_{at}", width)
                         for name, width in widths.items()},
            )  # fmt: skip
            words.append({name: build.whole(f"{name}_{at}") for name in widths})


def shown(nodes: int) -> dict[str, int]:
    """What is shown, and its bits."""
    return {"stalled": 1, "stalled_node": address_width(nodes), "stalled_sends": 1}


class Watch(Leaf):
    """Names a node that holds up a run, or that takes nothing of what it has received.

    A run is *asked for* while a command waits for its run, or, without commands, while a node has
    a message of its own. If none has begun for `timeout` cycles, the watch looks for a receiver
    without room, and if all have room for a sender without a message, one node in each cycle.
    While no run is asked for, it looks for a receiver that has been offered a word for as long and
    has not taken it. The node is shown until a run begins, or until it holds up nothing any more.

    Parameters
    ----------
    timeout : int
        The most cycles without a report.
    bits : int
        Bits that say that a run is asked for.

    Members
    -------
    loaded, free : In
        Of each node, whether it has a message, and room for what a run brings.
    asked : In
        Commands that wait for their runs; without commands, messages that do.
    offered, taken : In
        Of each node, whether a word waits to be taken, and whether one is taken.
    busy, run_begins : In(1)
    stalled, stalled_node, stalled_sends : Out
        Whether a node is shown; its number; and whether it has not sent its message, else it has
        not taken what it has received.
    """

    def __init__(self, nodes: int, timeout: int, bits: int) -> None:
        self._nodes, self._timeout = nodes, timeout
        given = dict.fromkeys(("loaded", "free", "offered", "taken"), nodes)
        given |= {"asked": bits, "busy": 1, "run_begins": 1}
        super().__init__(
            {name: In(width) for name, width in given.items()}
            | {name: Out(width) for name, width in shown(nodes).items()}
        )

    def elaborate(self, platform: object) -> Module:
        """Build the count, and the search."""
        m = Module()
        # The wires from all nodes end here.
        loaded = Signal(self._nodes, name="loaded_here", reset_less=True)
        free = Signal(self._nodes, name="free_here", reset_less=True)
        asked, was_asked = Signal(name="asked_here"), Signal(name="was_asked")
        m.d.sync += [
            loaded.eq(self.value("loaded")),
            free.eq(self.value("free")),
            asked.eq(self.value("asked").any()),
        ]
        count, number = Signal(range(self._timeout + 1), name="count"), self.stalled_node
        # Receivers that have taken nothing since the count began.
        stuck = Signal(self._nodes, name="stuck")
        begun = count != 0
        waiting = self.value("offered") & ~self.value("taken")
        m.d.sync += stuck.eq(waiting & (stuck | (~begun).replicate(self._nodes)))
        waits, late, sends = Signal(name="waits"), Signal(name="late"), Signal(name="of_senders")
        moves = self.value("busy") | self.value("run_begins")
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


def add_watch(build: CoreBuilder, timeout: int, asked: Parts, *, apart: bool) -> None:
    """Add the watch, and what it shows.

    Parameters
    ----------
    asked : tuple of Part
        Bits of which any says that a run is asked for.
    apart : bool
        True if nodes have clocks of their own.
    """
    offered, taken = (
        ("untaken_{}", "takes_{}") if apart else ("m_axis_{}_tvalid", "m_axis_{}_tready")
    )
    nets = {"loaded": "loaded_{}", "free": "free_{}", "offered": offered, "taken": taken}
    inputs: dict[str, Parts] = {
        name: tuple(Part(net.format(node), 0, 1) for node in range(build.nodes))
        for name, net in nets.items()
    }
    bits = sum(part.width for part in asked)
    make = partial(Watch, build.nodes, timeout, bits)
    add_single(build, "watch", Role.STREAM, make, inputs | {"asked": asked})
    for name, width in shown(build.nodes).items():
        build.add_output(name, width)
