"""The unloader: sends on what a node has received, packet by packet.

While a run goes on, what those before have brought is unloaded from other sections of the
memories. A word takes four cycles: its row of the ROM, its address, the memory, and the choice of
the memory, which takes another where there are many. All of them wait while the receiver does, so
that no word needs a place in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..memories import choose, constant_at, fitting
from ..modules import Leaf, apart
from ..multiplexer import keeper, select_code
from .ports import stream_signals
from .sections import Sections
from .shapes import StreamEnd, UnloaderShape
from .words import WordCount, cleared, counted, registered_outputs, state, tally

__all__ = ["Unloader"]


class Unloader(StreamEnd):
    """Sends on what a node has received.

    Members
    -------
    tvalid, tlast, tkeep, tid, tready : Out, In
        The stream of what the node receives; its data are a register of the endpoint.
    receives, position : In
        Of each form, whether the node receives anything, and which root it is.
    own_last, own_numbers : In
        Of each form, the index of the last packet of the node, and the numbers of its packets,
        where nodes lack some.
    clear : In(1)
        The reset of the node.
    run_begins, run_ends : In(1)
        High for a cycle when a run begins, and when one has ended.
    run_empty, run_last, unload_mode, unload_root : In
        Of the last run in each section, whether it has brought nothing, the number of the last
        flit of its packets, and what its command said.
    key, row : Out, In
        What the ROM is asked for, and where that chunk lies, a cycle later.
    read_advance : Out(1)
        Whether reads go on with this edge.
    read_code, read_address : Out
        Select bits of a memory, and the address.
    read_section : Out
        The lowest bits of the number of the run: its section, and a bit more.
    read_full : Out
        Where words are beats, which flits but the first of the word that is shown next are full.
    free, rests : Out(1)
        Whether there is room for what another run brings; and whether all has been passed on that
        runs have brought, if that matters.
    """

    verb, side, passes = "unload", "m_axis", "receives"

    shape: UnloaderShape

    def __init__(self, shape: UnloaderShape) -> None:
        self._sections = sections = shape.facts.sections
        stream = stream_signals(keep=shape.keep_bits, origin=shape.id_bits)
        forms = len(shape.packets) * shape.facts.by_form
        super().__init__(
            shape,
            {
                **{name: each.flip() for name, each in stream.items()},
                "receives": In(shape.passes_bits),
                "position": In(shape.position_bits),
                "own_last": In(forms * shape.count_bits),
                "own_numbers": In(forms * shape.id_bits * shape.lacking << shape.count_bits),
                "clear": In(1),
                "run_begins": In(1),
                "run_ends": In(1),
                "run_empty": In(sections.count),
                **{name: In(bits) for name, bits in shape.facts.end_widths(self.verb).items()},
                "run_last": In(sections.count * shape.last_bits if shape.any_length else 0),
                "row": In(shape.row_bits),
                "key": Out(shape.key_bits),
                "read_advance": Out(1),
                "read_code": Out(shape.memory_bits),
                "read_address": Out(shape.address_bits),
                "read_section": Out(sections.number_bits),
                "read_full": Out((shape.beat - 1) * (shape.flit_bits > 0)),
                "free": Out(1),
                "rests": Out(int(not shape.facts.by_form)),
            },
        )
        registered_outputs(self, "read_code", "read_address", "read_section")
        self._runs = RunQueue.of(self, sections)

    @cached_property
    def _form(self) -> Value:
        """The form of the run that is unloaded, or all facts of it."""
        return self._form_of(self._runs.section)

    def elaborate(self, platform: object) -> Module:
        """Build what counts words, and the pipeline that reads them.

        What the receiver says decides only whether words go on, and never where they go.
        """
        m, shape, runs = Module(), self.shape, self._runs
        there = runs.there
        shows, advance = Signal(name="shows"), Signal(name="advance")
        m.d.comb += [
            advance.eq(~shows | self.value("tready")),
            self.read_advance.eq(advance),
        ]
        goes_on, ends_packet = Signal(name="goes_on"), state(name="ends_packet")
        finishes, restart = state(name="finishes"), ends_packet | ~there
        last_chunk = self._fact("last_chunk", self._form) if self._facts else None
        counter = counted(
            m, shape.words, self._form, beat=goes_on, restart=restart, last_chunk=last_chunk
        )
        following = runs.following(finishes)
        packet, last_follows = self._packets(m, goes_on, there, ends_packet, following)
        if shape.key_bits:
            if self._facts:
                key = self._first_row(m, goes_on, ends_packet, finishes) + counter.chunk
            else:
                known_by = self._of_root(packet)
                key = shape.rows.value(counter.chunk, known_by, self._form)
            m.d.comb += self.key.eq(key[: shape.key_bits])
        with m.If(goes_on | ~there):
            ends = counter.following == self._last(following)[shape.flit_bits :]
            m.d.sync += [ends_packet.eq(ends), finishes.eq(ends & last_follows)]
        cleared(m, self.value("clear"), ends_packet, finishes, *counter.registers)
        tags = self._tags(finishes, ends_packet, packet)
        sought = self._stage(m, advance, there, tags, "sought")
        origin = self._address(m, advance, counter)
        asked = self._stage(m, advance, sought[0], Cat(sought[2:], origin), "asked")
        read = self._stage(m, advance, asked[0], asked[1:], "read")
        if shape.late:
            read = self._stage(m, advance, read[0], read[1:], "chosen")
        self._show(m, advance, read, shows, goes_on)
        self._follow(m, finishes, goes_on, (sought, asked, read))
        return m

    def _show(self, m: Module, advance: Value, read: Value, shows: Signal, goes_on: Signal) -> None:
        """Show a word that has been read, and what is known of it; find out whether words go on."""
        shape, tags, bits = self.shape, read[1:], 1 + self.shape.id_bits
        if shape.flit_bits:
            # Which flits of the beat are full, as the number of the last of them says.
            full = Cat(tags[bits:] >= k for k in range(1, shape.beat))
            m.d.comb += self.read_full.eq(full)
            tags = Cat(tags[:bits], Const(1, 1), full)
        shown = self._stage(m, advance, read[0], tags, "shown")
        m.d.comb += [
            shows.eq(shown[0]),
            self.tvalid.eq(shows & ~self.value("clear")),
            Cat(self.tlast, self.tid).eq(shown[1:]),
            goes_on.eq(self._goes_on(m, read[0], "words")),
        ]
        if shape.flit_bits:
            count = shape.keep_bits // shape.beat
            m.d.comb += self.tkeep.eq(Cat(*(full.replicate(count) for full in shown[1 + bits :])))

    def _follow(
        self, m: Module, finishes: Value, goes_on: Value, stages: tuple[Value, Value, Value]
    ) -> None:
        """Go on from run to run, and say when there is room for another."""
        runs, (sought, asked, read) = self._runs, stages
        # What counts runs shares no level of logic with what counts words.
        turns, empty = self._goes_on(m, read[0], "runs"), self.value("run_empty")
        sections = [Const(k, self._sections.bits) for k in range(self._sections.count)]
        runs.add_turns(
            m,
            finishes=finishes,
            goes_on=turns,
            at_rest=~runs.there & ~sought[0] & ~asked[0],
            brought=[self._takes_part(k) & ~empty[k.value] for k in sections],
        )
        last_asked = state(name="last_asked")
        with m.If(goes_on):
            m.d.sync += last_asked.eq(sought[0] & sought[1])
        cleared(m, self.value("clear"), last_asked)
        claimed = runs.claimed(m, last_asked, turns)
        # There are never more than there are buffers.
        m.d.comb += self.free.eq(~claimed[1] if self._sections.two else ~claimed.all())
        if not self.shape.facts.by_form:
            m.d.comb += self.rests.eq(claimed == 0)

    def _tags(self, finishes: Value, ends_packet: Value, packet: Value) -> Value:
        """What is known of a word, all its way to the receiver."""
        tags, bits = Cat(finishes, ends_packet, self._id(packet)), self.shape.flit_bits
        if not bits:
            return tags
        return Cat(tags, self._last(self._runs.section)[:bits] | (~ends_packet).replicate(bits))

    def _goes_on(self, m: Module, shown_next: Value, name: str) -> Value:
        """Whether words go on, for a few registers to which that comes late.

        They have a register of their own that says whether a word is shown; the first one is near
        all registers that words go through.
        """
        shows, tready = Signal(name=f"shows_{name}"), self.value("tready")
        stays = (shown_next | (shows & ~tready)) & ~self.value("clear")
        m.d.comb += shows.eq(apart(m, stays, name=f"shows_{name}_here"))
        return ~shows | tready

    def _last(self, section: Value) -> Value:
        """The number of the last flit of the packets of a run."""
        bits = self.shape.last_bits
        if not self.shape.any_length:
            last = self.shape.most_flits - 1
            return Const(last, bits) if self.shape.flit_bits else Const(last)
        return self.value("run_last").word_select(section, bits)

    def _packets(
        self, m: Module, goes_on: Value, there: Value, ends_packet: Value, following: Value
    ) -> tuple[Value, Value]:
        """The packet, and whether that of the next word is the last of its run."""
        packets = self.shape.packets
        if max(packets) == 1:
            return Const(0, 1), Const(1)
        packet = state((max(packets) - 1).bit_length(), name="packet")
        last, last_follows = state(name="last_packet"), Signal(name="last_follows")
        # Of the first word of a run, and of others; a packet stays until it ends.
        single = constant_at([int(count == 1) for count in packets], self._form_of(following))
        before = packet == constant_at([max(count - 2, 0) for count in packets], self._form)
        if self.shape.lacking:
            single = self._fact("own_last", self._form_of(following)) == 0
            before = packet + 1 == self._fact("own_last", self._form)
        m.d.comb += last_follows.eq(
            Mux(there, Mux(ends_packet, Mux(last, single, before), last), single)
        )
        ends = there & ends_packet
        with m.If(goes_on | ~there):
            m.d.sync += last.eq(last_follows)
        # No condition but the one that comes late is left to the enable.
        with m.If(goes_on):
            m.d.sync += packet.eq((packet + ends) & ~(ends & last).replicate(len(packet)))
        cleared(m, self.value("clear"), packet, last)
        return packet, last_follows

    def _first_row(self, m: Module, goes_on: Value, ends_packet: Value, finishes: Value) -> Value:
        """The first row of a packet: those of a run follow one another."""
        runs = self._runs
        first = self._fact("first_row", self._form_of(runs.following(finishes)))
        row = Signal(len(first), name="row_of_packet", reset_less=True)
        with m.If(goes_on | ~runs.there):
            step = Mux(ends_packet, self._fact("last_chunk", self._form) + 1, 0)
            m.d.sync += row.eq(Mux(runs.there & ~finishes, row + step, first))
        return row

    def _id(self, packet: Value) -> Value:
        """The origin of a packet; forms of a root have but one. Nothing yet, where rows say it."""
        if "origin" in self.shape.row.members:
            return Const(0, 0)
        if self._facts:
            # Of several packets the first is of origin 0.
            return fitting(packet | self._fact("origin", self._form), self.shape.id_bits)
        number = packet | constant_at(self.shape.roots, self._form)
        if self.shape.lacking:
            at = Cat(packet, self._form[: self.shape.facts.form_bits])
            number = self.value("own_numbers").word_select(at, self.shape.id_bits)
        return fitting(self._of_root(number), self.shape.id_bits)

    def _of_root(self, number: Value) -> Value:
        """The root of a run, in forms in which a packet is of that; in others a number."""
        by_root = self.shape.by_root
        if not any(by_root):
            return number
        return Mux(constant_at(by_root, self._form), self._root_of(self._runs.section), number)

    def _address(self, m: Module, advance: Value, counter: WordCount) -> Value:
        """Ask for a word: where its chunk begins, and how far it is from there.

        What is returned is the origin of its packet, if its row says that.
        """
        shape = self.shape
        by_word = bool(shape.kept and shape.row_bits) and counter.within is not counter.index
        form = self._form[: shape.shift_form_bits]
        known = {
            "run": self._runs.run,
            "within": counter.within,
            "form": form,
            "index": counter.index,
        }
        known |= {} if by_word else {"index": Const(0, 0)}
        fields = data.StructLayout({name: len(value) for name, value in known.items()})
        # Of the word whose row is there.
        place = Signal(fields, name="place", reset_less=True)
        with m.If(advance):
            m.d.sync += place.eq(Cat(known.values()))
        row = data.View(shape.row, self._held_row(m, advance) if shape.row_bits else Const(0, 0))
        kept, code = self._memory(row)
        within = Mux(kept, place.index, place.within) if by_word else place.within
        if shape.base_bits:
            base = self._base(row.base, place.form)
            # Where words lie farther apart than bases, no carry is needed.
            within = base | within if shape.apart else base + within
        with m.If(advance):
            m.d.sync += self.read_address.eq(within)
            m.d.sync += self.read_section.eq(place.run)
            if shape.memory_bits:
                m.d.sync += self.read_code.eq(code)
        return row.origin if "origin" in shape.row.members else Const(0, 0)

    def _memory(self, row: data.View) -> tuple[Value, Value]:
        """Whether the node has a word from itself, and the select bits of its memory."""
        count, bits = self.shape.memories, self.shape.memory_bits
        if not count:
            return row.kept, row.code
        codes = [Const(select_code(count, k), bits) for k in range(count)]
        return row.memory == count - 1, choose(codes, row.memory)

    def _held_row(self, m: Module, advance: Value) -> Value:
        """The row of a word, as long as it waits; the ROM shows it for the first cycle of that."""
        row = self.value("row")
        if not self.shape.key_bits:
            return row
        fresh, held = state(name="fresh"), Signal(len(row), name="held_row", reset_less=True)
        m.d.sync += fresh.eq(advance)
        cleared(m, self.value("clear"), fresh)
        with m.If(fresh):
            m.d.sync += held.eq(row)
        return Mux(fresh, row, held)

    def _stage(self, m: Module, advance: Value, valid: Value, tags: Value, name: str) -> Value:
        """A stage of the pipeline: whether a word is there, and what is known of it."""
        there = state(name=f"{name}_valid")
        known = Signal(len(tags), name=name, reset_less=True)
        with m.If(advance):
            m.d.sync += [there.eq(valid), known.eq(tags)]
        cleared(m, self.value("clear"), there)
        return Cat(there, known)


@dataclass(frozen=True)
class RunQueue:
    """The runs that wait to be unloaded at a node, and the one that is.

    A run is claimed from its begin until its last word leaves memory; it is complete from its end
    until its last word is asked for. What a run brings is known before its end.

    Parameters
    ----------
    leaf : Leaf
        With the inputs `clear`, `run_begins` and `run_ends`.
    run : Signal
        The number of the run that is unloaded, or will be next.
    there : Signal
        Whether there are words of it that were not asked for yet.
    skips : Signal
        High in the cycle in which a run is passed over that has brought nothing.
    """

    leaf: Leaf
    sections: Sections
    run: Signal
    there: Signal
    skips: Signal

    @classmethod
    def of(cls, leaf: Leaf, sections: Sections) -> RunQueue:
        """Those of a module."""
        run = state(sections.number_bits, name="run")
        return cls(leaf, sections, run, state(name="there"), state(name="skips"))

    @property
    def section(self) -> Value:
        """Where the words of the run lie."""
        return self.sections.of(self.run)

    def following(self, finishes: Value) -> Value:
        """Where the next word lies, given whether this one is the last of its run."""
        return self.sections.following(self.section, (self.there & finishes) | self.skips)

    def add_turns(
        self, m: Module, *, finishes: Value, goes_on: Value, at_rest: Value,
        brought: Sequence[Value],
    ) -> None:  # fmt: skip
        """Add what goes on from run to run, given whether those of each section bring anything.

        Such as do not are passed over while no word is on its way to memory: at rest.
        """
        there, (ends, clear) = self.there, map(self.leaf.value, ("run_ends", "clear"))
        # The wires of what comes late are long: nothing but the last table is behind them.
        keep, turns = keeper(m, 1), there | self.skips
        passes = (keep(there & finishes) & goes_on) | self.skips
        complete, _ = tally(m, up=ends, down=passes, clear=clear, name="complete")
        known = Signal(self.sections.count, name="brought")
        # Other nodes may hold the same.
        held = apart(m, Cat(*brought), name="brought_here")
        m.d.comb += known.eq(held)
        this, following = (
            known.bit_select(section, 1)
            for section in (self.section, self.sections.following(self.section))
        )
        stays = keep(there & ~(finishes & goes_on))
        brings = keep(Mux(turns, following, this))
        waits = keep(Mux(turns, complete[1], complete.any()))
        m.d.sync += [
            there.eq(stays | (brings & (waits | ends))),
            self.skips.eq(complete.any() & ~this & at_rest & ~self.skips),
        ]
        with m.If(passes):
            m.d.sync += self.run.eq(self.run + 1)
        cleared(m, clear, self.run, there, self.skips)

    def claimed(self, m: Module, last_asked: Value, goes_on: Value) -> Signal:
        """Count the runs that are claimed."""
        # The last word of a run leaves its memory, once it was asked for.
        leaves = (goes_on & last_asked) | self.skips
        begins, clear = map(self.leaf.value, ("run_begins", "clear"))
        return tally(m, up=begins, down=leaves, clear=clear, name="claimed")[0]
