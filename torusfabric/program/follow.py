"""The path of a single word through a fabric: its location after each clock edge, from the program.

The program is executed on *marks* in place of data. A *moment* says which component holds a word
after which clock edge, and a mark is the number of a moment. Whenever a component takes a marked
word, a recorder adds a moment, notes in it the former mark, and makes the number of this moment the
new mark. The path of a word thus follows from its last mark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..collective import Operator
from ..errors import InputError
from ..toolchain.values import parse_non_negative_int
from ..topology import IntArray
from .execute import BEFORE_FIRST_SLOT, Holder, HoldWords, Machine, Run

if TYPE_CHECKING:
    from .program import Program

__all__ = ["Holder", "Moment", "farthest_pair", "follow_flit", "follow_readers"]

#: All components that hold words; a moment has the index of one.
HOLDERS = tuple(Holder)

#: The operator for marks: the larger mark goes on, and unmarked words are 0.
LARGEST_MARK = Operator("largest", lambda a, b, w: np.maximum(a, b), lambda w: 0, lambda m, a, b: a)


class Moment(NamedTuple):
    """One entry of the path of a word: the component that holds the word from a clock edge on.

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


def follow_flit(program: Program, origin: int, destination: int, flit: int = 0) -> list[Moment]:
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
    >>> for moment in follow_flit(program, 0, 1):
    ...     print(moment.cycle, moment.node, moment.holder.value)
    0 0 memory
    4 0 word read
    5 0 register of an out-port
    6 1 memory
    """
    _require_traffic(program, origin, destination)
    index = parse_non_negative_int("Flit", flit)
    if index >= program.flits:
        raise InputError(f"Flit must be from 0 to {program.flits - 1}, not {flit}")
    if program.schedule.collective.from_each:
        index += program.flits * _message_number(program, origin, destination)
    recorder = _Recorder()
    received = _received_marks(program, np.array([origin]), recorder.hold_words)
    return list(recorder.path_to_mark(int(received[destination, index]), program.timing.run_setup))


def _message_number(program: Program, origin: int, destination: int) -> int:
    """Return the index of the message from `origin` among the messages that `destination` receives.

    If there are several from this origin, it is the index of the first.
    """
    blocks, position = program.schedule.blocks, program.groups.position_of_node
    parts = blocks.origin_of_part(position[destination], np.arange(blocks.messages_per_receiver))
    there = np.flatnonzero(parts == position[origin])
    if not len(there):
        raise InputError(f"Destination must be one to which node {origin} sends, not {destination}")
    return int(there[0])


def _require_traffic(program: Program, origin: int, destination: int) -> None:
    """Raise an `InputError` unless the collective sends data from `origin` to `destination`."""
    if program.any_root:
        raise InputError(
            "A word can be followed only from a fixed root; compile the program without root any"
        )
    collective, groups, nodes = program.schedule.collective, program.groups, program.topology.nodes
    for name, node in (("Origin", origin), ("Destination", destination)):
        if parse_non_negative_int(name, node) >= nodes:
            raise InputError(f"{name} must be a node from 0 to {nodes - 1}, not {node}")
    if origin == destination:
        raise InputError(f"Destination must be another node than the origin, not {destination}")
    if groups.group_of_node[origin] != groups.group_of_node[destination]:
        own = groups.members[groups.group_of_node[origin]].tolist()
        raise InputError(
            f"Destination must be in the group of the origin, {own}, not {destination}"
        )
    root = int(groups.members[groups.group_of_node[origin], collective.root or 0])
    if collective.single_origin and origin != root:
        raise InputError(f"Origin must be the root, node {root}, not {origin}")
    if collective.to_root and destination != root:
        raise InputError(f"Destination must be the root, node {root}, not {destination}")


def farthest_pair(program: Program) -> tuple[int, int]:
    """Return origin and destination of the message with the most hops on its path.

    The path is that of the first flit, or in a reduction of the first contribution. Of several such
    messages, the one with the lowest origin, and then the lowest destination, is taken.

    Raises
    ------
    InputError
        If nothing is sent.
    """
    nodes = np.arange(program.topology.nodes)
    destination = int(_largest_mark(program, nodes).argmax())
    hops, mark = divmod(
        int(_largest_mark(program, nodes[nodes != destination])[destination]), len(nodes) + 1
    )
    if not hops:
        raise InputError(
            f"{program.schedule.collective} sends nothing between nodes, so no word can be "
            "followed; choose another collective"
        )
    return len(nodes) - mark, destination


def _largest_mark(program: Program, origins: IntArray) -> IntArray:
    """Return, for each node, a number that tells the longest path among the words that it receives.

    The program is executed on numbers, called marks, in place of data. With N nodes, node v of
    `origins` sends the mark N - v, and each hop adds N + 1. A word from v therefore arrives as
    ``hops * (N + 1) + N - v``. The largest of these numbers is returned.
    """
    count = program.topology.nodes

    def with_hops(
        holder: Holder, cycle: int, words: IntArray, node: IntArray, number: IntArray
    ) -> IntArray:
        """Return the marks that components are about to hold, with N + 1 added at each hop.

        N is the number of nodes, and a hop is counted in the register of an out-port. The function
        is the argument `hold` of `Machine`: `holder` is the kind of the components, and `words` are
        the marks.
        """
        return words + (words > 0) * (count + 1) if holder is Holder.LINK else words

    received = _received_marks(program, origins, with_hops)
    longest: IntArray = received[:, :: program.flits].max(axis=1)
    return longest


def _received_marks(program: Program, origins: IntArray, hold: HoldWords) -> IntArray:
    """Execute the program on marks; return those that arrive, shape (nodes, receive words).

    A mark is a number in place of a word. With N nodes, node v of `origins` sends the mark N - v,
    and all other nodes send 0, which is no mark. At each clock edge the function `hold` is given
    the marks that components are about to hold, and returns those that they hold instead.
    """
    nodes = program.topology.nodes
    words = np.zeros((nodes, program.send_words), np.int64)
    words[origins] = nodes - origins[:, None]
    run = Run(program.flits, 0, LARGEST_MARK if program.operators else None)
    machine = Machine(program, 0, words, run, 64, hold)
    machine.run()
    return machine.received_words()


def follow_readers(
    program: Program, form: int, root: int, marks: IntArray, memory: IntArray, base: IntArray,
    *, nodes: IntArray,
) -> IntArray:  # fmt: skip
    """Return the mark of each received block: the number of the reader that has sent it last.

    A reader is a component of a node that reads words from a memory.

    Parameters
    ----------
    program : Program
        Program that does not combine words.
    form, root : int
        Number of the form, and root of the run.
    marks : ndarray of int, shape (nodes, readers)
        The mark of each reader, or 0 for a reader that passes the mark of the word that it reads.
    memory, base : ndarray of int, shape (nodes, blocks)
        Memory and first address of each block.
    nodes : ndarray of int, shape (nodes,)
        The node of each row of `memory` and `base`.

    Returns
    -------
    ndarray of int, shape (nodes, blocks)
        The mark of each block; 0 for blocks that no marked reader has sent.

    Examples
    --------
    On a ring of three, reader 0 sends in both directions, and node 0 receives two blocks.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3", "allgather", algorithm="matching"), flits=2)
    >>> memory, marks, node = np.array([[0, 1, 2]]), np.full((3, 1), 7), np.array([0])
    >>> follow_readers(program, 0, 0, marks, memory, 0 * memory, nodes=node).tolist()
    [[7, 7, 0]]
    """
    mode, length, root = next(
        (number, start, each)
        for number, mode in enumerate(program.modes)
        for start in mode.range_starts
        for each in (range(mode.roots) if mode.roots else [root])
        if mode.form_of(start, each) == form
    )
    length = length if program.any_length else program.flits
    words = program.part(form).layout.send_words(length)

    def hold_words(
        holder: Holder, cycle: int, words: IntArray, node: IntArray, number: IntArray
    ) -> IntArray:
        """Replace the marks that readers are about to hold; see `HoldWords`."""
        if holder is not Holder.READER:
            return words
        own = np.broadcast_to(marks[node, number], words.shape)
        return np.where(own > 0, own, words)

    run = Run(length, root, None)
    machine = Machine(program, mode, np.zeros((len(marks), words), np.int64), run, 64, hold_words)
    machine.shorten_blocks()
    machine.run()
    found: IntArray = machine.memory[nodes[:, None], machine.first[memory] + base]
    return found


class _Recorder:
    """A recorder of the locations of marked words, from which the path of a word is found.

    A mark is a number in place of a word. Each entry of the record, a moment, has the component
    that took a mark, and the number of the moment in which the word was taken before.
    """

    def __init__(self) -> None:
        self._count = 0
        self._moments: list[IntArray] = []

    def hold_words(
        self, holder: Holder, cycle: int, words: IntArray, node: IntArray, number: IntArray
    ) -> IntArray:
        """Record the components that take marked words, and return the new marks of these words.

        The new mark of a word is the number of the moment that is recorded for it. At the edge of
        `cycle`, components of the kind `holder` are about to hold the marks `words`, where 0 is no
        mark. Each component has a `node`, and a `number` among the components of its kind.
        """
        there = np.nonzero(words)
        node, number = (np.broadcast_to(each, words.shape)[there] for each in (node, number))
        before = words[there] if cycle > BEFORE_FIRST_SLOT else 0 * node
        known = np.full((2, len(node)), [[cycle], [HOLDERS.index(holder)]])
        self._moments.append(np.stack([before, *known, node, number]))
        words = words.copy()
        words[there] = self._count + 1 + np.arange(len(node))
        self._count += len(node)
        return words

    def path_to_mark(self, mark: int, wait: int) -> list[Moment]:
        """Return the path of the word whose last mark is `mark`: its moments in order.

        A mark is the number of a moment; `mark` is the number of the last one. The recorder counts
        cycles from the first row of the run. The result counts them from the start, `wait` cycles
        earlier.
        """
        moments = np.concatenate(self._moments, axis=1)
        path: list[Moment] = []
        while mark:
            mark, cycle, holder, node, number = moments[:, mark - 1].tolist()
            after = 0 if cycle == BEFORE_FIRST_SLOT else wait + cycle + 1
            path.append(Moment(after, HOLDERS[holder], node, number))
        return path[::-1]
