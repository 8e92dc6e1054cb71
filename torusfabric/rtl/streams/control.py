"""What a fabric with streams has once: the tree that finds out whether every node is ready for a
run, and what messages are like; the control, which starts a run as soon as they are; and the watch,
which names a node for which all others have waited too long.
"""

from __future__ import annotations

from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING

from amaranth.hdl import Const, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib.wiring import In, Out

from ..host import RADIX
from ..memories import address_width
from ..modules import Leaf
from ..netlist import Part, Parts, Role
from ..run_choices import ERROR_BITS, RunError
from ..tops import add_single
from .loader import BAD_DESTINATION, BAD_LENGTH
from .sections import Sections, levels

if TYPE_CHECKING:
    from ..fabric_builder import FabricBuilder

__all__ = ["ReadinessMerge", "StreamControl", "add_tree", "add_watch"]


class ReadinessMerge(Leaf):
    """Combines what nodes, or branches of the tree, say; it shows it a cycle later.

    Parameters
    ----------
    branches : bool
        Whether its inputs are of branches; else of nodes, which have a message, and room, or not.
    length_bits : int
        Bits of the length of the messages; 0 where it is fixed.
    some, rests : bool
        Whether some nodes send nothing, where there is a length; and whether it matters that nodes
        have passed on all that runs have brought.

    Members
    -------
    ready : In
    good : In
        Whether nothing is bad with each branch.
    bad : In
        Two bits of each.
    length : In
    sends : In
        Whether each has a length.
    rest : In
        Whether each has passed on everything.
    all_ready : Out(1)
    any_bad : Out(2)
        Bit 0 is high as well where lengths differ.
    none_bad : Out(1)
        Whether `any_bad` is 0.
    any_length : Out
    any_sends : Out(1)
    all_rest : Out(1)
    """

    def __init__(
        self, inputs: int, length_bits: int, *, branches: bool, some: bool, rests: bool = False
    ) -> None:
        self._length_bits, self._branches, self._some = length_bits, branches, some
        self._rests = rests
        super().__init__(
            {
                "ready": In(inputs if branches else 2 * inputs),
                "good": In(inputs * branches),
                "bad": In(2 * inputs),
                "length": In(inputs * length_bits),
                "sends": In(inputs * some),
                "rest": In(inputs * rests),
                "all_ready": Out(1),
                "any_bad": Out(2),
                "none_bad": Out(1),
                "any_length": Out(length_bits),
                "any_sends": Out(int(some)),
                "all_rest": Out(int(rests)),
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
        if not self._length_bits:
            m.d.sync += [self.any_bad.eq(bad), self.none_bad.eq(good)]
            return m
        lengths = self.words("length", self._length_bits)
        if not self._some:
            differs = [length != lengths[0] for length in lengths[1:]]
            m.d.sync += self.any_length.eq(lengths[0])
        else:
            sends = self.words("sends", 1)
            chosen = Signal(self._length_bits, name="chosen")
            for sent, length in zip(reversed(sends), reversed(lengths), strict=True):
                with m.If(sent):
                    m.d.comb += chosen.eq(length)
            differs = [s & (n != chosen) for s, n in zip(sends, lengths, strict=True)]
            m.d.sync += [self.any_length.eq(chosen), self.any_sends.eq(reduce(or_, sends))]
        differ = reduce(or_, differs, Const(0))
        m.d.sync += [self.any_bad.eq(bad | differ), self.none_bad.eq(good & ~differ)]
        return m


def add_tree(build: FabricBuilder, bits: int, *, some: bool, rests: bool = False) -> None:
    """Add the tree that brings what nodes say to the control.

    Parameters
    ----------
    bits : int
        Of the length of the messages.
    some, rests : bool
        As of `ReadinessMerge`.
    """
    widths = {"ready": 1, "bad": 2, "good": 1, "length": bits, "sends": int(some)}
    widths["rest"] = int(rests)
    widths = {name: width for name, width in widths.items() if width}
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
            make = partial(
                ReadinessMerge, len(group), bits, branches=level > 0, some=some, rests=rests
            )
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


class StreamControl(Leaf):
    """Starts runs, and drops messages that are none.

    Parameters
    ----------
    round_trip : int
        Cycles from the start of a run until nodes have said whether they are ready for the next.
    sections : Sections
        Of memories.
    length_bits, last_bits : int
        Bits of the length of a run, and of the number of the last word of a packet, where they are
        found out from packets; else 0.
    commanded, barrier : bool
        Whether runs need commands, and whether some of them are barriers.

    Members
    -------
    ready : In(1)
        Whether every node is.
    bad : In(2)
        What is wrong with any message.
    good : In(1)
        Whether that is nothing.
    last : In
        The number of the last word of their packets.
    busy : In(1)
        Whether a run is under way.
    idle, ending : In(1)
        Whether another may begin: also in the last cycle of one, and the cycle before that.
    may_begin : In(1)
        Whether a run may begin; with commands.
    wanted : In
        The length that the command of the next run says, 0 for any.
    barrier : In(1)
        Whether that is a barrier, which ends as soon as it begins; if there are any.
    start : Out(1)
    length : Out
        Of the run that is started.
    clear : Out(1)
        The reset, for nodes.
    run_begins : Out(1)
        High for a cycle when a run begins.
    over : Out(1)
        High for a cycle when a run has ended in which nodes do nothing: messages are dropped, or it
        is a barrier.
    run_over : Out(1)
        High for a cycle when any run has ended; with commands.
    run_empty : Out
        Of the last run in each section, whether it brings nothing.
    run_last : Out
        The number of the last word of its packets.
    error : Out
        Why the last run was not carried out, a `RunError`.
    """

    def __init__(
        self,
        round_trip: int,
        *,
        sections: Sections,
        length_bits: int = 0,
        last_bits: int = 0,
        commanded: bool = False,
        barrier: bool = False,
    ) -> None:
        self._round_trip, self._bits, self._sections = round_trip, last_bits, sections
        self._commanded, self._barrier = commanded, barrier
        super().__init__(
            {
                "ready": In(1),
                "bad": In(2),
                "good": In(1),
                "last": In(last_bits),
                "busy": In(1),
                "idle": In(1),
                "ending": In(1),
                "may_begin": In(int(commanded)),
                "wanted": In(length_bits if commanded else 0),
                "barrier": In(int(barrier)),
                "start": Out(1),
                "length": Out(length_bits),
                "clear": Out(1),
                "run_begins": Out(1),
                "over": Out(1),
                "run_over": Out(int(commanded)),
                "run_empty": Out(sections.count),
                "run_last": Out(sections.count * last_bits),
                "error": Out(ERROR_BITS),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the decision, and what nodes are told of runs."""
        m = Module()
        # Nodes are reset a cycle later, and what they say comes as late as after a run.
        bits = range(self._round_trip + 1)
        wait = Signal(bits, name="left_to_wait", init=self._round_trip)
        # Whether a run may begin but for what nodes and commands say, known a cycle before.
        is_open, section = Signal(name="is_open"), Signal(self._sections.bits, name="section")
        other, barrier = self._other_length(), self.value("barrier") if self._barrier else Const(0)
        told = self.value("bad")
        lengths, destinations = told[BAD_LENGTH] | other, told[BAD_DESTINATION]
        allowed = self.value("may_begin") if self._commanded else Const(1)
        may, fine, go = Signal(name="may"), Signal(name="fine"), Signal(name="go")
        m.d.comb += [
            may.eq(self.value("ready") & is_open & allowed),
            fine.eq(self.value("good") & ~other & ~barrier),
            self.start.eq(may & fine),
            # What is over at once waits until a run that is under way has ended.
            go.eq(may & (fine | ~self.value("busy"))),
            self.run_begins.eq(go),
            self.clear.eq(ResetSignal("sync", allow_reset_less=True)),
        ]
        # Nodes are told what has become of the run before they are told of its end.
        drops = Signal(name="drops")
        m.d.sync += [drops.eq(go & ~fine), self.over.eq(drops)]
        if self._commanded:
            was_busy = Signal(name="was_busy")
            m.d.sync += was_busy.eq(self.value("busy"))
            m.d.comb += self.run_over.eq((was_busy & ~self.value("busy")) | self.over)
        with m.If(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        idle_next = (self.value("idle") | self.value("ending")) & ~go
        m.d.sync += is_open.eq(idle_next & (wait <= 1))
        with m.If(go):
            wrong = Mux(destinations, RunError.DESTINATION, RunError.PACKETS)
            m.d.sync += [
                wait.eq(self._round_trip),
                section.eq(self._sections.following(section)),
                self.run_empty.bit_select(section, 1).eq(lengths | destinations),
                self.error.eq(Mux(lengths | destinations, wrong, RunError.NONE)),
            ]
            if self._bits:
                m.d.sync += self.run_last.word_select(section, self._bits).eq(self.value("last"))
        if self._bits:
            m.d.comb += self.length.eq(self.value("last") + Const(1))
        return m

    def _other_length(self) -> Value:
        """Whether the length is another than the command says."""
        if not (self._commanded and self._bits):
            return Const(0, 1)
        wanted = self.value("wanted")
        return (wanted != 0) & (wanted != self.length)


def shown(nodes: int) -> dict[str, int]:
    """What is shown, and its bits."""
    return {"stalled": 1, "stalled_node": address_width(nodes), "stalled_sends": 1}


class Watch(Leaf):
    """Counts the cycles in which no run is under way though messages wait, or are not taken.

    After so many of them it looks for a node that is not ready, one in each cycle, and shows it
    until a run begins or nothing waits any more.

    Parameters
    ----------
    timeout : int
        The most cycles without a report.

    Members
    -------
    loaded, free : In
        Of each node, whether it has a message, and room for what a run brings.
    busy, run_begins : In(1)
    stalled : Out(1)
        Whether a node is shown.
    stalled_node : Out
        Its number.
    stalled_sends : Out(1)
        Whether it has not sent its message; else it has not taken what it has received.
    """

    def __init__(self, nodes: int, timeout: int) -> None:
        self._nodes, self._timeout = nodes, timeout
        given = {"loaded": nodes, "free": nodes, "busy": 1, "run_begins": 1}
        super().__init__(
            {name: In(bits) for name, bits in given.items()}
            | {name: Out(bits) for name, bits in shown(nodes).items()}
        )

    def elaborate(self, platform: object) -> Module:
        """Build the count, and the search."""
        m = Module()
        # The wires from all nodes end here.
        loaded = Signal(self._nodes, name="loaded_here", reset_less=True)
        free = Signal(self._nodes, name="free_here", reset_less=True)
        m.d.sync += [loaded.eq(self.value("loaded")), free.eq(self.value("free"))]
        count, number = Signal(range(self._timeout + 1), name="count"), self.stalled_node
        waits, late = Signal(name="waits"), Signal(name="late")
        sent, taken = (each.bit_select(number, 1) for each in (loaded, free))
        moves = self.value("busy") | self.value("run_begins")
        m.d.sync += waits.eq((loaded.any() | ~free.all()) & ~moves)
        m.d.comb += late.eq(count == self._timeout)
        with m.If(~waits):
            m.d.sync += [count.eq(0), number.eq(0), self.stalled.eq(0)]
        with m.Elif(~late):
            m.d.sync += count.eq(count + 1)
        with m.Elif(~sent | ~taken):
            m.d.sync += [self.stalled.eq(1), self.stalled_sends.eq(~sent)]
        with m.Else():
            m.d.sync += [self.stalled.eq(0), number.eq(number + 1)]
            with m.If(number == self._nodes - 1):
                m.d.sync += number.eq(0)
        return m


def add_watch(build: FabricBuilder, timeout: int) -> None:
    """Add the watch, and what it shows."""
    inputs = {
        name: tuple(Part(f"{name}_{node}", 0, 1) for node in range(build.nodes))
        for name in ("loaded", "free")
    }
    add_single(build, "watch", Role.STREAM, partial(Watch, build.nodes, timeout), inputs)
    for name, bits in shown(build.nodes).items():
        build.add_output(name, bits)
