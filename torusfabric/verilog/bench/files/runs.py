"""Runs that are drawn: what is chosen for each, and what nodes send."""

import json
import math
import os
import random
from pathlib import Path
from typing import Any, NamedTuple

from collectives import Combine, Words, combiner, expected_words, groups, parts_sent

__all__ = [
    "CYCLES",
    "MANIFEST",
    "RUNS",
    "SEED",
    "Run",
    "choose",
    "delivered",
    "draw_sample",
    "draw_words",
    "members",
]

MANIFEST = json.loads(Path(__file__).parents[1].joinpath("manifest.json").read_text())

#: Runs of each mode, and which.
RUNS = int(os.environ.get("RUNS") or 3)
SEED = int(os.environ.get("SEED") or 1)

#: Cycles of all runs with what is written and read: of a bench that ends within a minute, by what
#: Icarus does for a node; or any number.
CYCLES = float(os.environ.get("CYCLES") or 200_000 // MANIFEST["nodes"])


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


def choose(
    generator: random.Random, mode: dict[str, Any], number: int, cycles: float = math.inf
) -> Run:
    """A run of a mode: the longest first, the shortest, where forms begin and end, then any.

    None is longer than what takes half of some cycles, where there is a choice.
    """
    size = len(members(mode)[0])
    root = generator.randrange(size) if mode["root"] == "any" else mode["root"] or 0
    operation = generator.randrange(len(mode["operators"]) or 1)
    most = MANIFEST.get("max_flits")
    if not most:
        return Run(mode, MANIFEST["flits"], root, operation)
    while most > 1 and Run(mode, most, root, operation).cycles > cycles / 2:
        most = max(most * 3 // 4, 1)
    edges = [min(length, most) for start in starts_of(mode) for length in (start, start - 1)]
    lengths = (most, 1, *edges, generator.randint(1, most))
    return Run(mode, lengths[min(number, len(lengths) - 1)], root, operation)


def runs_of(mode: dict[str, Any]) -> int:
    """How many runs there are of a mode: more if it has several forms."""
    return RUNS + 2 * len(starts_of(mode))


def starts_of(mode: dict[str, Any]) -> list[int]:
    """The least length for which each form of a mode serves, but for the first form."""
    first: dict[str, int] = {}
    for form in mode.get("forms", []):
        first.setdefault(form["schedule_digest"], form["from"])
    return [*first.values()][1:]


def members(mode: dict[str, Any]) -> list[list[int]]:
    """The nodes of each group of a mode, by their positions in it."""
    if "without" in mode:
        return [[node for node in range(MANIFEST["nodes"]) if node not in mode["without"]]]
    found: list[list[int]] = groups(MANIFEST["topology"], MANIFEST["nodes"], mode["axes"])
    return found


def draw_words(generator: random.Random, run: Run, most: float = math.inf) -> list[Words]:
    """Random words for what each node could send, by part and flit.

    Of the flits there are no more than make up the most words, the last one among them.
    """
    parts = parts_sent(run.mode, len(members(run.mode)[0]))
    last, flits = run.length - 1, list(range(run.length))
    count = most / (MANIFEST["nodes"] * parts)
    if count < run.length:
        flits = [*sorted(generator.sample(range(last), math.ceil(count) - 1)), last]
    return [
        {
            (part, flit): generator.getrandbits(MANIFEST["width"])
            for part in range(parts)
            for flit in flits
        }
        for _ in range(MANIFEST["nodes"])
    ]


def draw_sample(
    generator: random.Random, run: Run, most: float
) -> tuple[list[Words], dict[tuple[int, int, int], int]]:
    """Random words to be sent, and what then arrives, by node, origin and flit in any order.

    There are no more than the most words of each: those are sent that others depend on.
    """
    sent = draw_words(generator, run, most)
    every = [
        ((node, origin, flit), word)
        for node, words in enumerate(delivered(run, sent))
        for (origin, flit), word in words.items()
    ]
    generator.shuffle(every)
    if max(sum(map(len, sent)), len(every)) <= most:
        return sent, dict(every)
    named: list[dict[tuple[int, int], Any]] = [
        {place: frozenset([(node, *place)]) for place in words} for node, words in enumerate(sent)
    ]
    needed = delivered(run, named, lambda sets: frozenset().union(*sets))
    chosen: set[tuple[int, int, int]] = set()
    for (node, origin, flit), _ in every:
        more = needed[node][origin, flit] - chosen
        if not chosen or len(chosen) + len(more) <= most:
            chosen |= more
    received = {
        (node, origin, flit): word
        for (node, origin, flit), word in every
        if needed[node][origin, flit] <= chosen
    }
    written = [
        {place: word for place, word in words.items() if (node, *place) in chosen}
        for node, words in enumerate(sent)
    ]
    return written, dict(list(received.items())[: math.ceil(most)])


def delivered(
    run: Run, sent: list[dict[tuple[int, int], Any]], combine: Combine | None = None
) -> list[dict[tuple[int, int], Any]]:
    """What each node receives in a run, by origin and flit; combined as the run does, or else."""
    if combine is None:
        combine = combiner(MANIFEST, run.mode, run.operation)
    expected: list[Words] = [{} for _ in sent]
    for nodes in members(run.mode):
        of_group = [sent[node] for node in nodes]
        words = expected_words(run.mode, of_group, run.root, combine)
        for node, received in zip(nodes, words, strict=True):
            expected[node] = received
    return expected
