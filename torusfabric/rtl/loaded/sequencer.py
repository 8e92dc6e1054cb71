"""The sequencer of a fabric whose tables are loaded."""

from __future__ import annotations

from collections.abc import Callable

from amaranth.hdl import Const, Elaboratable, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from ...program.timing import ADDRESS, DISTRIBUTION, MODE_SETUP, RUN_SETUP, SETTING
from ..memories import address_width
from ..modules import delayed, pulsed
from ..netlist import Leaf
from ..run_choices import ERROR_BITS, RunChoices, RunError, entry_members, found_entry
from ..sequencer import FOLLOWED, add_end, window
from .layout import TableLayout

__all__ = ["FOR_HOST", "LoadedSequencer"]

#: What the host port is given of a mode.
FOR_HOST = ("chunks", "reciprocal", "first_block", "one_node")


class LoadedSequencer(Leaf):
    """Steps through rows that lie in a table, as the mode says that lies in another.

    Parameters
    ----------
    soon : int
        As of `torusfabric.rtl.sequencer.Sequencer`, with its members; 0 without them. With `soon`,
        the commands have found the entry, and give it as the mode.
    resets : bool
        True for an input `reset_run`, which ends the run that is under way with the next edge.
        Strobes on their way to the nodes arrive before any of the next run.

    Members
    -------
    start, mode, length, operation : In
        As of `torusfabric.rtl.sequencer.Sequencer`; so are `busy`, `done`, `cycles`, `error`,
        `operator_code`, `round` and `run_form`.
    loaded, entries, starts : In
    modes : Out
        As of `entry_members`.
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

    def __init__(
        self, layout: TableLayout, choices: RunChoices, *, soon: int = 0, resets: bool = False
    ) -> None:
        self._layout, self._choices, self._soon, self._resets = layout, choices, soon, resets
        frame, mode = layout.frame, {name: field.width for name, field in layout.mode}
        self._word_bits = layout.of_node.base_bits
        given = {"start": 1, **choices.inputs}
        given |= {"row_word": layout.row.size, "mode_word": layout.mode.size}
        shown = {
            "row_address": mode["first"],
            "mode_address": layout.entry_bits,
            "busy": 1,
            "done": 1,
            "cycles": 32,
            "error": ERROR_BITS,
            "operator_code": choices.operators.bits if choices.operators else 0,
            "round": mode["first"],
            "run_form": layout.entry_bits,
            **layout.named,
            **dict.fromkeys(("read_0", "read_1", "write_0"), self._word_bits),
            "streams": 1,
            "late": 1,
            **{f"store_{k}": 1 for k in range(frame.depth)},
            **{name: mode[name] for name in FOR_HOST},
        }
        super().__init__(
            (FOLLOWED if soon else entry_members(layout.start, frame.entries))
            | {name: In(bits) for name, bits in given.items()}
            | {"reset_run": In(int(resets))}
            | {name: Out(bits) for name, bits in shown.items()}
        )
        if soon:
            self.idle = Signal(init=1, name="idle")

    def elaborate(self, platform: object) -> Elaboratable:
        """Build the counters, and what nodes are given as late as they need it."""
        m = Module()
        last = Signal(name="last")
        entry, refusals = self.value("mode"), list[tuple[RunError, Value]]()
        if not self._soon:
            entry, refusals = self._found(m)
        most = (1 << 32) - 1
        begin = self._choices.add_begin(
            m, self, last, soon=self._soon, most=most, refusals=refusals
        )
        m.d.comb += self.mode_address.eq(Mux(begin, entry, self.run_form))
        with m.If(begin):
            m.d.sync += self.run_form.eq(entry)
        mode = View(self._layout.mode, self.value("mode_word"))
        m.d.sync += [getattr(self, name).eq(mode[name]) for name in FOR_HOST]
        m.d.comb += [self.streams.eq(mode["streams"]), self.late.eq(mode["late"])]
        go = pulsed(m, begin, RUN_SETUP + MODE_SETUP, name="goes")
        flits = self._flits(m, mode, begin, go)
        said, row, words, moves, streams = self._count(m, mode, flits, go)
        m.d.sync += self.round.eq(row - mode["first"])
        add_end(m, self, begin, last, self._ending(m, mode, moves), self._soon)
        self._show(m, mode, said, words, (moves, streams))
        return ResetInserter(self.value("reset_run"))(m) if self._resets else m

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

    def _count(
        self, m: Module, mode: View, flits: Value, go: Value
    ) -> tuple[View, Value, tuple[Value, Value], Value, Value]:
        """Count rows, and the slots of each, a cycle ahead of them; the first comes after `go`.

        Returns what the table says of the row; the row; how many slots of it have been, and that as
        often as chunks; whether there is a slot; and, if so, whether it has a flit.
        """
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
        return said, row, (count, scaled), moves, streams

    def _show(
        self, m: Module, mode: View, said: View, words: tuple[Value, Value],
        slot: tuple[Value, Value],
    ) -> None:  # fmt: skip
        """Give nodes what they need of a slot, as late as they need it."""
        layout, (count, scaled), (moves, has_flit) = self._layout, words, slot
        streams = Signal(name="streaming")
        begins = Signal(name="row_begins")
        m.d.sync += [
            streams.eq(moves & has_flit),
            # Nothing of a row is left when another is under way, or none, which counts nothing.
            begins.eq(~mode["streams"] & (count == 0)),
        ]
        # What leaves now is near the nodes a cycle later, and in them two.
        for name in layout.named:
            named = delayed(m, said[name], ADDRESS - DISTRIBUTION, f"{name}_slot")
            m.d.comb += getattr(self, name).eq(named)
        shown = [delayed(m, value, 1 + ADDRESS - DISTRIBUTION, f"word_{number}")
                 for number, value in enumerate((count, scaled, said["at"] + count))]  # fmt: skip
        m.d.comb += [self.read_0.eq(shown[0]), self.read_1.eq(shown[1])]
        # What the node says of a row that streams is looked up before its words arrive.
        links = layout.frame.topology.longest_link
        streamed = delayed(m, shown[2], 1 + links)
        m.d.comb += self.write_0.eq(Mux(mode["streams"], streamed, shown[2]))
        line: list[Value] = []
        window(m, "strobe", streams, begins, line, SETTING - DISTRIBUTION + layout.frame.depth)
        for k in range(layout.frame.depth):
            m.d.comb += getattr(self, f"store_{k}").eq(line[SETTING - DISTRIBUTION + k])

    @staticmethod
    def _ending(m: Module, mode: View, moves: Value) -> Callable[[int], Value]:
        """What is high so many cycles before the last one of a run, some after its last slot."""
        valid = Signal(name="valid")
        left = Signal(len(mode["drain"]), name="drains")
        m.d.sync += valid.eq(moves)
        with m.If(valid):
            m.d.sync += left.eq(mode["drain"])
        with m.Elif(left > 0):
            m.d.sync += left.eq(left - 1)

        def ended(early: int) -> Value:
            at_once = valid & ~moves & (mode["drain"] <= early) if early else Const(0)
            return at_once | (~valid & (left == 1 + early))

        return ended

    def _found(self, m: Module) -> tuple[Value, list[tuple[RunError, Value]]]:
        """The entry of a start, and why it may not be carried out."""
        chosen: dict[str, Value] = {name: self.value(name) for name in ("mode", "length", "root")
                  if name in self._choices.inputs}  # fmt: skip
        entry, no_root, missing = found_entry(m, self, self._layout.start, chosen)
        none = missing & ~self.value("loaded")
        return entry, [(RunError.ROOT, no_root), (RunError.MODE, missing), (RunError.IMAGE, none)]
