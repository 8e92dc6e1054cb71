"""Runs that are no good: a packet, or the command, is spoiled in a way that the fabric must notice.

Nobody may receive anything in such a run, and the next one must be as if it had not been.
"""

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from runs import MANIFEST, Run, members
from stream_port import Packet

__all__ = ["Spoiled", "spoiled"]

#: The numbers of errors.
MODE, ROOT, LENGTH, OPERATION, PACKETS, DESTINATION = 1, 2, 3, 4, 6, 7

#: The longest packet, and whether packets may be shorter.
MOST, ANY_LENGTH = MANIFEST.get("max_flits") or MANIFEST["flits"], "max_flits" in MANIFEST

#: Words by which a packet is too long, at the most.
MORE = 3

#: What is done to the packets of a node.
Change = Callable[[list[Packet], random.Random], None]


class Spoiled(NamedTuple):
    """What is sent in a run, and what must be said of it.

    Parameters
    ----------
    run : Run
    error : int
        0 if nothing is wrong.
    packets : list of (list of Packet)
        Of each node.
    chosen : dict of str to int
        The words of the command that are others than those of the run.
    """

    run: Run
    error: int
    packets: list[list[Packet]]
    chosen: dict[str, int]


def spoiled(generator: random.Random, run: Run, packets: list[list[Packet]]) -> Spoiled:
    """A run with something wrong."""
    kinds: list[tuple[int, Change | dict[str, int]]] = [*bad_packets(run, packets)]
    if "command_words" in MANIFEST:
        kinds += bad_commands(run)
    error, change = generator.choice(kinds)
    if isinstance(change, dict):
        return Spoiled(run, error, [[] for _ in packets], change)
    packets = [list(of_node) for of_node in packets]
    change(generator.choice([of_node for of_node in packets if of_node]), generator)
    return Spoiled(run, error, packets, {})


def bad_commands(run: Run) -> list[tuple[int, dict[str, int]]]:
    """What there is not, and the errors."""
    modes = len(MANIFEST["modes"]) + ("barrier" in MANIFEST)
    found = [(MODE, {"mode": modes}), (LENGTH, {"length": MOST + 1})]
    if run.mode.get("root") == "any":
        found.append((ROOT, {"root": len(members(run.mode)[0])}))
    if len(run.mode["operators"]) > 1:
        found.append((OPERATION, {"operation": len(run.mode["operators"])}))
    return found


def bad_packets(run: Run, packets: list[list[Packet]]) -> list[tuple[int, Change]]:
    """What can be wrong with the packets of a node, and the errors."""
    found: list[tuple[int, Change]] = [(PACKETS, too_long)]
    if sum(map(len, packets)) > 1 or not ANY_LENGTH:
        found.append((PACKETS, unequal))
    if run.mode["collective"] in ("scatter", "alltoall", "reduce-scatter"):
        size, port = len(members(run.mode)[0]), MANIFEST["ports"]["s_axis_0_tdest"]
        found.append((DESTINATION, to_the_same))
        if size < 1 << port["width"]:
            found.append((DESTINATION, to_nobody(size)))
    return found


def too_long(packets: list[Packet], generator: random.Random) -> None:
    """A packet is longer than any may be."""
    resize(packets, generator, MOST + generator.randint(1, MORE))


def unequal(packets: list[Packet], generator: random.Random) -> None:
    """A packet is shorter than all others, or longer if they have but one word."""
    length = len(packets[0].words)
    resize(packets, generator, length - 1 if length > 1 else 2)


def to_the_same(packets: list[Packet], generator: random.Random) -> None:
    """Two packets are for one destination."""
    first, second = generator.sample(range(len(packets)), 2)
    packets[first] = packets[first]._replace(number=packets[second].number)


def to_nobody(size: int) -> Change:
    """A packet is for a destination that there is not."""

    def change(packets: list[Packet], generator: random.Random) -> None:
        where = generator.randrange(len(packets))
        packets[where] = packets[where]._replace(number=size)

    return change


def resize(packets: list[Packet], generator: random.Random, length: int) -> None:
    """Give one of the packets another length."""
    where = generator.randrange(len(packets))
    words: Any = packets[where].words * (length + 1)
    packets[where] = packets[where]._replace(words=words[:length])
