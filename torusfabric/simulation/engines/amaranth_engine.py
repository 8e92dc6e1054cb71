# amaranth: UnusedElaboratable=no
"""The reference engine, which runs the fabric in Amaranth's own simulator.

Gated clocks save time: a node receives clock edges only if it runs, or is being written or read.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from amaranth.hdl import Cat, ClockDomain, Const, Elaboratable, Module, Signal, Value
from amaranth.sim import Simulator, SimulatorContext
from numpy.typing import NDArray

from ...contract.traffic import PortTraffic
from ...rtl.assembly import Assembly
from ...rtl.fabric import Fabric
from ...rtl.netlist import Role
from ...topology import IntArray
from .base import Engine, Progress
from .cells import MemoryCells
from .edges import Access, EdgeRequest, EdgeResult
from .gtkwave import wave_lines
from .waves import open_wave_file

__all__ = ["AmaranthEngine", "AmaranthBench", "Clock", "Testbench", "allow_wide_values"]

_Result = TypeVar("_Result")

#: A coroutine that drives a design.
Testbench: TypeAlias = Callable[[SimulatorContext], Coroutine[Any, Any, None]]


class Clock:
    """Source of the clock edges of a design, one edge at a time.

    A *gated* design has a clock for each node and one for the parts that all nodes share, so that
    some nodes can be left out of an edge. Any other design has one clock.
    """

    def __init__(self, ctx: SimulatorContext, design: Assembly) -> None:
        self._ctx = ctx
        self._of = {node: domain.clk for node, domain in design.domains.items()}
        self._all = Cat(*self._of.values())

    async def tick(self, *nodes: int) -> None:
        """Simulate one edge for the common parts and for `nodes`; without `nodes`, for all.

        A design with one clock always gets the edge as a whole.
        """
        if not self._of:
            await self._ctx.tick()
            return
        clocks = Cat(*(self._of[n] for n in {None, *nodes})) if nodes else self._all
        self._ctx.set(clocks, -1)
        self._ctx.set(clocks, 0)


class AmaranthBench:
    """A design in Amaranth's simulator, on which the work of adapters can be executed.

    An adapter describes its work as an `edges.Access`, a generator of clock edges.

    Attributes
    ----------
    clock : Clock
        Source of clock edges.
    cells : AmaranthCells
        Direct access to the memories of the nodes.
    """

    def __init__(self, ctx: SimulatorContext, design: Assembly, fabric: Fabric) -> None:
        self._ctx, self._design, self.clock = ctx, design, Clock(ctx, design)
        self.cells = AmaranthCells(ctx, design, fabric)
        # A node needs clock edges for this many cycles after the host addresses it.
        self._window = 1 + max(fabric.read_latency, fabric.write_latency)

    async def run_access(self, access: Access[_Result]) -> _Result:
        """Execute the work of an adapter and return its result, as `edges.run_access` does.

        Why a coroutine: Amaranth's simulator advances only while a coroutine waits.
        """
        try:
            edges = next(access)
            while True:
                edges = access.send(await self._simulate_edges(edges))
        except StopIteration as end:
            result: _Result = end.value
            return result

    async def _simulate_edges(self, edges: EdgeRequest) -> EdgeResult:
        """Simulate the requested clock edges, and sample the requested outputs before each edge.

        In a gated design, edges that access memories through ``host_node`` reach only the nodes
        that were addressed within the last `_window` edges. All other edges reach all nodes.
        """
        ctx, began = self._ctx, time.process_time()
        columns = {name: np.asarray(each).tolist() for name, each in edges.inputs.items()}
        # One assignment for all inputs, because each assignment costs a simulator step.
        inputs = Cat(getattr(self._design, name) for name in columns)
        widths = [len(getattr(self._design, name)) for name in columns]
        places = np.cumsum([0, *widths])[:-1].tolist()
        shows = [(getattr(self._design, name), list[int]()) for name in edges.shows]
        busy = getattr(self._design, edges.busy) if edges.busy else Const(1)
        nodes, recent = columns.get("host_node", []), deque[int](maxlen=self._window)
        count = 0
        while count < edges.most and ctx.get(busy):
            row = [each[min(count, len(each) - 1)] for each in columns.values()]
            if row:
                ctx.set(
                    inputs, sum(value << place for value, place in zip(row, places, strict=True))
                )
            for net, values in shows:
                values.append(ctx.get(net))
            recent.extend(nodes[min(count, len(nodes) - 1) :][:1])
            await self.clock.tick(*(recent if len(recent) == self._window else ()))
            count += 1
            if edges.report:
                edges.report(count)
        shown = {name: np.array(values, object)
                 for name, (_, values) in zip(edges.shows, shows, strict=True)}  # fmt: skip
        return EdgeResult(count, shown, time.process_time() - began)


class AmaranthCells(MemoryCells):
    """The memories of endpoints in Amaranth's simulator."""

    def __init__(self, ctx: SimulatorContext, design: Assembly, fabric: Fabric) -> None:
        super().__init__(fabric)
        self._ctx, self._width = ctx, fabric.width
        self._leaves: dict[int, Any] = {}
        for instance in fabric.netlist.instances_with_role(Role.ENDPOINT):
            node, leaf = instance.node, design.leaves[instance.name]
            assert node is not None
            self._leaves[node] = leaf
            for memory, banks in leaf.banks.items():
                cut = any(isinstance(leaf.cells[bank.name], tuple) for bank in banks)
                self.exists[node, memory], self.reached[node, memory] = True, not cut

    def write_words(
        self, nodes: IntArray, memory: IntArray, address: IntArray, words: NDArray[Any]
    ) -> None:
        """Write words into memories; see `MemoryCells.write_words`.

        Word k is written into memory ``memory[k]`` of node ``nodes[k]``, at ``address[k]``.
        """
        ones = (1 << self._width) - 1
        # Several memories may share a row of one bank; collect all bits of a row, then write once.
        rows: dict[tuple[int, str, int], tuple[int, int]] = {}
        for node, number, place, word in zip(
            nodes.tolist(), memory.tolist(), address.tolist(), words.tolist(), strict=True
        ):
            for bank in self._leaves[node].banks[number]:
                row = node, bank.name, bank.base + place
                mask, value = rows.get(row, (0, 0))
                rows[row] = mask | ones << bank.low, value | word << bank.low
        for (node, name, place), (mask, value) in rows.items():
            cell = self._row_at(node, name, place)
            self._ctx.set(cell, self._ctx.get(cell) & ~mask | value)

    def read_words(self, nodes: IntArray, memory: IntArray, address: IntArray) -> NDArray[Any]:
        """Return words of memories; see `MemoryCells.read_words`.

        Word k is read from memory ``memory[k]`` of node ``nodes[k]``, at ``address[k]``.
        """
        words, ones = [], (1 << self._width) - 1
        for node, number, place in zip(
            nodes.tolist(), memory.tolist(), address.tolist(), strict=True
        ):
            bank = self._leaves[node].banks[number][0]
            row = self._row_at(node, bank.name, bank.base + place)
            words.append(self._ctx.get(row) >> bank.low & ones)
        return np.array(words, np.uint64 if self._width <= 64 else object)

    def _row_at(self, node: int, name: str, place: int) -> Value:
        """Return one word of a memory of a node, as a signal.

        `name` is the memory cell (`torusfabric.rtl.memories.Cell`), which is an array of words or a
        single register. `place` is the index of the word; for a register it has no effect.
        """
        cell = self._leaves[node].cells[name]
        assert not isinstance(cell, tuple)
        return cell if isinstance(cell, Signal) else cell[place]


class AmaranthEngine(Engine):
    """Engine that runs the whole fabric in Amaranth's simulator.

    Parameters
    ----------
    wave, through_port, repeat
        See `Engine`; the waveforms contain every signal.
    gated : bool
        True to stop the clock of each node that neither runs nor is written or read. Gating affects
        only the simulation time. The engine ignores it if each node has streams of its own or if
        waveforms are written.
    """

    name = "amaranth"

    def __init__(
        self,
        fabric: Fabric,
        *,
        wave: str | Path | None = None,
        through_port: bool = False,
        repeat: int = 1,
        gated: bool = True,
    ) -> None:
        super().__init__(fabric, wave=wave, through_port=through_port, repeat=repeat)
        self._gated = gated and wave is None and not fabric.interface.kernel

    @cached_property
    def design(self) -> Assembly:
        """The simulated design."""
        return Assembly(self.fabric.netlist, gated=self._gated)

    def run_access(self, make: Callable[..., Access[_Result]]) -> _Result:
        """Execute work at the ports of the fabric, as `Engine.run_access` does."""
        results: list[_Result] = []

        async def testbench(ctx: SimulatorContext) -> None:
            bench = AmaranthBench(ctx, self.design, self.fabric)
            results.append(await bench.run_access(make(cells=bench.cells)))

        self.run_testbench(testbench)
        return results[0]

    def run_traffic(self, traffic: PortTraffic, progress: Progress | None = None) -> Any:
        """Send and receive all words of `traffic` through the streams of the nodes.

        The parameters `traffic` and `progress` are those of `Engine.run_traffic`.
        """
        return traffic.simulate(self.design, self.run_testbench, progress)

    def run_testbench(self, testbench: Testbench, *beside: Testbench) -> None:
        """Run a testbench on the design until it ends.

        The testbenches in `beside` run at the same time, and end with it.
        """
        with (
            allow_wide_values(),
            open_wave_file(self._wave, self.fabric, "bench.top.fabric") as vcd,
        ):
            named = None if vcd is None else WithWaveLines(self.design, self.fabric)
            simulator = Simulator(named or self.design)
            if not self._gated:
                simulator.add_clock(1e-8)
            for number, each in enumerate((testbench, *beside)):
                begun = _after_reset(each, named.reset) if named else each
                simulator.add_testbench(begun, background=number > 0)
            with contextlib.ExitStack() as stack:
                if vcd:
                    # Opened here: Amaranth would not close the file after a write error.
                    file = stack.enter_context(open(vcd, "w", encoding="utf-8"))
                    stack.enter_context(simulator.write_vcd(file))
                simulator.run()


@contextlib.contextmanager
def allow_wide_values() -> Iterator[None]:
    """Lift Python's limit on the number of digits of an integer.

    Why: the code of Amaranth's simulator contains integers as decimal text. The limit corresponds
    to 14,285 bits, and the out-ports of a router on seven axes have more bits together.
    """
    if not hasattr(sys, "set_int_max_str_digits"):  # before 3.10.7
        yield
        return
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        yield
    finally:
        sys.set_int_max_str_digits(limit)


def _after_reset(testbench: Testbench, reset: Signal) -> Testbench:
    """Return a testbench that holds the reset for one cycle first.

    Without it the simulation would be the same, because registers start with their reset values.
    Why a reset: the waveforms are then equal to those of the compiled engine.
    """

    async def reset_first(ctx: SimulatorContext) -> None:
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        await testbench(ctx)

    return reset_first


class WithWaveLines(Elaboratable):
    """A design with a copy of each signal that waveforms show, under a readable name.

    Why: in the design, signals have the names of its modules. The waveform file has a scope for
    each node instead, such as ``node_5``, with the names of `wave_lines`, the same as from the
    compiled engine.

    Parameters
    ----------
    design : Assembly
        A design with one clock for all nodes.

    Attributes
    ----------
    reset : Signal
        Reset of the design.
    """

    def __init__(self, design: Assembly, fabric: Fabric) -> None:
        self._design, self._fabric = design, fabric
        self._domain = ClockDomain("sync")
        self.reset = self._domain.rst

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.domains += self._domain
        m.submodules.design = self._design
        m.submodules.fabric = whole = Module()
        for node, lines in groupby(wave_lines(self._fabric), lambda line: line.node):
            scope = whole if node is None else Module()
            if node is not None:
                whole.submodules[f"node_{node}"] = scope
            named: list[Signal] = []
            nets: list[Value] = []
            if node is None:
                named += [Signal(name="clk"), Signal(name="rst")]
                nets += [self._domain.clk, self._domain.rst]
            for _, name, part in lines:
                named.append(Signal(part.width, name=name))
                nets.append(
                    self._design.signal_of_net(part.net)[part.start : part.start + part.width]
                )
            # Of two signals with one name, the first keeps the name: here the wave line.
            scope.d.comb += Cat(*named).eq(Cat(*nets))
        return m
