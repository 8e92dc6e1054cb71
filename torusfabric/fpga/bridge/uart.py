"""A serial line, 8 bits a byte, no parity, one stop bit: transmitter and receiver."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

from ...errors import InputError

__all__ = ["MIN_DIVISOR", "UartReceiver", "UartTransmitter", "divisor_for"]

#: Clock cycles a bit below which the middle of a bit cannot be found any more.
MIN_DIVISOR = 4

#: How far the rate may be off: half a bit in the ten of a byte, shared with the other side.
TOLERANCE = 0.02


def divisor_for(frequency: float, baud: int) -> int:
    """Clock cycles a bit.

    Parameters
    ----------
    frequency : float
        Of the clock, in Hz.
    baud : int
        Bits a second.

    Raises
    ------
    InputError
        If this clock cannot make this rate.
    """
    divisor = round(frequency / baud)
    if divisor < MIN_DIVISOR or abs(frequency / divisor / baud - 1) > TOLERANCE:
        raise InputError(
            f"Baud rate must be within 2 % of {frequency / 1e6:g} MHz divided by a whole number "
            f"of at least {MIN_DIVISOR}, not {baud}"
        )
    return divisor


class UartTransmitter(wiring.Component):
    """Sends bytes, each in ``10 * divisor`` cycles.

    Parameters
    ----------
    divisor : int
        Clock cycles a bit.

    Members
    -------
    data : In(stream of 8 bits)
    tx : Out(1)
        The line; high at rest.
    """

    def __init__(self, divisor: int) -> None:
        self._divisor = divisor
        super().__init__({"data": In(stream.Signature(8)), "tx": Out(1, init=1)})

    def elaborate(self, platform: Any) -> Module:
        """Build the shift register and its timer."""
        m = Module()
        timer, left = Signal(range(self._divisor), name="timer"), Signal(range(11), name="left")
        shift = Signal(9, init=-1, name="shift")
        m.d.comb += [self.tx.eq(shift[0]), self.data.ready.eq(left == 0)]
        with m.If(self.data.ready), m.If(self.data.valid):
            m.d.sync += [shift.eq(self.data.payload << 1), left.eq(10)]
            m.d.sync += timer.eq(self._divisor - 1)
        with m.Else():
            m.d.sync += timer.eq(Mux(timer == 0, self._divisor - 1, timer - 1))
            with m.If(timer == 0):
                m.d.sync += [shift.eq(Cat(shift[1:], 1)), left.eq(left - 1)]
        return m


class UartReceiver(wiring.Component):
    """Receives bytes, and holds one until it is taken; those that come meanwhile are lost.

    Parameters
    ----------
    divisor : int
        Clock cycles a bit.

    Members
    -------
    rx : In(1)
        The line, not synchronous to the clock.
    data : Out(stream of 8 bits)
    """

    def __init__(self, divisor: int) -> None:
        self._divisor = divisor
        super().__init__({"rx": In(1, init=1), "data": Out(stream.Signature(8))})

    def elaborate(self, platform: Any) -> Module:
        """Build the sampling in the middle of each bit."""
        m = Module()
        line = Signal(init=1, name="line")
        m.submodules.synchronizer = FFSynchronizer(self.rx, line, init=1)
        timer, left = Signal(range(self._divisor), name="timer"), Signal(range(11), name="left")
        shift = Signal(8, name="shift")
        with m.If(self.data.ready):
            m.d.sync += self.data.valid.eq(0)
        with m.If(left == 0):
            m.d.sync += timer.eq(self._divisor // 2 - 1)
            with m.If(~line):
                m.d.sync += left.eq(10)
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Else():  # in the middle of a bit
            m.d.sync += [timer.eq(self._divisor - 1), left.eq(left - 1)]
            with m.If(left == 10), m.If(line):  # too short for a start bit
                m.d.sync += left.eq(0)
            with m.Elif(left == 1), m.If(line & (self.data.ready | ~self.data.valid)):
                m.d.sync += [self.data.valid.eq(1), self.data.payload.eq(shift)]
            with m.Else():
                m.d.sync += shift.eq(Cat(shift[1:], line))
        return m
