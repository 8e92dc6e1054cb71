"""Runs the fabric on random words, and checks every word and the cycles.

What the fabric is, it finds in `manifest.json` alone. The environment variables `RUNS` and `SEED`
say how many runs there are of each mode, and which. What would take minutes to write and to read
is sampled: `CYCLES` says how many cycles all of it may take, about; `inf` is for all words.
"""

import math
import random
from typing import Any

import cocotb
from fabric_port import FabricPort
from runs import CYCLES, MANIFEST, SEED, Run, choose, draw_sample, runs_of


@cocotb.test()
async def random_words(dut: Any) -> None:
    """Every word that arrives is right, and comes when the manifest says."""
    generator = random.Random(SEED)
    port = FabricPort(dut, MANIFEST)
    await port.reset()
    modes = [(mode, number) for mode in MANIFEST["modes"] for number in range(runs_of(mode))]
    cycles = CYCLES / len(modes)
    # Half of them are for the run, and of the rest half to write and half to read.
    most = cycles / 4 / port.cycles_of_a_word if port.cycles_of_a_word else math.inf
    for count, (mode, number) in enumerate(modes, 1):
        run = choose(generator, mode, number, cycles)
        said = await check(port, run, generator, most)
        cocotb.log.info("run %d of %d: %s", count, len(modes), said)


async def check(port: Any, run: Run, generator: random.Random, most: float) -> str:
    """Load random words, run, and compare what arrives; returns what that was."""
    sent, expected = draw_sample(generator, run, most)
    await port.load(sent)
    if getattr(port, "ends_runs", False):
        # What is loaded stays, and the next run is as any other.
        await port.abort(run.inputs, generator.randrange(run.cycles - 1))
    cycles = await port.run(run.inputs)
    assert cycles == run.cycles, f"{cycles} cycles, not {run.cycles}"
    received = await port.read(list(expected))
    for ((node, origin, flit), right), word in zip(expected.items(), received, strict=True):
        assert word == right, f"flit {flit} from {origin} at node {node}: {word:#x}, not {right:#x}"
    what = f"{run.mode['collective']} of {run.length} flits"
    return f"{what}: {len(expected)} words in {cycles} cycles"
