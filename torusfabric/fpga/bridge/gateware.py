# amaranth: UnusedElaboratable=no
"""The gateware of a board: a fabric behind its bus, the bridge in front, and the serial line."""

from typing import TYPE_CHECKING, Any

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...rtl.assembly import Assembly
from ...rtl.bus import Bus
from ...rtl.bus.protocol import bus_inputs, bus_outputs
from .uart import UartReceiver, UartTransmitter
from .uart_bone import UartBone

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["PATIENCE", "Bridge", "Gateware", "behind_bus"]

#: Seconds without a byte after which a command is dropped, as by LiteX.
PATIENCE = 0.1


def behind_bus(fabric: "Fabric") -> "Fabric":
    """A fabric behind a Wishbone bus, if it is not there already.

    Raises
    ------
    InputError
        If it does not have the host top.
    """
    return fabric if fabric.bus is Bus.WISHBONE else fabric.behind(Bus.WISHBONE)


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
        for name in bus_inputs(Bus.WISHBONE, bits):
            m.d.comb += getattr(fabric, name).eq(getattr(bone, name))
        for name in bus_outputs(Bus.WISHBONE):
            m.d.comb += getattr(bone, name).eq(getattr(fabric, name))
        self.fabric.close(m, fabric, platform)
        m.d.comb += [self.running.eq(fabric.net("busy")), self.done.eq(fabric.net("done"))]
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
