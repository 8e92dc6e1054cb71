"""Packets of streams, and runs with a fault in one packet or in the command.

In a run with a fault no node may receive anything, and the next run must be unaffected. The module
needs only Python, because simulations import it and emitted benches contain a copy.
"""

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

__all__ = ["Packet", "FaultChoices", "FaultyRun", "spoil_run"]

#: The error numbers of runs that faults here can cause.
MODE, ROOT, LENGTH, OPERATION, PACKETS, DESTINATION = 1, 2, 3, 4, 6, 7

#: The most words by which a packet is made too long.
MOST_EXTRA_WORDS = 3


class Packet(NamedTuple):
    """A packet of a stream.

    Parameters
    ----------
    number : int
        The destination of a sent packet, the origin of a received one: a position in the group.
    words : tuple of (int or None)
        The flits of the packet; None for a flit of a received packet that has no meaning.
    """

    number: int
    words: tuple[int | None, ...]

    def has_words_of(self, right: "Packet") -> bool:
        """Return True if this packet has the number, the length and the known words of another."""
        same = [want in (None, word) for word, want in zip(self.words, right.words, strict=False)]
        return self.number == right.number and len(self.words) == len(right.words) and all(same)


class FaultChoices(NamedTuple):
    """The limits of packets and commands of a run; a run with a fault exceeds one of them.

    Parameters
    ----------
    most : int
        Flits of the longest packet.
    any_length : bool
        True if packets may be shorter than the longest one.
    commands : dict of str to int
        For each word of a command by which runs choose something, by name, the number of its valid
        values; empty if the fabric has no commands.
    destinations : int
        Number of destinations in the group; 0 if packets have none.
    destination_bits : int
        Width of `tdest`, which may have room for more numbers than there are destinations.
    """

    most: int
    any_length: bool
    commands: dict[str, int]
    destinations: int
    destination_bits: int


class FaultyRun(NamedTuple):
    """The changed packets or command of a run with a fault, and the expected error.

    Parameters
    ----------
    error : int
        The error that the fabric must report.
    sent : list of (list of Packet)
        The packets that each node sends, one of which may be faulty.
    command : dict of str to int
        The changed words of the command, by name; empty if a packet is faulty.
    """

    error: int
    sent: list[list[Packet]]
    command: dict[str, int]


#: A function that spoils the packets of a node in place.
Change = Callable[[list[Packet], random.Random], None]

#: A function that tells from the packets of a node if they can have a fault.
Condition = Callable[[Sequence[Packet]], bool]

#: The error of each word of a command if its value is invalid.
COMMAND_ERRORS = {"mode": MODE, "length": LENGTH, "root": ROOT, "operation": OPERATION}


def spoil_run(
    generator: random.Random, choices: FaultChoices, sent: Sequence[Sequence[Packet]]
) -> FaultyRun:
    """Put a random fault into a packet or the command of a run; return the changed run.

    Parameters
    ----------
    generator : random.Random
        Source of the random choices: fault, node and packet.
    choices : FaultChoices
        The limits of packets and commands; a fault exceeds one of them.
    sent : sequence of (sequence of Packet)
        The packets of each node without a fault.

    Examples
    --------
    The fault is here a packet with one word in place of two.

    >>> choices = FaultChoices(2, any_length=False, commands={}, destinations=0, destination_bits=0)
    >>> spoil_run(random.Random(5), choices, [[Packet(0, (5, 6))], []]).sent
    [[Packet(number=0, words=(5,))], []]
    """
    packets, commands = possible_packet_faults(choices, sent), list(choices.commands)
    chosen = generator.randrange(len(packets) + len(commands))
    if chosen >= len(packets):
        name = commands[chosen - len(packets)]
        return FaultyRun(COMMAND_ERRORS[name], [[] for _ in sent], {name: choices.commands[name]})
    error, possible, change = packets[chosen]
    changed = [list(of_node) for of_node in sent]
    change(generator.choice([of_node for of_node in changed if possible(of_node)]), generator)
    return FaultyRun(error, changed, {})


def possible_packet_faults(
    choices: FaultChoices, sent: Sequence[Sequence[Packet]]
) -> list[tuple[int, Condition, Change]]:
    """Return the faults that packets can have: (error, nodes that can have it, function).

    The function changes the packets of one node in place, so that they have the fault. The nodes
    are given by a condition for their packets.

    `choices` has the limits of the run, and `sent` the packets of each node without a fault.
    """

    def make_too_long(packets: list[Packet], generator: random.Random) -> None:
        resize_packet(packets, generator, choices.most + generator.randint(1, MOST_EXTRA_WORDS))

    def send_to_nobody(packets: list[Packet], generator: random.Random) -> None:
        where = generator.randrange(len(packets))
        packets[where] = packets[where]._replace(number=choices.destinations)

    def send_unplanned(packets: list[Packet], generator: random.Random) -> None:
        unplanned = {*range(choices.destinations)} - {packet.number for packet in packets}
        where = generator.randrange(len(packets))
        packets[where] = packets[where]._replace(number=generator.choice(sorted(unplanned)))

    found: list[tuple[int, Condition, Change]] = [(PACKETS, has_packets, make_too_long)]
    if sum(map(len, sent)) > 1 or not choices.any_length:
        found.append((PACKETS, has_packets, make_unequal))
    if choices.destinations:
        found += [
            (DESTINATION, lambda packets: len(packets) > 1, repeat_destination),
            (PACKETS, lambda packets: 0 < len(packets) < choices.destinations, send_unplanned),
        ]
        if choices.destinations < 1 << choices.destination_bits:
            found.append((DESTINATION, has_packets, send_to_nobody))
    return [fault for fault in found if any(map(fault[1], sent))]


def has_packets(packets: Sequence[Packet]) -> bool:
    """Return True if a node sends packets, which are given."""
    return bool(packets)


def make_unequal(packets: list[Packet], generator: random.Random) -> None:
    """Make one packet a word shorter than it must be, or longer if it has one word.

    `packets` are those of one node, which are changed in place. `generator` chooses the packet.
    """
    where = generator.randrange(len(packets))
    number, words = packets[where]
    packets[where] = Packet(number, words[:-1] if len(words) > 1 else words * 2)


def repeat_destination(packets: list[Packet], generator: random.Random) -> None:
    """Give two of the packets the same destination.

    `packets` are those of one node, which are changed in place. `generator` chooses the two.
    """
    first, second = generator.sample(range(len(packets)), 2)
    packets[first] = packets[first]._replace(number=packets[second].number)


def resize_packet(packets: list[Packet], generator: random.Random, length: int) -> None:
    """Give a random packet another length.

    `packets` are those of one node, which are changed in place. `length` is the new number of
    words, and `generator` chooses the packet.
    """
    where = generator.randrange(len(packets))
    words = packets[where].words * (length + 1)
    packets[where] = packets[where]._replace(words=words[:length])
