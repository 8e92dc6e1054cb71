"""The host port, and the memories of nodes, in Amaranth's simulator."""

import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import numpy as np
from amaranth.hdl import Cat, Signal, Value
from amaranth.sim import SimulatorContext
from numpy.typing import NDArray

from ...errors import WorkFailed
from ...rtl.assembly import Assembly
from ...rtl.fabric import Fabric
from ...rtl.netlist import Role
from ...topology import IntArray
from .base import PATIENCE, EngineRun, Job, Progress, image_edges, words_moved
from .words import Cells, PortWords, Words

__all__ = ["AmaranthCells", "Clock", "HostDriver", "Testbench"]

#: What drives a design.
Testbench: TypeAlias = Callable[[SimulatorContext], Coroutine[Any, Any, None]]


class Clock:
    """The clock of a design; where it is gated, one for each node, at rest unless asked for."""

    def __init__(self, ctx: SimulatorContext, design: Assembly) -> None:
        self._ctx, self.ticks = ctx, 0
        self._of = {node: domain.clk for node, domain in design.domains.items()}
        self._all = Cat(*self._of.values())

    async def tick(self, *nodes: int) -> None:
        """Pass one edge of the common part and of these nodes (of all nodes, without any)."""
        self.ticks += 1
        if not self._of:
            await self._ctx.tick()
            return
        clocks = Cat(*(self._of[n] for n in {None, *nodes})) if nodes else self._all
        self._ctx.set(clocks, -1)
        self._ctx.set(clocks, 0)


class HostDriver:
    """Drives the host port of a design, one word a cycle, and reaches its memories."""

    def __init__(
        self,
        ctx: SimulatorContext,
        clock: Clock,
        fabric: Fabric,
        design: Assembly,
        progress: Progress | None = None,
    ) -> None:
        self._ctx, self._clock = ctx, clock
        self._fabric, self._design = fabric, design
        # Set together, for each setting is a step of the simulator.
        self._address = Cat(design.host_node, design.host_addr)
        self._word = Cat(self._address, design.host_wdata)
        self._progress = progress or (lambda done, total: None)
        self._total, self._done = words_moved(fabric), 0
        self._cells = AmaranthCells(ctx, design, fabric)

    def _advance(self, words: int) -> None:
        self._done += words
        self._progress(self._done, self._total)

    async def run(self, words: Words, job: Job) -> EngineRun:
        """Load a message into every node, start, wait for done, and take what every node has."""
        before = self._clock.ticks
        await self.load(words)
        began = time.process_time()
        edges = await self.collect(job)
        seconds = time.process_time() - began
        await self.take(words)
        cycles, clocks = self._ctx.get(self._design.cycles), self._clock.ticks - before
        return EngineRun(
            words.received, cycles, edges, clocks, seconds, words.through_port, words.direct
        )

    async def load(self, words: Words) -> None:
        """Load a message into every node."""
        self._done = 0
        written = words.put(self._cells)
        await self.write(written, words.beats(written))
        self._done = words.messages.size

    async def load_image(self) -> None:
        """Load the image of a fabric into which nothing is built in; see `Session.load`."""
        design, ctx = self._design, self._ctx
        if not self._fabric.empty:
            return
        for inputs in image_edges(self._fabric.image):
            for name, value in inputs.items():
                ctx.set(getattr(design, name), value)
            await self._clock.tick()
        if not ctx.get(design.loaded):
            raise WorkFailed("Image must be taken by the fabric, not refused")

    async def take(self, words: Words) -> None:
        """Take what every node has received."""
        for asked in words.asked(self._cells):
            words.fill(asked, await self.read(asked))
        self._advance(words.messages.size + words.received.size - self._done)

    async def write(self, which: PortWords, words: np.ndarray) -> None:
        """Write words into nodes' send memories."""
        design, ctx = self._design, self._ctx
        # The nodes that the writes under way are for.
        window = deque([0], maxlen=1 + self._fabric.write_latency)
        ctx.set(design.host_we, 1)
        for node, address, word in zip(
            which.nodes.tolist(), which.addresses.tolist(), words.tolist(), strict=True
        ):
            ctx.set(self._word, self._address_of(node, address) | word << len(self._address))
            window.append(node)
            await self._clock.tick(*window)
            self._advance(1)
        ctx.set(design.host_we, 0)
        for _ in range(self._fabric.hold if which.number else 0):
            await self._clock.tick()

    def _address_of(self, node: int, address: int) -> int:
        """What is set for a word of a node."""
        return address << len(self._design.host_node) | node

    async def collect(self, job: Job) -> int:
        """Start, and wait for done; returns the clock edges between."""
        design, ctx = self._design, self._ctx
        for name, value in job.inputs.items():
            ctx.set(getattr(design, name), value)
        expected = self._fabric.program.cycles(job.length, mode=job.mode)
        ctx.set(design.start, 1)
        await self._clock.tick()
        ctx.set(design.start, 0)
        # Later values of the inputs must not matter: a run keeps what it was started with.
        for name, value in job.inputs.items():
            ctx.set(getattr(design, name), ~value)
        edges, limit = 0, expected + PATIENCE
        while not ctx.get(design.done):
            if not ctx.get(design.busy) or edges == limit:
                raise WorkFailed(
                    f"Fabric must be done {expected} edges after its start, "
                    f"not {'busy' if ctx.get(design.busy) else 'idle'} after {edges}"
                )
            await self._clock.tick()
            edges += 1
        await self._clock.tick()
        return edges

    async def read(self, which: PortWords) -> np.ndarray:
        """Read words from nodes' receive memories."""
        design, ctx, latency = self._design, self._ctx, self._fabric.read_latency
        asked = [*zip(which.nodes.tolist(), which.addresses.tolist(), strict=True)]
        words: list[int] = []
        window: deque[int] = deque(maxlen=1 + latency)
        for k in range(which.number + latency if which.number else 0):
            if k >= latency:
                words.append(ctx.get(design.host_rdata))
                self._advance(1)
            node, address = asked[min(k, which.number - 1)]
            ctx.set(self._address, self._address_of(node, address))
            window.append(node)
            # What nodes showed before is gone by the time that the first word comes.
            await self._clock.tick(*(window if k >= latency else ()))
        return np.array(words, object)


class AmaranthCells(Cells):
    """The words of the memories of endpoints in Amaranth's simulator."""

    def __init__(self, ctx: SimulatorContext, design: Assembly, fabric: Fabric) -> None:
        super().__init__(fabric)
        self._ctx, self._width = ctx, fabric.width
        self._leaves: dict[int, Any] = {}
        for instance in fabric.netlist.having(Role.ENDPOINT):
            node, leaf = instance.node, design.leaves[instance.name]
            assert node is not None
            self._leaves[node] = leaf
            for memory, banks in leaf.banks.items():
                cut = any(isinstance(leaf.cells[bank.name], tuple) for bank in banks)
                self.exists[node, memory], self.reached[node, memory] = True, not cut

    def put(
        self, nodes: IntArray, memory: IntArray, address: IntArray, words: NDArray[Any]
    ) -> None:
        """Put words into memories, in all copies of these."""
        ones = (1 << self._width) - 1
        # The words of several memories may be those of one.
        rows: dict[tuple[int, str, int], tuple[int, int]] = {}
        for node, number, place, word in zip(
            nodes.tolist(), memory.tolist(), address.tolist(), words.tolist(), strict=True
        ):
            for bank in self._leaves[node].banks[number]:
                mask, value = rows.get((node, bank.name, place), (0, 0))
                rows[node, bank.name, place] = mask | ones << bank.low, value | word << bank.low
        for (node, name, place), (mask, value) in rows.items():
            row = self._row(node, name, place)
            self._ctx.set(row, self._ctx.get(row) & ~mask | value)

    def take(self, nodes: IntArray, memory: IntArray, address: IntArray) -> NDArray[Any]:
        """Take words from memories."""
        words, ones = [], (1 << self._width) - 1
        for node, number, place in zip(
            nodes.tolist(), memory.tolist(), address.tolist(), strict=True
        ):
            bank = self._leaves[node].banks[number][0]
            words.append(self._ctx.get(self._row(node, bank.name, place)) >> bank.low & ones)
        return np.array(words, np.uint64 if self._width <= 64 else object)

    def _row(self, node: int, name: str, place: int) -> Value:
        """A word of a bank."""
        cell = self._leaves[node].cells[name]
        assert not isinstance(cell, tuple)
        return cell if isinstance(cell, Signal) else cell[place]
