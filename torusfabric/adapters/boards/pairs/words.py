# amaranth: UnusedElaboratable=no
"""A pair of wires: words of the fabric's clock as some units a cycle of a faster one, and back.

It carries a word in each cycle of the fabric. The first unit of a word is one that the receiver
knows: by it, it finds out where words begin. Until it has been right for a while, the receiver
moves on by a unit each time that it is wrong.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["COMMA", "Bits", "Bytes", "PairReceiver", "PairSender", "Units", "WordTimer"]

#: Bits of the sequence that the next one follows from; all ones are not among them.
HISTORY = 7

#: The byte that no data is, as 8b10b counts bytes of its own: K28.5.
COMMA = 0xBC

#: Words until those of another place are known, and then that must be right.
SETTLE, TRUSTED = 8, 32

#: What a wrong first unit costs, what a right one mends, and when the place is given up.
WRONG, RIGHT, LOST = 4, 1, 24


@dataclass(frozen=True)
class Units(ABC):
    """What goes on a pair for a word: a unit that the receiver knows, and the word in others.

    Parameters
    ----------
    cycles : int
        Cycles of the faster clock in one of the fabric.

    Attributes
    ----------
    unit, gear : int
        Bits of a unit, and units that go in a cycle of the faster clock.
    data : int
        Bits of the fabric in a unit.
    """

    cycles: int
    unit: ClassVar[int]
    gear: ClassVar[int]
    data: ClassVar[int]

    @property
    def count(self) -> int:
        """Units of a word of the fabric."""
        return self.cycles * self.gear

    @property
    def bits(self) -> int:
        """Bits of the fabric in a word: all units but the first one have some."""
        return self.data * (self.count - 1)

    def word(self, rest: Sequence[Value]) -> Value:
        """Return the word in units behind the first one."""
        return Cat(unit[: self.data] for unit in rest)

    @abstractmethod
    def sent(self, m: Module, now: Value, word: Value) -> Value:
        """Return all units of a word that is sent now."""

    @abstractmethod
    def right(self, m: Module, now: Value, first: Value) -> Value:
        """Return whether the first unit of a word is right, which has come now."""


class Bits(Units):
    """Units of a bit, four in a cycle.

    The first one belongs to a sequence that no data has: each next bit is the inverse of the sum of
    the sixth and the seventh before it.
    """

    unit, gear, data = 1, 4, 1

    def sent(self, m: Module, now: Value, word: Value) -> Value:
        """Return the next bit of the sequence, and the word."""
        history = Signal(HISTORY, name="history")
        bit = self._following(history)
        with m.If(now):
            m.d.sync += history.eq(Cat(bit, history))
        return Cat(bit, word)

    def right(self, m: Module, now: Value, first: Value) -> Value:
        """Return whether the first unit is the next bit of the sequence."""
        history = Signal(HISTORY, name="history")
        with m.If(now):
            m.d.sync += history.eq(Cat(first, history))
        return (first == self._following(history)) & ~history.all()

    def _following(self, history: Value) -> Value:
        return ~(history[HISTORY - 2] ^ history[HISTORY - 1])


class Bytes(Units):
    """Units of a byte, two in a cycle, each with a bit that says that it is no data."""

    unit, gear, data = 9, 2, 8

    def sent(self, m: Module, now: Value, word: Value) -> Value:
        """Return a comma, and the word."""
        data = (Cat(word.word_select(k, 8), Const(0, 1)) for k in range(self.count - 1))
        return Cat(self._comma, *data)

    def right(self, m: Module, now: Value, first: Value) -> Value:
        """Return whether the first unit is a comma."""
        return first == self._comma

    @property
    def _comma(self) -> Value:
        return Const(1 << 8 | COMMA, self.unit)


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

    Members
    -------
    load : In(1)
        A word begins.
    word : In
    units : Out
        What goes in a cycle, the first unit lowest.
    """

    def __init__(self, units: Units) -> None:
        self._units = units
        members = {"load": In(1), "word": In(units.bits), "units": Out(units.gear * units.unit)}
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        """Build a shift register."""
        m = Module()
        rest = Signal(self._units.count * self._units.unit)
        m.d.comb += self.units.eq(rest)
        m.d.sync += rest.eq(rest >> len(self.units))
        sent = self._units.sent(m, self.load, self.word)
        with m.If(self.load):
            m.d.sync += rest.eq(sent)
        return m


class PairReceiver(wiring.Component):
    """Receives words, wherever they begin.

    Members
    -------
    units : In
        As of `PairSender`.
    word : Out
        Zeros until it is known where words begin.
    clock : Out(1)
        Rises with each word, and falls when it is to be taken.
    locked : Out(1)
        Whether it is known where words begin.
    """

    def __init__(self, units: Units) -> None:
        self._units = units
        members = {"units": In(units.gear * units.unit), "word": Out(units.bits)}
        super().__init__(members | {"clock": Out(1), "locked": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Build the choice of a place, the word that begins there, and its check."""
        m, units, gear = Module(), self._units, len(self.units)
        last = units.cycles - 1
        came, before, aligned = Signal(gear), Signal(gear), Signal(gear)
        slip, count = Signal(range(units.gear)), Signal(range(units.cycles))
        held, waits, whole = Signal(units.count * units.unit), Signal(), Signal()
        both = Cat(before, came)
        m.d.sync += [
            came.eq(self.units),
            before.eq(came),
            aligned.eq(Array(both[k * units.unit :][:gear] for k in range(units.gear))[slip]),
            held.eq(Cat(held[gear:], aligned)),
            waits.eq(0),
            whole.eq((count == last) & ~waits),
        ]
        with m.If(~waits):
            m.d.sync += count.eq(Mux(count == last, 0, count + 1))
        right, judged = Signal(), Signal()
        first, *rest = (held.word_select(k, units.unit) for k in range(units.count))
        found = units.right(m, whole, first)
        m.d.sync += judged.eq(whole)
        with m.If(whole):
            m.d.sync += [
                right.eq(found),
                self.clock.eq(1),
                self.word.eq(Mux(self.locked, units.word(rest), 0)),
            ]
        with m.Elif(count == last // 2):
            m.d.sync += self.clock.eq(0)
        # Lock on, or move on by a unit.
        seen, faults = Signal(range(SETTLE + TRUSTED + 1)), Signal(range(LOST + WRONG + 1))
        settled, trusted, lost = Signal(), Signal(), Signal()
        m.d.sync += [
            settled.eq(seen >= SETTLE),
            trusted.eq(seen == SETTLE + TRUSTED),
            lost.eq(faults >= LOST),
        ]
        worse = Mux(right, Mux(faults == 0, 0, faults - RIGHT), faults + WRONG)
        with m.If(judged & self.locked):
            m.d.sync += faults.eq(worse)
            with m.If(lost):
                m.d.sync += [self.locked.eq(0), seen.eq(0)]
        with m.Elif(judged & settled & ~right):
            end = slip == units.gear - 1
            m.d.sync += [slip.eq(slip + 1), waits.eq(end), seen.eq(0)]
        with m.Elif(judged & trusted):
            m.d.sync += [self.locked.eq(1), faults.eq(0)]
        with m.Elif(judged):
            m.d.sync += seen.eq(seen + 1)
        return m
