"""Transmitters: the words of a run, or of messages between runs, and a sum behind either."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from ..modules import Leaf
from .link_plan import CRC_BITS
from .symbols import FRAME_BITS, ONES, Frame, crc_after

if TYPE_CHECKING:
    from .link_plan import LinkPlan

__all__ = ["Transmitter"]


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
        word, crc = Signal(width, name="word"), Signal(CRC_BITS, name="crc", reset_less=True)
        m.d.comb += [
            told.eq(Mux(begins, message, rest)),
            word.eq(Mux(running, self.value("sent"), told[:width])),
        ]
        m.d.sync += [
            rest.eq(told >> width),
            self.tx_word.eq(Mux(checking, crc, word)),
            self.tx_frame.eq(Mux(checking, Frame.CHECK, Mux(running, Frame.RUN, Frame.MESSAGE))),
            crc.eq(Mux(checking, crc >> width,
                       crc_after(Mux(begins, Const(ONES, CRC_BITS), crc), word))),
        ]  # fmt: skip
        return m
