"""The unloader: sends on what a node has received, packet by packet.

While a run goes on, what the one before has brought is unloaded from the other half of the
memories. A word takes three cycles: its address, the memory, and the choice of the memory. All of
them wait while the receiver does, so that no word needs a place in between.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from ..leaf import Leaf
from .words import WordCounter, WordShape

__all__ = ["Unloader", "UnloaderShape"]


@dataclass(frozen=True)
class UnloaderShape:
    """What all unloaders of a fabric have in common.

    Parameters
    ----------
    words : WordShape
        How the words of a packet are divided into chunks.
    packets : int
        Packets that a node receives.
    any_length : bool
        Whether packets may be shorter.
    first_id, id_bits : int
        The origin of the first packet, and bits of an origin.
    code_bits, base_bits : int
        Bits of a row of the ROM: of the select bits of a memory, and of the address at which a
        chunk begins.
    address_bits : int
        Bits of the address of a memory.
    kept : bool
        Whether the lowest bit of a row says that the node has it from itself, word by word.
    """

    words: WordShape
    packets: int
    any_length: bool
    first_id: int
    id_bits: int
    code_bits: int
    base_bits: int
    address_bits: int
    kept: bool

    @property
    def kept_bits(self) -> int:
        """Bits of a row that say that the node has something from itself."""
        return int(self.kept)

    @property
    def row_bits(self) -> int:
        """Bits of a row of the ROM."""
        return self.kept_bits + self.code_bits + self.base_bits

    @property
    def packet_bits(self) -> int:
        """Bits of the number of a packet; 0 if there is only one."""
        return (self.packets - 1).bit_length()

    @property
    def key_bits(self) -> int:
        """Bits of the address of the ROM: the chunk, then the packet; 0 where one row is all."""
        return (self.words.chunk_bits + self.packet_bits) * (self.row_bits > 0)


class Unloader(Leaf):
    """Sends on what a node has received.

    Parameters
    ----------
    shape : UnloaderShape

    Members
    -------
    tvalid, tlast, tid : Out
    tready : In(1)
        The stream of what the node receives; its data are a register of the endpoint.
    receives : In(1)
        Whether the node receives anything.
    run_begins, run_ends : In(1)
        High for a cycle when a run begins, and when one has ended.
    run_empty : In(2)
        Of runs of even and of odd numbers, whether the last one has brought nothing.
    run_last : In
        The number of the last word of packets, of both.
    row : In
        Of the ROM: where a chunk lies that `key` has named a cycle before.
    key : Out
    read_advance : Out(1)
        Whether reads go on with this edge.
    read_code, read_address : Out
        Select bits of a memory, and the address.
    read_section : Out(2)
        The number of the run, modulo four.
    free : Out(1)
        Whether there is room for what another run brings.
    """

    def __init__(self, shape: UnloaderShape) -> None:
        self._shape = shape
        optional = {
            "run_last": In(2 * shape.words.index_bits if shape.any_length else 0),
            "key": Out(shape.key_bits),
            "row": In(shape.row_bits),
            "read_code": Out(shape.code_bits),
        }
        super().__init__(
            {
                "tvalid": Out(1),
                "tready": In(1),
                "tlast": Out(1),
                "tid": Out(shape.id_bits),
                "receives": In(1),
                "run_begins": In(1),
                "run_ends": In(1),
                "run_empty": In(2),
                "read_advance": Out(1),
                "read_address": Out(shape.address_bits),
                "read_section": Out(2),
                "free": Out(1),
            }
            | {name: member for name, member in optional.items() if member.shape}
        )

    def elaborate(self, platform: object) -> Module:
        """Build what counts runs and words, and the pipeline that reads them."""
        m, shape = Module(), self._shape
        run, complete, claimed = Signal(2, name="run"), Signal(2), Signal(2)
        advance, finishes, done = Signal(), Signal(name="finishes"), Signal(name="done")
        there, skips, ends_packet = Signal(), Signal(), Signal()
        brought = self.value("receives") & ~self.value("run_empty").bit_select(run[0], 1)
        m.d.comb += [
            advance.eq(~self.tvalid | self.value("tready")),
            self.read_advance.eq(advance),
            there.eq((complete != 0) & brought),
            skips.eq((complete != 0) & ~brought & ~done),
        ]
        counter = WordCounter(m, shape.words, there & advance, restart=ends_packet)
        m.d.comb += ends_packet.eq(counter.index == self._last(run[0]))
        packet, next_packet, last_packet = self._packets(m, there & advance & ends_packet)
        m.d.comb += finishes.eq(ends_packet & last_packet)
        if shape.key_bits:
            m.d.comb += self.key.eq(self._key(counter.next_chunk, next_packet))
        self._address(m, advance, counter, run)
        tags = Cat(ends_packet, packet)
        asked = self._stage(m, advance, there, Cat(finishes, tags), "asked")
        # The last word of a run leaves its memory.
        m.d.comb += done.eq(advance & asked[0] & asked[1])
        read = self._stage(m, advance, asked[0], asked[2:], "read")
        shown = self._stage(m, advance, read[0], read[1:], "shown")
        m.d.comb += [self.tvalid.eq(shown[0]), self.tlast.eq(shown[1])]
        number = shown[2:] if shape.packet_bits else Const(shape.first_id)
        m.d.comb += [self.tid.eq(number), self.free.eq(claimed != 2)]
        passes = (there & advance & finishes) | skips
        m.d.sync += [
            run.eq(run + passes),
            complete.eq(complete + self.value("run_ends") - passes),
            claimed.eq(claimed + self.value("run_begins") - (done | skips)),
        ]
        return m

    def _last(self, odd: Value) -> Value:
        """The number of the last word of the packets of a run."""
        words = self._shape.words
        if not self._shape.any_length:
            return Const(words.most - 1)
        return self.value("run_last").word_select(odd, words.index_bits)

    def _packets(self, m: Module, ends: Value) -> tuple[Value, Value, Value]:
        """The packet, that of the next word, and whether it is the last of a run."""
        shape = self._shape
        if not shape.packet_bits:
            return Const(0, 0), Const(0, 0), Const(1)
        packet = Signal(shape.packet_bits, name="packet")
        following, last = Signal.like(packet, name="next_packet"), Signal(name="last_packet")
        m.d.comb += last.eq(packet == shape.packets - 1)
        m.d.comb += following.eq(Mux(ends, Mux(last, 0, packet + 1), packet))
        m.d.sync += packet.eq(following)
        return packet, following, last

    def _key(self, chunk: Value, packet: Value) -> Value:
        """What the ROM is asked for."""
        return Cat(chunk, packet) if self._shape.words.chunk_bits else packet

    def _address(self, m: Module, advance: Value, counter: WordCounter, run: Value) -> None:
        """Ask for a word: where its chunk begins, and how far it is from there."""
        shape = self._shape
        within, base = counter.within, Const(0)
        if shape.row_bits:
            row = self.value("row")
            base = row[shape.kept_bits + shape.code_bits :]
            if shape.kept and counter.within is not counter.index:
                within = Mux(row[0], counter.index, within)
        with m.If(advance):
            m.d.sync += self.read_address.eq(base + within if shape.base_bits else within)
            m.d.sync += self.read_section.eq(run)
            if shape.code_bits:
                m.d.sync += self.read_code.eq(row[shape.kept_bits :][: shape.code_bits])

    @staticmethod
    def _stage(m: Module, advance: Value, valid: Value, tags: Value, name: str) -> Signal:
        """A stage of the pipeline: whether a word is there, and what is known of it."""
        there = Signal(name=f"{name}_valid")
        known = Signal(len(tags), name=name, reset_less=True)
        with m.If(advance):
            m.d.sync += [there.eq(valid), known.eq(tags)]
        return Cat(there, known)
