"""What a fabric with streams must do with packets, right and wrong, by the pages on streams alone.

It knows no hardware and no algorithm. Words are added modulo the width, or the greatest is taken.
"""

from collections.abc import Iterator
from functools import reduce
from typing import NamedTuple

__all__ = ["MODES", "Command", "Mode", "Outcome", "Packet", "Streams"]

#: Numbers of errors.
MODE, ROOT, LENGTH, OPERATION, PACKETS, DESTINATION, COMMAND = 1, 2, 3, 4, 6, 7, 12


class Mode(NamedTuple):
    """What decides who sends and who receives in a collective.

    Parameters
    ----------
    personal : bool
        Whether there is a packet for each destination.
    root_sends, root_receives : bool
        Whether the root alone does.
    combines : bool
        Whether a packet that is received is made from those of all origins.
    """

    personal: bool = False
    root_sends: bool = False
    root_receives: bool = False
    combines: bool = False

    @property
    def rooted(self) -> bool:
        """Whether it has a root."""
        return self.root_sends or self.root_receives


#: By the names of the collectives.
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
    """What is chosen for a run."""

    mode: int = 0
    length: int = 0
    root: int = 0
    operation: int = 0
    tag: int = 0


class Outcome(NamedTuple):
    """What must come of a run.

    Parameters
    ----------
    error : int
    length : int
        Words of a packet, if all is right.
    received : list of (list of Packet)
        Of each node.
    """

    error: int
    length: int
    received: list[list[Packet]]


class Streams(NamedTuple):
    """What a fabric promises.

    Parameters
    ----------
    nodes, width : int
    modes : tuple of str
        The names of its collectives.
    most : int
        Words of the longest packet.
    any_length : bool
        Whether packets may be shorter.
    any_root : bool
        Whether each run has a root of its own; else it is node 0.
    operators : int
        Among how many a run chooses, the sum first, then the greatest.
    commands : bool
        Whether each run needs one.
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
        """Why a command is refused, or 0: that it has other than five words, or the first reason
        by its number.
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
        """The root of a run."""
        return command.root if self.any_root else 0

    def packets(self, command: Command, node: int) -> int:
        """How many packets a node sends for a run."""
        mode = MODES[self.modes[command.mode]]
        if mode.root_sends and node != self.root(command):
            return 0
        return self.nodes if mode.personal else 1

    def outcome(self, command: Command, sent: list[list[Packet]]) -> Outcome:
        """What comes of the packets of all nodes, as many as they have to send."""
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
        """What lengths packets may have."""
        if self.modes[command.mode] == "barrier":
            return {1}
        if command.length:
            return {command.length}
        return set(range(1, self.most + 1)) if self.any_length else {self.most}

    def _received(
        self, command: Command, messages: list[dict[int, tuple[int, ...]]], node: int
    ) -> Iterator[Packet]:
        """What a node receives, given what each sends by destination, or as number 0 to all."""
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
