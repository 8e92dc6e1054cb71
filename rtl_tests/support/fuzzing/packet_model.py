"""Model of a fabric with streams: answers to right and wrong packets, by the documentation.

The model knows neither hardware nor algorithm. Words are added modulo the width, or their maximum
is taken.
"""

from collections.abc import Iterator
from functools import reduce
from typing import NamedTuple

__all__ = ["MODES", "Command", "Mode", "Outcome", "Packet", "Streams"]

#: Numbers of errors in a status.
MODE, ROOT, LENGTH, OPERATION, PACKETS, DESTINATION, COMMAND = 1, 2, 3, 4, 6, 7, 12


class Mode(NamedTuple):
    """Rules of a collective: the nodes that send, and the nodes that receive.

    Parameters
    ----------
    personal : bool
        True if a node sends a packet for each destination.
    root_sends, root_receives : bool
        True if only the root sends, or only the root receives.
    combines : bool
        True if a received packet combines the packets of all origins.
    """

    personal: bool = False
    root_sends: bool = False
    root_receives: bool = False
    combines: bool = False

    @property
    def rooted(self) -> bool:
        """True if the collective has a root."""
        return self.root_sends or self.root_receives


#: Rules of each collective, by name.
MODES = {
    "allgather": Mode(),
    "alltoall": Mode(personal=True),
    "broadcast": Mode(root_sends=True),
    "scatter": Mode(personal=True, root_sends=True),
    "gather": Mode(root_receives=True),
    "reduce": Mode(root_receives=True, combines=True),
    "reduce-scatter": Mode(personal=True, combines=True),
    "allreduce": Mode(combines=True),
    "barrier": Mode(),
}


class Packet(NamedTuple):
    """A packet: the destination or origin, and the words."""

    number: int
    words: tuple[int, ...]


class Command(NamedTuple):
    """Choices of a run."""

    mode: int = 0
    length: int = 0
    root: int = 0
    operation: int = 0
    tag: int = 0


class Outcome(NamedTuple):
    """Expected result of a run.

    Parameters
    ----------
    error : int
        Number of the error, or 0.
    length : int
        Words of a packet, if there is no error.
    received : list of (list of Packet)
        Packets that each node receives.
    """

    error: int
    length: int
    received: list[list[Packet]]


class Streams(NamedTuple):
    """Properties of a fabric that decide its answers.

    Parameters
    ----------
    nodes, width : int
        Number of nodes, and bits of a word.
    modes : tuple of str
        Names of the collectives.
    most : int
        Words of the longest packet.
    any_length : bool
        True if packets may be shorter.
    any_root : bool
        True if each run chooses its root; else the root is node 0.
    operators : int
        Number of operators that a run can choose: the sum, then the maximum.
    commands : bool
        True if each run needs a command.
    """

    nodes: int
    width: int
    modes: tuple[str, ...]
    most: int
    any_length: bool = False
    any_root: bool = False
    operators: int = 1
    commands: bool = False

    def refusal(self, command: Command, words: int) -> int:
        """Return the number of the error for which a command is refused, or 0.

        A command with other than five words is refused as such. Otherwise the error with the lowest
        number counts.
        """
        if words != len(command):
            return COMMAND
        if command.mode >= len(self.modes):
            return MODE
        mode = MODES[self.modes[command.mode]]
        if self.any_root and mode.rooted and command.root >= self.nodes:
            return ROOT
        fits = (0, self.most) if not self.any_length else range(self.most + 1)
        if command.length not in fits:
            return LENGTH
        return OPERATION if mode.combines and command.operation >= self.operators else 0

    def root(self, command: Command) -> int:
        """Return the root of a run."""
        return command.root if self.any_root else 0

    def packets(self, command: Command, node: int) -> int:
        """Return the number of packets that a node sends for a run."""
        mode = MODES[self.modes[command.mode]]
        if mode.root_sends and node != self.root(command):
            return 0
        return self.nodes if mode.personal else 1

    def outcome(self, command: Command, sent: list[list[Packet]]) -> Outcome:
        """Return the outcome of a run, given the packets of all nodes in the right number."""
        nothing: list[list[Packet]] = [[] for _ in range(self.nodes)]
        mode = MODES[self.modes[command.mode]]
        for packets in sent if mode.personal else ():
            numbers = sorted(packet.number for packet in packets)
            if packets and numbers != list(range(self.nodes)):
                return Outcome(DESTINATION, 0, nothing)
        lengths = {len(packet.words) for packets in sent for packet in packets}
        if len(lengths) > 1 or not lengths <= self._lengths(command):
            return Outcome(PACKETS, 0, nothing)
        messages = [{p.number * mode.personal: p.words for p in packets} for packets in sent]
        received = [list(self._received(command, messages, node)) for node in range(self.nodes)]
        return Outcome(0, lengths.pop(), received)

    def _lengths(self, command: Command) -> set[int]:
        """Return the allowed lengths of packets."""
        if self.modes[command.mode] == "barrier":
            return {1}
        if command.length:
            return {command.length}
        return set(range(1, self.most + 1)) if self.any_length else {self.most}

    def _received(
        self, command: Command, messages: list[dict[int, tuple[int, ...]]], node: int
    ) -> Iterator[Packet]:
        """Yield the packets that a node receives.

        `messages` has the words of each origin by destination; a message to all nodes has the
        number 0.
        """
        name, root = self.modes[command.mode], self.root(command)
        mode = MODES[name]
        if mode.root_receives and node != root:
            return
        origins = [root] if mode.root_sends else range(self.nodes)
        if name == "barrier":
            origins = [node]
        parts = [messages[origin][node * mode.personal] for origin in origins]
        words = [[word % (1 << self.width) for word in part] for part in parts]
        if mode.combines:
            flits = zip(*words, strict=True)
            yield Packet(0, tuple(self._combined(each, command) for each in flits))
        else:
            for origin, part in zip(origins, words, strict=True):
                yield Packet(0 if name == "barrier" else origin, tuple(part))

    def _combined(self, words: tuple[int, ...], command: Command) -> int:
        if self.operators > 1 and command.operation == 1:
            return max(words)
        return reduce(lambda a, b: (a + b) % (1 << self.width), words)
