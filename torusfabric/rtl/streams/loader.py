"""The loader: takes the packets that a node sends, and writes them where the fabric reads them.

While a run goes on, the message of the next is loaded into another section of the memories. A
message that is complete waits until its run begins; there may be two, in memories of two sections
as long as no run is under way.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ..memories import constant_at
from ..modules import apart
from ..multiplexer import keeper
from .ports import stream_signals
from .shapes import LoaderShape, StreamEnd
from .words import WordCount, cleared, counted, registered_outputs, state, tally

__all__ = ["BAD_DESTINATION", "BAD_LENGTH", "Loader"]

#: The bits of what is wrong with a message: of its lengths, and of its destinations.
BAD_LENGTH, BAD_DESTINATION = 0, 1


class Loader(StreamEnd):
    """Takes the messages of a node.

    Members
    -------
    tdata, tkeep, tvalid, tlast, tdest, tready : In, Out
        The stream of what the node sends.
    sends, position : In
        Of each form, whether the node sends anything, and which destination, or root, it is.
    clear : In(1)
        The reset of the node.
    load_valid, load_mode, load_root : In
        What commands say of messages of even and of odd numbers.
    run_begins, run_ends : In(1)
        High for a cycle when a run begins, and, where there are two sections, when one has ended.
    key, row : Out, In
        What the ROM is asked for, and where a chunk begins, a cycle later.
    write_enable, write_kept : Out(1)
        Whether a word is written for the fabric to read, and for the node itself.
    write_bank, write_address, write_index, write_data : Out
    write_section : Out
        The lowest bits of the number of the message: its section, and a bit more.
    loaded, bad, length, counts : Out
        Whether a message waits; what is wrong with it; the number of the last flit of its packets;
        and whether it has any words, if some nodes send nothing.
    """

    verb, side, passes = "load", "s_axis", "sends"

    shape: LoaderShape

    def __init__(self, shape: LoaderShape) -> None:
        self._sections = sections = shape.facts.sections
        super().__init__(
            shape,
            {
                **stream_signals(shape.data_bits, keep=shape.keep_bits, dest=shape.packet_bits),
                "sends": In(shape.passes_bits),
                "position": In(shape.position_bits),
                "clear": In(1),
                **{name: In(bits) for name, bits in shape.facts.end_widths(self.verb).items()},
                "run_begins": In(1),
                "run_ends": In(int(sections.two)),
                "row": In(shape.row_bits),
                "key": Out(shape.key_bits),
                "write_enable": Out(1),
                "write_kept": Out(int(shape.kept)),
                "write_bank": Out(shape.memory_bits),
                "write_address": Out(shape.address_bits),
                "write_index": Out(shape.words.index_bits if shape.kept else 0),
                "write_data": Out(shape.width),
                "write_section": Out(sections.number_bits),
                "loaded": Out(1),
                "bad": Out(2),
                "length": Out(shape.length_bits),
                "counts": Out(int(shape.some)),
            },
        )
        written = ("enable", "kept", "index", "data", "section")
        registered_outputs(self, *(f"write_{name}" for name in written))
        #: Of the message that is loaded, the lowest bits of its number.
        self._section = state(sections.number_bits, name="section")

    @cached_property
    def _form(self) -> Value:
        """The form of the message, or all facts of it."""
        return self._form_of(self._section[0])

    def elaborate(self, platform: object) -> Module:
        """Build the counters, the write, and the queue of what is known of messages."""
        m, shape = Module(), self.shape
        both, section = state(name="both"), self._section
        ends, both_next = Signal(name="ends_message"), Signal(name="both_next")
        sends, beat, last = Signal(name="sends_now"), Signal(name="beat"), self.value("tlast")
        may, may_end = self._room(m, ends, (both, both_next))
        m.d.comb += [
            sends.eq(self._takes_part(section[0])),
            self.tready.eq(may & sends & ~self.value("clear")),
            # What is taken in the cycle of a reset is forgotten with all else.
            beat.eq(self.value("tvalid") & may & sends),
        ]
        counter = counted(m, shape.words, self._form, beat=beat, restart=last)
        beyond, at_last = self._limits(m, counter, beat)
        ends_packet = self.value("tvalid") & last & may_end & sends
        first_packet, last_packet = self._packets(m, ends_packet)
        # Who sends nothing has nothing to wait for.
        m.d.comb += ends.eq((ends_packet & last_packet) | (may_end & ~sends))
        length, unequal = self._lengths(m, counter, ends_packet, first_packet, at_last)
        found, so_far = Signal(2, name="wrong"), state(2, name="wrong_so_far")
        # This matters only in a cycle in which a word is taken.
        m.d.comb += found.eq(so_far | Cat(
            self._torn(Mux(last, unequal, at_last)),
            last & self.wrong_destination(m, ends_packet, last_packet),
        ))  # fmt: skip
        with m.If(beat):
            m.d.sync += so_far.eq(found & ~(last & last_packet).replicate(2))
        with m.If(ends):
            m.d.sync += section.eq(section + 1)
        self._write(m, counter, beat & ~beyond)
        known = Cat(found & sends.replicate(2), sends)
        self._queue(m, ends, (both, both_next), known, length)
        cleared(m, self.value("clear"), section, so_far, *counter.registers)
        return m

    def _room(self, m: Module, ends: Value, both: tuple[Signal, Signal]) -> tuple[Signal, Value]:
        """Whether words are accepted: for the port, and again for what ends of messages change.

        Two messages wait at most; with two sections, also only one while a run is under way.
        """
        full, following = both
        clear = self.value("clear")
        if self._sections.two:
            ended = self.value("run_ends")
            count, counted = tally(m, up=ends, down=ended, clear=clear, name="occupied")
            # It is never 3.
            full, following = count[1], counted[1]
        # Synthesis would share a level of logic with what every word changes, and put another one
        # behind it; it cannot share what comes from a register of its own.
        ends_full = apart(m, following & ~clear, name="ends_full")
        commanded = self._said("valid", self._section[0], 1, otherwise=1)
        may = Signal(name="may_load")
        m.d.comb += may.eq(~full & commanded)
        return may, ~ends_full & commanded

    def _limits(self, m: Module, counter: WordCount, beat: Value) -> tuple[Signal, Signal]:
        """Whether a word is beyond the longest packet, and whether it is the last of that."""
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
        """Whether a packet is the first of its message, and whether it is the last."""
        packets = self.shape.packets
        if max(packets) == 1:
            return Const(1), Const(1)
        count = state((max(packets) - 1).bit_length(), name="packet")
        last = count == self._last_packet()
        with m.If(ends):
            m.d.sync += count.eq(Mux(last, 0, count + 1))
        cleared(m, self.value("clear"), count)
        return count == 0, last

    def _lengths(
        self, m: Module, counter: WordCount, ends: Value, first: Value, at_last: Value
    ) -> tuple[Value, Value]:
        """The length of the first packet of a message, and whether that of another is wrong."""
        shape, number = self.shape, counter.index
        beyond: Value | None = None
        if shape.flit_bits:
            number, rest = Cat(self._last_flit(m), number), (shape.most_flits - 1) % shape.beat
            beyond = Const(0)
            if rest < shape.beat - 1:
                beyond = at_last & (number[: shape.flit_bits] > rest)
            at_last &= number[: shape.flit_bits] == rest
        if not shape.any_length:
            return Const(0, 1), ~at_last
        if max(shape.packets) == 1:
            return number, Const(0) if beyond is None else beyond
        held = Signal(shape.length_bits, name="first_length", reset_less=True)
        with m.If(ends & first):
            m.d.sync += held.eq(number)
        differs = ~first & (number != held)
        return Mux(first, number, held), differs if beyond is None else differs | beyond

    def _full(self) -> list[Value]:
        """Whether each flit of a beat is full."""
        keep = self.value("tkeep")
        return [keep.word_select(k, len(keep) // self.shape.beat).all()
                for k in range(self.shape.beat)]  # fmt: skip

    def _last_flit(self, m: Module) -> Value:
        """The number of the last flit of a beat that is full."""
        last = Signal(self.shape.flit_bits, name="last_flit")
        for k, full in enumerate(self._full()[1:], 1):
            with m.If(full):
                m.d.comb += last.eq(k)
        return last

    def _torn(self, wrong: Value) -> Value:
        """Whether a beat is wrong, or lacks bytes other than whole flits at the end of a packet."""
        if not self.shape.flit_bits:
            return wrong
        keep, full = self.value("tkeep"), self._full()
        parts = [keep.word_select(k, len(keep) // len(full)).any() for k in range(len(full))]
        gaps = [part & ~before for before, part in pairwise([full[0], *parts[1:]])]
        halves = [part & ~whole for part, whole in zip(parts, full, strict=True)]
        torn = Cat(*gaps, *halves, ~full[0], ~self.value("tlast") & ~full[-1]).any()
        return wrong | torn

    def wrong_destination(self, m: Module, ends: Value, last: Value) -> Value:
        """Whether a packet is for a destination that there is not, or that had one already.

        `ends` says that a packet ends, `last` that it is the last of its message. The answer is
        that of the word which ends a packet, and matters for no other.
        """
        shape = self.shape
        if not shape.packet_bits:
            return Const(0)
        most, dest = max(shape.packets), self.value("tdest")
        if most == 1:
            return self._unknown(dest) & self._named()
        # Ports are as wide as the number of a node, which groups and offsets do not need.
        sent, bit = state(most, name="sent"), dest[: (most - 1).bit_length()]
        unknown = self._unknown(dest)
        with m.If(ends):
            m.d.sync += sent.bit_select(bit, 1).eq(1)
        with m.If(ends & last):
            m.d.sync += sent.eq(0)
        cleared(m, self.value("clear"), sent)
        return (unknown | sent.bit_select(bit, 1)) & self._named()

    def _last_packet(self) -> Value:
        """The index of the last packet of a message."""
        return self._fact("last_sent", self._form, [each - 1 for each in self.shape.packets])

    def _unknown(self, dest: Value) -> Value:
        """Whether there is no such destination."""
        shape = self.shape
        if self._facts:
            return dest > self._last_packet()
        gaps = any(
            count != 1 << shape.packet_bits
            for count, named in zip(shape.packets, shape.named, strict=True)
            if named
        )
        return dest >= constant_at(shape.packets, self._form) if gaps else Const(0)

    def _write(self, m: Module, counter: WordCount, beat: Value) -> None:
        """Write a word a cycle after it was taken, when the ROM shows where its chunk begins."""
        shape = self.shape
        within = Signal(shape.words.within_bits, name="within_here", reset_less=True)
        m.d.sync += [
            self.write_enable.eq(beat),
            self.write_data.eq(self.value("tdata")[: shape.width]),
            self.write_section.eq(self._section),
            within.eq(counter.within),
        ]
        base = self._looked_up(m, counter)
        m.d.comb += self.write_address.eq(within if base is None else base + within)
        if shape.kept:
            mine: Value = Const(1)
            if shape.packet_bits:
                position = self._fact("position", self._form)
                mine = (self.value("tdest") == position) | ~self._named()
            m.d.sync += [self.write_kept.eq(beat & mine), self.write_index.eq(counter.index)]
            cleared(m, self.value("clear"), self.write_kept)
        cleared(m, self.value("clear"), self.write_enable)

    def _looked_up(self, m: Module, counter: WordCount) -> Value | None:
        """Where the chunk of a word begins, a cycle after it was taken, if not always at 0."""
        shape = self.shape
        if self._facts:
            # As the host would write it.
            base = Signal(shape.address_bits, name="base", reset_less=True)
            first = self.value("tdest") * Const(shape.most_flits)
            m.d.sync += base.eq(Mux(self._named(), first, 0))
            return base
        if shape.key_bits:
            dest = self.value("tdest") if shape.packet_bits else Const(0, 0)
            m.d.comb += self.key.eq(shape.rows.value(counter.chunk, dest, self._form))
        if not shape.row_bits:
            return None
        row = data.View(shape.row, self.value("row"))
        form = Signal(shape.shift_form_bits, name="form_here", reset_less=True)
        if len(form):
            m.d.sync += form.eq(self._form)
        if shape.memory_bits:
            m.d.comb += self.write_bank.eq(row.memory)
        return self._base(row.base, form) if shape.base_bits else None

    def _named(self) -> Value:
        """Whether packets have destinations."""
        return self._fact("named", self._form, self.shape.named)

    def _queue(
        self, m: Module, ends: Value, both: tuple[Signal, Signal], known: Value, length: Value
    ) -> None:
        """Keep what is known of the messages that wait, the oldest first; and whether two do."""
        bits = self.shape.length_bits
        new = Cat(known, length) if bits else known
        first = Signal(len(new), name="first", reset_less=True)
        second = Signal(len(new), name="second", reset_less=True)
        waits, begins = state(name="waits"), self.value("run_begins")
        two, two_next = both
        stays, moves = waits & ~begins, begins | ~waits
        # While two wait, all there is to do is to move up.
        oldest = Mux(two, second, new)
        with m.If(moves):
            m.d.sync += first[2:].eq(oldest[2:])
        # An enable would be one more wire behind the long one of `begins`.
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
        if bits:
            m.d.comb += self.length.eq(first[3:])
