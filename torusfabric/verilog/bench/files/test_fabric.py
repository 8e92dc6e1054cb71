"""The cocotb test: runs on random words, in which every word and the cycles are checked.

Facts about the fabric come from `manifest.json` alone. Environment variables: `RUNS` is the number
of runs of each mode, and `SEED` the seed of their choices. `CYCLES` is about the number of cycles
that the test may take, `inf` for no limit. If writing and reading all words would take longer, a
sample of the words is checked.
"""

import math
import random
from typing import Any

import cocotb
from fabric_port import FabricPort
from runs import CYCLES, MANIFEST, SEED, Run, choose_run, random_sample, run_count


@cocotb.test()
async def random_words(dut: Any) -> None:
    """Every checked word is right, and every run takes the cycles of the manifest."""
    generator = random.Random(SEED)
    port = FabricPort(dut, MANIFEST)
    await port.reset()
    modes = [(mode, number) for mode in MANIFEST["modes"] for number in range(run_count(mode))]
    cycles = CYCLES / len(modes)
    # Half of the cycles are for the run itself, a quarter for writing, a quarter for reading.
    most = cycles / 4 / port.cycles_of_a_word if port.cycles_of_a_word else math.inf
    for count, (mode, number) in enumerate(modes, 1):
        run = choose_run(generator, mode, number, cycles)
        said = await check_run(port, run, generator, most)
        cocotb.log.info("run %d of %d: %s", count, len(modes), said)


async def check_run(port: Any, run: Run, generator: random.Random, most: float) -> str:
    """Write random words, run, and compare the words that arrive; return a summary."""
    sent, expected = random_sample(generator, run, most)
    await port.load(sent)
    if getattr(port, "ends_runs", False):
        # An aborted run: the words that were written stay, and the next run must be unaffected.
        await port.abort(run.inputs, generator.randrange(run.predicted_cycles - 1))
    cycles = await port.run(run.inputs)
    assert cycles == run.predicted_cycles, f"{cycles} cycles, not {run.predicted_cycles}"
    received = await port.read(list(expected))
    for ((node, origin, flit), right), word in zip(expected.items(), received, strict=True):
        assert word == right, f"flit {flit} from {origin} at node {node}: {word:#x}, not {right:#x}"
    what = f"{run.mode['collective']} of {run.length} flits"
    return f"{what}: {len(expected)} words in {cycles} cycles"
