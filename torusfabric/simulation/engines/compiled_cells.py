"""Direct access to the memories of nodes in the compiled engine.

The compiled model holds every value in *native words*: C++ integers of at most 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...rtl.core.store import CellBits
from ...rtl.fabric import Fabric
from ...rtl.netlist import Role
from ...topology import IntArray
from .cells import MemoryCells, as_words
from .connections import ModuleInstances
from .elaborated import adjacent_runs
from .session import Session

__all__ = ["CompiledCells"]


class CompiledCells(MemoryCells):
    """The memories of endpoints in a compiled model."""

    def __init__(self, session: Session, fabric: Fabric) -> None:
        super().__init__(fabric)
        self._session = session
        #: By module and memory: one list of bit ranges for each copy of the memory.
        self._copies: dict[tuple[int, int], list[list[_BitRange]]] = {}
        self._member = np.full(fabric.nodes, -1)
        self._instance = np.zeros(fabric.nodes, np.int64)
        model = session.model
        for number, (name, member) in enumerate(model.connections.members.items()):
            if model.netlist.roles.get(name) is not Role.ENDPOINT:
                continue
            nodes = member.node_numbers
            self._member[nodes], self._instance[nodes] = number, np.arange(len(nodes))
            for memory, copies in member.module.banks.items():
                self.exists[nodes, memory] = True
                found = [_bit_ranges(session, member, bank, fabric.width) for bank in copies]
                if all(found):
                    self.reached[nodes, memory] = True
                    self._copies[number, memory] = found

    def write_words(
        self, nodes: IntArray, memory: IntArray, address: IntArray, words: NDArray[Any]
    ) -> None:
        """Write words into memories; see `MemoryCells.write_words`.

        Word k is written into memory ``memory[k]`` of node ``nodes[k]``, at ``address[k]``.
        """
        for copies, at in self._group_words(nodes, memory):
            for parts in copies:
                for part in parts:
                    part.write_bits(self._instance[nodes[at]], address[at], words[at])
        self._session.recompute_loops()

    def read_words(self, nodes: IntArray, memory: IntArray, address: IntArray) -> NDArray[Any]:
        """Return words of memories; see `MemoryCells.read_words`.

        Word k is read from memory ``memory[k]`` of node ``nodes[k]``, at ``address[k]``.
        """
        words = as_words(self._fabric, np.zeros(len(nodes), np.uint8))
        for copies, at in self._group_words(nodes, memory):
            instance, there = self._instance[nodes[at]], address[at]
            first, *others = (part.read_bits(instance, there, words.dtype) for part in copies[0])
            words[at] = first
            for other in others:
                words[at] |= other
        return words

    def _group_words(
        self, nodes: IntArray, memory: IntArray
    ) -> Iterator[tuple[list[list[_BitRange]], IntArray]]:
        """Group the words of an access by the memory that holds them.

        Word k is in memory ``memory[k]`` of node ``nodes[k]``. A group has the words whose nodes
        have the same endpoint module and whose memories have the same number.

        Yields
        ------
        copies : list of (list of _BitRange)
            For each copy of the memory, the native words of the model that hold its bits.
        at : ndarray of int
            The numbers k of the words in this group.
        """
        member = self._member[nodes]
        key = member * (int(memory.max(initial=0)) + 1) + memory
        for number in np.flatnonzero(np.bincount(key)).tolist():
            at = np.flatnonzero(key == number)
            yield self._copies[int(member[at[0]]), int(memory[at[0]])], at


class _BitRange(NamedTuple):
    """Some bits of all words of one memory copy, and the native words of the model with these bits.

    A word of a fabric may be cut into several native words (C++ integers of at most 64 bits) of the
    model. There is one bit range for each of them.

    Parameters
    ----------
    words : ndarray, shape (depth, instances)
        Native words that contain the bits; a memory that is a register has depth 1.
    low : int
        The lowest bit of the range within the native word.
    at : int
        The lowest bit of the range within the word of the fabric.
    width : int
        Number of bits.
    """

    words: NDArray[Any]
    low: int
    at: int
    width: int

    def write_bits(self, instance: IntArray, address: IntArray, words: NDArray[Any]) -> None:
        """Write the bits of this range into the model, and no other bits of the words.

        Word k is written at ``address[k]``, in the instance with the number ``instance[k]``.
        """
        ones, kind = (1 << self.width) - 1, self.words.dtype.type
        of = int if words.dtype == object else words.dtype.type
        bits = (words >> of(self.at) & of(ones)).astype(kind)
        keep = kind(~(ones << self.low) & (1 << 8 * self.words.itemsize) - 1)
        where = address, instance
        self.words[where] = (self.words[where] & keep) | (bits << kind(self.low))

    def read_bits(self, instance: IntArray, address: IntArray, kind: Any) -> NDArray[Any]:
        """Return words, of numpy type `kind`, in which only the bits of this range are set.

        Word k is read at ``address[k]``, in the instance with the number ``instance[k]``.
        """
        bits = self.words.reshape(-1).take(address * self.words.shape[1] + instance)
        bits = bits.astype(np.uint64)
        if self.width < 8 * self.words.itemsize:
            bits = bits >> np.uint64(self.low) & np.uint64((1 << self.width) - 1)
        bits = bits.astype(kind, copy=False)
        if not self.at:
            return bits
        return bits << (self.at if kind == np.dtype(object) else np.uint64(self.at))


def _bit_ranges(
    session: Session, member: ModuleInstances, bank: CellBits, width: int
) -> list[_BitRange]:
    """Return the native words of the model that hold the bits of one copy of a memory.

    A native word is a C++ integer of at most 64 bits. The list is empty if the model holds the copy
    in a form that this module cannot access.

    Parameters
    ----------
    session : Session
        The session, whose model holds the copy.
    member : ModuleInstances
        Module that has the memory, and its instances.
    bank : CellBits
        The memory cell of the copy, and the position of the word in the words of this cell.
    width : int
        Bits of a word of the fabric.
    """
    connections, layout, module = session.model.connections, session.model.layout, member.module
    for store in module.stores.values():
        if (store.name, store.width, store.depth) == (bank.name, bank.width, bank.depth):
            found = []
            for k, column in enumerate(store.columns):
                low = max(bank.low, column.low)
                size = min(bank.low + width, column.low + column.width) - low
                words = session.memories[connections.memory_number(member, store.cell, k)]
                words = words[bank.base :]
                found.append(_BitRange(words, low - column.low, low - bank.low, size))
            return [bits for bits in found if bits.width > 0]
    nets = module.signals.get(bank.name, ())
    if bank.depth > 1 or len(nets) != bank.width:
        return []
    at, found = 0, []
    for run in adjacent_runs(nets[bank.low : bank.low + width]):
        if run.cell not in module.pieces_of:
            return []
        for k, low, size in module.split_run(run):
            # The layout gives every instance a word of its own for registers of banks.
            words = layout.piece_words(session.now, member.first_piece + k)[None]
            found.append(_BitRange(words, low, at, size))
            at += size
    return found
