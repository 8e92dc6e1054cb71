# amaranth: UnusedElaboratable=no
"""Serialization of words on a pair of wires, and alignment at the receiver.

A pair carries one word in each cycle of the fabric clock, as n units of a faster clock::

    sync unit | unit 1 | unit 2 | ... | unit n-1

Here n is `cycles`, the cycles of the fast clock in a cycle of the fabric clock, times `gear`.

=========== ===================================================================================
unit        a bit (`BitEncoding`) or a byte with a flag (`ByteEncoding`)
gear        units in a cycle of the fast clock
sync unit   first unit of a word, predictable for the receiver, by which it finds words
slip        shift of the assumed start of words by one unit
lock        state in which the start of words is known; words are zero before
=========== ===================================================================================

Alignment search: after a slip the receiver ignores SETTLE words. It locks after TRUSTED further
words with a correct sync unit. A wrong sync unit before the lock causes the next slip.

Loss of lock: a wrong sync unit adds WRONG to a fault counter, a correct one subtracts RIGHT. The
lock is dropped when the counter reaches LOST.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["COMMA", "BitEncoding", "ByteEncoding", "PairReceiver", "PairSender", "WordEncoding",
           "WordTimer"]  # fmt: skip

#: Length of the shift register of the sync sequence. Its all-ones state never occurs.
HISTORY = 7

#: Control byte that serves as sync unit: K28.5 of the 8b10b code.
COMMA = 0xBC

#: Words to ignore after a slip, and then words with a correct sync unit before the lock.
SETTLE, TRUSTED = 8, 32

#: Fault counter: increment, decrement, and threshold at which the lock is dropped.
WRONG, RIGHT, LOST = 4, 1, 24


@dataclass(frozen=True)
class WordEncoding(ABC):
    """The encoding of a word on a pair of wires: a sync unit, and units that hold the word.

    A unit is a bit or a byte. The receiver predicts the sync unit, the first unit of each word, and
    finds the beginning of words by it.

    Parameters
    ----------
    cycles : int
        Fast-clock cycles per cycle of the fabric clock.

    Attributes
    ----------
    unit : int
        Bits of a unit.
    gear : int
        Units in a cycle of the fast clock.
    data : int
        Data bits in a unit.
    """

    cycles: int
    unit: ClassVar[int]
    gear: ClassVar[int]
    data: ClassVar[int]

    @property
    def n_units(self) -> int:
        """Number of units (bits or bytes) of a word, with its sync unit."""
        return self.cycles * self.gear

    @property
    def data_bits(self) -> int:
        """Data bits of a word, in all units (bits or bytes) except the sync unit."""
        return self.data * (self.n_units - 1)

    def decode(self, rest: Sequence[Value]) -> Value:
        """Return the word that is encoded in the units (bits or bytes) after the sync unit.

        `rest` has these units, the first one first.
        """
        return Cat(unit[: self.data] for unit in rest)

    @abstractmethod
    def encode(self, m: Module, now: Value, word: Value) -> Value:
        """Return all units (bits or bytes) by which a pair of wires carries a word.

        The sync unit comes first: the receiver finds the start of words by it. `now` is high in the
        cycle in which the sender loads the word.
        """

    @abstractmethod
    def is_sync(self, m: Module, now: Value, first: Value) -> Value:
        """Return a signal that is high if `first` is a correct sync unit, the first unit of a word.

        `now` is high in the cycle in which `first` is complete.
        """


class BitEncoding(WordEncoding):
    """Encoding of a word as single bits, four in a cycle of the fast clock, after a sync bit.

    The sync bits of successive words form a pseudo-random sequence of a linear feedback shift
    register. Each bit is the XNOR of the sixth and the seventh bit before it. Data is unlikely to
    follow this sequence, so the receiver can find the start of words.
    """

    unit, gear, data = 1, 4, 1

    def encode(self, m: Module, now: Value, word: Value) -> Value:
        """Return the bits to send: the next sync bit, then the word.

        The sequence of sync bits advances when `now` is high.
        """
        history = Signal(HISTORY, name="history")
        bit = self._next_sync_bit(history)
        with m.If(now):
            m.d.sync += history.eq(Cat(bit, history))
        return Cat(bit, word)

    def is_sync(self, m: Module, now: Value, first: Value) -> Value:
        """Return a signal that is high if `first` is the next bit of the sequence of sync bits.

        The sequence advances when `now` is high.
        """
        history = Signal(HISTORY, name="history")
        with m.If(now):
            m.d.sync += history.eq(Cat(first, history))
        return (first == self._next_sync_bit(history)) & ~history.all()

    def _next_sync_bit(self, history: Value) -> Value:
        return ~(history[HISTORY - 2] ^ history[HISTORY - 1])


class ByteEncoding(WordEncoding):
    """Encoding of a word on a pair of wires as bytes, each with a control flag.

    A pair carries two such units in each cycle of the fast clock. The first unit of a word is a
    comma, a code of 8b10b that no data byte has, so that the receiver finds where words start.
    """

    unit, gear, data = 9, 2, 8

    def encode(self, m: Module, now: Value, word: Value) -> Value:
        """Return the units to send: a comma, which marks the start of a word, then its bytes.

        `now` is not used, because every comma is the same.
        """
        data = (Cat(word.word_select(k, 8), Const(0, 1)) for k in range(self.n_units - 1))
        return Cat(self._comma_unit, *data)

    def is_sync(self, m: Module, now: Value, first: Value) -> Value:
        """Return a signal that is high if `first`, one byte and its control flag, is a comma.

        `now` is not used, because every comma is the same.
        """
        return first == self._comma_unit

    @property
    def _comma_unit(self) -> Value:
        return Const(1 << 8 | COMMA, self.unit)


class WordTimer(wiring.Component):
    """Timer, in the fast clock domain, of the cycle in which senders load a word of the fabric.

    Parameters
    ----------
    cycles : int
        Fast-clock cycles per cycle of the fabric clock, 5 or more.

    Members
    -------
    turned : In(1)
        Signal that toggles in each fabric cycle. A synchronizer delays it by two or three cycles of
        the fast clock.
    load : Out(1)
        High for one fast cycle in each fabric cycle, while the word of the fabric is stable.
    """

    def __init__(self, cycles: int) -> None:
        self._cycles = cycles
        super().__init__({"turned": In(1), "load": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Build a counter of fast cycles, whose phase follows the edges of `turned`.

        An edge sets the counter only if it is off by more than a cycle, because the synchronizer in
        front delays edges by two or three cycles.
        """
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
    """The serializer of a pair: a shift register of units.

    Parameters
    ----------
    units : WordEncoding
        The code by which a word becomes the units of a pair.

    Members
    -------
    load : In(1)
        High to load a word.
    word : In
        Data of a word.
    units : Out
        Units to send in a cycle, the first unit lowest.
    """

    def __init__(self, units: WordEncoding) -> None:
        self._units = units
        members = {
            "load": In(1),
            "word": In(units.data_bits),
            "units": Out(units.gear * units.unit),
        }
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        """Build a shift register."""
        m = Module()
        rest = Signal(self._units.n_units * self._units.unit)
        m.d.comb += self.units.eq(rest)
        m.d.sync += rest.eq(rest >> len(self.units))
        sent = self._units.encode(m, self.load, self.word)
        with m.If(self.load):
            m.d.sync += rest.eq(sent)
        return m


class PairReceiver(wiring.Component):
    """The deserializer of a pair: it finds the start of words and returns them with a clock.

    Parameters
    ----------
    units : WordEncoding
        The code by which a word becomes the units of a pair.

    Members
    -------
    units : In
        Units received in a cycle, the first unit lowest.
    word : Out
        Data of the last word; zeros until the receiver knows where words start.
    clock : Out(1)
        Word clock: rises with each new word, and falls when the word should be sampled.
    locked : Out(1)
        High if the start of words is known.
    """

    def __init__(self, units: WordEncoding) -> None:
        self._units = units
        members = {"units": In(units.gear * units.unit), "word": Out(units.data_bits)}
        super().__init__(members | {"clock": Out(1), "locked": Out(1)})

    def elaborate(self, platform: object) -> Module:
        """Build the search for the start of words, the register of a word, and the sync check."""
        m, units, gear = Module(), self._units, len(self.units)
        last = units.cycles - 1
        came, before, aligned = Signal(gear), Signal(gear), Signal(gear)
        slip, count = Signal(range(units.gear)), Signal(range(units.cycles))
        held, waits, whole = Signal(units.n_units * units.unit), Signal(), Signal()
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
        first, *rest = (held.word_select(k, units.unit) for k in range(units.n_units))
        found = units.is_sync(m, whole, first)
        m.d.sync += judged.eq(whole)
        with m.If(whole):
            m.d.sync += [
                right.eq(found),
                self.clock.eq(1),
                self.word.eq(Mux(self.locked, units.decode(rest), 0)),
            ]
        with m.Elif(count == last // 2):
            m.d.sync += self.clock.eq(0)
        # Lock, or slip by a unit.
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
