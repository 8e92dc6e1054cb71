# amaranth: UnusedElaboratable=no
"""A simulated bridge: the gateware of a board in Amaranth's simulator, without a serial line.

Bytes are passed to the simulated bridge whole, and not as serial bits.

The user is `torusfabric.connect`, for names like ``sim:4x4 allreduce``. The computer's side is the
same as for a board.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from amaranth.hdl import Cat
from amaranth.sim import Simulator, SimulatorContext

from ...simulation.engines.amaranth_engine import Clock
from .gateware import Bridge

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["CYCLE_SECONDS", "TIMEOUT_CYCLES", "SimulatedBytePort", "SimulatedPort"]

#: Cycles without a byte after which a read returns the bytes that have come; cycles without a byte
#: after which the bridge drops a command.
QUIET_CYCLES, TIMEOUT_CYCLES = 1 << 10, 1 << 8

#: Seconds of a cycle in simulation; any value will do.
CYCLE_SECONDS = 1e-8


class SimulatedBytePort:
    """A port for the bytes to and from a simulated bridge, in place of a serial port.

    The simulation advances only during `read`.

    Parameters
    ----------
    name : str
        Name of the port in messages.
    """

    def __init__(self, simulator: Simulator, name: str) -> None:
        self.name, self._simulator = name, simulator
        self._sent, self._answered = deque[int](), bytearray()

    async def pass_bytes(self, bridge: Bridge, domain: str, ctx: SimulatorContext) -> None:
        """Pass a byte each way in every cycle, as far as there is one.

        Parameters
        ----------
        domain : str
            Clock domain of the bridge.
        """
        ctx.set(bridge.answer.ready, 1)
        while True:
            self._pass_byte(bridge, ctx)
            await ctx.tick(domain)

    def _pass_byte(self, bridge: Bridge, ctx: SimulatorContext) -> None:
        """Exchange at most one byte with the bridge in each direction, in this cycle.

        `ctx` is the context of the testbench, which reads and sets signals.
        """
        received, answer = bridge.received, bridge.answer
        ctx.set(received.valid, bool(self._sent))
        ctx.set(received.payload, self._sent[0] if self._sent else 0)
        if self._sent and ctx.get(received.ready):
            self._sent.popleft()
        if ctx.get(answer.valid):
            self._answered.append(ctx.get(answer.payload))

    def read(self, size: int) -> bytes:
        """Read `size` bytes, or fewer if no byte comes for `QUIET_CYCLES` simulated steps."""
        quiet = 0
        while len(self._answered) < size and quiet < QUIET_CYCLES:
            before = len(self._sent), len(self._answered)
            self._simulator.advance()
            quiet = quiet + 1 if before == (len(self._sent), len(self._answered)) else 0
        found = bytes(self._answered[:size])
        del self._answered[:size]
        return found

    def write(self, data: bytes) -> None:
        """Queue the bytes in `data`; the bridge takes them during the next calls of `read`."""
        self._sent.extend(data)


class SimulatedPort(SimulatedBytePort):
    """A simulated port, with a simulation of the bridge and the fabric behind it.

    Parameters
    ----------
    fabric : Fabric
        Fabric with the host top, as for `Bridge`.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._bridge = Bridge(fabric, TIMEOUT_CYCLES, gated=True)
        super().__init__(Simulator(self._bridge), "sim")
        self._simulator.add_testbench(self._pass_bytes_and_clock, background=True)

    async def _pass_bytes_and_clock(self, ctx: SimulatorContext) -> None:
        """Pass bytes, and clock only the nodes that need it.

        Why: the simulator then evaluates these nodes only.
        """
        fabric, design = self._bridge.fabric, self._bridge.assembly
        clock = Clock(ctx, design)
        # A node needs a clock during a run, and until a read or write has passed its pipeline.
        names = ("start", "busy", *(("load_we",) if fabric.tables else ()))
        active, node = Cat(map(design.signal_of_net, names)), design.signal_of_net("host_node")
        concerned = deque[int](maxlen=2 + max(fabric.read_latency, fabric.write_latency))
        every = fabric.nodes
        concerned.append(every)
        ctx.set(self._bridge.answer.ready, 1)
        while True:
            self._pass_byte(self._bridge, ctx)
            concerned.append(every if ctx.get(active) else ctx.get(node) % every)
            await clock.tick(*(() if every in concerned else concerned))
            await ctx.delay(CYCLE_SECONDS)
