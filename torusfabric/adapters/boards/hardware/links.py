"""What goes over a link, and the two ends of one: words, each with what it is, in packets that end
with a sum; transmitters; elastic buffers, and receivers, which find what is in the words.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    Const,
    Module,
    Mux,
    ResetSignal,
    Signal,
    Value,
)
from amaranth.lib import memory
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from ....rtl.crc import CRC_BITS, ONES, crc_after
from ....rtl.memories import address_width
from ....rtl.modules import Known, Leaf, Use
from .link_plan import SPARE

if TYPE_CHECKING:
    from .link_plan import LinkPlan

__all__ = ["FRAME_BITS", "Buffer", "Frame", "Receiver", "Transmitter"]

#: Bits of what a word is.
FRAME_BITS = 2

#: The domain of the clock that comes with the words.
LINK = "link"

#: Words in a buffer from which on some are skipped between runs.
TOO_MANY = 3


class Frame(enum.IntEnum):
    """What a word is."""

    #: None: the link is at rest, or there is none.
    NONE = 0
    #: Of a message between runs.
    MESSAGE = 1
    #: Of a run.
    RUN = 2
    #: Of the sum of all words before, the low bits first.
    CHECK = 3


class Transmitter(Leaf):
    """Sends the words of an out-port while a run is under way, and messages before and after.

    Members
    -------
    sent : In(width)
        The word of the out-port.
    link : In
        The number of the link port.
    message : In
        The rest of the message.
    running : In(1)
        The word is one of a run.
    begins : In(1)
        It is the first one, or that of a message, whose words follow.
    checking : In(1)
        A word of the sum is sent.
    tx_word : Out(width)
    tx_frame : Out(2)
        Registers: a word, and which `Frame` it is.
    """

    def __init__(self, plan: LinkPlan) -> None:
        self._plan = plan
        link = plan.fields["link"].width
        super().__init__(
            {
                "sent": In(plan.width),
                "link": In(link),
                "message": In(plan.message_bits - link),
                "running": In(1),
                "begins": In(1),
                "checking": In(1),
                "tx_word": Out(plan.width),
                "tx_frame": Out(FRAME_BITS),
            }
        )
        self.tx_word = Signal(plan.width, reset_less=True, name="tx_word")

    def elaborate(self, platform: object) -> Module:
        """Build the choice of a word, and the sum."""
        m, width = Module(), self._plan.width
        running, begins, checking = map(self.value, ("running", "begins", "checking"))
        message = Cat(self.value("link"), self.value("message"))
        bits = self._plan.message_words * width
        rest = Signal(bits, name="rest", reset_less=True)
        told = Signal(bits, name="told")
        sent = self.value("sent")
        if self.alone:
            known = Signal(width, name="sent_known")
            m.submodules.sent = Use(Known(width).shared, i_word=sent, o_known=known)
            sent = known
        word, crc = Signal(width, name="word"), Signal(CRC_BITS, name="crc", reset_less=True)
        m.d.comb += [
            told.eq(Mux(begins, message, rest)),
            word.eq(Mux(running, sent, told[:width])),
        ]
        m.d.sync += [
            rest.eq(told >> width),
            self.tx_word.eq(Mux(checking, crc, word)),
            self.tx_frame.eq(Mux(checking, Frame.CHECK, Mux(running, Frame.RUN, Frame.MESSAGE))),
            crc.eq(Mux(checking, crc >> width,
                       crc_after(Mux(begins, Const(ONES, CRC_BITS), crc), word))),
        ]  # fmt: skip
        return m


class Buffer(Leaf):
    """The words that come from another board: written by its clock, read by that of this one.

    Parameters
    ----------
    latency : int
        Of the link, in cycles.

    Members
    -------
    rx_clk : In(1)
        The clock of the board that sends; at its falling edges the others are sampled.
    rx_word, rx_frame : In
    at, head : In, Out
        An address, and what lies there: a word, and above it what it is.
    count : Out
        How many words have come, as a Gray code: one bit changes at a time.
    """

    def __init__(self, plan: LinkPlan, latency: int) -> None:
        self._depth = plan.depth(latency)
        self._bits = address_width(self._depth)
        super().__init__(
            {
                "rx_clk": In(1),
                "rx_word": In(plan.width),
                "rx_frame": In(FRAME_BITS),
                "at": In(self._bits),
                "head": Out(plan.width + FRAME_BITS),
                "count": Out(self._bits + 1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Build the memory and the counter."""
        m = Module()
        m.domains += ClockDomain(LINK, local=True, clk_edge="neg", async_reset=True)
        m.d.comb += [
            ClockSignal(LINK).eq(self.value("rx_clk")),
            # Whenever it ends, counting begins somewhere, and the receiver follows.
            ResetSignal(LINK).eq(ResetSignal(allow_reset_less=True)),
        ]
        words = memory.Memory(shape=len(self.head), depth=self._depth, init=[])
        words.data.name = "words"
        m.submodules.buffer = words
        write, read = words.write_port(domain=LINK), words.read_port(domain="comb")
        written = Signal(self._bits + 1, name="written")
        following = Signal(self._bits + 1, name="following")
        m.d.comb += [
            following.eq(written + 1),
            write.addr.eq(written),
            write.data.eq(Cat(self.value("rx_word"), self.value("rx_frame"))),
            write.en.eq(1),
            read.addr.eq(self.value("at")),
            self.head.eq(read.data),
        ]
        m.d[LINK] += [written.eq(following), self.count.eq(following ^ following >> 1)]
        return m


class Receiver(Leaf):
    """Takes words that have come from another board, each in its cycle.

    Between runs words are taken as they come, and where the other clock is faster some are skipped.
    The first word of a run waits in the buffer until it is due, and all others behind it.

    Parameters
    ----------
    latency : int
        Of the link, in cycles.

    Members
    -------
    count, at, head : In, Out, In
        How many words have come, as a Gray code of the other clock; the address of the next one,
        and what lies there.
    due, check_due : In(1)
        A word of a run, or of its sum, is taken.
    frozen : In(1)
        Nothing may be skipped.
    peer : In
        The link port, and the board, that should send.
    received : Out(width)
        A word, in the cycle after it is due.
    said, heard, strange : Out
        The words of a message; and whether they are a whole one in this cycle, of the peer or of
        another.
    alive : Out(1)
        A word has come that is something.
    lost : Out(1)
        Since the buffer is frozen, a word of a run was not there when it was due, was none, or was
        changed on the way, or there was no room for one.
    """

    def __init__(self, plan: LinkPlan, latency: int) -> None:
        self._plan, self._depth = plan, plan.depth(latency)
        self._bits = address_width(self._depth)
        super().__init__(
            {
                "count": In(self._bits + 1),
                "at": Out(self._bits),
                "head": In(plan.width + FRAME_BITS),
                "due": In(1),
                "check_due": In(1),
                "frozen": In(1),
                "peer": In(plan.end_bits),
                "received": Out(plan.width),
                "said": Out(plan.message_bits),
                "heard": Out(1),
                "strange": Out(1),
                "alive": Out(1),
                "lost": Out(1),
            }
        )
        self.received = Signal(plan.width, reset_less=True, name="received")

    def elaborate(self, platform: object) -> Module:
        """Build the buffer, and what is behind it."""
        m = Module()
        at, came = Signal(self._bits + 1, name="taken"), Signal(self._bits + 1, name="came")
        known, head = Signal(self._bits + 1, name="count_known"), self.value("head")
        m.submodules.synchronizer = FFSynchronizer(self.value("count"), known)
        m.d.comb += [
            came.eq(Cat(known[k:].xor() for k in range(self._bits + 1))),
            self.at.eq(at),
        ]
        due, frozen = self.value("due") | self.value("check_due"), self.value("frozen")
        fill = Signal(self._bits + 1, name="fill")
        take, lost = Signal(name="take"), Signal(name="lost_now")
        frame = head[self._plan.width :]
        waits = frozen & (frame == Frame.RUN)
        m.d.comb += [
            fill.eq(came - at),
            take.eq(fill.any() & (due | ~waits)),
            lost.eq((due & ~take) | (fill > self._depth - SPARE)),
        ]
        fresh = Signal(name="fresh")
        kind = Signal(FRAME_BITS, name="frame")
        m.d.sync += [fresh.eq(take), at.eq(at + take)]
        with m.If(take):
            m.d.sync += [self.received.eq(head), kind.eq(frame)]
        with m.If(~frozen & (fill >= TOO_MANY)):
            m.d.sync += at.eq(came - 1)
        m.d.comb += self.alive.eq(fresh & (kind != Frame.NONE))
        wrong = self._packet(m, fresh, kind)
        was_due, was_check = Signal(name="was_due"), Signal(name="was_check_due")
        m.d.sync += [was_due.eq(self.value("due")), was_check.eq(self.value("check_due"))]
        bad = (was_due & (kind != Frame.RUN)) | (was_check & ((kind != Frame.CHECK) | wrong))
        m.d.sync += self.lost.eq(frozen & (self.lost | lost | bad))
        return m

    def _packet(self, m: Module, fresh: Value, kind: Value) -> Value:
        """Gather the words of a packet, and say whether it is a message; whether its sum is wrong.

        A packet ends with its sum, or with the first word that is something else.
        """
        plan, width = self._plan, self._plan.width
        words, checks = plan.message_words, plan.check_words
        crc = Signal(CRC_BITS, name="crc", reset_less=True)
        before, of_message = Signal(FRAME_BITS, name="frame_before"), Signal(name="of_message")
        left = Signal(address_width(checks), init=checks - 1, name="checks_left")
        held = Signal(words * width, name="held", reset_less=True)
        count = Signal(range(words + 2), name="words_held")
        wrong, was_wrong = Signal(name="wrong"), Signal(name="was_wrong")
        first = Signal(name="first")
        check, part = kind == Frame.CHECK, min(width, CRC_BITS)
        m.d.comb += [
            first.eq(before != kind),
            wrong.eq(was_wrong | (self.received[:part] != crc[:part])),
        ]
        with m.If(fresh):
            m.d.sync += before.eq(kind)
            with m.If(check):
                m.d.sync += [crc.eq(crc >> width), was_wrong.eq(wrong), left.eq(left - 1)]
            with m.Else():
                m.d.sync += [
                    crc.eq(crc_after(Mux(first, Const(ONES, CRC_BITS), crc), self.received)),
                    was_wrong.eq(0),
                    left.eq(checks - 1),
                    held.eq(Cat(held, self.received) >> width),
                    count.eq(Mux(first, 1, Mux(count == words + 1, count, count + 1))),
                    of_message.eq(kind == Frame.MESSAGE),
                ]
        bits = len(self.value("peer"))
        whole, known = Signal(name="whole"), Signal(name="known_peer")
        m.d.comb += [
            whole.eq(fresh & check & (left == 0) & ~wrong & of_message & (count == words)),
            known.eq(held[:bits] == self.value("peer")),
            self.said.eq(held),
            self.heard.eq(whole & known),
            self.strange.eq(whole & ~known),
        ]
        return wrong
