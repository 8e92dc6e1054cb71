# amaranth: UnusedElaboratable=no
"""A bridge that is simulated: the gateware of a board, without the bits of its serial line."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from amaranth.hdl import Cat
from amaranth.sim import Simulator, SimulatorContext

from ...simulation.engines.amaranth_engine import Clock
from .gateware import Bridge

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["PERIOD", "TIMEOUT", "Bytes", "SimulatedPort"]

#: Cycles without a byte after which a read returns what has come, and a command is dropped.
QUIET, TIMEOUT = 1 << 10, 1 << 8

#: Seconds of a cycle, which have no meaning here.
PERIOD = 1e-8


class Bytes:
    """The bytes that a bridge receives and answers in a simulation.

    Time passes while bytes are waited for.
    """

    def __init__(self, simulator: Simulator, name: str) -> None:
        self.name, self._simulator = name, simulator
        self._sent, self._answered = deque[int](), bytearray()

    async def passed(self, bridge: Bridge, domain: str, ctx: SimulatorContext) -> None:
        """Pass on a byte each way in every cycle, if there is one."""
        ctx.set(bridge.answer.ready, 1)
        while True:
            self._pass(bridge, ctx)
            await ctx.tick(domain)

    def _pass(self, bridge: Bridge, ctx: SimulatorContext) -> None:
        """Pass on a byte each way in this cycle."""
        received, answer = bridge.received, bridge.answer
        ctx.set(received.valid, bool(self._sent))
        ctx.set(received.payload, self._sent[0] if self._sent else 0)
        if self._sent and ctx.get(received.ready):
            self._sent.popleft()
        if ctx.get(answer.valid):
            self._answered.append(ctx.get(answer.payload))

    def read(self, size: int) -> bytes:
        """Read so many bytes, or fewer if nothing comes."""
        quiet = 0
        while len(self._answered) < size and quiet < QUIET:
            before = len(self._sent), len(self._answered)
            self._simulator.advance()
            quiet = quiet + 1 if before == (len(self._sent), len(self._answered)) else 0
        found = bytes(self._answered[:size])
        del self._answered[:size]
        return found

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._sent.extend(data)


class SimulatedPort(Bytes):
    """A bridge in Amaranth's simulator, in front of a fabric as of `Bridge`."""

    def __init__(self, fabric: Fabric) -> None:
        self._bridge = Bridge(fabric, TIMEOUT, gated=True)
        super().__init__(Simulator(self._bridge), "sim")
        self._simulator.add_testbench(self._pass_bytes, background=True)

    async def _pass_bytes(self, ctx: SimulatorContext) -> None:
        """Pass on bytes, and let the nodes have clocks that need one."""
        fabric, design = self._bridge.fabric, self._bridge.assembly
        clock = Clock(ctx, design)
        # Only nodes that run, or were written or read a short time ago, need a clock.
        names = ("start", "busy", *(("load_we",) if fabric.tables else ()))
        active, node = Cat(map(design.net, names)), design.net("host_node")
        concerned = deque[int](maxlen=2 + max(fabric.read_latency, fabric.write_latency))
        every = fabric.nodes
        concerned.append(every)
        ctx.set(self._bridge.answer.ready, 1)
        while True:
            self._pass(self._bridge, ctx)
            concerned.append(every if ctx.get(active) else ctx.get(node) % every)
            await clock.tick(*(() if every in concerned else concerned))
            await ctx.delay(PERIOD)
