"""Packets of streams, and faults of runs: a packet, or the command, is spoiled.

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
    """The choices for a run, from which follow those that there are not.

    Parameters
    ----------
    most : int
        Words of the longest packet.
    any_length : bool
        True if packets may be shorter.
    commands : dict of str to int
        For each word of a command that matters, the number of its values; empty without commands.
    destinations : int
        Number of destinations in the group; 0 where packets have none.
    destination_bits : int
        Width of `tdest`, which may tell more of them apart than there are.
    """

    most: int
    any_length: bool
    commands: dict[str, int]
    destinations: int
    destination_bits: int


class Spoiled(NamedTuple):
    """A run with a fault.

    Parameters
    ----------
    error : int
        The error that the fabric must report.
    sent : list of (list of Packet)
        The packets that each node sends.
    command : dict of str to int
        The words of the command that differ from those of the run.
    """

    error: int
    sent: list[list[Packet]]
    command: dict[str, int]


#: A change of the packets of a node.
Change = Callable[[list[Packet], random.Random], None]

#: The error of each word of a command that says what there is not.
COMMAND_ERRORS = {"mode": MODE, "length": LENGTH, "root": ROOT, "operation": OPERATION}


def spoiled(
    generator: random.Random, choices: Choices, sent: Sequence[Sequence[Packet]]
) -> Spoiled:
    """Return a run with a random fault.

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
    """Return the errors that packets of a node can have, and the changes that make them."""

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
    """Make a packet shorter than all others, or longer if they have but one word."""
    length = len(packets[0].words)
    resize(packets, generator, length - 1 if length > 1 else 2)


def to_the_same(packets: list[Packet], generator: random.Random) -> None:
    """Send two packets to one destination."""
    first, second = generator.sample(range(len(packets)), 2)
    packets[first] = packets[first]._replace(number=packets[second].number)


def resize(packets: list[Packet], generator: random.Random, length: int) -> None:
    """Give one of the packets another length."""
    where = generator.randrange(len(packets))
    words = packets[where].words * (length + 1)
    packets[where] = packets[where]._replace(words=words[:length])
