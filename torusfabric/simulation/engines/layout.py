"""Memory layout of all pieces: one word for all instances that always hold the same value.

Many instances compute the same values, for example the control signals of all nodes. Such instances
share a word, which is computed once. They are found like the equivalent states of an automaton, for
each *piece* (part of a register or an output): instances start in one class, and a class is split
until the values of all of its members depend on members of the same classes. The words of a piece
lie side by side in the order of instances, so that a loop over them reads adjacent words::

    piece 0   | class of nodes 0, 2, 4, 6 | class of nodes 1, 3 | node 5 | node 7 |   (slots 0..3)
    piece 1   | all nodes |                                                          (slot 0)

The *arena* is the byte array that holds the words of all pieces. A *class* here is a set of
instances of a piece that hold equal values in every cycle.
"""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from ...topology import IntArray
from .connections import INPUTS, Connections, ModuleInstances
from .elaborated import ElaboratedModule
from .expressions import native_bytes
from .kernels import LoopRead

__all__ = ["ArenaLayout"]


def _hash_values(values: np.ndarray) -> np.ndarray:
    """Return a 64-bit hash of each value; equal values have equal hashes."""
    values = values.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ values >> np.uint64(shift)) * np.uint64(factor)
    return values ^ values >> np.uint64(31)


class ArenaLayout:
    """Addresses of all simulated words in the arena, the byte array of all simulated values.

    A piece is a part of a register or an output. Instances that always hold the same value of a
    piece share one word; the words of a piece are adjacent, and the index of a word among them is
    its *slot*.

    Attributes
    ----------
    slot : list of (ndarray of int, shape (instances,))
        For each piece, the slot of each instance.
    first : list of (ndarray of int, shape (words,))
        For each piece, the lowest instance that uses each slot.
    base, size : list of int
        For each piece, the byte offset of slot 0, and the bytes per word.
    end : int
        Bytes of all pieces.
    """

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        # By module and input part: the driving pieces, with -1 for a constant.
        self._behind: dict[tuple[int, int], set[int]] = {}
        self.slot: list[np.ndarray] = []
        self.first: list[np.ndarray] = []
        self.base: list[int] = []
        self.size: list[int] = []
        self.end = 0
        self._assign_addresses(self._refine_classes())

    def _refine_classes(self) -> list[np.ndarray]:
        """Return, for each piece, a class number for each instance.

        A piece is a part of a register or an output. Instances with the same class number of a
        piece hold equal values of it in every cycle.
        """
        classes = self._initial_classes()
        counts = [len(np.unique(each)) for each in classes]
        leaves: dict[int, list[LoopRead]] = {}
        readers: dict[int, list[int]] = defaultdict(list)
        for number, (member, _) in enumerate(self.connections.pieces):
            if counts[number] < member.count and member.module.name != INPUTS:
                sources = [*self.reads_with_drivers(number)]
                leaves[number] = [leaf for _, leaf in sources]
                for source in set().union(*(behind for behind, _ in sources)):
                    readers[source].append(number)
        waiting = {*leaves}
        while waiting:
            number = min(waiting)
            waiting.remove(number)
            member, mixed = self.connections.pieces[number][0], _hash_values(classes[number])
            for k, leaf in enumerate(leaves[number]):
                of_leaf = self._classes_of_read(member, leaf, classes)
                mixed = _hash_values(mixed + of_leaf * np.uint64(2 * k + 3))
            kept, found = np.unique(mixed, return_inverse=True)
            if len(kept) != counts[number]:
                counts[number] = len(kept)
                classes[number] = found.reshape(-1).astype(np.int64) | number << 32
                waiting.update(readers[number])
            if counts[number] == member.count:
                del leaves[number]
            waiting &= leaves.keys()
        return classes

    def _initial_classes(self) -> list[np.ndarray]:
        """Return, for each piece, a class number for each instance, before classes are split.

        A piece is a part of a register or an output, and a class a set of instances that may hold
        equal values of it in every cycle. Instances of a ROM are in one class if they have the same
        contents. Each instance is a class of its own if the piece depends on a writable memory, or
        is a register with words of a node's memory. All other instances of a module begin in one
        class.
        """
        classes: list[np.ndarray] = []
        for number, (member, k) in enumerate(self.connections.pieces):
            module, total = member.module, member.count
            own = np.zeros(total, np.int64)
            if member.roms is not None:
                own = member.roms
            elif isinstance(module, ElaboratedModule) and total > 1:
                held = any(
                    leaf.origin == "memory" and module.stores[leaf.number].writers
                    for leaf in self.connections.next_value_lines(number).leaves
                )
                # `MemoryCells` writes the registers of banks, so each instance needs a word of its
                # own.
                if held or module.pieces[k].cell in module.bank_cells:
                    own = np.arange(total)
            classes.append(own | number << 32)
        return classes

    def reads_with_drivers(self, number: int) -> Iterable[tuple[set[int], LoopRead]]:
        """Yield the values that a piece is computed from, each with the pieces that drive it.

        A piece is a part of a register or an output; `number` is its piece number. Values that are
        read from memories are left out. Why: a piece that reads a writable memory has a word for
        each instance anyway.

        Yields
        ------
        drivers : set of int
            Numbers of the driving pieces, with -1 for a constant. For a part of an input, `number`
            itself is among them, so that the piece is examined again after its instances have been
            split.
        leaf : LoopRead
            The value that is read.
        """
        member, _ = self.connections.pieces[number]
        for leaf in self.connections.next_value_lines(number).leaves:
            if leaf.origin == "piece":
                yield {member.first_piece + leaf.number}, leaf
            elif leaf.origin == "input":
                key = id(member), leaf.number
                if key not in self._behind:
                    found = {*np.unique(member.subs[leaf.number].source).tolist()}
                    self._behind[key] = found
                # The piece is its own source, so that `_refine_classes` visits it again after a
                # split.
                yield self._behind[key] | {number}, leaf

    def _classes_of_read(
        self, member: ModuleInstances, leaf: LoopRead, classes: list[np.ndarray]
    ) -> np.ndarray:
        """Return a number for each instance of a module, equal if the instances read equal values.

        Parameters
        ----------
        member : ModuleInstances
            Module whose instances read the value.
        leaf : LoopRead
            The value: a piece of the module, or a part of an input.
        classes : list of ndarray
            For each piece, the class number of each instance so far. Instances with equal numbers
            are taken to hold equal values.
        """
        if leaf.origin == "piece":
            return classes[member.first_piece + leaf.number].astype(np.uint64)
        sub = member.subs[leaf.number]
        found = _hash_values(sub.value) | np.uint64(1 << 63)
        for source in self._behind[id(member), leaf.number]:
            if source >= 0:
                at = sub.source == source
                shifted = sub.shift[at].astype(np.uint64) << np.uint64(56)
                found[at] = classes[source][sub.instance[at]].astype(np.uint64) ^ shifted
        return found

    def _assign_addresses(self, classes_of: list[np.ndarray]) -> None:
        """Assign addresses in the arena, the byte array of all simulated values.

        A class is a set of instances of a module that hold equal values of a piece in every cycle.
        Each class gets one word.

        Parameters
        ----------
        classes_of : list of ndarray
            For each piece (part of a register or an output), the class number of each instance.
        """
        for number, classes in enumerate(classes_of):
            _, first, found = np.unique(classes, return_index=True, return_inverse=True)
            order = np.argsort(first)
            rank = np.empty_like(order)
            rank[order] = np.arange(len(order))
            self.slot.append(rank[found.reshape(-1)])
            self.first.append(first[order])
            size = native_bytes(self.connections.piece_at(number).width)
            self.base.append(self.end)
            self.size.append(size)
            self.end = -(-(self.end + size * len(order)) // 64) * 64

    def piece_words(self, arena: np.ndarray, number: int) -> np.ndarray:
        """Return the words of a piece, one for each group of instances that share a word.

        A piece is a part of a register or an output; `number` is its piece number. The result is a
        view of `arena`: writes into it change the simulated values.
        """
        size, base = self.size[number], self.base[number]
        end = base + size * len(self.first[number])
        return arena[base:end].view(f"u{size}")

    def piece_addresses(self, number: int, instances: IntArray) -> IntArray:
        """Return the byte offset in the arena of the word of a piece, for each of some instances.

        The arena is the byte array of all simulated values. A piece is a part of a register or an
        output; `number` is its piece number.
        """
        found: IntArray = self.base[number] + self.size[number] * self.slot[number][instances]
        return found
