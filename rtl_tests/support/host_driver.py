"""A driver of the host port of a fabric in Amaranth's simulator."""

from torusfabric.adapters.host.drive import HostPort
from torusfabric.simulation.engines.amaranth_engine import Bench

__all__ = ["HostDriver"]


class HostDriver:
    """Carries out accesses of the host port, as the engine does."""

    def __init__(self, ctx, fabric, design):
        self._ctx, self._design, self._bench = ctx, design, Bench(ctx, design, fabric)
        self._port, self.clock = HostPort(fabric, self._bench.cells), self._bench.clock

    async def load(self, words):
        """Load a message into every node."""
        await self._bench.carry_out(self._port.load(words))

    async def write(self, which, words):
        """Write words into send memories."""
        await self._bench.carry_out(self._port.write(which, words))
        self._ctx.set(self._design.host_we, 0)

    async def collect(self, job):
        """Start, and wait for done; returns the edges between."""
        _, edges, _ = await self._bench.carry_out(self._port.collect(job))
        return edges

    async def take(self, words):
        """Take what every node has received."""
        await self._bench.carry_out(self._port.take(words))
