"""The port of a fabric that is simulated, and the one by which its tables are loaded."""

import numpy as np


def wanted(*schedules):
    """Of each mode one schedule, with the root that it has."""
    return [([one], False) for one in schedules]


#: Flits of a run that takes longer than an image is loaded, and the word with which modes go.
LONG, BASE = 64, 4


class HostPort:
    """The port of a fabric that is simulated, and the one that takes images."""

    def __init__(self, ctx, fabric):
        self.ctx, self.fabric = ctx, fabric

    async def set(self, **values):
        """Set ports for an edge."""
        for name, value in values.items():
            self.ctx.set(getattr(self.fabric, name), value)
        await self.ctx.tick()

    async def load(self, words, *, start=None):
        """Load words, one an edge; the modes that are there some edges later, and the program."""
        for k, word in enumerate(words):
            # With one of them a run may start.
            await self.set(load_we=1, load_first=k == 0, load_data=word, start=k == start)
        for _ in range(self.fabric.image.settling):
            await self.set(load_we=0)
        return self.ctx.get(self.fabric.modes), self.ctx.get(self.fabric.loaded_program)

    async def start(self, mode, **chosen):
        """Start a run; whether it began, or why not."""
        await self.set(mode=mode, **{"length": LONG} | chosen, start=1)
        await self.set(start=0)
        return self.ctx.get(self.fabric.busy) or self.ctx.get(self.fabric.error)

    async def end(self):
        """Wait for the end; the cycles, and what the nodes have received."""
        while not self.ctx.get(self.fabric.done):
            await self.ctx.tick()
        got = []
        for node, part in np.ndindex(3, 3):
            address = self.fabric.layout.recv_base + (part + 1) * LONG - 1
            await self.set(host_node=node, host_addr=address)
            for _ in range(self.fabric.read_latency):
                await self.ctx.tick()
            got.append(self.ctx.get(self.fabric.host_rdata))
        return self.ctx.get(self.fabric.cycles), got
