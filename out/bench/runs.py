"""Runs that are drawn: what is chosen for each, and what nodes send."""

import json
import os
import random
from pathlib import Path
from typing import Any, NamedTuple

from collectives import Words, combiner, expected_words, groups, parts_sent

__all__ = ["MANIFEST", "RUNS", "SEED", "Run", "choose", "delivered", "draw_words", "members"]

MANIFEST = json.loads(Path(__file__).parents[1].joinpath("manifest.json").read_text())

#: Runs of each mode, and which.
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


def choose(generator: random.Random, mode: dict[str, Any], number: int) -> Run:
    """A run of a mode: the longest first, then the shortest, then any."""
    most = MANIFEST.get("max_flits")
    lengths = (most, 1, generator.randint(1, most)) if most else (MANIFEST["flits"],)
    size = len(members(mode)[0])
    root = generator.randrange(size) if mode["root"] == "any" else mode["root"] or 0
    operation = generator.randrange(len(mode["operators"]) or 1)
    return Run(mode, lengths[min(number, len(lengths) - 1)], root, operation)


def members(mode: dict[str, Any]) -> list[list[int]]:
    """The nodes of each group of a mode, by their positions in it."""
    found: list[list[int]] = groups(MANIFEST["topology"], MANIFEST["nodes"], mode["axes"])
    return found


def draw_words(generator: random.Random, run: Run) -> list[Words]:
    """Random words for what each node could send, by part and flit."""
    parts = parts_sent(run.mode["collective"], len(members(run.mode)[0]))
    return [
        {
            (part, flit): generator.getrandbits(MANIFEST["width"])
            for part in range(parts)
            for flit in range(run.length)
        }
        for _ in range(MANIFEST["nodes"])
    ]


def delivered(run: Run, sent: list[Words]) -> list[Words]:
    """What each node receives in a run, by origin and flit."""
    operators = run.mode["operators"]
    combine = combiner(operators[run.operation], MANIFEST["width"]) if operators else max
    expected: list[Words] = [{} for _ in sent]
    for nodes in members(run.mode):
        of_group = [sent[node] for node in nodes]
        words = expected_words(run.mode["collective"], of_group, run.root, combine)
        for node, received in zip(nodes, words, strict=True):
            expected[node] = received
    return expected
