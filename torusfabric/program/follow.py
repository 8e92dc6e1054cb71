"""The path of a single word through a fabric: its location after each clock edge, from the program.

The program is executed on *marks* in place of data. A mark is the number of a *moment*: whenever a
component holds a marked word, a recorder notes the moment and replaces the mark.
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

#: All components that hold words; a moment has the index of one.
HOLDERS = tuple(Holder)

#: The operator for marks: the larger mark goes on, and unmarked words are 0.
LARGEST = Operator("largest", lambda a, b, w: np.maximum(a, b), lambda w: 0, lambda m, a, b: a)


class Moment(NamedTuple):
    """The location of a word after a clock edge.

    Parameters
    ----------
    cycle : int
        Clock edge from which on the word is there; the edge that takes the start pulse is number 0.
        Words in the memory before the start have cycle 0.
    holder : Holder
        Component that holds the word.
    node : int
        Node of the component.
    number : int
        Number of the memory, reader, out-port or in-port.
    """

    cycle: int
    holder: Holder
    node: int
    number: int


def follow(program: Program, origin: int, destination: int, flit: int = 0) -> list[Moment]:
    """Return the locations of a flit, from the send memory of a node to the memory of its receiver.

    In a reduction, the flit is a contribution of the origin, followed through the sums that it
    joins.

    Parameters
    ----------
    program : Program
        Program with a fixed root and one form, such as `Program.alone` of several.
    origin, destination : int
        Node that sends the flit, and node that receives it.
    flit : int
        Number of the flit in the message; in a reduce-scatter, in the destination's share.

    Raises
    ------
    InputError
        If no word goes from the origin to the destination.

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
    """Return the number, among messages that a node receives, of the first from the origin."""
    blocks, position = program.schedule.blocks, program.groups.position
    parts = blocks.origin_of(position[destination], np.arange(blocks.parts))
    there = np.flatnonzero(parts == position[origin])
    if not len(there):
        raise InputError(f"Destination must be one to which node {origin} sends, not {destination}")
    return int(there[0])


def _check(program: Program, origin: int, destination: int) -> None:
    """Refuse a pair of nodes without traffic from one to the other."""
    if program.any_root:
        raise InputError(
            "A word can be followed only from a fixed root; compile the program without root any"
        )
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
    """Return the origin and destination of a first flit with the longest path, the first such pair.

    In a reduction, the flit is a contribution.

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
        raise InputError(
            f"{program.schedule.collective} sends nothing between nodes, so no word can be "
            "followed; choose another collective"
        )
    return len(nodes) - mark, destination


def _longest(program: Program, origins: IntArray) -> IntArray:
    """Return the largest mark of a first flit that each node receives; origins mark words."""
    count = program.topology.nodes

    def with_hops(
        holder: Holder, cycle: int, words: IntArray, node: IntArray, number: IntArray
    ) -> IntArray:
        """Add, at each hop, more to a mark than the largest mark at the start."""
        return words + (words > 0) * (count + 1) if holder is Holder.LINK else words

    received = _received(program, origins, with_hops)
    longest: IntArray = received[:, :: program.flits].max(axis=1)
    return longest


def _received(program: Program, origins: IntArray, hold: Hold) -> IntArray:
    """Return the marks that all nodes receive; the first of `origins` has the largest mark."""
    nodes = program.topology.nodes
    words = np.zeros((nodes, program.send_words), np.int64)
    words[origins] = nodes - origins[:, None]
    run = Run(program.flits, 0, LARGEST if program.operators else None)
    machine = Machine(program, 0, words, run, 64, hold)
    machine.run()
    return machine.received()


class _Recorder:
    """A recorder of moments, each with the number of the moment before it."""

    def __init__(self) -> None:
        self._count = 0
        self._moments: list[IntArray] = []

    def hold(
        self, holder: Holder, cycle: int, words: IntArray, node: IntArray, number: IntArray
    ) -> IntArray:
        """Number the moments in which components hold marked words, and return the new marks."""
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
        """Return the moments up to that of a mark; the first slot is cycle `wait`."""
        moments = np.concatenate(self._moments, axis=1)
        path: list[Moment] = []
        while mark:
            mark, cycle, holder, node, number = moments[:, mark - 1].tolist()
            after = 0 if cycle == BEFORE else wait + cycle + 1
            path.append(Moment(after, HOLDERS[holder], node, number))
        return path[::-1]
