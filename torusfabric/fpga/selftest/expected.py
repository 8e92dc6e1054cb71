"""The gateware that computes the words that nodes send and must have received.

What a node receives is the word of its origin, or, in a reduction, the combination of the words of
all origins: the hardware goes through them one after another.
"""

from collections.abc import Callable, Sequence
from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...collective import Collective
from ...rtl.memories import address_width
from .generator import HashGenerator
from .of_mode import chosen, chosen_number
from .words import SentWords

__all__ = ["ExpectedWord"]


class ExpectedWord(wiring.Component):
    """Computes the word that a node sends, or must have received.

    Parameters
    ----------
    words : sequence of (sequence of SentWords)
        For each mode, with each operator.

    Members
    -------
    start : In(1)
    mode, operation, root : In
        Of the run; the root counts where there is one.
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

    def __init__(self, words: Sequence[Sequence[SentWords]]) -> None:
        self._words, self._width = words, words[0][0].width
        self._collectives = [each[0].collective for each in words]
        numbers = {name: In(16) for name in ("root", "run", "node", "peer", "flit")}
        super().__init__(
            {
                "start": In(1),
                "mode": In(address_width(len(words))),
                "operation": In(address_width(len(words[0]))),
                "received": In(1),
                "busy": Out(1),
                "word": Out(self._width),
            }
            | numbers
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the hash, and what combines the words of a reduction."""
        m = Module()
        m.submodules.generator = generator = HashGenerator(self._width)
        m.d.comb += [generator.run.eq(self.run), generator.flit.eq(self.flit)]
        if any(collective.reducing for collective in self._collectives):
            self._combine(m, generator)
        else:
            self._pass_on(m, generator)
        personal = self._whether(lambda of_mode: of_mode.personal)
        goal = Mux(self.received, self.node, self.peer)
        m.d.comb += generator.destination.eq(Mux(personal, goal, 0))
        return m

    def _whether(self, is_so: Callable[[Collective], bool]) -> Value:
        """Whether something is so of the collective of the mode."""
        return chosen_number([is_so(collective) for collective in self._collectives], self.mode)

    @property
    def _origin(self) -> Value:
        """The origin of a word that is received, where there is one."""
        single = self._whether(lambda of_mode: of_mode.single_origin)
        return Mux(single, self.root, self.peer)

    def _pass_on(self, m: Module, generator: HashGenerator) -> None:
        """Pass on the word of one origin."""
        m.d.comb += [
            generator.start.eq(self.start),
            generator.origin.eq(Mux(self.received, self._origin, self.node)),
            self.busy.eq(generator.busy),
            self.word.eq(generator.word),
        ]

    def _combine(self, m: Module, generator: HashGenerator) -> None:
        """Go through the words of all origins, in modes that combine them."""
        nodes = [each[0].nodes for each in self._words]
        last = chosen_number([count - 1 for count in nodes], self.mode)
        reducing = self._whether(lambda of_mode: of_mode.reducing)
        several = self.received & reducing
        origin = Signal(range(max(*nodes, 2)), name="origin")
        total = Signal(self._width, name="total")
        origins = Mux(reducing, origin, self._origin)
        m.d.comb += generator.origin.eq(Mux(self.received, origins, self.node))
        identity, sent = self._sent(generator)
        m.d.comb += self.word.eq(Mux(several, total, sent))
        combined = chosen(
            [words.operator.hardware(m, total, sent) for words in self._words[0]],
            self.operation,
        )
        with m.FSM() as states:
            m.d.comb += self.busy.eq(~states.ongoing("IDLE"))
            with m.State("IDLE"), m.If(self.start):
                m.d.sync += [origin.eq(0), total.eq(identity)]
                m.next = "START"
            with m.State("START"):
                m.d.comb += generator.start.eq(1)
                m.next = "WAIT"
            with m.State("WAIT"), m.If(~generator.busy):
                m.d.sync += [origin.eq(origin + 1), total.eq(combined)]
                m.next = "IDLE"
                with m.If(several & (origin != last)):
                    m.next = "START"

    def _sent(self, generator: HashGenerator) -> tuple[Value, Value]:
        """What changes no sum, and what an origin sends: its hash, or that if it does not count."""
        identity = chosen_number([words.identity for words in self._words[0]], self.operation)
        masks = [
            chosen_number([(1 << words.selecting_bits) - 1 for words in each], self.operation)
            for each in self._words
        ]
        selected = self.run + generator.destination + self.flit
        counts = (generator.origin ^ selected) & chosen(masks, self.mode) == 0
        return identity, Mux(counts, generator.word, identity)
