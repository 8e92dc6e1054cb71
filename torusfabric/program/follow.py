"""Following one word: where it is after which clock edge, by the rows of the program alone.

The program is executed on marks in place of data, of which whatever holds one says when it came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..collective import Operator
from ..errors import InputError
from ..toolchain.values import natural
from ..topology import IntArray
from .execute import BEFORE, Hold, Holder, Machine, Run

if TYPE_CHECKING:
    from .program import Program

__all__ = ["Holder", "Moment", "farthest", "follow"]

#: What holds words, by number.
HOLDERS = tuple(Holder)

#: By which words are combined of which some are marked.
LARGEST = Operator("largest", lambda a, b, w: np.maximum(a, b), lambda w: 0, lambda m, a, b: a)


class Moment(NamedTuple):
    """Where a word is after a clock edge.

    Parameters
    ----------
    cycle : int
        The clock edge from which on it is there; the edge that takes the start pulse is number 0.
        Of the memory in which it waits for the start, 0.
    number : int
        Of the memory, reader, out-port or in-port.
    """

    cycle: int
    holder: Holder
    node: int
    number: int


def follow(program: Program, origin: int, destination: int, flit: int = 0) -> list[Moment]:
    """Where a flit of a message is, from the send memory of a node to the memory of its receiver.

    In a reduction it is the contribution of the origin that is followed, in the sums that it is
    part of.

    Parameters
    ----------
    program : Program
        Of one root, and of one collective, or `Program.alone` of several.
    origin, destination : int
        Nodes.
    flit : int
        Which flit of the message; of a reduce-scatter, which of its share.

    Raises
    ------
    InputError
        If no word goes from there to there.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3", "allgather", algorithm="matching"))
    >>> for moment in follow(program, 0, 1):
    ...     print(moment.cycle, moment.node, moment.holder.value)
    0 0 memory
    4 0 word read
    5 0 register of an out-port
    6 1 memory
    """
    _check(program, origin, destination)
    index = natural("Flit", flit)
    if index >= program.flits:
        raise InputError(f"Flit must be from 0 to {program.flits - 1}, not {flit}")
    if program.schedule.collective.from_each:
        index += program.flits * _part(program, origin, destination)
    recorder = _Recorder()
    received = _received(program, np.array([origin]), recorder.hold)
    return list(recorder.path(int(received[destination, index]), program.timing.run_setup))


def _part(program: Program, origin: int, destination: int) -> int:
    """Which of the messages that a node receives is the first that comes from another."""
    blocks, position = program.schedule.blocks, program.groups.position
    parts = blocks.origin_of(position[destination], np.arange(blocks.parts))
    there = np.flatnonzero(parts == position[origin])
    if not len(there):
        raise InputError(f"Destination must be one to which node {origin} sends, not {destination}")
    return int(there[0])


def _check(program: Program, origin: int, destination: int) -> None:
    """Refuse nodes between which nothing goes."""
    if program.any_root:
        raise InputError("A word must be followed in a fabric of one root, not of any root")
    collective, groups, nodes = program.schedule.collective, program.groups, program.topology.nodes
    for name, node in (("Origin", origin), ("Destination", destination)):
        if natural(name, node) >= nodes:
            raise InputError(f"{name} must be a node from 0 to {nodes - 1}, not {node}")
    if origin == destination:
        raise InputError(f"Destination must be another node than the origin, not {destination}")
    if groups.group[origin] != groups.group[destination]:
        own = groups.members[groups.group[origin]].tolist()
        raise InputError(
            f"Destination must be in the group of the origin, {own}, not {destination}"
        )
    root = int(groups.members[groups.group[origin], collective.root or 0])
    if collective.single_origin and origin != root:
        raise InputError(f"Origin must be the root, node {root}, not {origin}")
    if collective.to_root and destination != root:
        raise InputError(f"Destination must be the root, node {root}, not {destination}")


def farthest(program: Program) -> tuple[int, int]:
    """The origin and destination of the first flit with the longest path: the first of them.

    In a reduction these are those of a contribution, to a node where any has the longest path.

    Raises
    ------
    InputError
        If nothing is sent.
    """
    nodes = np.arange(program.topology.nodes)
    destination = int(_longest(program, nodes).argmax())
    hops, mark = divmod(
        int(_longest(program, nodes[nodes != destination])[destination]), len(nodes) + 1
    )
    if not hops:
        raise InputError(f"Collective must send something, not {program.schedule.collective}")
    return len(nodes) - mark, destination


def _longest(program: Program, origins: IntArray) -> IntArray:
    """The largest mark of a first flit that each node receives, given the nodes that mark words."""
    count = program.topology.nodes

    def with_hops(
        holder: Holder, cycle: int, words: IntArray, node: IntArray, number: IntArray
    ) -> IntArray:
        """Marks to which each hop adds more than all of them are at first."""
        return words + (words > 0) * (count + 1) if holder is Holder.LINK else words

    received = _received(program, origins, with_hops)
    longest: IntArray = received[:, :: program.flits].max(axis=1)
    return longest


def _received(program: Program, origins: IntArray, hold: Hold) -> IntArray:
    """What all receive where words of some nodes are marked, those of the first by the largest.

    Of words that are combined, the largest goes on.
    """
    nodes = program.topology.nodes
    words = np.zeros((nodes, program.send_words), np.int64)
    words[origins] = nodes - origins[:, None]
    run = Run(program.flits, 0, LARGEST if program.operators else None)
    machine = Machine(program, 0, words, run, 64, hold)
    machine.run()
    return machine.received()


class _Recorder:
    """Marks are numbers of moments, each of which has that of the moment before."""

    def __init__(self) -> None:
        self._count = 0
        self._moments: list[IntArray] = []

    def hold(
        self, holder: Holder, cycle: int, words: IntArray, node: IntArray, number: IntArray
    ) -> IntArray:
        """Number the moments in which holders have marked words."""
        there = np.nonzero(words)
        node, number = (np.broadcast_to(each, words.shape)[there] for each in (node, number))
        before = words[there] if cycle > BEFORE else 0 * node
        known = np.full((2, len(node)), [[cycle], [HOLDERS.index(holder)]])
        self._moments.append(np.stack([before, *known, node, number]))
        words = words.copy()
        words[there] = self._count + 1 + np.arange(len(node))
        self._count += len(node)
        return words

    def path(self, mark: int, wait: int) -> list[Moment]:
        """The moments up to that of a mark, in a run that waits so many cycles at its start."""
        moments = np.concatenate(self._moments, axis=1)
        path: list[Moment] = []
        while mark:
            mark, cycle, holder, node, number = moments[:, mark - 1].tolist()
            after = 0 if cycle == BEFORE else wait + cycle + 1
            path.append(Moment(after, HOLDERS[holder], node, number))
        return path[::-1]
