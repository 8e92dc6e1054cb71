"""A driver of the host port of a fabric in Amaranth's simulator."""

from torusfabric.adapters.host.drive import HostPortDriver
from torusfabric.simulation.engines.amaranth_engine import AmaranthBench

__all__ = ["HostDriver"]


class HostDriver:
    """Driver of accesses to the host port, as the engine makes them."""

    def __init__(self, ctx, fabric, design):
        self._ctx, self._design, self._bench = ctx, design, AmaranthBench(ctx, design, fabric)
        self._port, self.clock = HostPortDriver(fabric, self._bench.cells), self._bench.clock

    async def load(self, words):
        """Load a message into every node."""
        await self._bench.run_access(self._port.write_messages(words))

    async def write(self, which, words):
        """Write words into send memories."""
        await self._bench.run_access(self._port.write(which, words))
        self._ctx.set(self._design.host_we, 0)

    async def collect(self, job):
        """Start, and wait for done; return the clock edges between."""
        _, edges, _ = await self._bench.run_access(self._port.start_and_wait(job))
        return edges

    async def take(self, words):
        """Read the received words of every node."""
        await self._bench.run_access(self._port.read_received(words))
