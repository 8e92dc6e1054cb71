"""The two ends of a link between boards: transmitter, elastic buffer and receiver.

A link carries one word a cycle, and beside it the *frame* of the word (`WordType`), its type::

    between runs                          run                       after it
    MESSAGE .. MESSAGE CHECK .. CHECK ..  RUN RUN ........ RUN RUN  CHECK .. CHECK  MESSAGE ..
    message_words      crc_words          one word a cycle          crc_words

A *message* is here a control message, by which boards start together and agree on results
(`LinkPlan.message_layout`). A *packet* is the words of one message or of one run. The CHECK words
after it hold its CRC.

=========== ======================================================================================
Transmitter sends the words of an out-port during a run, and messages otherwise; appends the CRC
cable       carries words, frames and the sender's clock
Buffer      elastic buffer: memory written by the sender's clock, and read by the receiver's
Receiver    takes each word of a run in its cycle, checks the CRC, and finds messages
=========== ======================================================================================
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

from ....rtl.crc import CRC_BITS, INITIAL_CRC, crc_after
from ....rtl.memories import address_width
from ....rtl.modules import Leaf, SharedInstance, UnknownToZero
from .link_plan import SPARE_WORDS

if TYPE_CHECKING:
    from .link_plan import LinkPlan

__all__ = ["FRAME_BITS", "ElasticBuffer", "WordType", "Receiver", "Transmitter"]

#: Bits of a frame, the type of a word.
FRAME_BITS = 2

#: Name of the domain of the clock that arrives with the words.
LINK_DOMAIN = "link"

#: Fill level, in words, at which a receiver skips words between runs.
SKIP_LEVEL = 3


class WordType(enum.IntEnum):
    """The type of a word on a link, sent beside it: of a run, a control message, or a CRC."""

    #: No word: the link is idle or absent.
    NONE = 0
    #: A word of a message between runs.
    MESSAGE = 1
    #: A word of a run.
    RUN = 2
    #: A word of the CRC of the packet before it, low bits first.
    CHECK = 3


class Transmitter(Leaf):
    """The sending end of a link: words of an out-port during a run, messages before and after it.

    The messages are those of the board controls; a packet is the words of one message, or of one
    run. The board control drives `running`, `begins` and `checking` for all transmitters of a
    board. One cycle later the word chosen by them is in `tx_word`.

    Members
    -------
    sent : In(width)
        Word of the out-port.
    link : In
        Number of the link port, the first field of the message.
    message : In
        All other fields of the message, sampled while `begins` is high.
    running : In(1)
        High to send `sent` as a word of a run.
    begins : In(1)
        High for the first word of a packet. It restarts the CRC, and loads a message.
    checking : In(1)
        High to send a word of the CRC.
    tx_word : Out(width)
        Word on the link, a register.
    tx_frame : Out(2)
        `WordType` of `tx_word`, a register.
    """

    def __init__(self, plan: LinkPlan) -> None:
        self._plan = plan
        link = plan.message_layout["link"].width
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
        """Build the selection of the word to send, the register of the message, and the CRC."""
        m, width = Module(), self._plan.width
        running, begins, checking = map(self.input_value, ("running", "begins", "checking"))
        message = Cat(self.input_value("link"), self.input_value("message"))
        bits = self._plan.message_words * width
        rest = Signal(bits, name="rest", reset_less=True)
        told = Signal(bits, name="told")
        sent = self.input_value("sent")
        if self.is_unbound:
            known = Signal(width, name="sent_known")
            m.submodules.sent = SharedInstance(
                UnknownToZero(width).shared_module, i_word=sent, o_known=known
            )
            sent = known
        word, crc = Signal(width, name="word"), Signal(CRC_BITS, name="crc", reset_less=True)
        m.d.comb += [
            told.eq(Mux(begins, message, rest)),
            word.eq(Mux(running, sent, told[:width])),
        ]
        m.d.sync += [
            rest.eq(told >> width),
            self.tx_word.eq(Mux(checking, crc, word)),
            self.tx_frame.eq(
                Mux(checking, WordType.CHECK, Mux(running, WordType.RUN, WordType.MESSAGE))
            ),
            crc.eq(
                Mux(
                    checking,
                    crc >> width,
                    crc_after(Mux(begins, Const(INITIAL_CRC, CRC_BITS), crc), word),
                )
            ),
        ]
        return m


class ElasticBuffer(Leaf):
    """The elastic buffer of a link: written by the sender's clock, read by the receiver's clock.

    A word is written in every cycle of the sender's clock. After the last address, the first one
    follows. The number of written words passes to the receiver's clock as a Gray code.

    Parameters
    ----------
    plan : LinkPlan
        Dimensions of the links.
    latency : int
        Latency of the link, in cycles; it determines the depth.

    Members
    -------
    rx_clk : In(1)
        Clock of the sending board. Its falling edges sample `rx_word` and `rx_frame`.
    rx_word : In(width)
        Word from the cable.
    rx_frame : In(2)
        `WordType` of the word.
    at : In
        Address of the word to read.
    head : Out
        The word at this address in the low bits, its frame in the bits above.
    count : Out
        Number of words written, modulo twice the depth, as a Gray code. One bit changes at a time,
        so the receiver samples either the old or the new count.
    """

    def __init__(self, plan: LinkPlan, latency: int) -> None:
        self._depth = plan.buffer_depth(latency)
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
        """Build the memory, and the counter of written words."""
        m = Module()
        m.domains += ClockDomain(LINK_DOMAIN, local=True, clk_edge="neg", async_reset=True)
        m.d.comb += [
            ClockSignal(LINK_DOMAIN).eq(self.input_value("rx_clk")),
            # The reset may end at any phase of rx_clk: the receiver follows whatever count results.
            ResetSignal(LINK_DOMAIN).eq(ResetSignal(allow_reset_less=True)),
        ]
        words = memory.Memory(shape=len(self.head), depth=self._depth, init=[])
        words.data.name = "words"
        m.submodules.buffer = words
        write, read = words.write_port(domain=LINK_DOMAIN), words.read_port(domain="comb")
        written = Signal(self._bits + 1, name="written")
        following = Signal(self._bits + 1, name="following")
        m.d.comb += [
            following.eq(written + 1),
            write.addr.eq(written),
            write.data.eq(Cat(self.input_value("rx_word"), self.input_value("rx_frame"))),
            write.en.eq(1),
            read.addr.eq(self.input_value("at")),
            self.head.eq(read.data),
        ]
        m.d[LINK_DOMAIN] += [written.eq(following), self.count.eq(following ^ following >> 1)]
        return m


class Receiver(Leaf):
    """The receiving end of a link: takes words from an elastic buffer and checks packets.

    A packet is the words of one message of a board control, or of one run. A word has a *frame*,
    its type (`WordType`). Between runs the receiver takes words as they arrive. It skips words if
    the buffer fills because the sender's clock is faster. The first word of a run waits in the
    buffer until the board control asserts `due`. All further words of the run wait behind it.

    Parameters
    ----------
    plan : LinkPlan
        Dimensions of the links.
    latency : int
        Latency of the link, in cycles.

    Members
    -------
    count : In
        Number of words written to the buffer, as a Gray code in the sender's clock domain.
    at : Out
        Buffer address of the next word to take.
    head : In
        Word at that address, with its frame above.
    due : In(1)
        High to take a word of a run.
    check_due : In(1)
        High to take a word of the CRC of a run.
    frozen : In(1)
        High to keep all words: none is skipped, and words of a run wait for `due`.
    peer : In
        Expected sender of messages: link port in the low bits, board above.
    received : Out(width)
        Word taken in the previous cycle.
    said : Out
        Message, valid while `heard` or `strange` is high.
    heard : Out(1)
        High for one cycle at the end of a correct message from `peer`.
    strange : Out(1)
        High for one cycle at the end of a correct message from any other sender.
    alive : Out(1)
        High if a word was taken in the previous cycle, and its frame is not `WordType.NONE`.
    lost : Out(1)
        High from a loss until `frozen` falls. A loss is a word that was due but absent or of a
        wrong frame, a wrong CRC of a run, or a buffer that is too full.
    """

    def __init__(self, plan: LinkPlan, latency: int) -> None:
        self._plan, self._depth = plan, plan.buffer_depth(latency)
        self._bits = address_width(self._depth)
        super().__init__(
            {
                "count": In(self._bits + 1),
                "at": Out(self._bits),
                "head": In(plan.width + FRAME_BITS),
                "due": In(1),
                "check_due": In(1),
                "frozen": In(1),
                "peer": In(plan.sender_bits),
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
        """Build the read side of the elastic buffer, the packet check, and the record of losses."""
        m = Module()
        at, came = Signal(self._bits + 1, name="taken"), Signal(self._bits + 1, name="came")
        known, head = Signal(self._bits + 1, name="count_known"), self.input_value("head")
        m.submodules.synchronizer = FFSynchronizer(self.input_value("count"), known)
        m.d.comb += [
            came.eq(Cat(known[k:].xor() for k in range(self._bits + 1))),
            self.at.eq(at),
        ]
        due, frozen = (
            self.input_value("due") | self.input_value("check_due"),
            self.input_value("frozen"),
        )
        fill = Signal(self._bits + 1, name="fill")
        take, lost = Signal(name="take"), Signal(name="lost_now")
        frame = head[self._plan.width :]
        waits = frozen & (frame == WordType.RUN)
        m.d.comb += [
            fill.eq(came - at),
            take.eq(fill.any() & (due | ~waits)),
            lost.eq((due & ~take) | (fill > self._depth - SPARE_WORDS)),
        ]
        fresh = Signal(name="fresh")
        kind = Signal(FRAME_BITS, name="frame")
        m.d.sync += [fresh.eq(take), at.eq(at + take)]
        with m.If(take):
            m.d.sync += [self.received.eq(head), kind.eq(frame)]
        with m.If(~frozen & (fill >= SKIP_LEVEL)):
            m.d.sync += at.eq(came - 1)
        m.d.comb += self.alive.eq(fresh & (kind != WordType.NONE))
        wrong = self._check_packet(m, fresh, kind)
        was_due, was_check = Signal(name="was_due"), Signal(name="was_check_due")
        m.d.sync += [
            was_due.eq(self.input_value("due")),
            was_check.eq(self.input_value("check_due")),
        ]
        bad = (was_due & (kind != WordType.RUN)) | (was_check & ((kind != WordType.CHECK) | wrong))
        m.d.sync += self.lost.eq(frozen & (self.lost | lost | bad))
        return m

    def _check_packet(self, m: Module, fresh: Value, kind: Value) -> Value:
        """Collect the words of a packet, report control messages, and return the CRC error.

        A packet is here the words of one control message, or of one run. It ends with its CRC, or
        at the first word of another type.

        Parameters
        ----------
        fresh : Value
            High if `received` holds a new word.
        kind : Value
            `WordType` of the word in `received`.

        Returns
        -------
        Value
            High if the present word belongs to a CRC that is wrong so far.
        """
        plan, width = self._plan, self._plan.width
        words, checks = plan.message_words, plan.crc_words
        crc = Signal(CRC_BITS, name="crc", reset_less=True)
        before, of_message = Signal(FRAME_BITS, name="frame_before"), Signal(name="of_message")
        left = Signal(address_width(checks), init=checks - 1, name="checks_left")
        held = Signal(words * width, name="held", reset_less=True)
        count = Signal(range(words + 2), name="words_held")
        wrong, was_wrong = Signal(name="wrong"), Signal(name="was_wrong")
        first = Signal(name="first")
        check, part = kind == WordType.CHECK, min(width, CRC_BITS)
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
                    crc.eq(crc_after(Mux(first, Const(INITIAL_CRC, CRC_BITS), crc), self.received)),
                    was_wrong.eq(0),
                    left.eq(checks - 1),
                    held.eq(Cat(held, self.received) >> width),
                    count.eq(Mux(first, 1, Mux(count == words + 1, count, count + 1))),
                    of_message.eq(kind == WordType.MESSAGE),
                ]
        bits = len(self.input_value("peer"))
        whole, known = Signal(name="whole"), Signal(name="known_peer")
        m.d.comb += [
            whole.eq(fresh & check & (left == 0) & ~wrong & of_message & (count == words)),
            known.eq(held[:bits] == self.input_value("peer")),
            self.said.eq(held),
            self.heard.eq(whole & known),
            self.strange.eq(whole & ~known),
        ]
        return wrong
