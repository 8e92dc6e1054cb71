"""`Loader`: the engine that takes the packets which a node sends, and writes them into memories.

Message m is written into section ``m mod S`` of the memories while earlier runs go on. A complete
message waits until its run begins. At most two messages wait; with two sections only one waits
while a run is under way.

The loader also checks messages: lengths of packets (`BAD_LENGTH`) and destinations
(`BAD_DESTINATION`). The control drops a message with a fault.

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

from ...rtl.memories import constant_at
from ...rtl.modules import apart
from ...rtl.multiplexer import keeper
from .engine import Engine, EngineShape
from .ports import stream_signals
from .words import WordCount, cleared, counted, registered_outputs, state, tally

__all__ = ["BAD_DESTINATION", "BAD_LENGTH", "Loader"]

#: Bit numbers of the two faults of a message: packet lengths, and destinations.
BAD_LENGTH, BAD_DESTINATION = 0, 1


class Loader(Engine):
    """Module that loads the messages of a node.

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
    clear : In(1)
        Reset of the node.
    load_valid, load_mode, load_root : In
        High if a command allows loading, and its form and root. Each has two fields, for messages
        of even and of odd numbers.
    run_begins, run_ends : In(1)
        High for a cycle when a run begins, and when a run has ended. `run_ends` only with two
        sections.
    key, row : Out, In
        Address of the ROM of the packet table, and its row one cycle later.
    write_enable, write_bank, write_address, write_data : Out
        The write of the memory port.
    write_section : Out
        Lowest bits of the number of the message: the section, and one further bit.
    own_enable, own_index : Out
        Write enable of the own block, and the number of the word in its packet.
    loaded : Out(1)
        High if a complete message waits. The following outputs describe the oldest one.
    bad : Out(2)
        Its faults.
    length : Out
        Number of the last flit of its packets; only if runs choose their length.
    counts : Out(1)
        High if it has words; only if some nodes send nothing.
    """

    side, passes = "s_axis", "sends"

    def __init__(self, shape: EngineShape) -> None:
        self._sections = sections = shape.facts.sections
        self._dest_bits = shape.number_bits * any(shape.named)
        super().__init__(
            shape,
            {
                **stream_signals(shape.data_bits, keep=shape.keep_bits, dest=self._dest_bits),
                "sends": In(len(shape.packets)),
                "position": In(shape.position_bits),
                "clear": In(1),
                **{name: In(bits) for name, bits in shape.facts.said_widths("load").items()},
                "run_begins": In(1),
                "run_ends": In(int(sections.two)),
                "row": In(shape.table.rom_bits),
                "key": Out(shape.key_bits),
                "write_enable": Out(1),
                "write_bank": Out(shape.port.bank_bits),
                "write_address": Out(shape.port.address_bits),
                "write_data": Out(shape.port.width),
                "write_section": Out(sections.number_bits),
                "own_enable": Out(int(shape.keeps)),
                "own_index": Out(shape.words.index_bits * shape.keeps),
                "loaded": Out(1),
                "bad": Out(2),
                "length": Out(shape.length_bits),
                "counts": Out(int(shape.some)),
            },
        )
        written = ("write_enable", "own_enable", "own_index", "write_data", "write_section")
        registered_outputs(self, *written)
        #: Lowest bits of the number of the message that is being loaded.
        self._number = state(sections.number_bits, name="number")

    @cached_property
    def _form(self) -> Value:
        """Form of the message that is being loaded."""
        return self._form_of(self._number[0])

    def elaborate(self, platform: object) -> Module:
        """Build the counters, the checks, the write, and the queue of waiting messages."""
        m, shape, clear = Module(), self.shape, self.value("clear")
        both, number = state(name="both"), self._number
        ends, both_next = Signal(name="ends_message"), Signal(name="both_next")
        sends, beat, last = Signal(name="sends_now"), Signal(name="beat"), self.value("tlast")
        may, may_end = self._room(m, ends, (both, both_next))
        m.d.comb += [
            sends.eq(self._takes_part(number[0])),
            self.tready.eq(may & sends & ~clear),
            # `clear` is not needed here: it resets everything that a word in its cycle changes.
            beat.eq(self.value("tvalid") & may & sends),
        ]
        counter = counted(m, shape.words, self._form, beat=beat, restart=last)
        beyond, at_last = self._limits(m, counter, beat)
        ends_packet = self.value("tvalid") & last & may_end & sends
        first_packet, last_packet = self._packets(m, ends_packet)
        # The message of a node that sends nothing is complete at once.
        m.d.comb += ends.eq((ends_packet & last_packet) | (may_end & ~sends))
        length, unequal = self._lengths(m, counter, ends_packet, first_packet, at_last)
        wrong, so_far = Signal(2, name="wrong"), state(2, name="wrong_so_far")
        # Valid only in a cycle in which a word is accepted.
        m.d.comb += wrong.eq(so_far | Cat(
            Mux(last, unequal, at_last) | self._is_torn(),
            last & self.wrong_destination(m, ends_packet, last_packet),
        ))  # fmt: skip
        with m.If(beat):
            m.d.sync += so_far.eq(wrong & ~(last & last_packet).replicate(2))
        with m.If(ends):
            m.d.sync += number.eq(number + 1)
        self._write(m, counter, beat & ~beyond)
        known = Cat(wrong & sends.replicate(2), sends)
        self._queue(m, ends, (both, both_next), Cat(known, length[: shape.length_bits]))
        cleared(m, clear, number, so_far, *counter.registers)
        return m

    def _room(self, m: Module, ends: Value, both: tuple[Signal, Signal]) -> tuple[Signal, Value]:
        """Return two copies of "a message may be loaded": for words, and for ends of messages."""
        full, following = both
        clear = self.value("clear")
        if self._sections.two:
            ended = self.value("run_ends")
            count, counted = tally(m, up=ends, down=ended, clear=clear, name="occupied")
            # Bit 1 means "two", because the count is never 3.
            full, following = count[1], counted[1]
        # Why a second copy in a register: synthesis would otherwise share logic with the registers
        # that every word changes, and add a level of logic to the critical path.
        ends_full = apart(m, following & ~clear, name="ends_full")
        commanded = self._said("valid", self._number[0], 1, otherwise=1)
        may = Signal(name="may_load")
        m.d.comb += may.eq(~full & commanded)
        return may, ~ends_full & commanded

    def _limits(self, m: Module, counter: WordCount, beat: Value) -> tuple[Signal, Signal]:
        """Return two flags: the word is beyond, or is the last of, a packet of maximal length."""
        end = self.shape.words.most - 1
        full, at_last = state(name="full"), state(name="at_last", init=not end)
        with m.If(beat):
            m.d.sync += [
                full.eq(~self.value("tlast") & (full | at_last)),
                at_last.eq(counter.following == end),
            ]
        cleared(m, self.value("clear"), full, at_last)
        return full, at_last

    def _packets(self, m: Module, ends: Value) -> tuple[Value, Value]:
        """Return two flags: the packet is the first, or the last, of its message."""
        if not self.shape.packet_bits:
            return Const(1), Const(1)
        count = state(self.shape.packet_bits, name="packet")
        last = count == self._last_packet()
        with m.If(ends):
            m.d.sync += count.eq(Mux(last, 0, count + 1))
        cleared(m, self.value("clear"), count)
        return count == 0, last

    def _last_packet(self) -> Value:
        """Return the number of the last packet of a message."""
        return constant_at([count - 1 for count in self.shape.counts], self._form)

    def _lengths(
        self, m: Module, counter: WordCount, ends: Value, first: Value, at_last: Value
    ) -> tuple[Value, Value]:
        """Return the last flit number of the first packet, and a flag for a packet that differs.

        If the length is fixed, the flag says that a packet differs from the fixed length.
        """
        shape, last = self.shape, Cat(self._last_flit(m), counter.index)
        beyond: Value = Const(0)
        if shape.flit_bits:
            flit, most = last[: shape.flit_bits], (shape.most_flits - 1) % shape.beat
            if most < shape.beat - 1:
                beyond = at_last & (flit > most)
            at_last &= flit == most
        if not shape.any_length:
            return Const(0, 1), ~at_last
        if not shape.packet_bits:
            return last, beyond
        held = Signal(shape.length_bits, name="first_length", reset_less=True)
        with m.If(ends & first):
            m.d.sync += held.eq(last)
        return Mux(first, last, held), (~first & (last != held)) | beyond

    def _kept_bytes(self) -> list[Value]:
        """Return `tkeep` of each flit of a word."""
        keep, beat = self.value("tkeep"), self.shape.beat
        return [keep.word_select(k, len(keep) // beat) for k in range(beat)]

    def _last_flit(self, m: Module) -> Value:
        """Return the number of the last flit of a word that is valid by `tkeep`."""
        last = Signal(self.shape.flit_bits, name="last_flit")
        for k, kept in enumerate(self._kept_bytes()[1:] if self.shape.flit_bits else [], 1):
            with m.If(kept.all()):
                m.d.comb += last.eq(k)
        return last

    def _is_torn(self) -> Value:
        """Return True if `tkeep` is invalid, which is a length fault.

        In a valid word only whole flits at the end of a packet are missing.
        """
        if not self.shape.flit_bits:
            return Const(0)
        full = [kept.all() for kept in self._kept_bytes()]
        some = [kept.any() for kept in self._kept_bytes()]
        gaps = [after & ~before for before, after in pairwise([full[0], *some[1:]])]
        halves = [part & ~whole for part, whole in zip(some, full, strict=True)]
        return Cat(*gaps, *halves, ~full[0], ~self.value("tlast") & ~full[-1]).any()

    def wrong_destination(self, m: Module, ends: Value, last: Value) -> Value:
        """Return True if the destination is out of range, or has had a packet of this message.

        Valid only for the word that ends a packet.
        """
        shape, dest = self.shape, self.value("tdest") if self._dest_bits else Const(0, 0)
        if not self._dest_bits:
            return Const(0)
        named, unknown = self._is_named(), self._is_beyond(dest)
        if not shape.packet_bits:
            return unknown & named
        # `tdest` has the bits of a node number; a destination within a group may need fewer.
        sent, bit = state(max(shape.counts), name="sent"), dest[: shape.packet_bits]
        with m.If(ends):
            m.d.sync += sent.bit_select(bit, 1).eq(1)
        with m.If(ends & last):
            m.d.sync += sent.eq(0)
        cleared(m, self.value("clear"), sent)
        return (unknown | sent.bit_select(bit, 1)) & named

    def _is_named(self) -> Value:
        """Return True if packets have destinations in the form that is being loaded."""
        return constant_at([int(each) for each in self.shape.named], self._form)

    def _is_beyond(self, dest: Value) -> Value:
        """Return True if a destination is out of range in the form that is being loaded."""
        shape = self.shape
        counts = [count for count, has in zip(shape.counts, shape.named, strict=True) if has]
        if all(count == 1 << self._dest_bits for count in counts):
            return Const(0)
        return dest >= constant_at(shape.counts, self._form)

    def _write(self, m: Module, counter: WordCount, beat: Value) -> None:
        """Write a word to memory port and own block, one cycle after it was accepted."""
        shape, table = self.shape, self.shape.table
        within = Signal(shape.words.within_bits, name="within_here", reset_less=True)
        dest = self.value("tdest") if self._dest_bits else Const(0, 0)
        address = table.address(counter.chunk, dest, self._form)
        held = Signal(max(table.address_bits, 1), name="row_address", reset_less=True)
        m.d.sync += [
            self.write_enable.eq(beat),
            self.write_data.eq(self.value("tdata")[: shape.port.width]),
            self.write_section.eq(self._number),
            within.eq(counter.within),
            *(held[bit].eq(address[bit]) for bit in table.wired_bits),
        ]
        form = Signal(shape.facts.form_bits * table.by_form, name="form_here", reset_less=True)
        if len(form):
            m.d.sync += form.eq(self._form)
        row = self.value("row") if table.rom_bits else Const(0, 0)
        if shape.key_bits:
            m.d.comb += self.key.eq(address)
        m.d.comb += [
            self.write_bank.eq(table.field("bank", held, row, form)),
            self.write_address.eq(self._address(table.field("base", held, row, form), within)),
        ]
        if shape.keeps:
            mine: Value = Const(1)
            if self._dest_bits:
                named = self._is_named()
                mine = (dest == self._given("position", self._form)) | ~named
            m.d.sync += [self.own_enable.eq(beat & mine), self.own_index.eq(counter.index)]
            cleared(m, self.value("clear"), self.own_enable)
        cleared(m, self.value("clear"), self.write_enable)

    def _queue(self, m: Module, ends: Value, both: tuple[Signal, Signal], new: Value) -> None:
        """Keep length and faults of waiting messages in a queue of two, the oldest in `first`."""
        first = Signal(len(new), name="first", reset_less=True)
        second = Signal(len(new), name="second", reset_less=True)
        waits, begins = state(name="waits"), self.value("run_begins")
        two, two_next = both
        stays, moves = waits & ~begins, begins | ~waits
        # While two wait, no message ends: the second one only moves up when a run begins.
        oldest = Mux(two, second, new)
        with m.If(moves):
            m.d.sync += first[2:].eq(oldest[2:])
        # No write enable here: it would add a wire behind the long wire of `begins`.
        found, keep = oldest[:2], keeper(m, 2)
        m.d.sync += first[:2].eq(
            (keep(found) & moves.replicate(2)) | (first[:2] & stays.replicate(2))
        )
        with m.If(ends):
            m.d.sync += second.eq(new)
        m.d.comb += two_next.eq(Mux(begins, two & ends, two | (waits & ends)))
        m.d.sync += [waits.eq(stays | (waits & two) | ends), two.eq(two_next)]
        cleared(m, self.value("clear"), waits, two)
        m.d.comb += [self.loaded.eq(waits), self.bad.eq(first[:2])]
        if self.shape.some:
            m.d.comb += self.counts.eq(first[2])
        if self.shape.length_bits:
            m.d.comb += self.length.eq(first[3:])
