"""Runs the fabric on random words, and checks every word and the cycles.

What the fabric is, it finds in `manifest.json` alone. The environment variables `RUNS` and `SEED`
say how many runs there are of each mode, and which.
"""

import json
import os
import random
from pathlib import Path
from typing import Any, NamedTuple

import cocotb
from collectives import Words, combiner, expected_words, groups, parts_sent
from fabric_port import FabricPort

MANIFEST = json.loads(Path(__file__).parents[1].joinpath("manifest.json").read_text())

RUNS = int(os.environ.get("RUNS") or 3)
SEED = int(os.environ.get("SEED") or 1)


class Run(NamedTuple):
    """What is chosen for a run."""

    mode: dict[str, Any]
    length: int
    root: int
    operation: int

    @property
    def inputs(self) -> dict[str, int]:
        """The inputs of the fabric, by name; it need not have all of them."""
        chosen = self._asdict()
        return chosen | {"mode": self.mode["mode"]}

    @property
    def cycles(self) -> int:
        """The cycles that the manifest predicts."""
        flits = -(-self.length // self.mode["chunks"])
        *_, piece = (piece for piece in self.mode["cycles"] if piece["from"] <= flits)
        constant: Any = piece["constant"]
        if isinstance(constant, list):
            constant = constant[self.root]
        return int(constant + piece["per_flit"] * flits)


def choose(generator: random.Random, mode: dict[str, Any], number: int, size: int) -> Run:
    """A run of a mode: the longest first, then the shortest, then any."""
    most = MANIFEST.get("max_flits")
    lengths = (most, 1, generator.randint(1, most)) if most else (MANIFEST["flits"],)
    root = generator.randrange(size) if mode["root"] == "any" else mode["root"] or 0
    operation = generator.randrange(len(mode["operators"]) or 1)
    return Run(mode, lengths[min(number, len(lengths) - 1)], root, operation)


@cocotb.test()
async def random_words(dut: Any) -> None:
    """Every word that arrives is right, and comes when the manifest says."""
    generator = random.Random(SEED)
    port = FabricPort(dut, MANIFEST)
    await port.reset()
    for mode in MANIFEST["modes"]:
        for number in range(RUNS):
            members = groups(MANIFEST["topology"], MANIFEST["nodes"], mode["axes"])
            run = choose(generator, mode, number, len(members[0]))
            await check(port, run, members, generator)


async def check(port: Any, run: Run, members: list[list[int]], generator: random.Random) -> None:
    """Load random words, run, and compare what arrives."""
    collective, operators = run.mode["collective"], run.mode["operators"]
    parts, width = parts_sent(collective, len(members[0])), MANIFEST["width"]
    sent = [
        {
            (part, flit): generator.getrandbits(width)
            for part in range(parts)
            for flit in range(run.length)
        }
        for _ in range(MANIFEST["nodes"])
    ]
    await port.load(sent)
    cycles = await port.run(run.inputs)
    assert cycles == run.cycles, f"{cycles} cycles, not {run.cycles}"
    combine = combiner(operators[run.operation], width) if operators else max
    expected: list[Words] = [{} for _ in sent]
    for nodes in members:
        words = expected_words(collective, [sent[node] for node in nodes], run.root, combine)
        for node, received in zip(nodes, words, strict=True):
            expected[node] = received
    places = [(node, *place) for node, words in enumerate(expected) for place in words]
    generator.shuffle(places)
    received = await port.read(places)
    for (node, origin, flit), word in zip(places, received, strict=True):
        right = expected[node][origin, flit]
        assert word == right, f"flit {flit} from {origin} at node {node}: {word:#x}, not {right:#x}"
    cocotb.log.info(
        "%s of %d flits: %d words in %d cycles", collective, run.length, len(places), cycles
    )
