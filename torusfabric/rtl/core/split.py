"""Splitting of memories for cores whose memory port writes during runs (`concurrent`).

A memory that the memory port writes may also store words that arrive in a run. A memory has one
write port, so that both cannot write it at the same time. Such a memory is therefore split in two:
the words that the node sends stay in it, and the words that arrive go to a new memory::

    program        hardware
    memory m   ->  memory m        words that the node sends
                   memory M + k    words that arrive (split k, of a program with M memories)

A *burst* is a series of words at successive addresses, which a node reads in a row. The first
address of a burst decides which of the two memories a run reads. Users of the memory port find the
new locations by `SplitRows.locate_words`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...errors import InputError
from ...program import Program
from ...program.fields import IDLE, Action, Order
from ...topology import BoolArray, IntArray
from .rows import RowField, Rows

__all__ = ["MemorySplit", "SplitRows"]


class MemorySplit(NamedTuple):
    """A memory of the program that becomes two memories in hardware.

    Parameters
    ----------
    memory : int
        The number of the memory in the program, which keeps the words that the node sends.
    received : int
        The number of the new memory, for the words that arrive.
    arrives : ndarray of bool, shape (variants, words)
        True for the addresses at which arriving words are stored.
    shift : int
        The address in the memory of the program that becomes address 0 of the new memory.
    """

    memory: int
    received: int
    arrives: BoolArray
    shift: int


class SplitRows(Rows):
    """The rows of a program for a core whose memory port writes during runs.

    A memory that is written by the port and by runs is split into two: one for words that the node
    sends, and a new one for words that arrive.

    Attributes
    ----------
    splits : tuple of MemorySplit
        The memories that are split.

    Examples
    --------
    Memory 0 is split: words that arrive go to memory 4, where address 0 stands for address 1 of
    memory 0.

    >>> import torusfabric as tf
    >>> rows = SplitRows(tf.compile(tf.plan("3x3", "broadcast"), flits=4, root="any"))
    >>> [(split.memory, split.received, split.shift) for split in rows.splits]
    [(0, 4, 1), (1, 5, 1), (2, 6, 1), (3, 7, 1)]
    """

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        self.splits: tuple[MemorySplit, ...] = ()
        splits: list[MemorySplit] = []
        for number, memory in enumerate(program.memories):
            write = super()._join_point(Action.WRITE, number)
            if memory.own and write is not None and (write.values >= 0).any():
                received = len(program.memories) + len(splits)
                splits.append(self._plan_split(number, received, write))
        for split in splits:
            depth = self.depth[:, split.memory].copy()
            if split.shift:
                self.depth[:, split.memory] = np.minimum(depth, split.shift)
            behind = np.where(depth > 0, np.maximum(depth - split.shift, 0), depth)
            self.depth = np.concatenate([self.depth, behind[:, None]], axis=1)
            memory = program.memories[split.memory]
            self.memories = (*self.memories, type(memory)(memory.ports))
        self.splits = tuple(splits)

    def _plan_split(self, number: int, received: int, write: RowField) -> MemorySplit:
        """Return the split of memory `number`, into one for sent words and one for arriving words.

        Parameters
        ----------
        number : int
            The number of the memory in the program.
        received : int
            The number of the new memory, for the words that arrive.
        write : RowField
            The first address that the memory writes in each row.

        Raises
        ------
        InputError
            If a row reads, in one series of words, both words that the node sends and words that
            arrived.
        """
        words = int(self.depth[:, number].max())
        arrives = np.zeros((len(self.used), words), bool)
        for row, variant in np.argwhere(write.values >= 0).tolist():
            arrives[variant, self._row_addresses(number, row, int(write.values[row, variant]))] = (
                True
            )
        boundary = int(np.flatnonzero(arrives.any(axis=0)).min())
        above = arrives[:, boundary:].any(axis=1)
        sent = 0
        for reader in range(self.loops[0].sources.n_readers):
            memory, first = (super(SplitRows, self)._join_point(action, reader)
                             for action in (Action.MEMORY, Action.READ))  # fmt: skip
            if memory is None or first is None:
                continue
            reads = (memory.values == number) & (first.values >= 0)
            for row, variant in np.argwhere(reads).tolist():
                burst = self._row_addresses(number, row, int(first.values[row, variant]))
                of_burst = arrives[variant, burst]
                if of_burst.any() != of_burst.all():
                    raise InputError(
                        f"Memory {number} holds sent and received words of one burst, which ports "
                        "that write during runs cannot serve; choose another algorithm or top"
                    )
                if not of_burst.any():
                    sent = max(sent, int(burst.max()) + 1)
        fits = boundary >= max(sent, 1) and bool(above.any())
        return MemorySplit(number, received, arrives, boundary if fits else 0)

    def _row_addresses(self, memory: int, row: int, first: int) -> IntArray:
        """Return all addresses in a memory that a row reads or writes.

        `memory` and `row` are the numbers of the memory and of the row, and `first` is the first of
        the addresses.
        """
        form = int(self.form_of_row[row])
        loop = self.loops[form]
        if loop.order is Order.FLIT:
            found = first + np.arange(loop.flits) * super().pitch_of(memory)[form]
        else:
            found = first + np.arange(int(self.blocks[row]) * loop.flits)
        return np.minimum(found, int(self.depth[:, memory].max()) - 1)

    def locate_words(
        self, variants: IntArray, memory: IntArray, address: IntArray, *, received: bool
    ) -> tuple[IntArray, IntArray]:
        """Return the memory and the address of words in hardware, given those in the program.

        They differ because a memory of the program that is written by runs and by the memory port
        becomes two memories in hardware.

        Parameters
        ----------
        variants : ndarray of int, shape (nodes,)
            The behaviour (variant) that each node executes, as an index into `used`.
        memory, address : ndarray of int, shape (nodes, words)
            The memory and address of each word in the program.
        received : bool
            True for words that nodes receive, False for words that they send.
        """
        memory, address = memory.copy(), address.copy()
        for split in self.splits if received else ():
            at = np.clip(address, 0, split.arrives.shape[1] - 1)
            there = split.arrives[variants[:, None], at] & (address >= 0)
            there &= memory == split.memory
            memory[there] = split.received
            address[there] -= split.shift
        return memory, address

    def port_read_memories(self, memories: frozenset[int]) -> frozenset[int]:
        """Return the memories that the memory port reads, given the memories of received words.

        The port does not read memories of sent words, because the port overwrites them with the
        words of the next run while it reads the results of the last.
        """
        split = {each.memory: each.received for each in self.splits}
        return frozenset(
            split.get(number, number)
            for number in memories
            if number in split or not self.memories[number].own
        )

    def pitch_of(self, memory: int) -> tuple[int, ...]:
        """Return the distance between the addresses of successive flits of a block, for each form.

        Parameters
        ----------
        memory : int
            The number of the memory in hardware, where a memory of the program can be two.
        """
        sent = {each.received: each.memory for each in self.splits}
        return super().pitch_of(sent.get(memory, memory))

    def _join_point(self, action: Action, number: int) -> RowField | None:
        """Return the values of a control point in all rows, with memory numbers of the hardware.

        A control point is a selector, an address or an enable of a node. A memory that is written
        by runs and by the memory port is split in two, so the hardware has more memories than the
        program. `action` and `number` are those of `Rows.field`.
        """
        if action in (Action.WRITE, Action.SOURCE, Action.TAP):
            return self._split_store_values(action, number)
        found = super()._join_point(action, number)
        if found is None or action not in (Action.MEMORY, Action.READ):
            return found
        memory, first = (
            super(SplitRows, self)._join_point(each, number)
            for each in (Action.MEMORY, Action.READ)
        )
        if memory is None or first is None:
            return found
        values = found.values
        for split in self.splits:
            at = np.clip(first.values, 0, split.arrives.shape[1] - 1)
            behind = split.arrives[np.arange(len(self.used))[None, :], at]
            behind &= (memory.values == split.memory) & (first.values >= 0)
            moved = first.values - split.shift if action is Action.READ else split.received
            values = np.where(behind, moved, values)
        return RowField(values, found.delays)

    def _split_store_values(self, action: Action, number: int) -> RowField | None:
        """Return the values, in all rows, of a write address or another value that stores words.

        `number` is the number of a memory in hardware, where a memory of the program can be split
        in two. `action` says which of its values is meant, such as `Action.WRITE`.
        """
        if any(split.memory == number for split in self.splits):
            return None
        behind = next((each for each in self.splits if each.received == number), None)
        found = super()._join_point(action, behind.memory if behind else number)
        if found is None or behind is None or action is not Action.WRITE:
            return found
        values = np.where(found.values >= 0, found.values - behind.shift, IDLE)
        return RowField(values, found.delays)
