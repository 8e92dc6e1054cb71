"""The gateware that computes the words that nodes send and must have received.

What a node receives is the word of its origin, or, in a reduction, the combination of the words of
all origins: the hardware goes through them one after another.
"""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...rtl.operator_unit import operate
from .generator import HashGenerator
from .words import SentWords

__all__ = ["ExpectedWord"]


class ExpectedWord(wiring.Component):
    """Computes the word that a node sends, or must have received.

    Parameters
    ----------
    words : SentWords

    Members
    -------
    start : In(1)
    run, node, peer, flit : In(16)
        Which word: the peer is the destination of what is sent, or the origin of what is received,
        and 0 where there is none. They must stay the same until the word is there.
    received : In(1)
        Whether it is a word that the node must have received.
    busy : Out(1)
        From the cycle after `start` until the word is there.
    word : Out(width)
        Stays until the next start.
    """

    def __init__(self, words: SentWords) -> None:
        self._words = words
        numbers = {name: In(16) for name in ("run", "node", "peer", "flit")}
        super().__init__(
            {"start": In(1), "received": In(1), "busy": Out(1), "word": Out(words.width)} | numbers
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the hash, and what combines the words of a reduction."""
        m = Module()
        collective = self._words.collective
        m.submodules.generator = generator = HashGenerator(self._words.width)
        m.d.comb += [generator.run.eq(self.run), generator.flit.eq(self.flit)]
        if collective.reducing:
            self._combine(m, generator)
        else:
            self._pass_on(m, generator)
        if collective.personal:
            m.d.comb += generator.destination.eq(Mux(self.received, self.node, self.peer))
        return m

    def _pass_on(self, m: Module, generator: HashGenerator) -> None:
        """Pass on the word of one origin."""
        collective = self._words.collective
        origin = Const(collective.root, 16) if collective.single_origin else self.peer
        m.d.comb += [
            generator.start.eq(self.start),
            generator.origin.eq(Mux(self.received, origin, self.node)),
            self.busy.eq(generator.busy),
            self.word.eq(generator.word),
        ]

    def _combine(self, m: Module, generator: HashGenerator) -> None:
        """Go through the words of all origins."""
        nodes, width = self._words.nodes, self._words.width
        identity = Const(self._words.identity, width)
        origin, total = Signal(range(max(nodes, 2))), Signal(width)
        m.d.comb += generator.origin.eq(Mux(self.received, origin, self.node))
        selecting = self._words.selecting_bits
        selected = self.run + generator.destination + self.flit
        counts = (generator.origin ^ selected)[:selecting] == 0
        sent = Mux(counts, generator.word, identity) if selecting else generator.word
        m.d.comb += self.word.eq(Mux(self.received, total, sent))
        with m.FSM() as states:
            m.d.comb += self.busy.eq(~states.ongoing("IDLE"))
            with m.State("IDLE"), m.If(self.start):
                m.d.sync += [origin.eq(0), total.eq(identity)]
                m.next = "START"
            with m.State("START"):
                m.d.comb += generator.start.eq(1)
                m.next = "WAIT"
            with m.State("WAIT"), m.If(~generator.busy):
                combined = operate(self._words.operator, total, sent, width)
                m.d.sync += [origin.eq(origin + 1), total.eq(combined)]
                m.next = "IDLE"
                with m.If(self.received & (origin != nodes - 1)):
                    m.next = "START"
