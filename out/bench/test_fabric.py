"""Runs the fabric on random words, and checks every word and the cycles.

What the fabric is, it finds in `manifest.json` alone. The environment variables `RUNS` and `SEED`
say how many runs there are of each mode, and which.
"""

import random
from typing import Any

import cocotb
from fabric_port import FabricPort
from runs import MANIFEST, RUNS, SEED, Run, choose, delivered, draw_words


@cocotb.test()
async def random_words(dut: Any) -> None:
    """Every word that arrives is right, and comes when the manifest says."""
    generator = random.Random(SEED)
    port = FabricPort(dut, MANIFEST)
    await port.reset()
    for mode in MANIFEST["modes"]:
        for number in range(RUNS):
            await check(port, choose(generator, mode, number), generator)


async def check(port: Any, run: Run, generator: random.Random) -> None:
    """Load random words, run, and compare what arrives."""
    sent = draw_words(generator, run)
    await port.load(sent)
    cycles = await port.run(run.inputs)
    assert cycles == run.cycles, f"{cycles} cycles, not {run.cycles}"
    expected = delivered(run, sent)
    places = [(node, *place) for node, words in enumerate(expected) for place in words]
    generator.shuffle(places)
    received = await port.read(places)
    for (node, origin, flit), word in zip(places, received, strict=True):
        right = expected[node][origin, flit]
        assert word == right, f"flit {flit} from {origin} at node {node}: {word:#x}, not {right:#x}"
    cocotb.log.info(
        "%s of %d flits: %d words in %d cycles",
        run.mode["collective"], run.length, len(places), cycles,
    )  # fmt: skip
