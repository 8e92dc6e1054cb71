"""`Unloader`: the engine that reads received words from memories, and sends them as packets.

Each memory is divided into S equal *sections*, and the words that run m receives lie in section
``m mod S``. While a run is executed, the words of earlier runs are read from other sections. A
*buffer* of the node is the space for the words of one run. A *bank* is the number of one of the
memories. The *packet table* of the node says in which bank, and from which address on, each block
of each packet lies; it is partly in a ROM. Words that a node sends to itself are in a memory of
their own, the *own block*. The *control* starts all runs; it *drops* a run whose messages have a
fault, so that nothing is received.

Pipeline of a word, if the receiver (the user of the stream) accepts a word in every cycle:

=====  ==========  ===================================================================
cycle  stage       contents
=====  ==========  ===================================================================
0                  counters: packet, block and word; the ROM is addressed
1      ``sought``  row of the packet table
2      ``asked``   registers of bank and address, which drive the memory port
3      ``read``    word of each memory
4      ``shown``   word on the stream; one cycle later in nodes with many memories
=====  ==========  ===================================================================

A receiver that does not accept a word stops the whole pipeline, counters included. So no buffer is
needed between the stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ...rtl.memories import constant_at, resize
from ...rtl.modules import unmerged_register
from ...rtl.multiplexer import make_keeper
from .engine import Engine, EngineShape
from .ports import stream_signals
from .words import (
    WordPosition,
    add_clear,
    add_counter,
    add_word_counter,
    make_register,
    register_outputs,
)

__all__ = ["Unloader"]


class Unloader(Engine):
    """Module that reads the received words of a node from memories, and sends them as packets.

    Parameters
    ----------
    shape : EngineShape
        Parameters that all unloaders of the fabric share.

    Members
    -------
    tvalid, tlast, tkeep, tid, tready : Out, In
        The stream of the packets, without `tdata`, which `OwnBlock` drives.
    receives, position : In
        For each form, high if the node receives packets, and the position of the node in its group.
    own_last, own_numbers : In
        For each form, the number of the last packet that the node receives, and the origins of its
        packets; only if some nodes do not receive a packet from every origin.
    lengths : In
        For each form, the number of the last flit of each packet; only if lengths are planned for
        each packet.
    clear : In(1)
        Reset of the node.
    run_begins, run_ends : In(1)
        High for a cycle when a run begins, and when a run ends.
    run_empty, run_last, unload_mode, unload_root : In
        Facts about runs. Each input has a field for each section (one of some equal parts of each
        memory, which runs use in turn), which describes the last run in the section. `run_empty` is
        high if the run was dropped, so that nothing is unloaded. `run_last` is the number of the
        last flit of its packets; `unload_mode` and `unload_root` are its form and its root.
    key, row : Out, In
        Address of the ROM of the packet table, and its row one cycle later. The table gives the
        location of each block of a packet.
    read_advance, read_bank, read_address : Out
        The read of the memory port. `read_advance` is low while the receiver stalls.
    read_section : Out
        Lowest bits of the number of the run: the section, and one further bit.
    read_own, read_index : Out
        High if the word is in the own block (the memory for words that the node sends to itself),
        and the number of the word in its packet.
    free : Out(1)
        High if a buffer is free for the words of another run.
    """

    side, passes = "m_axis", "receives"

    def __init__(self, shape: EngineShape) -> None:
        self._sections = sections = shape.facts.sections
        stream = stream_signals(keep=shape.keep_bits, origin=shape.stream_id_bits)
        forms, lacks = len(shape.packets), shape.has_unequal_packets
        super().__init__(
            shape,
            {
                **{name: each.flip() for name, each in stream.items()},
                "receives": In(forms),
                "position": In(shape.position_bits),
                "own_last": In(forms * shape.packet_bits * lacks),
                "own_numbers": In(forms * shape.stream_id_bits * lacks << shape.packet_bits),
                "lengths": In(
                    forms * shape.planned_length_bits * shape.has_lengths << shape.packet_bits
                ),
                "clear": In(1),
                "run_begins": In(1),
                "run_ends": In(1),
                "run_empty": In(sections.n_sections),
                **{
                    name: In(bits) for name, bits in shape.facts.run_choice_widths("unload").items()
                },
                "run_last": In(sections.n_sections * shape.length_bits),
                "row": In(shape.packet_table.rom_bits),
                "key": Out(shape.rom_address_bits),
                "read_advance": Out(1),
                "read_bank": Out(shape.memory_port.bank_bits),
                "read_address": Out(shape.memory_port.address_bits),
                "read_section": Out(sections.message_number_bits),
                "read_own": Out(int(shape.keeps)),
                "read_index": Out(shape.word_shape.index_bits * shape.keeps),
                "free": Out(1),
            },
        )
        register_outputs(
            self, "read_bank", "read_address", "read_section", "read_own", "read_index"
        )
        #: Lowest bits of the number of the run that is unloaded now or next.
        self._run = make_register(sections.message_number_bits, name="run")
        #: High while words of the run wait to enter the pipeline.
        self._there = make_register(name="there")
        #: High with the last word of a run, in cycle 0 of the pipeline.
        self._finishes = make_register(name="finishes")
        #: High for one cycle when a run without packets for this node is skipped.
        self._skips = make_register(name="skips")

    @cached_property
    def _current_section(self) -> Value:
        """Signal with the number of the memory section whose words are being unloaded."""
        return self._sections.section_of(self._run)

    @cached_property
    def _current_form(self) -> Value:
        """Signal with the number of the form of the run that is being unloaded."""
        return self._form_of(self._current_section)

    def elaborate(self, platform: object) -> Module:
        """Build the counters, and the pipeline that reads words.

        The input `tready` arrives late in a cycle. It is therefore only used as the enable of
        registers.
        """
        m, shape, there, clear = Module(), self.shape, self._there, self.input_value("clear")
        shows, advance = Signal(name="shows"), Signal(name="advance")
        m.d.comb += [
            advance.eq(~shows | self.input_value("tready")),
            self.read_advance.eq(advance),
        ]
        goes_on, ends_packet = Signal(name="goes_on"), make_register(name="ends_packet")
        finishes, restart = self._finishes, ends_packet | ~there
        counter = self._add_word_counter(m, goes_on, restart)
        following = self._sections.next_section(
            self._current_section, (there & finishes) | self._skips
        )
        packet, next_packet, last_follows = self._count_packets(m, goes_on, ends_packet, following)
        with m.If(goes_on | ~there):
            ends = counter.following == self._last_flit(following, next_packet)[shape.flit_bits :]
            m.d.sync += [ends_packet.eq(ends), finishes.eq(ends & last_follows)]
        add_clear(m, clear, ends_packet, finishes, *counter.registers)
        origin = self._packet_origin(packet)
        tags = Cat(finishes, ends_packet, origin, self._valid_flits(packet, ends_packet))
        sought = self._add_stage(m, advance, there, tags, "sought")
        row = self._request_word(m, advance, counter, packet)
        known = 3 + len(origin)
        tags = Cat(sought[2:known], self._origin_from_row(row), sought[known:])
        asked = self._add_stage(m, advance, sought[0], tags, "asked")
        read = asked
        for number in range(shape.memory_port.read_cycles - 1):
            read = self._add_stage(m, advance, read[0], read[1:], f"read_{number}")
        shown = self._add_stage(m, advance, read[0], read[1:], "shown")
        m.d.comb += [
            shows.eq(shown[0]),
            self.tvalid.eq(shows & ~clear),
            Cat(self.tlast, self.tid).eq(shown[1:]),
            goes_on.eq(self._advance_copy(m, read[0], "words")),
        ]
        if shape.flit_bits:
            full = Cat(Const(1, 1), shown[2 + shape.stream_id_bits :])
            size = shape.keep_bits // shape.beat
            m.d.comb += self.tkeep.eq(Cat(*(flit.replicate(size) for flit in full)))
        # A second copy of the enable, so that counters of runs share no logic with those of words.
        turns = self._advance_copy(m, read[0], "runs")
        self._advance_run(m, finishes, turns, ~there & ~sought[0] & ~asked[0])
        last_asked = make_register(name="last_asked")
        with m.If(goes_on):
            m.d.sync += last_asked.eq(sought[0] & sought[1])
        add_clear(m, clear, last_asked)
        # A run is claimed from its begin until its last word leaves its memory.
        claimed, _ = add_counter(
            m,
            up=self.input_value("run_begins"),
            down=(turns & last_asked) | self._skips,
            clear=clear,
            name="claimed",
        )
        self._drive_rests(m, claimed)
        # The count never exceeds the number of buffers, so one or two bits decide.
        m.d.comb += self.free.eq(~claimed[1] if self._sections.has_two_sections else ~claimed.all())
        return m

    def _add_word_counter(self, m: Module, beat: Value, restart: Value) -> WordPosition:
        """Add the counters of the words of a packet; return the position of the current word.

        `beat` is high when the current word passes, and `restart` if it is the last of its packet.
        """
        return add_word_counter(
            m, self.shape.word_shape, self._current_form, beat=beat, restart=restart
        )

    def _origin_from_row(self, row: Value) -> Value:
        """Return the origin of a packet as it is stored in a row of the packet table.

        The packet table has a row for each block of a packet. Here it has no origins, and the
        result has 0 bits; a subclass for loadable tables overrides the method.
        """
        del row
        return Const(0, 0)

    def _drive_rests(self, m: Module, claimed: Value) -> None:
        """Drive the output that is high if the node has sent all received packets, if there is one.

        Only a subclass for loadable tables has this output; here the method does nothing. `claimed`
        is the number of runs that have begun, and whose received words have not all left the
        memories.
        """

    def _add_stage(self, m: Module, advance: Value, valid: Value, tags: Value, name: str) -> Value:
        """Add a pipeline stage, and return its registers as one value: a valid bit, then `tags`.

        `valid` and `tags` come from the stage before. The valid bit is high if the stage holds a
        word. The tags of a word, such as its origin, pass through the pipeline with the word. The
        registers change if `advance` is high. `name` is the name of the stage.
        """
        there = make_register(name=f"{name}_valid")
        known = Signal(len(tags), name=name, reset_less=True)
        with m.If(advance):
            m.d.sync += [there.eq(valid), known.eq(tags)]
        add_clear(m, self.input_value("clear"), there)
        return Cat(there, known)

    def _advance_copy(self, m: Module, shown_next: Value, name: str) -> Value:
        """Return a copy of the signal `advance`, which is high if the pipeline moves.

        Why a copy: `advance` depends on the register `shows`, which is high while a word is on the
        stream, and wires from `shows` to distant registers are long. The copy depends on an equal
        register, `shows_<name>`, near those registers. `shown_next` is high if the stage before the
        stream holds a word.
        """
        shows, tready = Signal(name=f"shows_{name}"), self.input_value("tready")
        stays = (shown_next | (shows & ~tready)) & ~self.input_value("clear")
        m.d.comb += shows.eq(unmerged_register(m, stays, name=f"shows_{name}_here"))
        return ~shows | tready

    def _last_flit(self, section: Value, packet: Value) -> Value:
        """Return the number, from 0, of the last flit of a packet of a run, as a signal.

        The run is the most recent one in memory section number `section`, and `packet` the number
        of the packet.
        """
        if self.shape.has_lengths:
            lengths, form = self.input_value("lengths"), self._form_of(section)
            return self.shape.planned_length(lengths, packet, form)[: self.shape.last_flit_bits]
        if not self.shape.any_length:
            return Const(self.shape.most_flits - 1, self.shape.last_flit_bits)
        return self.input_value("run_last").word_select(section, self.shape.length_bits)

    def _valid_flits(self, packet: Value, ends_packet: Value) -> Value:
        """Return a bit for each flit of the current word but the first: high if the flit is valid.

        A flit is valid if it is in the packet, number `packet` of its run. The last word of a
        packet, for which `ends_packet` is high, may have fewer valid flits than other words. The
        first flit of a word is always valid.
        """
        bits = self.shape.flit_bits
        if not bits:
            return Const(0, 0)
        last = self._last_flit(self._current_section, packet)[:bits]
        last |= (~ends_packet).replicate(bits)
        return Cat(last >= k for k in range(1, self.shape.beat))

    def _count_packets(
        self, m: Module, goes_on: Value, ends_packet: Value, following: Value
    ) -> tuple[Value, Value, Value]:
        """Add the counter of packets; return the packets of two words, and a flag.

        The packets, given by their numbers, are those of the current word and of the next one. The
        flag is high if the next word (not the current one) is in the last packet of its run.
        Why: the flag passes a register before it advances the counters of runs. `goes_on` is high
        if the pipeline moves, `ends_packet` if the current word ends a packet, and `following` is
        the number of the memory section with the next word.
        """
        shape, there = self.shape, self._there
        if not shape.packet_bits:
            return Const(0, 1), Const(0, 1), Const(1)
        packet = make_register(shape.packet_bits, name="packet")
        last, last_follows = make_register(name="last_packet"), Signal(name="last_follows")
        # `single` decides for the first word of a run, `before` for the first word of a later
        # packet; within a packet `last` is kept.
        single = constant_at(
            [int(count == 1) for count in shape.packet_counts], self._form_of(following)
        )
        before = packet == constant_at(
            [max(count - 2, 0) for count in shape.packet_counts], self._current_form
        )
        if shape.has_unequal_packets:
            single = self._form_field("own_last", self._form_of(following)) == 0
            before = packet + 1 == self._form_field("own_last", self._current_form)
        m.d.comb += last_follows.eq(
            Mux(there, Mux(ends_packet, Mux(last, single, before), last), single)
        )
        ends = there & ends_packet
        with m.If(goes_on | ~there):
            m.d.sync += last.eq(last_follows)
        # Only the late signal `goes_on` is a write enable; all others are in the data path.
        packet_follows = (packet + ends) & ~(ends & last).replicate(len(packet))
        with m.If(goes_on):
            m.d.sync += packet.eq(packet_follows)
        add_clear(m, self.input_value("clear"), packet, last)
        return packet, packet_follows[: len(packet)], last_follows

    def _packet_origin(self, packet: Value) -> Value:
        """Return a signal with a packet's origin; `packet` is its number in the run, from 0."""
        shape = self.shape
        number = packet | constant_at([each.origin for each in shape.packets], self._current_form)
        if shape.has_unequal_packets:
            at = Cat(packet, self._current_form[: shape.facts.form_bits])
            number = self.input_value("own_numbers").word_select(at, shape.stream_id_bits)
        return resize(self._root_or_number(number), shape.stream_id_bits)

    def _root_or_number(self, number: Value) -> Value:
        """Return a signal: the root in some forms, in all others the packet number `number`.

        It is the root in forms in which a node gets a single packet, which comes from the root,
        such as a broadcast. There the root, in place of a packet number, is the origin of the
        packet and selects its row in the packet table.
        """
        by_root = [int(each.by_root) for each in self.shape.packets]
        if not any(by_root):
            return number
        return Mux(
            constant_at(by_root, self._current_form), self._root_of(self._current_section), number
        )

    def _row_address(self, counter: WordPosition, packet: Value) -> Value:
        """Return the address of the packet-table row that locates the block of the current word.

        The packet table has a row for each block of a packet. `counter` is the position of the
        word, and `packet` the number of its packet.
        """
        return self.shape.packet_table.row_address(
            counter.chunk, self._root_or_number(packet), self._current_form
        )

    def _request_word(
        self, m: Module, advance: Value, counter: WordPosition, packet: Value
    ) -> Value:
        """Add the first stages of a read: look up the location of a word, and address the memories.

        In cycle 0 of a word the ROM of the packet table is addressed. In cycle 1 the ROM outputs
        the row with the location of the word's block, which the method returns. In cycle 2
        registers drive bank (number of the memory) and address. `counter` is the position of the
        word, and `packet` the number of its packet. The pipeline moves in cycles in which `advance`
        is high.
        """
        shape, table = self.shape, self.shape.packet_table
        address = self._row_address(counter, packet)
        if shape.rom_address_bits:
            m.d.comb += self.key.eq(address)
        held = Signal(max(table.address_bits, 1), name="row_address", reset_less=True)
        run = Signal(len(self._run), name="run_here", reset_less=True)
        within = Signal(len(counter.within), name="within_here", reset_less=True)
        index = Signal(len(counter.index), name="index_here", reset_less=True)
        form = Signal(
            shape.facts.form_bits * table.depends_on_form, name="form_here", reset_less=True
        )
        with m.If(advance):
            m.d.sync += [run.eq(self._run), within.eq(counter.within)]
            m.d.sync += [held[bit].eq(address[bit]) for bit in table.address_source_bits]
            if shape.keeps:
                m.d.sync += index.eq(counter.index)
            if len(form):
                m.d.sync += form.eq(self._current_form)
        row = self._current_row(m, advance)
        with m.If(advance):
            m.d.sync += [
                self.read_section.eq(run),
                self.read_bank.eq(table.read_field("bank", held, row, form)),
                self.read_address.eq(
                    self._word_address(table.read_field("base", held, row, form), within)
                ),
            ]
            if shape.keeps:
                m.d.sync += self.read_own.eq(table.read_field("own", held, row, form))
                m.d.sync += self.read_index.eq(index)
        return row

    def _current_row(self, m: Module, advance: Value) -> Value:
        """Return the ROM row that locates the word in stage ``sought``, also during a stall.

        While the receiver stalls, the pipeline stands still, but the ROM goes on: its output is
        valid in the first cycle of a stall only. A register therefore holds the row. `advance` is
        high in each cycle in which the pipeline moves.
        """
        if not self.shape.packet_table.rom_bits:
            return Const(0, 0)
        row = self.input_value("row")
        if not self.shape.rom_address_bits:
            return row
        fresh, held = (
            make_register(name="fresh"),
            Signal(len(row), name="held_row", reset_less=True),
        )
        m.d.sync += fresh.eq(advance)
        add_clear(m, self.input_value("clear"), fresh)
        with m.If(fresh):
            m.d.sync += held.eq(row)
        return Mux(fresh, row, held)

    def _advance_run(self, m: Module, finishes: Value, goes_on: Value, rests: Value) -> None:
        """Add the registers that decide which run is unloaded, and when the next one follows.

        A run is *complete* from its end until its last word enters the pipeline; the unloader works
        only on complete runs. A run without words for this node is skipped when the pipeline is
        empty (`rests` is high): a run that was dropped because of a fault, or that has no packets
        for the node. `finishes` is high if the current word is the last of its run, and `goes_on`
        if the pipeline moves.
        """
        there, skips, sections = self._there, self._skips, self._sections
        ends, clear, empty = map(self.input_value, ("run_ends", "clear", "run_empty"))
        # `goes_on` arrives late, by long wires: only one LUT may follow it.
        keep, turns = make_keeper(m, 1), there | skips
        passes = (keep(there & finishes) & goes_on) | skips
        complete, _ = add_counter(m, up=ends, down=passes, clear=clear, name="complete")
        known = Signal(sections.n_sections, name="brought")
        brought: Sequence[Value] = [
            self._has_packets(Const(k, sections.section_number_bits)) & ~empty[k]
            for k in range(sections.n_sections)
        ]
        # `unmerged_register` keeps synthesis from sharing this register with equal ones of other
        # nodes.
        m.d.comb += known.eq(unmerged_register(m, Cat(*brought), name="brought_here"))
        this, following = (
            known.bit_select(section, 1)
            for section in (self._current_section, sections.next_section(self._current_section))
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
        add_clear(m, clear, self._run, there, skips)
