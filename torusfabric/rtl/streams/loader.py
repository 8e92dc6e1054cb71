"""The loader: takes the packets that a node sends, and writes them where the fabric reads them.

While a run goes on, the message of the next is loaded into the other half of the memories. A
message that is complete waits until its run begins; there may be two, as long as no run is under
way.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..leaf import Leaf
from .words import WordCounter, WordShape

__all__ = ["BAD_DESTINATION", "BAD_LENGTH", "Loader", "LoaderShape"]

#: The bits of what is wrong with a message: of its lengths, and of its destinations.
BAD_LENGTH, BAD_DESTINATION = 0, 1


@dataclass(frozen=True)
class LoaderShape:
    """What all loaders of a fabric have in common.

    Parameters
    ----------
    width, data_bits : int
        Bits of a flit, and of the data of a stream.
    words : WordShape
        How the words of a packet are divided into chunks.
    packets : int
        Packets of a message.
    any_length : bool
        Whether packets may be shorter.
    dest_bits : int
        Bits of a destination; 0 where a message has one for all.
    bank_bits, base_bits : int
        Bits of the number of a memory, and of the address at which a chunk begins, as a ROM gives
        them; 0 where there is nothing to look up.
    address_bits : int
        Bits of the address of a memory.
    kept : bool
        Whether any node gets anything from itself.
    """

    width: int
    data_bits: int
    words: WordShape
    packets: int
    any_length: bool
    dest_bits: int
    bank_bits: int
    base_bits: int
    address_bits: int
    kept: bool

    @property
    def row_bits(self) -> int:
        """Bits of a row of the ROM."""
        return self.bank_bits + self.base_bits

    @property
    def key_bits(self) -> int:
        """Bits of the address of the ROM: the chunk, then the destination; 0 for a single row."""
        return (self.words.chunk_bits + self.dest_bits) * (self.row_bits > 0)

    @property
    def length_bits(self) -> int:
        """Bits of the number of the last word of a packet, where that is to be found out."""
        return self.words.index_bits if self.any_length else 0


class Loader(Leaf):
    """Takes the messages of a node.

    Parameters
    ----------
    shape : LoaderShape

    Members
    -------
    tdata, tvalid, tlast, tdest : In
    tready : Out(1)
        The stream of what the node sends.
    sends : In(1)
        Whether the node sends anything.
    position : In
        Which destination is the node itself.
    run_begins, run_ends : In(1)
        High for a cycle when a run begins, and when one has ended.
    row : In
        Of the ROM: where a chunk begins, a cycle after `key`.
    key : Out
    write_enable, write_kept : Out(1)
        Whether a word is written for the fabric to read, and for the node itself.
    write_bank, write_address, write_index, write_data : Out
    write_section : Out(2)
        The number of the message, modulo four.
    loaded : Out(1)
        Whether a message waits.
    bad : Out(2)
        What is wrong with it.
    length : Out
        The number of the last word of its packets.
    """

    def __init__(self, shape: LoaderShape) -> None:
        self._shape = shape
        optional = {
            "tdest": In(shape.dest_bits),
            "position": In(shape.dest_bits),
            "row": In(shape.row_bits),
            "key": Out(shape.key_bits),
            "write_bank": Out(shape.bank_bits),
            "write_kept": Out(int(shape.kept)),
            "write_index": Out(shape.words.index_bits if shape.kept else 0),
            "length": Out(shape.length_bits),
        }
        super().__init__(
            {
                "tdata": In(shape.data_bits),
                "tvalid": In(1),
                "tready": Out(1),
                "tlast": In(1),
                "sends": In(1),
                "run_begins": In(1),
                "run_ends": In(1),
                "write_enable": Out(1),
                "write_address": Out(shape.address_bits),
                "write_data": Out(shape.width),
                "write_section": Out(2),
                "loaded": Out(1),
                "bad": Out(2),
            }
            | {name: member for name, member in optional.items() if member.shape}
        )

    def elaborate(self, platform: object) -> Module:
        """Build the counters, the write, and the queue of what is known of messages."""
        m, shape = Module(), self._shape
        occupied, section = Signal(2), Signal(2)
        beat = Signal()
        m.d.comb += [
            self.tready.eq(self.value("sends") & (occupied != 2)),
            beat.eq(self.value("tvalid") & self.tready),
        ]
        counter = WordCounter(m, shape.words, beat, restart=self.value("tlast"))
        beyond = self._beyond(m, counter, beat)
        ends_packet = beat & self.value("tlast")
        ends_message, first_packet = self._packets(m, ends_packet)
        length, unequal = self._lengths(m, counter, ends_packet, first_packet)
        wrong = beyond | (ends_packet & unequal)
        bad = Cat(wrong, self._wrong_destination(m, beat, ends_packet, ends_message))
        found, so_far = Signal(2), Signal(2)
        m.d.comb += found.eq(so_far | bad)
        m.d.sync += so_far.eq(Mux(ends_message, 0, Mux(beat, found, so_far)))
        m.d.sync += occupied.eq(
            occupied + ends_message - (self.value("run_ends") & (occupied != 0))
        )
        m.d.sync += section.eq(section + ends_message)
        self._write(m, counter, beat & ~beyond, section)
        self._queue(m, ends_message, found, length)
        return m

    def _beyond(self, m: Module, counter: WordCounter, beat: Value) -> Value:
        """Whether a word is beyond the longest packet."""
        full, last = Signal(), self.value("tlast")
        with m.If(beat):
            m.d.sync += full.eq(~last & (full | (counter.index == self._shape.words.most - 1)))
        return full

    def _packets(self, m: Module, ends: Value) -> tuple[Value, Value]:
        """Whether a message ends, and whether a packet is its first."""
        packets = self._shape.packets
        if packets == 1:
            return ends, Const(1)
        count = Signal(range(packets))
        last = count == packets - 1
        with m.If(ends):
            m.d.sync += count.eq(Mux(last, 0, count + 1))
        return ends & last, count == 0

    def _lengths(
        self, m: Module, counter: WordCounter, ends: Value, first: Value
    ) -> tuple[Value, Value]:
        """The length of the first packet of a message, and whether that of another is wrong."""
        shape = self._shape
        if not shape.any_length:
            return Const(0, 1), counter.index != shape.words.most - 1
        if shape.packets == 1:
            return counter.index, Const(0)
        held = Signal(shape.length_bits)
        with m.If(ends & first):
            m.d.sync += held.eq(counter.index)
        return Mux(first, counter.index, held), ~first & (counter.index != held)

    def _wrong_destination(self, m: Module, beat: Value, ends: Value, last: Value) -> Value:
        """Whether a packet is for a destination that there is not, or that had one already."""
        shape = self._shape
        if not shape.dest_bits:
            return Const(0)
        sent, dest = Signal(shape.packets), self.value("tdest")
        unknown = Const(0) if shape.packets == 1 << shape.dest_bits else dest >= shape.packets
        with m.If(last):
            m.d.sync += sent.eq(0)
        with m.Elif(ends):
            m.d.sync += sent.bit_select(dest, 1).eq(1)
        return ends & (unknown | sent.bit_select(dest, 1))

    def _write(self, m: Module, counter: WordCounter, beat: Value, section: Value) -> None:
        """Write a word a cycle after it was taken, when the ROM shows where its chunk begins."""
        shape = self._shape
        within = Signal(shape.words.within_bits, reset_less=True)
        data = self.value("tdata")[: shape.width]
        m.d.sync += [
            self.write_enable.eq(beat),
            self.write_data.eq(data),
            self.write_section.eq(section),
            within.eq(counter.within),
        ]
        base: Value = Const(0)
        if shape.row_bits:
            key = [counter.chunk] if shape.words.chunk_bits else []
            key += [self.value("tdest")] if shape.dest_bits else []
            if key:
                m.d.comb += self.key.eq(Cat(*key))
            row = self.value("row")
            base = row[shape.bank_bits :]
            if shape.bank_bits:
                m.d.comb += self.write_bank.eq(row[: shape.bank_bits])
        m.d.comb += self.write_address.eq(base + within if shape.base_bits else within)
        if shape.kept:
            mine = self.value("tdest") == self.value("position") if shape.dest_bits else Const(1)
            m.d.sync += [self.write_kept.eq(beat & mine), self.write_index.eq(counter.index)]

    def _queue(self, m: Module, ends: Value, bad: Value, length: Value) -> None:
        """Keep what is known of the messages that wait, the oldest first."""
        new = Cat(bad, length) if self._shape.length_bits else bad
        first, second = Signal(len(new)), Signal(len(new))
        waits, both = Signal(), Signal()
        begins = self.value("run_begins")
        stays = waits & ~begins
        with m.If(begins & both):
            m.d.sync += first.eq(second)
        with m.Elif(~stays):
            m.d.sync += first.eq(new)
        with m.If(ends):
            m.d.sync += second.eq(new)
        m.d.sync += [
            waits.eq(stays | (waits & both) | ends),
            both.eq(Mux(begins, both & ends, both | (waits & ends))),
        ]
        m.d.comb += [
            self.loaded.eq(waits | ~self.value("sends")),
            self.bad.eq(Mux(self.value("sends"), first[:2], 0)),
        ]
        if self._shape.length_bits:
            m.d.comb += self.length.eq(first[2:])
