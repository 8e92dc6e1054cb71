"""Runs a fabric on several boards on random words, and checks every word and the cycles.

Each board has a clock of its own, which is off by as much as the manifest allows, one way or the
other. `RUNS` and `SEED` say how many runs there are of each mode, and which; `CYCLES` how many
cycles all of it may take, about.
"""

import math
import random
from types import SimpleNamespace
from typing import Any

import cocotb
from cocotb.clock import Clock
from fabric_port import FabricPort
from runs import MANIFEST, SEED, Run, choose, cycles_of_a_run, draw_sample, runs_of
from stalls import Stalls

#: Picoseconds of a cycle of a clock that is not off.
PERIOD = 100_000

BOARDS = MANIFEST["boards"]

#: The board of each node, and its number there.
LOCATED = {
    node: (board["board"], number) for board in BOARDS for number, node in enumerate(board["nodes"])
}


class BoardPort(FabricPort):
    """Loads, runs and reads the nodes of a board."""

    def __init__(self, dut: Any, board: int) -> None:
        ports = {"clk", "rst", *MANIFEST["ports"]}
        names = {name: f"board_{board}_{name}" for name in ports}
        found = {name: getattr(dut, pin) for name, pin in names.items() if hasattr(dut, pin)}
        self.dut = SimpleNamespace(**found)
        self.manifest = MANIFEST | {
            "ports": {name: port for name, port in MANIFEST["ports"].items() if name in found}
        }
        self.stalls = Stalls(self.dut, self.manifest)
        off = MANIFEST["ppm"] * 1e-6 * (1 - 2 * board / (len(BOARDS) - 1))
        Clock(self.dut.clk, 2 * round(PERIOD * (1 + off) / 2), "ps").start()

    async def run(self, inputs: dict[str, int]) -> int:
        """Start, and wait until it is over; returns what the board counts."""
        await self.start(inputs)
        await self.edge()
        while self.dut.busy.value == 1:
            await self.edge()
        assert self.dut.done.value == 1, "the board must be done when it is no longer busy"
        return int(self.dut.cycles.value)


@cocotb.test()
async def random_words(dut: Any) -> None:
    """Every word that arrives is right, and comes when the manifest says, on all boards."""
    generator = random.Random(SEED)
    ports = [BoardPort(dut, board["board"]) for board in BOARDS]
    await together(port.reset() for port in ports)
    modes = [(mode, number) for mode in MANIFEST["modes"] for number in range(runs_of(mode))]
    cycles = cycles_of_a_run(len(modes))
    most = cycles / 4 / FabricPort.cycles_of_a_word
    for count, (mode, number) in enumerate(modes, 1):
        run = choose(generator, mode, number, cycles)
        said = await check(ports, run, generator, most)
        cocotb.log.info("run %d of %d: %s", count, len(modes), said)


async def check(ports: list[BoardPort], run: Run, generator: random.Random, most: float) -> str:
    """Load random words, run, and compare what arrives; returns what that was."""
    sent, expected = draw_sample(generator, run, min(most, math.inf))
    await together(
        port.load([sent[node] for node in board["nodes"]])
        for port, board in zip(ports, BOARDS, strict=True)
    )
    cycles = await together(port.run(run.inputs) for port in ports)
    for port, counted in zip(ports, cycles, strict=True):
        error = int(port.dut.error.value)
        assert error == 0, f"error {error}, links {int(port.dut.failed.value):b}"
        assert counted == run.cycles, f"{counted} cycles, not {run.cycles}"
    places: list[list[Any]] = [[] for _ in BOARDS]
    for node, origin, flit in expected:
        board, number = LOCATED[node]
        places[board].append((number, origin, flit))
    found = await together(port.read(asked) for port, asked in zip(ports, places, strict=True))
    for board, (asked, words) in enumerate(zip(places, found, strict=True)):
        for (number, origin, flit), word in zip(asked, words, strict=True):
            node = BOARDS[board]["nodes"][number]
            right = expected[node, origin, flit]
            assert word == right, (
                f"flit {flit} from {origin} at node {node}: {word:#x}, not {right:#x}"
            )
    what = f"{run.mode['collective']} of {run.length} flits"
    return f"{what}: {len(expected)} words in {cycles[0]} cycles"


async def together(coroutines: Any) -> list[Any]:
    """What all of them return, side by side."""
    tasks = [cocotb.start_soon(coroutine) for coroutine in coroutines]
    return [await task for task in tasks]
