"""Random runs: mode, length, root and operator of each run, and the words that nodes send.

The manifest beside the bench says which runs the fabric allows.
"""

import json
import math
import os
import random
from pathlib import Path
from typing import Any, NamedTuple

from collectives import (
    Combine,
    Words,
    combine_function,
    expected_words,
    groups_of_axes,
    operand_orders,
    random_word,
    sent_part_count,
)

__all__ = ["CYCLES", "MANIFEST", "RUNS", "SEED", "Run", "choose_run", "expected_deliveries",
           "random_sample", "random_send_words", "groups_of_mode"]  # fmt: skip

MANIFEST = json.loads(Path(__file__).parents[1].joinpath("manifest.json").read_text())

#: Number of runs of each mode, and seed of their random choices.
RUNS = int(os.environ.get("RUNS") or 3)
SEED = int(os.environ.get("SEED") or 1)

#: About the cycles of all runs, with those to write and read words. The default lets Icarus end
#: within a minute; any number is allowed.
CYCLES = float(os.environ.get("CYCLES") or 200_000 // MANIFEST["nodes"])


class Run(NamedTuple):
    """The choices of a run.

    Parameters
    ----------
    mode : dict
        Entry of the manifest for the mode.
    length : int
        Flits of a message.
    root : int
        Position of the root in its group.
    operation : int
        Number of the operator in the mode.
    """

    mode: dict[str, Any]
    length: int
    root: int
    operation: int

    @property
    def inputs(self) -> dict[str, int]:
        """Value of each input that chooses a run; a fabric may lack some of these inputs."""
        chosen = self._asdict()
        return chosen | {"mode": self.mode["mode"]}

    @property
    def predicted_cycles(self) -> int:
        """Cycles from the start to done that the manifest predicts for this run."""
        flits = -(-self.length // self.mode["chunks"])
        *_, piece = (piece for piece in self.mode["cycles"] if piece["from"] <= flits)
        constant: Any = piece["constant"]
        if isinstance(constant, list):
            constant = constant[self.root]
        return int(constant + piece["per_flit"] * flits)


def choose_run(
    generator: random.Random, mode: dict[str, Any], number: int, cycles: float = math.inf
) -> Run:
    """Return the choices for run `number` of a mode: a planned length, all others random.

    The first runs have the longest length, the shortest, and the lengths where forms begin and end;
    further runs have random lengths. The longest is reduced until a run takes at most half of
    `cycles`, so that the test does not take too long. `generator` is the source of the random
    choices.
    """
    size = len(groups_of_mode(mode)[0])
    root = generator.randrange(size) if mode["root"] == "any" else mode["root"] or 0
    operation = generator.randrange(len(mode["operators"]) or 1)
    most = MANIFEST.get("max_flits")
    if not most:
        return Run(mode, MANIFEST["flits"], root, operation)
    while most > 1 and Run(mode, most, root, operation).predicted_cycles > cycles / 2:
        most = max(most * 3 // 4, 1)
    edges = [min(length, most) for start in form_starts(mode) for length in (start, start - 1)]
    lengths = (most, 1, *edges, generator.randint(1, most))
    return Run(mode, lengths[min(number, len(lengths) - 1)], root, operation)


def run_count(mode: dict[str, Any]) -> int:
    """Return the number of runs of a mode: `RUNS`, and two more for each form after the first."""
    return RUNS + 2 * len(form_starts(mode))


def form_starts(mode: dict[str, Any]) -> list[int]:
    """Return the shortest length that each form of a mode serves, except the first form."""
    first: dict[str, int] = {}
    for form in mode.get("forms", []):
        first.setdefault(form["schedule_digest"], form["from"])
    return [*first.values()][1:]


def groups_of_mode(mode: dict[str, Any]) -> list[list[int]]:
    """Return the nodes of each group of a mode, in the order of their positions."""
    if "groups" in mode:
        listed: list[list[int]] = mode["groups"]
        return listed
    if "without" in mode:
        return [[node for node in range(MANIFEST["nodes"]) if node not in mode["without"]]]
    found: list[list[int]] = groups_of_axes(MANIFEST["topology"], MANIFEST["nodes"], mode["axes"])
    return found


def random_send_words(generator: random.Random, run: Run, most: float = math.inf) -> list[Words]:
    """Return random words that each node sends: a dict (part, flit) -> word for each node.

    A part is the data for one other node, or for all.

    Parameters
    ----------
    generator : random.Random
        Source of the random words.
    run : Run
        The run for which the words are.
    most : float
        Limit of the number of words, all nodes together. If all parts would have more, the same
        random flits of each part are returned, always with the last one.
    """
    parts = sent_part_count(run.mode, max(map(len, groups_of_mode(run.mode))))
    last, flits = run.length - 1, list(range(run.length))
    count = most / (MANIFEST["nodes"] * parts)
    if count < run.length:
        flits = [*sorted(generator.sample(range(last), math.ceil(count) - 1)), last]
    return [
        {
            (part, flit): random_word(generator, MANIFEST["width"], run.mode["operators"])
            for part in range(parts)
            for flit in flits
        }
        for _ in range(MANIFEST["nodes"])
    ]


def random_sample(
    generator: random.Random, run: Run, most: float
) -> tuple[list[Words], dict[tuple[int, int, int], int]]:
    """Return random words to send, and the words that must then arrive.

    Parameters
    ----------
    generator : random.Random
        Source of the random words.
    run : Run
        The run that sends the words.
    most : float
        Largest number of words to send, and of words to check. If there are more, a random sample
        is checked, and only words that it depends on are sent.

    Returns
    -------
    sent : list of dict
        For each node, the words to send, by (part, flit).
    received : dict
        The words to check, by (node, origin, flit), in random order.
    """
    sent = random_send_words(generator, run, most)
    every = [
        ((node, origin, flit), word)
        for node, words in enumerate(expected_deliveries(run, sent))
        for (origin, flit), word in words.items()
    ]
    generator.shuffle(every)
    if max(sum(map(len, sent)), len(every)) <= most:
        return sent, dict(every)
    named: list[dict[tuple[int, int], Any]] = [
        {place: frozenset([(node, *place)]) for place in words} for node, words in enumerate(sent)
    ]
    needed = expected_deliveries(run, named, lambda sets: frozenset().union(*sets))
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


def expected_deliveries(
    run: Run, sent: list[dict[tuple[int, int], Any]], combine: Combine | None = None
) -> list[dict[tuple[int, int], Any]]:
    """Return the words that each node receives in a run: for each node, (origin, flit) -> word.

    Parameters
    ----------
    run : Run
        The run, which has the mode and the root.
    sent : list of dict
        For each node, the words that it sends, by (part, flit).
    combine : function of list -> word, optional
        Operator of a reduction; by default that of the run.
    """
    if combine is None:
        combine = combine_function(MANIFEST, run.mode, run.operation)
    expected: list[Words] = [{} for _ in sent]
    for group, nodes in enumerate(groups_of_mode(run.mode)):
        of_group = [sent[node] for node in nodes]
        orders = operand_orders(run.mode, run.length, run.root, group)
        words = expected_words(run.mode, of_group, run.root, combine, orders)
        for node, received in zip(nodes, words, strict=True):
            expected[node] = received
    return expected
