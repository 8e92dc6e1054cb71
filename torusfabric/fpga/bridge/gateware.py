# amaranth: UnusedElaboratable=no
"""The gateware of a board: a fabric behind Wishbone, the bridge in front of it, and a serial line.

The user is the build of a bitstream. `Gateware` consists of a `UartReceiver`, a `UartTransmitter`
and a `Bridge`, which is a `UartBone` and the fabric.
"""

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

__all__ = ["MIN_DIVISOR", "TIMEOUT_SECONDS", "Bridge", "Gateware", "UartReceiver",
           "UartTransmitter", "with_wishbone", "clock_divisor"]  # fmt: skip

#: Seconds without a byte after which a command is dropped, as in LiteX.
TIMEOUT_SECONDS = 0.1

#: Name of the adapter that puts a fabric behind Wishbone.
WISHBONE = "wishbone"

#: Fewest clock cycles a bit with which the receiver still samples in the middle of a bit.
MIN_DIVISOR = 4

#: Largest relative error of the baud rate. A byte has ten bits and may be off by half a bit, an
#: error of 5 % that both sides share.
TOLERANCE = 0.02


def with_wishbone(fabric: "Fabric") -> "Fabric":
    """Return a fabric with Wishbone as its bus, in place of any other, and one flit a word.

    If `fabric` has this form already, it is returned unchanged.

    Raises
    ------
    InputError
        If the fabric does not have the host top.
    """
    if not fabric.shared_port:
        raise InputError(f"Top must be host for a fabric behind a bridge, not {fabric.top}")
    there = fabric.front.name == WISHBONE and fabric.beat == 1
    return fabric if there else fabric.behind(WISHBONE)


class Bridge(wiring.Component):
    """A fabric with a Wishbone bus, and a `UartBone`, which executes commands on the bus.

    Parameters
    ----------
    fabric : Fabric
        Fabric with the host top; it is put behind Wishbone if it is not there yet.
    timeout : int
        Cycles without a byte after which a command is dropped, as for `UartBone`.
    gated : bool
        True to give each node a clock signal of its own, as for `Assembly`.

    Members
    -------
    received : In(stream of 8 bits)
        Bytes from the computer.
    answer : Out(stream of 8 bits)
        Bytes to the computer.
    running : Out(1)
        High during a run.
    done : Out(1)
        High after a run, until the next one starts.
    """

    def __init__(self, fabric: "Fabric", timeout: int, *, gated: bool = False) -> None:
        self.fabric, self._timeout = with_wishbone(fabric), timeout
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
        """Connect the bus of the fabric to the `UartBone`."""
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
        m.d.comb += [
            self.running.eq(fabric.signal_of_net("busy")),
            self.done.eq(fabric.signal_of_net("done")),
        ]
        return m


def clock_divisor(frequency: float, baud: int) -> int:
    """Return the clock cycles of a bit on the serial line.

    Parameters
    ----------
    frequency : float
        Clock frequency in Hz.
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
    """Transmitter of bytes: 1 start bit, 8 data bits, 1 stop bit.

    Parameters
    ----------
    divisor : int
        Clock cycles a bit; a byte takes ``10 * divisor`` cycles.

    Members
    -------
    data : In(stream of 8 bits)
        Bytes to send.
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
    """Receiver of bytes. It holds one byte until it is taken; bytes that come meanwhile are lost.

    Parameters
    ----------
    divisor : int
        Clock cycles a bit.

    Members
    -------
    rx : In(1)
        The line, not synchronous to the clock.
    data : Out(stream of 8 bits)
        Bytes received.
    """

    def __init__(self, divisor: int) -> None:
        self._divisor = divisor
        super().__init__({"rx": In(1, init=1), "data": Out(stream.Signature(8))})

    def elaborate(self, platform: Any) -> Module:
        """Build the shift register, which samples in the middle of each bit."""
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
    """The logic in the FPGA of a board: a fabric, and the bridge to it over a serial line.

    It is a `Bridge` behind a receiver and a transmitter for the lines ``rx`` and ``tx``.
    ``running`` and ``done`` drive LEDs.

    Parameters
    ----------
    fabric : Fabric
        Fabric with the host top.
    divisor : int
        Clock cycles a bit on the serial line.
    timeout : int
        Cycles without a byte after which a command is dropped, as for `UartBone`.
    """

    def __init__(self, fabric: "Fabric", divisor: int, timeout: int) -> None:
        self._bridge, self._divisor = Bridge(fabric, timeout), divisor
        super().__init__(
            {"rx": In(1, init=1), "tx": Out(1, init=1), "running": Out(1), "done": Out(1)}
        )

    def elaborate(self, platform: Any) -> Module:
        """Connect the `Bridge` to a receiver and a transmitter of the serial line."""
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
