# amaranth: UnusedElaboratable=no
"""A pair of wires: words of the fabric's clock as groups of four bits of a faster one, and back.

It carries a word in each cycle of the fabric. The lowest bit of a word belongs to a sequence
that no data has: each next one is the inverse of the sum of the sixth and the seventh before it. By
it a receiver finds out where words begin: until it has been right for a while, the receiver moves
on by a bit each time that it is wrong.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["GEAR", "PairReceiver", "PairSender", "WordTimer"]

#: Bits that go in a cycle of the faster clock.
GEAR = 4

#: Bits of the sequence that the next one follows from; all ones are not among them.
HISTORY = 7

#: Words until those of another place are known, and then that must be right.
SETTLE, TRUSTED = 8, 32

#: What a wrong bit of the sequence costs, what a right one mends, and when the place is given up.
WRONG, RIGHT, LOST = 4, 1, 24


def following(history: Value) -> Value:
    """The next bit of the sequence."""
    return ~(history[HISTORY - 2] ^ history[HISTORY - 1])


class WordTimer(wiring.Component):
    """Says when pairs take words of the fabric, whose clock is slower by an integer.

    Parameters
    ----------
    cycles : int
        Of the faster clock, in one of the fabric; 5 or more.

    Members
    -------
    turned : In(1)
        Changes in each cycle of the fabric; known in the faster clock two or three cycles later.
    load : Out(1)
    """

    def __init__(self, cycles: int) -> None:
        self._cycles = cycles
        super().__init__({"turned": In(1), "load": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Build a counter that is set where it is not about right."""
        m = Module()
        last = self._cycles - 1
        before, count = Signal(), Signal(range(self._cycles))
        m.d.sync += [before.eq(self.turned), count.eq(Mux(count == last, 0, count + 1))]
        far = (count != last) & (count > 1)
        with m.If((before != self.turned) & far):
            m.d.sync += count.eq(1)
        m.d.comb += self.load.eq(count == 0)
        return m


class PairSender(wiring.Component):
    """Sends words.

    Parameters
    ----------
    bits : int
        Of a word on the pair, a multiple of `GEAR`.

    Members
    -------
    load : In(1)
        A word begins.
    word : In(bits - 1)
    nibble : Out(4)
        The lowest bit goes first.
    """

    def __init__(self, bits: int) -> None:
        self._bits = bits
        super().__init__({"load": In(1), "word": In(bits - 1), "nibble": Out(GEAR)})

    def elaborate(self, platform: object) -> Module:
        """Build a shift register."""
        m = Module()
        rest, history = Signal(self._bits), Signal(HISTORY)
        m.d.comb += self.nibble.eq(rest)
        m.d.sync += rest.eq(rest >> GEAR)
        with m.If(self.load):
            sign = following(history)
            m.d.sync += [rest.eq(Cat(sign, self.word)), history.eq(Cat(sign, history))]
        return m


class PairReceiver(wiring.Component):
    """Receives words, wherever they begin.

    Parameters
    ----------
    bits : int
        Of a word on the pair, a multiple of `GEAR`.

    Members
    -------
    nibble : In(4)
    word : Out(bits - 1)
        Zeros until it is known where words begin.
    clock : Out(1)
        Rises with each word, and falls when it is to be taken.
    locked : Out(1)
    """

    def __init__(self, bits: int) -> None:
        self._bits = bits
        super().__init__(
            {"nibble": In(GEAR), "word": Out(bits - 1), "clock": Out(1), "locked": Out(1)}
        )

    def elaborate(self, platform: object) -> Module:
        """Build the choice of a place, the word that begins there, and its check."""
        m = Module()
        last = self._bits // GEAR - 1
        came, before, aligned = Signal(GEAR), Signal(GEAR), Signal(GEAR)
        slip, count = Signal(range(GEAR)), Signal(range(last + 1))
        held, waits, whole = Signal(self._bits), Signal(), Signal()
        m.d.sync += [
            came.eq(self.nibble),
            before.eq(came),
            aligned.eq(Cat(before, came) >> slip),
            held.eq(Cat(held[GEAR:], aligned)),
            waits.eq(0),
            whole.eq((count == last) & ~waits),
        ]
        with m.If(~waits):
            m.d.sync += count.eq(Mux(count == last, 0, count + 1))
        history, right, judged = Signal(HISTORY), Signal(), Signal()
        m.d.sync += judged.eq(whole)
        with m.If(whole):
            m.d.sync += [
                right.eq((held[0] == following(history)) & ~history.all()),
                history.eq(Cat(held[0], history)),
                self.clock.eq(1),
                self.word.eq(Mux(self.locked, held[1:], 0)),
            ]
        with m.Elif(count == last // 2):
            m.d.sync += self.clock.eq(0)
        self._judge(m, judged, right, slip, waits)
        return m

    def _judge(self, m: Module, now: Value, right: Value, slip: Signal, waits: Signal) -> None:
        """Lock on, or move on by a bit."""
        seen, faults = Signal(range(SETTLE + TRUSTED + 1)), Signal(range(LOST + WRONG + 1))
        settled, trusted, lost = Signal(), Signal(), Signal()
        m.d.sync += [
            settled.eq(seen >= SETTLE),
            trusted.eq(seen == SETTLE + TRUSTED),
            lost.eq(faults >= LOST),
        ]
        worse = Mux(right, Mux(faults == 0, 0, faults - RIGHT), faults + WRONG)
        with m.If(now & self.locked):
            m.d.sync += faults.eq(worse)
            with m.If(lost):
                m.d.sync += [self.locked.eq(0), seen.eq(0)]
        with m.Elif(now & settled & ~right):
            m.d.sync += [slip.eq(slip + 1), waits.eq(slip == GEAR - 1), seen.eq(0)]
        with m.Elif(now & trusted):
            m.d.sync += [self.locked.eq(1), faults.eq(0)]
        with m.Elif(now):
            m.d.sync += seen.eq(seen + 1)
