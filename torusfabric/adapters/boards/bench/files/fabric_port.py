"""Access of the bench to a fabric on several boards, each with its own host port and clock.

The clocks have the largest frequency errors that the manifest allows: the first board is slowest,
the last board fastest.
"""

from collections.abc import Coroutine, Iterable
from itertools import chain
from types import SimpleNamespace
from typing import Any

import cocotb
import host_port
from cocotb.clock import Clock
from collectives import Words
from direct_port import Place
from stalls import Stalls

__all__ = ["FabricPort"]

#: Period of a clock without frequency error, in picoseconds.
PERIOD = 100_000


class BoardPort(host_port.FabricPort):
    """Driver of one board: it loads, runs and reads the nodes of the board."""

    def __init__(self, dut: Any, manifest: dict[str, Any], board: int) -> None:
        names = {name: f"board_{board}_{name}" for name in ("clk", "rst", *manifest["ports"])}
        found = {name: getattr(dut, pin) for name, pin in names.items() if hasattr(dut, pin)}
        self.dut = SimpleNamespace(**found)
        self.manifest = manifest | {
            "ports": {name: port for name, port in manifest["ports"].items() if name in found}
        }
        self.stalls = Stalls(self.dut, self.manifest)
        off = manifest["ppm"] * 1e-6 * (1 - 2 * board / (len(manifest["boards"]) - 1))
        Clock(self.dut.clk, 2 * round(PERIOD * (1 + off) / 2), "ps").start()

    async def run(self, inputs: dict[str, int]) -> int:
        """Start a run, wait until it is done, and return the cycles that the board counted."""
        await self.start(inputs)
        await self.wait_for_edge()
        while self.dut.busy.value == 1:
            await self.wait_for_edge()
        assert self.dut.done.value == 1, "the board must be done when it is no longer busy"
        error = int(self.dut.error.value)
        assert error == 0, f"error {error}, links {int(self.dut.failed.value):b}"
        return int(self.dut.cycles.value)


class FabricPort:
    """Driver of all boards: it loads, runs and reads their nodes."""

    cycles_of_a_word = BoardPort.cycles_of_a_word

    def __init__(self, dut: Any, manifest: dict[str, Any]) -> None:
        self.nodes: list[list[int]] = [board["nodes"] for board in manifest["boards"]]
        self.ports = [BoardPort(dut, manifest, board) for board in range(len(self.nodes))]

    async def reset(self) -> None:
        """Reset all boards."""
        await run_concurrently(port.reset() for port in self.ports)

    async def load(self, sent: list[Words]) -> None:
        """Write the words that each node sends, by part and flit."""
        each = zip(self.ports, self.nodes, strict=True)
        await run_concurrently(port.load([sent[node] for node in nodes]) for port, nodes in each)

    async def run(self, inputs: dict[str, int]) -> int:
        """Start all boards, and return the cycles that all of them counted."""
        cycles: list[int] = await run_concurrently(port.run(inputs) for port in self.ports)
        assert len({*cycles}) == 1, f"boards must count the same cycles, not {cycles}"
        return cycles[0]

    async def read(self, places: list[Place]) -> list[int]:
        """Read flits by node, origin and number."""
        own = [[place for place in places if place[0] in nodes] for nodes in self.nodes]
        words = await run_concurrently(
            port.read([(nodes.index(node), origin, flit) for node, origin, flit in each])
            for port, nodes, each in zip(self.ports, self.nodes, own, strict=True)
        )
        found = dict(zip(chain(*own), chain(*words), strict=True))
        return [found[place] for place in places]


async def run_concurrently(coroutines: Iterable[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Run coroutines concurrently, and return their results in order."""
    tasks = [cocotb.start_soon(coroutine) for coroutine in coroutines]
    return [await task for task in tasks]
