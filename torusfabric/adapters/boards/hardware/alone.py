"""A block of a torus on several boards, alone: its link ports lead back to its own.

All blocks are alike, so that each word that would go to another board comes back where one from
another board would. It is what the same nodes of that board send, if that does the same; where it
does not, some words come from where nothing is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....collective import Operator
from ....program.execute import Machine, Run, Words
from ....topology.boards import Boards

if TYPE_CHECKING:
    from ....program.program import Program

__all__ = ["alone"]


class _LoopedBlocks(Machine):
    """All blocks, each of which has its own link ports looped back.

    Parameters
    ----------
    seed : int or None
        Seed of the random values that stand where no words are; by default zeros stand there.
    """

    def __init__(self, boards: Boards, seed: int | None, *machine: Any) -> None:
        self._random = None if seed is None else np.random.default_rng(seed)
        super().__init__(*machine)
        (board, number), (node, port) = boards.located, self.upstream
        self.upstream = boards.nodes[board[:, None], number[node]], port

    def _load(self, words: Words) -> None:
        self.memory[:, :-1] = self._any(self.memory[:, :-1])
        super()._load(words)

    def idle(self) -> Words:
        """Return the words of ports that no word passes."""
        return self._any(super().idle())

    def _read(self, cycle: int) -> Words:
        # A read from where nothing is may give any word, too.
        nothing = self.memory[:, -1].copy()
        self.memory[:, -1] = self._any(nothing)
        words = super()._read(cycle)
        self.memory[:, -1] = nothing
        return words

    def _any(self, zeros: Words) -> Words:
        """Return words that may be anything."""
        if self._random is None:
            return zeros
        return self._random.integers(1 << 64, size=zeros.shape, dtype=np.uint64)


def alone(
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
    board : int
        The number of the block.
    words, width, **chosen
        As of `Program.execute`, for all nodes of the torus.

    Returns
    -------
    words : ndarray, shape (nodes, receive words)
        Of all nodes of the torus; zeros for those of other boards.
    known : ndarray of bool, shape (nodes, receive words)
        Whether they come from words that nodes of the block send, and these alone.

    Examples
    --------
    All blocks do the same, so each node receives from the nodes of its own.

    >>> import torusfabric as tf
    >>> torus = tf.Torus(4, link_latency=9)
    >>> program = tf.compile(tf.plan(torus, "allgather", algorithm="matching"))
    >>> words, known = alone(program, Boards.parse("2", torus), 1, np.arange(4)[:, None])
    >>> words[2], known[2]
    (array([2, 3, 2, 3]), array([ True,  True,  True,  True]))
    """
    number = program.mode_number(chosen.get("mode"))
    operator = program.modes[number].operator_of(chosen.get("operation"))
    run = Run(program.length_of(chosen.get("length")), chosen.get("root") or 0, operator)
    # Sums that show where words come from.
    adding = run._replace(operator=Operator.parse("add") if program.operators else None)
    sent = np.random.default_rng(0).integers(1 << 64, size=words.shape, dtype=np.uint64)

    def received(words: Words, run: Run, width: int, seed: int | None = None) -> Words:
        blocks = _LoopedBlocks(boards, seed, program, number, words, run, width)
        blocks.run()
        return blocks.received()

    first, second = (received(sent, adding, 64, seed) for seed in (1, 2))
    found, here = received(words, run, width), boards.located[0][:, None] == board
    return found * here, (first == second) & here
