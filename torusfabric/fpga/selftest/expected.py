"""The words that nodes send and must have received, computed alike in Python and in hardware.

What a node sends is a word of the pattern. What it receives is one as well, or of a reduction what
the operator makes of the words of all origins: the hardware goes through them one after another.

Under `add` and `xor` every origin counts, whatever the others send. Under the other operators a few
words of many hide the rest: of 64 words no bit is left under `and`, and whoever delivers zeros is
right. So there only two to four origins send a word of the pattern, others in each run and for each
flit, and all others the word that changes nothing.
"""

import numpy as np
from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ...rtl.combiner import operate
from .pattern import Pattern, word

__all__ = ["ExpectedWord", "expected_word", "sent_word"]

#: Operators under which one word may hide another.
HIDING = ("and", "or", "min", "max")


def _group_bits(program):
    """How many low bits of its number tell whether an origin counts; 0 where all do."""
    if program.operator.name not in HIDING:
        return 0
    return max(program.topology.nodes.bit_length() - 2, 0)


def sent_word(program, width, run, origin, destination, flit):
    """The word that a node sends.

    Parameters
    ----------
    program : SwitchProgram
    width : int
        Bits of a flit.
    run, origin, destination, flit : int
        The destination is 0 where there is none.

    Returns
    -------
    int
    """
    if program.blocks.collective.reducing:
        group = (1 << _group_bits(program)) - 1
        if (origin ^ (run + destination + flit)) & group:
            return program.operator.identity(width)
    return word(width, run, origin, destination, flit)


def expected_word(program, width, run, origin, destination, flit):
    """The word that a node must have received; of a reduction, whatever the origin is.

    Parameters
    ----------
    program, width, run, origin, destination, flit
        As of `sent_word`.

    Returns
    -------
    int
    """
    if not program.blocks.collective.reducing:
        return word(width, run, origin, destination, flit)
    origins = range(program.topology.nodes)
    words = [[sent_word(program, width, run, o, destination, flit)] for o in origins]
    return int(program.operator.reduce(np.array(words, object), width)[0])


class ExpectedWord(wiring.Component):
    """Computes the word that a node sends, or must have received.

    Parameters
    ----------
    program : SwitchProgram
    width : int

    Members
    -------
    start : In(1)
    run, node, peer, flit : In(16)
        Whose word: the peer is the destination of what is sent, or the origin of what is received,
        and 0 where there is none. They must stay the same until the word is there.
    received : In(1)
        Whether it is one that the node must have received.
    busy : Out(1)
        From the cycle after `start` until the word is there.
    word : Out(width)
        Stays until the next start.
    """

    def __init__(self, program, width):
        self._program, self._width = program, width
        numbers = {name: In(16) for name in ("run", "node", "peer", "flit")}
        super().__init__(
            {"start": In(1), "received": In(1), "busy": Out(1), "word": Out(width)} | numbers
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.pattern = pattern = Pattern(self._width)
        m.d.comb += [pattern.run.eq(self.run), pattern.flit.eq(self.flit)]
        if self._program.blocks.collective.reducing:
            self._combine(m, pattern)
        else:
            origin = self._copy(m, pattern)
            m.d.comb += pattern.origin.eq(Mux(self.received, origin, self.node))
        if self._program.blocks.collective.personal:
            m.d.comb += pattern.destination.eq(Mux(self.received, self.node, self.peer))
        return m

    def _copy(self, m, pattern):
        """Pass on a word of the pattern; returns the origin of what is received."""
        blocks = self._program.blocks
        m.d.comb += [
            pattern.start.eq(self.start),
            self.busy.eq(pattern.busy),
            self.word.eq(pattern.word),
        ]
        return Const(blocks.collective.root, 16) if blocks.single_origin else self.peer

    def _combine(self, m, pattern):
        """Go through the words of all origins."""
        operator, nodes = self._program.operator, self._program.topology.nodes
        identity = Const(operator.identity(self._width), self._width)
        origin, total = Signal(range(max(nodes, 2))), Signal(self._width)
        group = _group_bits(self._program)
        counted = (pattern.origin ^ (self.run + pattern.destination + self.flit))[:group] == 0
        sent = Mux(counted, pattern.word, identity) if group else pattern.word
        m.d.comb += [
            pattern.origin.eq(Mux(self.received, origin, self.node)),
            self.word.eq(Mux(self.received, total, sent)),
        ]
        with m.FSM() as states:
            m.d.comb += self.busy.eq(~states.ongoing("IDLE"))
            with m.State("IDLE"), m.If(self.start):
                m.d.sync += [origin.eq(0), total.eq(identity)]
                m.next = "START"
            with m.State("START"):
                m.d.comb += pattern.start.eq(1)
                m.next = "WAIT"
            with m.State("WAIT"), m.If(~pattern.busy):
                m.d.sync += [
                    origin.eq(origin + 1),
                    total.eq(operate(operator, total, sent, self._width)),
                ]
                m.next = "IDLE"
                with m.If(self.received & (origin != nodes - 1)):
                    m.next = "START"
