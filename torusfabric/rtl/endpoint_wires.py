"""How the nodes of a fabric are wired to the modules of their endpoints.

A module numbers its readers, its injection ports, and the words that it stores by itself. So nodes
of which each sends by other out-ports, or stores what comes by other in-ports, have the same
module: which point of the program stands at each of these places is data of the node, as are the
strobes by which it stores.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import TypeAlias

import numpy as np

from ..program import Program
from ..program.fields import IDLE
from ..topology import IntArray
from .endpoint_points import Points, Reading, known

__all__ = ["SHARED", "EndpointWires", "WiredEndpoints", "memory_size"]

#: Sizes of memories that cost no more than smaller ones: distributed memory, block RAM.
MEMORY_SIZES = (16, 256)

#: In place of a memory, that several may store a word. One that stores no other has a place of its
#: own in the module: then it does not matter which others store the same.
SHARED = -1

#: Words of a block RAM; larger memories are made of several.
BLOCK_RAM = 512


@dataclass(frozen=True)
class EndpointWires:
    """What of a node is wired to each place of the module of its endpoint.

    Parameters
    ----------
    readers : tuple of int
        The reader of the program that each of the module is.
    injections : tuple of int
        The injection port that each is.
    words : tuple of (int, int)
        The source, an in-port or its result, of each word that comes from outside to be stored;
        and the memory, if it stores no other word, or `SHARED`.
    reads : tuple of int
        The column of the sequencer that gives each address.
    strobes : tuple of int
        The column that each strobe is.
    """

    readers: tuple[int, ...]
    injections: tuple[int, ...]
    words: tuple[tuple[int, int], ...]
    reads: tuple[int, ...]
    strobes: tuple[int, ...]

    def source(self, memory: int, number: int, first: int) -> int:
        """What a memory stores, by its number in the module: words, and then injection ports.

        Parameters
        ----------
        number : int
            Of the source in the program.
        first : int
            The number of the first injection port there.
        """
        if number < first:
            own = (number, memory) in self.words
            return self.words.index((number, memory if own else SHARED))
        return len(self.words) + self.injections.index(number - first)

    @property
    def numbers(self) -> object:
        """What is wired to its places, but for what the sequencer gives."""
        return self.readers, self.injections, self.words


#: What a variant stores into a memory: sources, strobes, first addresses by form, how late by form;
#: and the size.
_Memory: TypeAlias = tuple[
    tuple[int, ...], tuple[int, ...], tuple[tuple[int, ...], ...], tuple[int, ...], int
]


class WiredEndpoints:
    """How each variant is wired, and what it has in common with all of its shape.

    Readers, injection ports and words are in an order of which their numbers in the program are no
    part, as far as they do different things.

    Attributes
    ----------
    wires : list of EndpointWires
        Of each variant; by offset all of them are wired as one that does what any of them does.
    structures : list
        Of each variant: those that have the same can be of one shape.
    read_of : list of (list of int)
        Of each variant, which of the addresses each of the readers has.
    host_reads : list of (frozenset of int)
        Of each variant, the memories that the host reads.
    """

    def __init__(self, program: Program, points: Points) -> None:
        self._program, self._points = program, points
        self._first = points.loops.first.sources.first_injection
        self._spans = points.loops.spans
        self._ranks: dict[object, int] = {}
        variants = points.loops.variants
        self.host_reads = _memories_host_reads(program, variants)
        self.structures: list[object] = [None] * variants
        self.read_of: list[list[int]] = [[]] * variants
        if program.by_offset:
            self.wires = [self._all()] * variants
        else:
            self.wires = [EndpointWires((), (), (), (), ())] * variants
            self._wire()
            self._keep_order()
        self._share_reads()

    def _rank(self, what: object) -> int:
        """A number for what a point does: the first that does something else has the next."""
        return self._ranks.setdefault(what, len(self._ranks))

    def _all(self) -> EndpointWires:
        """The wires of what does everything that any variant does, in the order of the program.

        By offset, every node may have to do what any other does.
        """
        points = self._points
        sources = {k for stores in points.stores for k in known(stores.source)}
        strobes = {k for stores in points.stores for k in known(stores.strobe)}
        return EndpointWires(
            readers=tuple(points.column_of),
            injections=tuple(range(len(points.loops.first.sources.injections))),
            words=tuple((k, SHARED) for k in sorted(sources) if k < self._first),
            reads=(),
            strobes=tuple(sorted(strobes)),
        )

    def _wire(self) -> None:
        """Find the wires of all variants: of the first of those alike, and the others by these."""
        first, stores = self._first, self._points.stores
        reader, reading, readings = self._reads()
        ports = np.where(reader >= 0, self._port_of[reader], IDLE)
        injections = _different(ports)
        stored = np.concatenate([_different(each.source.T) for each in stores], axis=1)
        strobes = np.concatenate([_different(each.strobe.T) for each in stores], axis=1)
        words = _different(np.where(stored < first, stored, IDLE))
        keys = [
            reading,
            _ranks(ports, injections),
            _ranks(np.where(stored < first, stored, IDLE), words),
            _ranks(np.where(stored >= first, stored - first, IDLE), injections),
            _firsts(strobes),
            self._others(),
        ]
        _, rows, alike = np.unique(
            np.concatenate(keys, axis=1), axis=0, return_index=True, return_inverse=True
        )
        # What does something else has the next number, in the order of variants.
        for number in np.argsort(rows).tolist():
            variant, members = int(rows[number]), np.flatnonzero(alike.ravel() == number)
            read = zip(reader[variant].tolist(), reading[variant].tolist(), strict=True)
            made = self._made(variant, {k: readings[what] for k, what in read if k >= 0})
            memories = [memory for _, memory in made.words]
            every = zip(
                _taken(reader, variant, members, made.readers),
                _taken(injections, variant, members, made.injections),
                _taken(words, variant, members, [source for source, _ in made.words]),
                _taken(strobes, variant, members, made.strobes),
                strict=True,
            )
            for member, (reads, by, given, when) in zip(members.tolist(), every, strict=True):
                self.structures[member] = self.structures[variant]
                self.wires[member] = EndpointWires(
                    tuple(reads), tuple(by), tuple(zip(given, memories, strict=True)), (),
                    tuple(when),
                )  # fmt: skip

    def _made(self, variant: int, readings: dict[int, Reading]) -> EndpointWires:
        """Find the wires of a variant, and its structure, given what each of its readers does."""
        ports = []
        for port, joined in groupby(readings, key=lambda reader: int(self._port_of[reader])):
            readers = tuple(joined)
            # Readers that only ever read the word that changes nothing are none.
            own = tuple(reader for reader in readers if max(readings[reader][1]) >= 0)
            ports.append((self._rank(tuple(map(readings.__getitem__, readers))), port, own))
        ports.sort()
        memories = [self._stored(variant, number) for number in range(len(self._points.stores))]
        storing: dict[tuple[int, int], list[int]] = {}
        for number, (stored, *_) in enumerate(memories):
            for source in stored:
                word = source, number if len(stored) == 1 else SHARED
                storing.setdefault(word, []).append(number)
        words = sorted(word for word in storing if word[0] < self._first)
        words.sort(key=lambda word: self._rank((word[1], *storing[word])))
        wires = EndpointWires(
            readers=tuple(reader for _, _, own in ports for reader in own),
            injections=tuple(port for _, port, _ in ports),
            words=tuple(words),
            reads=(),
            strobes=tuple(dict.fromkeys(strobe for _, own, *_ in memories for strobe in own)),
        )
        self.structures[variant] = (
            tuple(rank for rank, *_ in ports),
            tuple(
                (
                    tuple(sorted(wires.source(k, source, self._first) for source in sources)),
                    tuple(map(wires.strobes.index, own)),
                    *others,
                )
                for k, (sources, own, *others) in enumerate(memories)
            ),
            self.host_reads[variant],
        )
        return wires

    def _stored(self, variant: int, number: int) -> _Memory:
        """What a variant stores into a memory."""
        stores = self._points.stores[number]
        depth = int(self._program.depth[variant, number])
        return (
            known(stores.source[:, variant]),
            known(stores.strobe[:, variant]),
            tuple(known(stores.start[span, variant]) for span in self._spans),
            tuple(stores.late[:, variant].tolist()),
            memory_size(self._program, number, depth),
        )

    def _reads(self) -> tuple[IntArray, IntArray, list[Reading]]:
        """What each variant reads, in the order of injection ports.

        The numbers of its readers, and of what these do, shape (variants, readers of a variant),
        -1 behind the last; and what that is.
        """
        ordered = [reader for port in self._injections for reader in port]
        values: dict[Reading, int] = {}
        found: list[tuple[IntArray, IntArray, IntArray]] = []
        for number, (variants, readings) in enumerate(self._points.readings()):
            what = [values.setdefault(each, len(values)) for each in readings]
            found.append((variants, np.full(len(variants), number), np.array(what, int)))
        variant, reader, reading = (np.concatenate(each) for each in zip(*found, strict=True))
        order = np.zeros(len(self._port_of), int)
        order[ordered] = np.arange(len(ordered))
        by = np.lexsort((order[reader], variant))
        counts = np.bincount(variant, minlength=self._points.loops.variants)
        slot = np.arange(len(by)) - np.repeat(np.cumsum(counts) - counts, counts)
        both = np.full((2, len(counts), int(counts.max(initial=0))), IDLE)
        both[:, variant[by], slot] = reader[by], reading[by]
        return both[0], both[1], [*values]

    @property
    def _injections(self) -> tuple[tuple[int, ...], ...]:
        """The readers of each injection port."""
        return self._points.loops.first.sources.injections

    @cached_property
    def _port_of(self) -> IntArray:
        """The injection port of each reader."""
        found = np.full(self._points.loops.first.sources.readers, IDLE)
        for port, readers in enumerate(self._injections):
            found[[*readers]] = port
        return found

    def _others(self) -> IntArray:
        """What else makes variants differ: sizes, first addresses, delays, what hosts read."""
        host: dict[frozenset[int], int] = {}
        reads = [host.setdefault(each, len(host)) for each in self.host_reads]
        found = [np.array(reads)[:, None]]
        for number, stores in enumerate(self._points.stores):
            depths, at = np.unique(self._program.depth[:, number], return_inverse=True)
            sizes = [memory_size(self._program, number, depth) for depth in depths.tolist()]
            found.append(np.array(sizes)[at.ravel()][:, None])
            found += [_different(stores.start[span].T) for span in self._spans]
            found.append(stores.late.T)
            # Of which memory each source, strobe and first address is.
            found += [(each >= 0).sum(axis=1, keepdims=True) for each in
                      (_different(stores.source.T), _different(stores.strobe.T))]  # fmt: skip
        return np.concatenate(found, axis=1)

    def _share_reads(self) -> None:
        """Let readers have one address where in all variants of a structure one column gives it."""
        column_of = self._points.column_of
        column_at = np.array([column_of.get(k, IDLE) for k in range(len(self._port_of))])
        for members in self._alike():
            readers = np.array([self.wires[variant].readers for variant in members], int)
            if not readers.size:
                continue
            columns = column_at[readers]
            _, first, which = np.unique(columns, axis=1, return_index=True, return_inverse=True)
            read_of = np.argsort(np.argsort(first))[which.ravel()].tolist()
            for variant, reads in zip(members, columns[:, np.sort(first)].tolist(), strict=True):
                self.wires[variant] = replace(self.wires[variant], reads=tuple(reads))
                self.read_of[variant] = read_of

    def _alike(self) -> Collection[list[int]]:
        """The variants of each structure."""
        alike: dict[object, list[int]] = {}
        for variant, structure in enumerate(self.structures):
            alike.setdefault(structure, []).append(variant)
        return alike.values()

    def _keep_order(self) -> None:
        """Keep the order of the program where all variants of a structure have the same points.

        There is nothing to gain by another, and which readers share a memory goes by the order.
        """
        for members in self._alike():
            if len({self.wires[variant].numbers for variant in members}) > 1:
                continue
            old = self.wires[members[0]]
            new = (
                tuple(sorted(old.readers)),
                tuple(sorted(old.injections)),
                tuple(sorted(old.words)),
            )
            for variant in members:
                self.wires[variant] = EndpointWires(*new, (), self.wires[variant].strobes)


def memory_size(program: Program, number: int, depth: int) -> int:
    """A size of memory that serves a depth; none is larger than any node needs.

    Nodes whose depths differ share a module where that costs nothing, for memories come in sizes: a
    register, distributed memory of 16 words, block RAM of 256 words, or of 512.
    """
    if len(program.depth) == 1 or depth <= 1:
        return depth
    blocks = -(-depth // BLOCK_RAM) * BLOCK_RAM
    size = next((size for size in MEMORY_SIZES if depth <= size), blocks)
    return min(size, int(program.depth[:, number].max()))


def _memories_host_reads(program: Program, variants: int) -> list[frozenset[int]]:
    """The memories that the host reads at the nodes of each variant; by offset all have them."""
    if program.by_offset or all(form.receive_map.nodes_alike for form in program.forms):
        return [_read_at(program, np.arange(program.topology.nodes))] * variants
    order = np.argsort(program.variant_of, kind="stable")
    counts = np.bincount(program.variant_of, minlength=variants)
    return [_read_at(program, nodes) for nodes in np.split(order, np.cumsum(counts)[:-1])]


def _read_at(program: Program, nodes: IntArray) -> frozenset[int]:
    """The memories that the host reads at any of some nodes."""
    read = (form.receive_map.memories(form.groups.position[nodes]) for form in program.forms)
    return frozenset[int]().union(*read)


def _different(values: IntArray) -> IntArray:
    """The different numbers of each row, sorted, with -1 behind them.

    Examples
    --------
    >>> _different(np.array([[3, 1, 3], [-1, 2, 2]]))
    array([[ 1,  3],
           [ 2, -1]])
    """
    ordered = np.sort(values, axis=1)
    keep = ordered >= 0
    keep[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    slot = np.cumsum(keep, axis=1) - 1
    found = np.full((len(values), int(keep.sum(axis=1).max(initial=0))), IDLE)
    rows, columns = np.nonzero(keep)
    found[rows, slot[rows, columns]] = ordered[rows, columns]
    return found


def _ranks(values: IntArray, known: IntArray) -> IntArray:
    """Which of the known numbers of its row each is; -1 for nothing."""
    below = (known[:, None, :] < values[:, :, None]) & (known[:, None, :] >= 0)
    return np.where(values >= 0, below.sum(axis=2), IDLE)


def _firsts(values: IntArray) -> IntArray:
    """Where in its row each number comes first; -1 for nothing."""
    if not values.size:
        return values
    return np.where(values >= 0, (values[:, :, None] == values[:, None, :]).argmax(axis=2), IDLE)


def _taken(values: IntArray, row: int, members: IntArray, wanted: Sequence[int]) -> list[list[int]]:
    """What some rows have in the columns in which a row has some numbers."""
    known = values[row].tolist()
    found: list[list[int]] = values[members][:, [known.index(each) for each in wanted]].tolist()
    return found
