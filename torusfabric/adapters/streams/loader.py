"""`Loader`: the engine that takes the packets which a node sends, and writes them into memories.

Each memory is divided into S equal *sections* (2 or 4). Message m, the message for run m, is
written into section ``m mod S`` while earlier runs are executed. A complete message waits until its
run begins. At most two messages wait. With two sections only one can wait while a run is under way,
because the run uses the other section.

A *bank* is the number of one of the memories of a node. The *packet table* of a node says in which
bank, and from which address on, each block of each packet lies. Words that a node sends to itself
are also written into a memory of their own, the *own block*.

The loader also checks messages for two faults: a wrong length of a packet (`BAD_LENGTH`) and a
wrong destination (`BAD_DESTINATION`). The control, which starts all runs, drops a message with a
fault.

Pipeline of a word:

=====  =======================================================================
cycle  stage
=====  =======================================================================
0      the word is accepted; its row is addressed in the packet table
1      the row is valid; write enable, bank, address and data of the memory
       port are driven
=====  =======================================================================
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

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

__all__ = ["BAD_DESTINATION", "BAD_LENGTH", "Loader"]

#: Bit numbers of the two faults of a message: packet lengths, and destinations.
BAD_LENGTH, BAD_DESTINATION = 0, 1


class Loader(Engine):
    """Module that takes the packets of a node from a stream, and writes their words into memories.

    Parameters
    ----------
    shape : EngineShape
        Parameters that all loaders of the fabric share.

    Members
    -------
    tdata, tkeep, tvalid, tlast, tdest, tready : In, Out
        The stream of the packets that the node sends.
    sends, position : In
        For each form, high if the node sends packets, and the position of the node in its group.
    own_last, lengths : In
        For each form, the number of the last packet that the node sends, and the number of the last
        flit of each packet, by its destination: -1 if the node has no packet for it. Only if
        nodes send different packets.
    clear : In(1)
        Reset of the node.
    load_valid, load_mode, load_root : In
        Three inputs about messages to load, each with two fields: one for the message with an even
        number, one for that with an odd number. `load_valid` is high if a command allows to load
        the message; `load_mode` and `load_root` are its form and its root.
    run_begins, run_ends : In(1)
        High for a cycle when a run begins, and when a run ends. `run_ends` only with two sections.
    key, row : Out, In
        Address of the ROM of the packet table, and its row one cycle later. The table gives the
        location of each block of a packet.
    write_enable, write_bank, write_address, write_data : Out
        The write of the memory port.
    write_section : Out
        Lowest bits of the number of the message: the section (one of some equal parts of each
        memory, which messages use in turn), and one further bit.
    own_enable, own_index : Out
        Write enable of the own block (the memory for words that the node sends to itself), and the
        number of the word in its packet.
    loaded : Out(1)
        High if a complete message waits.
    bad : Out(2)
        Faults of the oldest waiting message.
    length : Out
        Number of the last flit of a packet of the oldest waiting message, from 0; only if runs
        choose their length.
    counts : Out(1)
        High if the oldest waiting message has words, so that its `length` has to be compared with
        those of other nodes; only if some nodes send nothing.
    """

    side, passes = "s_axis", "sends"

    def __init__(self, shape: EngineShape) -> None:
        self._sections = sections = shape.facts.sections
        self._dest_bits = shape.stream_id_bits * any(shape.has_destinations)
        lengths = len(shape.packets) * shape.has_lengths
        super().__init__(
            shape,
            {
                **stream_signals(shape.data_bits, keep=shape.keep_bits, dest=self._dest_bits),
                "sends": In(len(shape.packets)),
                "position": In(shape.position_bits),
                "own_last": In(lengths * shape.packet_bits),
                "lengths": In(lengths * shape.planned_length_bits << shape.packet_bits),
                "clear": In(1),
                **{name: In(bits) for name, bits in shape.facts.run_choice_widths("load").items()},
                "run_begins": In(1),
                "run_ends": In(int(sections.has_two_sections)),
                "row": In(shape.packet_table.rom_bits),
                "key": Out(shape.rom_address_bits),
                "write_enable": Out(1),
                "write_bank": Out(shape.memory_port.bank_bits),
                "write_address": Out(shape.memory_port.address_bits),
                "write_data": Out(shape.memory_port.width),
                "write_section": Out(sections.message_number_bits),
                "own_enable": Out(int(shape.keeps)),
                "own_index": Out(shape.word_shape.index_bits * shape.keeps),
                "loaded": Out(1),
                "bad": Out(2),
                "length": Out(shape.length_bits),
                "counts": Out(int(shape.has_idle_senders)),
            },
        )
        written = ("write_enable", "own_enable", "own_index", "write_data", "write_section")
        register_outputs(self, *written)
        #: Lowest bits of the number of the message that is being loaded.
        self._number = make_register(sections.message_number_bits, name="number")

    @cached_property
    def _current_form(self) -> Value:
        """Signal with the number of the form of the message that is being loaded."""
        return self._form_of(self._number[0])

    def elaborate(self, platform: object) -> Module:
        """Build the counters, the checks, the write, and the queue of waiting messages."""
        m, shape, clear = Module(), self.shape, self.input_value("clear")
        both, number = make_register(name="both"), self._number
        ends, both_next = Signal(name="ends_message"), Signal(name="both_next")
        sends, beat, last = Signal(name="sends_now"), Signal(name="beat"), self.input_value("tlast")
        may, may_end = self._may_load(m, ends, (both, both_next))
        m.d.comb += [
            sends.eq(self._has_packets(number[0])),
            self.tready.eq(may & sends & ~clear),
            # `clear` is not needed here: it resets everything that a word in its cycle changes.
            beat.eq(self.input_value("tvalid") & may & sends),
        ]
        counter = add_word_counter(m, shape.word_shape, self._current_form, beat=beat, restart=last)
        beyond, at_last = self._length_limits(m, counter, beat)
        ends_packet = self.input_value("tvalid") & last & may_end & sends
        first_packet, last_packet = self._count_packets(m, ends_packet)
        # The message of a node that sends nothing is complete at once.
        m.d.comb += ends.eq((ends_packet & last_packet) | (may_end & ~sends))
        length, unequal = self._check_lengths(m, counter, ends_packet, first_packet, at_last)
        wrong, so_far = Signal(2, name="wrong"), make_register(2, name="wrong_so_far")
        # Valid only in a cycle in which a word is accepted.
        m.d.comb += wrong.eq(so_far | Cat(
            Mux(last, unequal, at_last) | self._has_invalid_keep(),
            last & self.is_wrong_destination(m, ends_packet, last_packet),
        ))  # fmt: skip
        with m.If(beat):
            m.d.sync += so_far.eq(wrong & ~(last & last_packet).replicate(2))
        with m.If(ends):
            m.d.sync += number.eq(number + 1)
        self._write_word(m, counter, beat & ~beyond)
        known = Cat(wrong & sends.replicate(2), sends)
        self._add_message_queue(m, ends, (both, both_next), Cat(known, length[: shape.length_bits]))
        add_clear(m, clear, number, so_far, *counter.registers)
        return m

    def _may_load(
        self, m: Module, ends: Value, both: tuple[Signal, Signal]
    ) -> tuple[Signal, Value]:
        """Return two copies of a signal: high if words of the current message may be accepted.

        Words may be accepted if the memories have room for the message, and a command has allowed
        to load it. Why two copies: the first is for logic that every word uses, the second for
        logic at the ends of packets and messages; shared logic would be slower. `ends` is high in
        the cycle in which a message becomes complete. `both` has two signals: a register that is
        high if two messages wait, and the next value of this register.
        """
        full, following = both
        clear = self.input_value("clear")
        if self._sections.has_two_sections:
            ended = self.input_value("run_ends")
            count, counted = add_counter(m, up=ends, down=ended, clear=clear, name="occupied")
            # Bit 1 means "two", because the count is never 3.
            full, following = count[1], counted[1]
        # Why a second copy in a register: synthesis would otherwise share logic with the registers
        # that every word changes, and add a level of logic to the critical path.
        ends_full = unmerged_register(m, following & ~clear, name="ends_full")
        commanded = self._run_choice("valid", self._number[0], 1, otherwise=1)
        may = Signal(name="may_load")
        m.d.comb += may.eq(~full & commanded)
        return may, ~ends_full & commanded

    def _length_limits(
        self, m: Module, counter: WordPosition, beat: Value
    ) -> tuple[Signal, Signal]:
        """Add two registers that compare the current word with the longest allowed packet.

        Return both registers. The first is high if the word lies beyond the end of such a packet,
        the second if the word is at its end. `counter` is the position of the word in its packet.
        `beat` is high if the word is accepted.
        """
        end = self.shape.word_shape.most - 1
        full, at_last = make_register(name="full"), make_register(name="at_last", init=not end)
        with m.If(beat):
            m.d.sync += [
                full.eq(~self.input_value("tlast") & (full | at_last)),
                at_last.eq(counter.following == end),
            ]
        add_clear(m, self.input_value("clear"), full, at_last)
        return full, at_last

    def _count_packets(self, m: Module, ends: Value) -> tuple[Value, Value]:
        """Add a counter of the packets of a message; return two signals about the current packet.

        The first signal is high in the first packet of a message, the second in the last packet.
        `ends` is high with the last word of a packet.
        """
        if not self.shape.packet_bits:
            return Const(1), Const(1)
        count = make_register(self.shape.packet_bits, name="packet")
        last = count == self._last_packet()
        with m.If(ends):
            m.d.sync += count.eq(Mux(last, 0, count + 1))
        add_clear(m, self.input_value("clear"), count)
        return count == 0, last

    def _last_packet(self) -> Value:
        """Return the number, from 0, of the last packet of the message that is loaded."""
        if self.shape.has_lengths:
            return self._form_field("own_last", self._current_form)
        return constant_at([count - 1 for count in self.shape.packet_counts], self._current_form)

    def _check_lengths(
        self, m: Module, counter: WordPosition, ends: Value, first: Value, at_last: Value
    ) -> tuple[Value, Value]:
        """Return two signals: the length of the message, and high if a packet has a wrong length.

        The length is given as the number, from 0, of the last flit of the first packet. The second
        signal is high if the current packet differs in length from the first one, has too many
        flits in its last allowed word, or is none that the node has to send. If the length of each
        packet is fixed, the first signal is 0, and the second is high for every other length.
        `counter` is the position of the current word. `ends` is high if this word ends a packet,
        `first` if the packet is the first of its message, and `at_last` if the word is the last
        word that a packet may have.
        """
        shape, last = self.shape, Cat(self._last_valid_flit(m), counter.index)
        beyond: Value = Const(0)
        if shape.flit_bits:
            flit, most = last[: shape.flit_bits], (shape.most_flits - 1) % shape.beat
            if most < shape.beat - 1:
                beyond = at_last & (flit > most)
            at_last &= flit == most
        if shape.has_lengths:
            dest = self.input_value("tdest") if self._dest_bits else Const(0, 0)
            planned = shape.planned_length(self.input_value("lengths"), dest, self._current_form)
            if not shape.any_length:
                return Const(0, 1), resize(last, shape.planned_length_bits) != planned
            beyond |= planned[-1]
        if not shape.any_length:
            return Const(0, 1), ~at_last
        if not shape.packet_bits:
            return last, beyond
        held = Signal(shape.length_bits, name="first_length", reset_less=True)
        with m.If(ends & first):
            m.d.sync += held.eq(last)
        return Mux(first, last, held), (~first & (last != held)) | beyond

    def _keep_by_flit(self) -> list[Value]:
        """Return, for each flit of a word, the bits of `tkeep` for its bytes: 1 if valid."""
        keep, beat = self.input_value("tkeep"), self.shape.beat
        return [keep.word_select(k, len(keep) // beat) for k in range(beat)]

    def _last_valid_flit(self, m: Module) -> Value:
        """Return the number, in the current word, of the last flit that is in the packet.

        A flit is in the packet if `tkeep` is 1 for all of its bytes. Flits of a word count from 0.
        """
        last = Signal(self.shape.flit_bits, name="last_flit")
        for k, kept in enumerate(self._keep_by_flit()[1:] if self.shape.flit_bits else [], 1):
            with m.If(kept.all()):
                m.d.comb += last.eq(k)
        return last

    def _has_invalid_keep(self) -> Value:
        """Return a signal that is high if `tkeep` is invalid; the fault is then `BAD_LENGTH`.

        `tkeep` is valid if it is 1 for all bytes of the word. In the last word of a packet, it may
        be 0 for whole flits at the end of the word.
        """
        if not self.shape.flit_bits:
            return Const(0)
        full = [kept.all() for kept in self._keep_by_flit()]
        some = [kept.any() for kept in self._keep_by_flit()]
        gaps = [after & ~before for before, after in pairwise([full[0], *some[1:]])]
        halves = [part & ~whole for part, whole in zip(some, full, strict=True)]
        return Cat(*gaps, *halves, ~full[0], ~self.input_value("tlast") & ~full[-1]).any()

    def is_wrong_destination(self, m: Module, ends: Value, last: Value) -> Value:
        """Return a signal that is high if the destination of the current packet is wrong.

        It is wrong if it is out of range, or if an earlier packet of the message had it. The signal
        is valid only with the last word of a packet. `ends` is high if the current word ends a
        packet, and `last` if the packet is the last of its message.
        """
        shape, dest = self.shape, self.input_value("tdest") if self._dest_bits else Const(0, 0)
        if not self._dest_bits:
            return Const(0)
        named, unknown = self._has_destinations(), self._is_out_of_range(dest)
        if not shape.packet_bits:
            return unknown & named
        # `tdest` has the bits of a node number; a destination within a group may need fewer.
        sent, bit = make_register(max(shape.packet_counts), name="sent"), dest[: shape.packet_bits]
        with m.If(ends):
            m.d.sync += sent.bit_select(bit, 1).eq(1)
        with m.If(ends & last):
            m.d.sync += sent.eq(0)
        add_clear(m, self.input_value("clear"), sent)
        return (unknown | sent.bit_select(bit, 1)) & named

    def _has_destinations(self) -> Value:
        """Return a signal: high if packets of the current message must name destinations."""
        return constant_at([int(each) for each in self.shape.has_destinations], self._current_form)

    def _is_out_of_range(self, dest: Value) -> Value:
        """Return a signal: high if `dest`, the destination of a packet, does not exist.

        The number of destinations depends on the form of the message that is being loaded.
        """
        shape = self.shape
        counts = [
            count
            for count, has in zip(shape.packet_counts, shape.has_destinations, strict=True)
            if has
        ]
        if all(count == 1 << self._dest_bits for count in counts):
            return Const(0)
        return dest >= constant_at(shape.packet_counts, self._current_form)

    def _write_word(self, m: Module, counter: WordPosition, beat: Value) -> None:
        """Write a word to the memory port and the own block, one cycle after it was accepted.

        The own block is a memory beside the core; it takes the word only if the node sends it to
        itself. `counter` is the position of the word. `beat` is high if the word is accepted, and
        not beyond the longest packet.
        """
        shape, table = self.shape, self.shape.packet_table
        within = Signal(shape.word_shape.offset_bits, name="within_here", reset_less=True)
        dest = self.input_value("tdest") if self._dest_bits else Const(0, 0)
        address = table.row_address(counter.chunk, dest, self._current_form)
        held = Signal(max(table.address_bits, 1), name="row_address", reset_less=True)
        m.d.sync += [
            self.write_enable.eq(beat),
            self.write_data.eq(self.input_value("tdata")[: shape.memory_port.width]),
            self.write_section.eq(self._number),
            within.eq(counter.within),
            *(held[bit].eq(address[bit]) for bit in table.address_source_bits),
        ]
        form = Signal(
            shape.facts.form_bits * table.depends_on_form, name="form_here", reset_less=True
        )
        if len(form):
            m.d.sync += form.eq(self._current_form)
        row = self.input_value("row") if table.rom_bits else Const(0, 0)
        if shape.rom_address_bits:
            m.d.comb += self.key.eq(address)
        m.d.comb += [
            self.write_bank.eq(table.read_field("bank", held, row, form)),
            self.write_address.eq(
                self._word_address(table.read_field("base", held, row, form), within)
            ),
        ]
        if shape.keeps:
            mine: Value = Const(1)
            if self._dest_bits:
                named = self._has_destinations()
                mine = (dest == self._form_field("position", self._current_form)) | ~named
            m.d.sync += [self.own_enable.eq(beat & mine), self.own_index.eq(counter.index)]
            add_clear(m, self.input_value("clear"), self.own_enable)
        add_clear(m, self.input_value("clear"), self.write_enable)

    def _add_message_queue(
        self, m: Module, ends: Value, both: tuple[Signal, Signal], new: Value
    ) -> None:
        """Add the queue of at most two waiting messages, which has the length and faults of each.

        The register ``first`` describes the oldest of these messages, and drives the outputs.
        `ends` is high in the cycle in which a message becomes complete, and `new` has its length
        and faults. The method drives `both`: a register that is high if two messages wait, and its
        next value.
        """
        first = Signal(len(new), name="first", reset_less=True)
        second = Signal(len(new), name="second", reset_less=True)
        waits, begins = make_register(name="waits"), self.input_value("run_begins")
        two, two_next = both
        stays, moves = waits & ~begins, begins | ~waits
        # While two wait, no message ends: the second one only moves up when a run begins.
        oldest = Mux(two, second, new)
        with m.If(moves):
            m.d.sync += first[2:].eq(oldest[2:])
        # No write enable here: it would add a wire behind the long wire of `begins`.
        found, keep = oldest[:2], make_keeper(m, 2)
        m.d.sync += first[:2].eq(
            (keep(found) & moves.replicate(2)) | (first[:2] & stays.replicate(2))
        )
        with m.If(ends):
            m.d.sync += second.eq(new)
        m.d.comb += two_next.eq(Mux(begins, two & ends, two | (waits & ends)))
        m.d.sync += [waits.eq(stays | (waits & two) | ends), two.eq(two_next)]
        add_clear(m, self.input_value("clear"), waits, two)
        m.d.comb += [self.loaded.eq(waits), self.bad.eq(first[:2])]
        if self.shape.has_idle_senders:
            m.d.comb += self.counts.eq(first[2])
        if self.shape.length_bits:
            m.d.comb += self.length.eq(first[3:])
