"""Packets of streams, and what can be wrong with a run: a packet, or the command, is spoiled.

Nobody may receive anything in such a run, and the next one must be as if it had not been. This
needs nothing but Python: simulations use it, and benches have a copy beside them.
"""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["Packet", "Choices", "Spoiled", "spoiled"]

#: The numbers of errors.
MODE, ROOT, LENGTH, OPERATION, PACKETS, DESTINATION = 1, 2, 3, 4, 6, 7

#: Words by which a packet is too long, at the most.
MORE = 3


class Packet(NamedTuple):
    """A packet of a stream.

    Parameters
    ----------
    number : int
        Its destination, or its origin: a position in the group.
    """

    number: int
    words: tuple[int, ...]


class Choices(NamedTuple):
    """What there is to be chosen for a run, and so what there is not.

    Parameters
    ----------
    most : int
        Words of the longest packet.
    any_length : bool
        Whether packets may be shorter.
    commands : dict of str to int
        Of each word of a command that matters, how many values there are; none without commands.
    destinations : int
        How many there are in the group; 0 where packets have none.
    destination_bits : int
        Bits by which one is said.
    """

    most: int
    any_length: bool
    commands: dict[str, int]
    destinations: int
    destination_bits: int


class Spoiled(NamedTuple):
    """What is sent in a run, and what must be said of it.

    Parameters
    ----------
    sent : list of (list of Packet)
        Of each node.
    command : dict of str to int
        The words of the command that are others than those of the run.
    """

    error: int
    sent: list[list[Packet]]
    command: dict[str, int]


#: What is done to the packets of a node.
Change = Callable[[list[Packet], random.Random], None]

#: The error of each word of a command that says what there is not.
COMMAND_ERRORS = {"mode": MODE, "length": LENGTH, "root": ROOT, "operation": OPERATION}


def spoiled(
    generator: random.Random, choices: Choices, sent: Sequence[Sequence[Packet]]
) -> Spoiled:
    """A run in which something is wrong, drawn from all that can be.

    Examples
    --------
    >>> choices = Choices(2, any_length=False, commands={}, destinations=0, destination_bits=0)
    >>> spoiled(random.Random(5), choices, [[Packet(0, (5, 6))], []]).sent
    [[Packet(number=0, words=(5,))], []]
    """
    packets, commands = bad_packets(choices, sent), list(choices.commands)
    chosen = generator.randrange(len(packets) + len(commands))
    if chosen >= len(packets):
        name = commands[chosen - len(packets)]
        return Spoiled(COMMAND_ERRORS[name], [[] for _ in sent], {name: choices.commands[name]})
    error, change = packets[chosen]
    changed = [list(of_node) for of_node in sent]
    change(generator.choice([of_node for of_node in changed if of_node]), generator)
    return Spoiled(error, changed, {})


def bad_packets(choices: Choices, sent: Sequence[Sequence[Packet]]) -> list[tuple[int, Change]]:
    """What can be wrong with the packets of a node, and the errors."""

    def too_long(packets: list[Packet], generator: random.Random) -> None:
        resize(packets, generator, choices.most + generator.randint(1, MORE))

    def to_nobody(packets: list[Packet], generator: random.Random) -> None:
        where = generator.randrange(len(packets))
        packets[where] = packets[where]._replace(number=choices.destinations)

    found: list[tuple[int, Change]] = [(PACKETS, too_long)]
    if sum(map(len, sent)) > 1 or not choices.any_length:
        found.append((PACKETS, unequal))
    if choices.destinations:
        found.append((DESTINATION, to_the_same))
        if choices.destinations < 1 << choices.destination_bits:
            found.append((DESTINATION, to_nobody))
    return found


def unequal(packets: list[Packet], generator: random.Random) -> None:
    """A packet is shorter than all others, or longer if they have but one word."""
    length = len(packets[0].words)
    resize(packets, generator, length - 1 if length > 1 else 2)


def to_the_same(packets: list[Packet], generator: random.Random) -> None:
    """Two packets are for one destination."""
    first, second = generator.sample(range(len(packets)), 2)
    packets[first] = packets[first]._replace(number=packets[second].number)


def resize(packets: list[Packet], generator: random.Random, length: int) -> None:
    """Give one of the packets another length."""
    where = generator.randrange(len(packets))
    words = packets[where].words * (length + 1)
    packets[where] = packets[where]._replace(words=words[:length])
