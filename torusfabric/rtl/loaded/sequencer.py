"""The sequencer of a fabric whose tables are loaded."""

from __future__ import annotations

from typing import NamedTuple

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from ...program.timing import ADDRESS, DISTRIBUTION, MODE_SETUP, RUN_SETUP, SETTING
from ..memories import address_width
from ..modules import delayed, pulsed
from ..netlist import Leaf
from ..run_choices import ERROR_BITS, RunChoices, RunError
from ..sequencer import FOLLOWED, show_run
from .entries import found_entry
from .layout import TableLayout

__all__ = ["FOR_HOST", "LoadedSequencer"]

#: What the host port is given of a mode.
FOR_HOST = ("chunks", "reciprocal", "first_block", "one_node")


class _Slot(NamedTuple):
    """The slot that comes next.

    Parameters
    ----------
    said : dict of str to Value
        What the table says of its row.
    row, count, scaled : Value
        The row, and how many slots of it have been, also as often as chunks.
    moves, streams : Value
        Whether there is one, and, if so, whether it has a flit.
    """

    said: View
    row: Value
    count: Value
    scaled: Value
    moves: Value
    streams: Value


class LoadedSequencer(Leaf):
    """Steps through rows that lie in a table, as the mode says that lies in another.

    Parameters
    ----------
    soon : int
        As of `torusfabric.rtl.sequencer.Sequencer`, with the same members. Then what starts runs
        has found out which entry it wants, and says that for the mode.

    Members
    -------
    start, mode, length, operation : In
        As of `torusfabric.rtl.sequencer.Sequencer`; so are `busy`, `done`, `cycles`, `error`,
        `operator_code`, `round` and `run_form`.
    loaded, entries : In
        Of the loader: whether nothing is missing, and a bit for each entry that may run.
    starts : In
        What a start is compared with, of each entry.
    modes : Out
        A bit for each mode that may run.
    row_address, mode_address : Out
    row_word, mode_word : In
        The tables of the sequencer, as `TableLayout` says.
    named_select, named_read, named_address, named_store : Out
        The settings of the row, for the tables of nodes.
    read_0, read_1 : Out
        Cycles of the row, or in a loop by flits the flit; and the same times the chunks.
    write_0 : Out
        Where what arrives is stored; where rows stream, what has come by one link.
    store_k : Out
        Whether a word arrives at nodes that has come so many cycles.
    streams : Out(1)
        Whether the words of a row arrive while others pass.
    late : Out(1)
        Whether words are then read a cycle later.
    chunks, reciprocal, first_block, one_node : Out
        Of the mode of the last run.
    """

    def __init__(self, layout: TableLayout, choices: RunChoices, *, soon: int = 0) -> None:
        self._layout, self._choices, self._soon = layout, choices, soon
        frame, mode = layout.frame, {name: field.width for name, field in layout.mode}
        self._word_bits = layout.of_node.base_bits
        code = choices.operators.bits if choices.operators else 0
        known = {
            "loaded": In(1),
            "entries": In(frame.entries),
            "modes": Out(frame.entries),
            "starts": In(frame.entries * layout.start.size),
        }
        super().__init__(
            {"start": In(1)}
            | (FOLLOWED if soon else known)
            | {name: In(bits) for name, bits in choices.inputs.items()}
            | {"row_word": In(layout.row.size), "mode_word": In(layout.mode.size)}
            | {
                "row_address": Out(mode["first"]),
                "mode_address": Out(layout.entry_bits),
            }
            | {"busy": Out(1), "done": Out(1), "cycles": Out(32), "error": Out(ERROR_BITS)}
            | ({"operator_code": Out(code)} if code else {})
            | {"round": Out(mode["first"]), "run_form": Out(layout.entry_bits)}
            | {name: Out(bits) for name, bits in layout.named.items()}
            | {name: Out(self._word_bits) for name in ("read_0", "read_1", "write_0")}
            | {"streams": Out(1), "late": Out(1)}
            | {f"store_{k}": Out(1) for k in range(frame.depth)}
            | {name: Out(mode[name]) for name in FOR_HOST}
        )
        if soon:
            self.idle = Signal(init=1, name="idle")

    def elaborate(self, platform: object) -> Module:
        """Build the counters, and what nodes are given as late as they need it."""
        m = Module()
        last = Signal(name="last")
        begin = self._run(m, last)
        mode = View(self._layout.mode, self.value("mode_word"))
        m.d.sync += [getattr(self, name).eq(mode[name]) for name in FOR_HOST]
        m.d.comb += [self.streams.eq(mode["streams"]), self.late.eq(mode["late"])]
        go = pulsed(m, begin, RUN_SETUP + MODE_SETUP, name="goes")
        flits = self._flits(m, mode, begin, go)
        slot = self._count(m, mode, flits, go)
        self._end(m, mode, slot.moves, last, begin)
        self._show(m, mode, slot)
        return m

    def _flits(self, m: Module, mode: View, begin: Value, go: Value) -> Value:
        """The number of the last flit of a block, from the cycle before the first slot on.

        In that cycle, in which none has been counted, it is 1 for all above 0.
        """
        before = Signal(address_width(self._layout.frame.flits), name="flits_before")
        with m.If(begin):
            m.d.sync += before.eq(self.value("length") - 1)
        last = Signal(len(before), name="last_flit")
        more = Signal(name="more_flits")
        m.d.sync += [
            last.eq((before * self.reciprocal)[self._layout.reciprocal_shift :]),
            more.eq(before >= mode["chunks"]),
        ]
        return Mux(go, more, last)

    def _count(self, m: Module, mode: View, flits: Value, go: Value) -> _Slot:
        """Count rows, and the slots of each, a cycle ahead of them; the first comes after `go`."""
        layout = self._layout
        said = View(layout.row, self.value("row_word"))
        # What a table shows comes late in a cycle: what leads to the next row was there before.
        kept = {name: Signal(bits, name=f"its_{name}") for name, bits in layout.lasting.items()}
        pause, empty, ends = kept.values()
        first, by_flit, least = (delayed(m, mode[name], 1, f"mode_{name}")
                                 for name in ("first", "by_flit", "least"))  # fmt: skip
        row, running = Signal(len(mode["first"]), name="row_now"), Signal(name="running")
        longest = max(len(pause), len(flits), len(least))
        count = Signal(longest + 1, name="count")
        scaled = Signal(self._word_bits, name="scaled")
        moves = go | running
        # A row lasts as long as all of its mode do at the least.
        passed, moved = Signal(name="words_passed"), Signal(name="words_pass")
        sent = Mux(empty, count + 1, count - flits)[: len(count)]
        m.d.comb += moved.eq(passed | (sent == pause))
        end_of_row = by_flit | (moved & (count + 1 >= least))
        m.d.sync += passed.eq(moved & moves & ~end_of_row)
        over = ends & end_of_row & (~by_flit | (count == flits))
        after = Signal(len(row), name="row_after")
        m.d.comb += after.eq(row)
        with m.If(~moves):
            m.d.sync += [its.eq(mode[name]) for name, its in kept.items()]
            m.d.comb += after.eq(mode["first"])
            m.d.sync += [count.eq(0), scaled.eq(0), running.eq(0)]
        with m.Else():
            m.d.sync += running.eq(~over)
            with m.If(end_of_row):
                m.d.sync += [its.eq(said[name]) for name, its in kept.items()]
                m.d.comb += after.eq(Mux(ends, first, row + 1))
            with m.If(Mux(by_flit, ends, 1)):
                m.d.sync += [count.eq(count + 1), scaled.eq(scaled + self.chunks)]
            with m.If(end_of_row & ~by_flit):
                m.d.sync += [count.eq(0), scaled.eq(0)]
        m.d.sync += row.eq(after)
        m.d.comb += self.row_address.eq(after)
        streams = by_flit | (~empty & (count <= flits))
        return _Slot(said, row, count, scaled, moves, streams)

    def _show(self, m: Module, mode: View, slot: _Slot) -> None:
        """Give nodes what they need of a slot, as late as they need it."""
        layout, said, count = self._layout, slot.said, slot.count
        streams = Signal(name="streaming")
        begins = Signal(name="begins")
        m.d.sync += [
            streams.eq(slot.moves & slot.streams),
            # Nothing of a row is left when another, or none, is under way.
            begins.eq(~mode["streams"] & (~slot.moves | (count == 0))),
        ]
        m.d.sync += self.round.eq(slot.row - mode["first"])
        # What leaves now is near the nodes a cycle later, and in them two.
        for name in layout.named:
            named = delayed(m, said[name], ADDRESS - DISTRIBUTION, f"{name}_slot")
            m.d.comb += getattr(self, name).eq(named)
        words = count, slot.scaled, said["at"] + count
        shown = [delayed(m, value, 1 + ADDRESS - DISTRIBUTION, f"word_{number}")
                 for number, value in enumerate(words)]  # fmt: skip
        m.d.comb += [self.read_0.eq(shown[0]), self.read_1.eq(shown[1])]
        # What the node says of a row that streams is looked up before its words arrive.
        links = layout.frame.topology.longest_link
        streamed = delayed(m, shown[2], 1 + links)
        m.d.comb += self.write_0.eq(Mux(mode["streams"], streamed, shown[2]))
        line: list[Value] = []
        for _ in range(SETTING - DISTRIBUTION + layout.frame.depth):
            later = Signal(name=f"strobe_{len(line) + 1}")
            m.d.sync += later.eq(Mux(begins, 0, line[-1]) if line else streams)
            line.append(later)
        for k in range(layout.frame.depth):
            m.d.comb += getattr(self, f"store_{k}").eq(line[SETTING - DISTRIBUTION + k])

    def _end(self, m: Module, mode: View, moves: Value, last: Signal, begin: Value) -> None:
        """Find out when a run ends: some cycles after its last slot."""
        valid = Signal(name="valid")
        left = Signal(len(mode["drain"]), name="drains")
        m.d.sync += valid.eq(moves)
        with m.If(valid):
            m.d.sync += left.eq(mode["drain"])
        with m.Elif(left > 0):
            m.d.sync += left.eq(left - 1)
        m.d.comb += last.eq(~valid & (left == 1))
        if self._soon:

            def ended(early: int) -> Value:
                # Not before the last slot, of which nobody knows that it is the last.
                at_once = valid & ~moves & (mode["drain"] <= early)
                return at_once | (~valid & (left == 1 + early))

            m.d.comb += self.run_ends.eq(ended(self._soon) | self.value("over"))
            m.d.sync += [
                self.ending.eq(ended(2)),
                self.idle.eq((self.idle | self.ending) & ~begin),
            ]

    def _run(self, m: Module, last: Value) -> Value:
        """Keep what is shown of a run, and find out whether one begins."""
        choices = self._choices
        if self._soon:
            entry, others = self.value("mode"), [(RunError.BUSY, ~self.idle)]
        else:
            entry, others = self._found(m)
        begin = choices.accepted(m, self.value, others, self.error, name="begins_run")
        if choices.operators:
            choices.keep_operator(m, self.value, begin, self.operator_code)
        m.d.comb += self.mode_address.eq(Mux(begin, entry, self.run_form))
        with m.If(begin):
            m.d.sync += self.run_form.eq(entry)
        show_run(m, self, begin, last, most=(1 << 32) - 1, late=int(self._soon > 0))
        return begin

    def _found(self, m: Module) -> tuple[Value, list[tuple[RunError, Value]]]:
        """The entry of a start, and why it may not be carried out."""
        choices = self._choices
        starts = self.words("starts", self._layout.start.size)
        chosen: View = {name: self.value(name) for name in ("mode", "length", "root")
                  if name in choices.inputs}  # fmt: skip
        entry, modes, no_root = found_entry(m, self._layout, starts, self.value("entries"), chosen)
        m.d.comb += self.modes.eq(modes)
        missing = ~self.modes.bit_select(self.value("mode"), 1)
        return entry, [
            (RunError.ROOT, no_root),
            (RunError.MODE, missing),
            (RunError.IMAGE, missing & ~self.value("loaded")),
            (RunError.BUSY, self.busy),
        ]
