"""The unloader of a node: sends the packets that the node has received, run by run.

While a run goes on, the words of earlier runs are read from other sections.

Cycles of a word, if its receiver takes words in every cycle:

======  ==============================================================
0       counters show packet, block and word: the ROM is given its address
1       ``sought``: the row is there
2       ``asked``: bank and address are in registers, the memory port is given them
3       ``read``: memories show the word
4       the stream shows it; a cycle later where the core shows many memories
======  ==============================================================

All of these wait while the receiver does, so that no word needs a place in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ...rtl.memories import constant_at, fitting
from ...rtl.modules import apart
from ...rtl.multiplexer import keeper
from .engine import Engine, EngineShape
from .ports import stream_signals
from .words import WordCount, cleared, counted, registered_outputs, state, tally

__all__ = ["Unloader"]


class Unloader(Engine):
    """Sends the packets that a node has received.

    Members
    -------
    tvalid, tlast, tkeep, tid, tready : Out, In
        The stream of the packets; its data come from the memory port, or from the own block.
    receives, position : In
        For each form: high if the node receives packets; and its position in its group.
    own_last, own_numbers : In
        For each form: the number of the last packet of the node, and the origins of its packets, if
        nodes lack some.
    clear : In(1)
        The reset of the node.
    run_begins, run_ends : In(1)
        High for a cycle when a run begins, and when one has ended.
    run_empty, run_last, unload_mode, unload_root : In
        For the last run in each section: high if it has brought nothing; the number of the last
        flit of its packets; and the choices of its command.
    key, row : Out, In
        The address of the ROM, and its row a cycle later.
    read_advance, read_bank, read_address : Out
        The read of the memory port.
    read_section : Out
        The lowest bits of the number of the run: the section, and one bit more.
    read_own, read_index : Out
        High if the node keeps the word itself, and the number of the word in its packet.
    free : Out(1)
        High if there is room for the packets of another run.
    """

    side, passes = "m_axis", "receives"

    def __init__(self, shape: EngineShape) -> None:
        self._sections = sections = shape.facts.sections
        stream = stream_signals(keep=shape.keep_bits, origin=shape.number_bits)
        forms, lacks = len(shape.packets), shape.lacks
        super().__init__(
            shape,
            {
                **{name: each.flip() for name, each in stream.items()},
                "receives": In(forms),
                "position": In(shape.position_bits),
                "own_last": In(forms * shape.packet_bits * lacks),
                "own_numbers": In(forms * shape.number_bits * lacks << shape.packet_bits),
                "clear": In(1),
                "run_begins": In(1),
                "run_ends": In(1),
                "run_empty": In(sections.count),
                **{name: In(bits) for name, bits in shape.facts.said_widths("unload").items()},
                "run_last": In(sections.count * shape.length_bits),
                "row": In(shape.table.rom_bits),
                "key": Out(shape.key_bits),
                "read_advance": Out(1),
                "read_bank": Out(shape.port.bank_bits),
                "read_address": Out(shape.port.address_bits),
                "read_section": Out(sections.number_bits),
                "read_own": Out(int(shape.keeps)),
                "read_index": Out(shape.words.index_bits * shape.keeps),
                "free": Out(1),
            },
        )
        registered_outputs(
            self, "read_bank", "read_address", "read_section", "read_own", "read_index"
        )
        #: The lowest bits of the number of the run that is unloaded, or will be next.
        self._run = state(sections.number_bits, name="run")
        #: High while there are words of the run that were not asked for yet.
        self._there = state(name="there")
        #: High with the last word of a run.
        self._finishes = state(name="finishes")
        #: High in the cycle in which a run is passed over that has brought nothing.
        self._skips = state(name="skips")

    @cached_property
    def _section(self) -> Value:
        """The section of the run that is unloaded."""
        return self._sections.of(self._run)

    @cached_property
    def _form(self) -> Value:
        """The form of the run that is unloaded."""
        return self._form_of(self._section)

    def elaborate(self, platform: object) -> Module:
        """Build the counters of words, and the pipeline that reads them.

        The receiver decides only whether words go on, and never where they go.
        """
        m, shape, there, clear = Module(), self.shape, self._there, self.value("clear")
        shows, advance = Signal(name="shows"), Signal(name="advance")
        m.d.comb += [
            advance.eq(~shows | self.value("tready")),
            self.read_advance.eq(advance),
        ]
        goes_on, ends_packet = Signal(name="goes_on"), state(name="ends_packet")
        finishes, restart = self._finishes, ends_packet | ~there
        counter = self._count(m, goes_on, restart)
        following = self._sections.following(self._section, (there & finishes) | self._skips)
        packet, last_follows = self._packets(m, goes_on, ends_packet, following)
        with m.If(goes_on | ~there):
            ends = counter.following == self._last(following)[shape.flit_bits :]
            m.d.sync += [ends_packet.eq(ends), finishes.eq(ends & last_follows)]
        cleared(m, clear, ends_packet, finishes, *counter.registers)
        origin = self._origin(packet)
        tags = Cat(finishes, ends_packet, origin, self._full(ends_packet))
        sought = self._stage(m, advance, there, tags, "sought")
        row = self._ask(m, advance, counter, packet)
        known = 3 + len(origin)
        tags = Cat(sought[2:known], self._origin_in(row), sought[known:])
        asked = self._stage(m, advance, sought[0], tags, "asked")
        read = asked
        for number in range(shape.port.answer - 1):
            read = self._stage(m, advance, read[0], read[1:], f"read_{number}")
        shown = self._stage(m, advance, read[0], read[1:], "shown")
        m.d.comb += [
            shows.eq(shown[0]),
            self.tvalid.eq(shows & ~clear),
            Cat(self.tlast, self.tid).eq(shown[1:]),
            goes_on.eq(self._goes_on(m, read[0], "words")),
        ]
        if shape.flit_bits:
            full = Cat(Const(1, 1), shown[2 + shape.number_bits :])
            size = shape.keep_bits // shape.beat
            m.d.comb += self.tkeep.eq(Cat(*(flit.replicate(size) for flit in full)))
        # Counters of runs share no level of logic with counters of words.
        turns = self._goes_on(m, read[0], "runs")
        self._follow(m, finishes, turns, ~there & ~sought[0] & ~asked[0])
        last_asked = state(name="last_asked")
        with m.If(goes_on):
            m.d.sync += last_asked.eq(sought[0] & sought[1])
        cleared(m, clear, last_asked)
        # A run is claimed from its begin until its last word leaves its memory.
        claimed, _ = tally(
            m,
            up=self.value("run_begins"),
            down=(turns & last_asked) | self._skips,
            clear=clear,
            name="claimed",
        )
        self._show_rest(m, claimed)
        # There are never more than there are buffers.
        m.d.comb += self.free.eq(~claimed[1] if self._sections.two else ~claimed.all())
        return m

    def _count(self, m: Module, beat: Value, restart: Value) -> WordCount:
        """Count the words of packets."""
        return counted(m, self.shape.words, self._form, beat=beat, restart=restart)

    def _origin_in(self, row: Value) -> Value:
        """Return the origin of a packet, if its row says that."""
        del row
        return Const(0, 0)

    def _show_rest(self, m: Module, claimed: Value) -> None:
        """Show whether all packets of runs have been sent, if anybody has to know."""

    def _stage(self, m: Module, advance: Value, valid: Value, tags: Value, name: str) -> Value:
        """Return a stage of the pipeline: a valid bit, and the tags of the word."""
        there = state(name=f"{name}_valid")
        known = Signal(len(tags), name=name, reset_less=True)
        with m.If(advance):
            m.d.sync += [there.eq(valid), known.eq(tags)]
        cleared(m, self.value("clear"), there)
        return Cat(there, known)

    def _goes_on(self, m: Module, shown_next: Value, name: str) -> Value:
        """Return whether words go on, for a few registers to which that comes late.

        These registers have a copy of `shows` of their own. Why: the first copy is placed near the
        registers of the pipeline.
        """
        shows, tready = Signal(name=f"shows_{name}"), self.value("tready")
        stays = (shown_next | (shows & ~tready)) & ~self.value("clear")
        m.d.comb += shows.eq(apart(m, stays, name=f"shows_{name}_here"))
        return ~shows | tready

    def _last(self, section: Value) -> Value:
        """Return the number of the last flit of the packets of a run."""
        if not self.shape.any_length:
            return Const(self.shape.most_flits - 1, self.shape.last_bits)
        return self.value("run_last").word_select(section, self.shape.length_bits)

    def _full(self, ends_packet: Value) -> Value:
        """Return whether each flit of a word but the first is part of the packet."""
        bits = self.shape.flit_bits
        if not bits:
            return Const(0, 0)
        last = self._last(self._section)[:bits] | (~ends_packet).replicate(bits)
        return Cat(last >= k for k in range(1, self.shape.beat))

    def _packets(
        self, m: Module, goes_on: Value, ends_packet: Value, following: Value
    ) -> tuple[Value, Value]:
        """Return the packet, and whether that of the next word is the last of its run."""
        shape, there = self.shape, self._there
        if not shape.packet_bits:
            return Const(0, 1), Const(1)
        packet = state(shape.packet_bits, name="packet")
        last, last_follows = state(name="last_packet"), Signal(name="last_follows")
        # For the first word of a run, and for others; a packet stays until it ends.
        single = constant_at([int(count == 1) for count in shape.counts], self._form_of(following))
        before = packet == constant_at([max(count - 2, 0) for count in shape.counts], self._form)
        if shape.lacks:
            single = self._given("own_last", self._form_of(following)) == 0
            before = packet + 1 == self._given("own_last", self._form)
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

    def _origin(self, packet: Value) -> Value:
        """Return the origin of a packet."""
        shape = self.shape
        number = packet | constant_at([each.origin for each in shape.packets], self._form)
        if shape.lacks:
            at = Cat(packet, self._form[: shape.facts.form_bits])
            number = self.value("own_numbers").word_select(at, shape.number_bits)
        return fitting(self._or_root(number), shape.number_bits)

    def _or_root(self, number: Value) -> Value:
        """Return the root of the run in forms in which the one packet is from the root."""
        by_root = [int(each.by_root) for each in self.shape.packets]
        if not any(by_root):
            return number
        return Mux(constant_at(by_root, self._form), self._root_of(self._section), number)

    def _row_address(self, counter: WordCount, packet: Value) -> Value:
        """Return the address of the row of a word."""
        return self.shape.table.address(counter.chunk, self._or_root(packet), self._form)

    def _ask(self, m: Module, advance: Value, counter: WordCount, packet: Value) -> Value:
        """Ask the memory port for a word: where its block begins, and how far it is from there.

        Returns the row of the word, a cycle after its address.
        """
        shape, table = self.shape, self.shape.table
        address = self._row_address(counter, packet)
        if shape.key_bits:
            m.d.comb += self.key.eq(address)
        held = Signal(max(table.address_bits, 1), name="row_address", reset_less=True)
        run = Signal(len(self._run), name="run_here", reset_less=True)
        within = Signal(len(counter.within), name="within_here", reset_less=True)
        index = Signal(len(counter.index), name="index_here", reset_less=True)
        form = Signal(shape.facts.form_bits * table.by_form, name="form_here", reset_less=True)
        with m.If(advance):
            m.d.sync += [run.eq(self._run), within.eq(counter.within)]
            m.d.sync += [held[bit].eq(address[bit]) for bit in table.wired_bits]
            if shape.keeps:
                m.d.sync += index.eq(counter.index)
            if len(form):
                m.d.sync += form.eq(self._form)
        row = self._held_row(m, advance)
        with m.If(advance):
            m.d.sync += [
                self.read_section.eq(run),
                self.read_bank.eq(table.field("bank", held, row, form)),
                self.read_address.eq(self._address(table.field("base", held, row, form), within)),
            ]
            if shape.keeps:
                m.d.sync += self.read_own.eq(table.field("own", held, row, form))
                m.d.sync += self.read_index.eq(index)
        return row

    def _held_row(self, m: Module, advance: Value) -> Value:
        """Return the row of a word that waits; the ROM shows it for the first cycle of that."""
        if not self.shape.table.rom_bits:
            return Const(0, 0)
        row = self.value("row")
        if not self.shape.key_bits:
            return row
        fresh, held = state(name="fresh"), Signal(len(row), name="held_row", reset_less=True)
        m.d.sync += fresh.eq(advance)
        cleared(m, self.value("clear"), fresh)
        with m.If(fresh):
            m.d.sync += held.eq(row)
        return Mux(fresh, row, held)

    def _follow(self, m: Module, finishes: Value, goes_on: Value, rests: Value) -> None:
        """Go on from run to run.

        A run is complete from its end until its last word is asked for. Its packets are known
        before its end. Runs that bring nothing are passed over while no word is on its way: at
        rest.
        """
        there, skips, sections = self._there, self._skips, self._sections
        ends, clear, empty = map(self.value, ("run_ends", "clear", "run_empty"))
        # `goes_on` comes late, by long wires: only one LUT may follow.
        keep, turns = keeper(m, 1), there | skips
        passes = (keep(there & finishes) & goes_on) | skips
        complete, _ = tally(m, up=ends, down=passes, clear=clear, name="complete")
        known = Signal(sections.count, name="brought")
        brought: Sequence[Value] = [
            self._takes_part(Const(k, sections.bits)) & ~empty[k] for k in range(sections.count)
        ]
        # Other nodes may hold the same.
        m.d.comb += known.eq(apart(m, Cat(*brought), name="brought_here"))
        this, following = (
            known.bit_select(section, 1)
            for section in (self._section, sections.following(self._section))
        )
        stays = keep(there & ~(finishes & goes_on))
        brings = keep(Mux(turns, following, this))
        waits = keep(Mux(turns, complete[1], complete.any()))
        m.d.sync += [
            there.eq(stays | (brings & (waits | ends))),
            skips.eq(complete.any() & ~this & rests & ~skips),
        ]
        with m.If(passes):
            m.d.sync += self._run.eq(self._run + 1)
        cleared(m, clear, self._run, there, skips)
