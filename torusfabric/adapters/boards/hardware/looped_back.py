"""Reference model of a single board whose link ports are looped back to itself.

`looped_back_words` predicts the words that the nodes of one block receive if no other board is
connected. It is used to test one board by itself, with `Block`.

All blocks have the same link ports. A word that the block sends to a neighbour comes back at the
link port at which it would arrive on that neighbour. So the block takes the place of all its
neighbours. In a schedule in which blocks behave differently, nodes then read some words that no
node has sent. These words are unknown, and `looped_back_words` marks the results that depend on
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....collective import Operator
from ....program.execute import Machine, Run, Words
from ....topology.boards import Boards

if TYPE_CHECKING:
    from ....program.program import Program

__all__ = ["looped_back_words"]


class _LoopedBlocks(Machine):
    """Execution of a program on all blocks, each of which runs without the others.

    A block is the part of the torus on one board. Its link ports are connected to each other, so
    that it takes the place of its own neighbours.

    Parameters
    ----------
    boards : Boards
        The blocks of the torus.
    seed : int or None
        Seed of random values for words that no node has sent; None for zeros.
    *machine
        Arguments of `Machine`, the class that executes a program.
    """

    def __init__(self, boards: Boards, seed: int | None, *machine: Any) -> None:
        self._random = None if seed is None else np.random.default_rng(seed)
        super().__init__(*machine)
        (board, number), (node, port) = boards.node_locations, self.upstream
        self.upstream = boards.nodes_by_board[board[:, None], number[node]], port

    def _write_messages(self, words: Words) -> None:
        self.memory[:, :-1] = self._random_words(self.memory[:, :-1])
        super()._write_messages(words)

    def idle_words(self) -> Words:
        """Return the words on all ports in a cycle without data.

        They are random, because nobody may depend on them; without a seed they are zeros.
        """
        return self._random_words(super().idle_words())

    def _read_words(self, cycle: int) -> Words:
        # A read of an address that holds no word may return any value, too.
        nothing = self.memory[:, -1].copy()
        self.memory[:, -1] = self._random_words(nothing)
        words = super()._read_words(cycle)
        self.memory[:, -1] = nothing
        return words

    def _random_words(self, zeros: Words) -> Words:
        """Return random words of the shape of `zeros`; without a seed, return `zeros`."""
        if self._random is None:
            return zeros
        return self._random.integers(1 << 64, size=zeros.shape, dtype=np.uint64)


def looped_back_words(
    program: Program,
    boards: Boards,
    board: int,
    words: Words,
    *,
    width: int = 64,
    **chosen: int | None,
) -> tuple[Words, Words]:
    """Return the words that a block receives if it runs alone, its link ports looped back.

    Parameters
    ----------
    program : Program
        Program of the whole torus.
    boards : Boards
        The blocks of the torus.
    board : int
        Number of the block.
    words : ndarray, shape (nodes, send words)
        Words that the nodes of the torus send; see `Program.execute`.
    width : int
        Bits of a word.
    **chosen
        Choices of the run, such as `mode` and `length`; see `Program.execute`.

    Returns
    -------
    words : ndarray, shape (nodes, receive words)
        Received words of all nodes of the torus; zeros for nodes of other boards.
    known : ndarray of bool, shape (nodes, receive words)
        True where the word depends only on words that nodes of the block send.

    Examples
    --------
    All blocks behave alike, so each node receives the words of the nodes of its own block.

    >>> import torusfabric as tf
    >>> torus = tf.Torus(4, link_latency=9)
    >>> program = tf.compile(tf.plan(torus, "allgather", algorithm="matching"))
    >>> sent = np.arange(4)[:, None]
    >>> words, known = looped_back_words(program, Boards.parse("2", torus), 1, sent)
    >>> words[2], known[2]
    (array([2, 3, 2, 3]), array([ True,  True,  True,  True]))
    """
    number = program.mode_number(chosen.get("mode"))
    operator = program.modes[number].operator_of(chosen.get("operation"))
    run = Run(program.length_of(chosen.get("length")), chosen.get("root") or 0, operator)
    # Random words, added instead of combined by other operators, reveal each dependence on words
    # that no node has sent: the result then differs between two seeds.
    adding = run._replace(operator=Operator.parse("add") if program.operators else None)
    sent = np.random.default_rng(0).integers(1 << 64, size=words.shape, dtype=np.uint64)

    def run_looped(words: Words, run: Run, width: int, seed: int | None = None) -> Words:
        blocks = _LoopedBlocks(boards, seed, program, number, words, run, width)
        blocks.run()
        return blocks.received_words()

    first, second = (run_looped(sent, adding, 64, seed) for seed in (1, 2))
    found, here = run_looped(words, run, width), boards.node_locations[0][:, None] == board
    return found * here, (first == second) & here
