# amaranth: UnusedElaboratable=no
"""The gateware of a board: a fabric behind its bus, the bridge in front, and the serial line."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out, connect, flipped

from ...errors import InputError
from ...rtl.assembly import Assembly
from .uart_bone import UartBone

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["MIN_DIVISOR", "PATIENCE", "Bridge", "Gateware", "UartReceiver", "UartTransmitter",
           "behind_bus", "divisor_for"]  # fmt: skip

#: Seconds without a byte after which a command is dropped, as by LiteX.
PATIENCE = 0.1

#: The bus of the bridge.
WISHBONE = "wishbone"

#: Clock cycles a bit below which the middle of a bit cannot be found any more.
MIN_DIVISOR = 4

#: How far the rate may be off: half a bit in the ten of a byte, shared with the other side.
TOLERANCE = 0.02


def behind_bus(fabric: "Fabric") -> "Fabric":
    """A fabric behind a Wishbone bus with a word for each flit, if it is not there already.

    Raises
    ------
    InputError
        If it does not have the host top.
    """
    if not fabric.shared_port:
        raise InputError(f"Top must be host for a fabric behind a bridge, not {fabric.top}")
    there = fabric.front.name == WISHBONE and fabric.beat == 1
    return fabric if there else fabric.behind(WISHBONE)


class Bridge(wiring.Component):
    """A fabric that carries out the commands of `UartBone`.

    Parameters
    ----------
    fabric : Fabric
        With the host top; what is not behind a Wishbone bus is put there.
    timeout : int
        As of `UartBone`.
    gated : bool
        As of `Assembly`.

    Members
    -------
    received : In(stream of 8 bits)
    answer : Out(stream of 8 bits)
    running, done : Out(1)
        Whether a run is under way, or has come to its end.
    """

    def __init__(self, fabric: "Fabric", timeout: int, *, gated: bool = False) -> None:
        self.fabric, self._timeout = behind_bus(fabric), timeout
        self.assembly = Assembly(self.fabric.netlist, gated=gated)
        super().__init__(
            {
                "received": In(stream.Signature(8)),
                "answer": Out(stream.Signature(8)),
                "running": Out(1),
                "done": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Connect the bus."""
        m = Module()
        assert self.fabric.register_map is not None
        bits = self.fabric.register_map.address_bits
        m.submodules.fabric = fabric = self.assembly
        fabric.define_domains(m)
        m.submodules.bone = bone = UartBone(bits, self._timeout)
        connect(m, flipped(self.received), bone.received)
        connect(m, flipped(self.answer), bone.answer)
        for name, member in bone.signature.members.items():
            if name.startswith("wb_"):
                pair = getattr(fabric, name), getattr(bone, name)
                given, gives = pair if member.flow is Out else pair[::-1]
                m.d.comb += given.eq(gives)
        self.fabric.close(m, fabric, platform)
        m.d.comb += [self.running.eq(fabric.net("busy")), self.done.eq(fabric.net("done"))]
        return m


def divisor_for(frequency: float, baud: int) -> int:
    """Cycles of a clock of a frequency, in Hz, for a bit, of so many a second.

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
    """Sends bytes, each in ``10 * divisor`` cycles: a bit takes `divisor`.

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


class Gateware(wiring.Component):
    """A `Bridge` behind a serial line ``rx``, ``tx``, a bit of which takes `divisor` cycles.

    For lamps, ``running`` and ``done`` are as of `Bridge`.
    """

    def __init__(self, fabric: "Fabric", divisor: int, timeout: int) -> None:
        self._bridge, self._divisor = Bridge(fabric, timeout), divisor
        super().__init__(
            {"rx": In(1, init=1), "tx": Out(1, init=1), "running": Out(1), "done": Out(1)}
        )

    def elaborate(self, platform: Any) -> Module:
        """Connect the serial line."""
        m = Module()
        m.submodules.bridge = bridge = self._bridge
        m.submodules.receiver = receiver = UartReceiver(self._divisor)
        m.submodules.transmitter = transmitter = UartTransmitter(self._divisor)
        connect(m, receiver.data, bridge.received)
        connect(m, bridge.answer, transmitter.data)
        m.d.comb += [
            receiver.rx.eq(self.rx),
            self.tx.eq(transmitter.tx),
            self.running.eq(bridge.running),
            self.done.eq(bridge.done),
        ]
        return m
