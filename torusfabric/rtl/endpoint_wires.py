"""How the nodes of a fabric are wired to the modules of their endpoints.

A module numbers its readers, its injection ports, and the words that it stores by itself. So nodes
of which each sends by other out-ports, or stores what comes by other in-ports, have the same
module: which point of the program stands at each of these places is data of the node, as are the
strobes by which it stores.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..program.fields import IDLE
from ..topology import IntArray
from .endpoint_alike import Read, different, firsts, ranks, taken
from .endpoint_points import Points, Reading, known, of_each

if TYPE_CHECKING:
    from ..program import Program

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
        memory : int
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
        self._ranks: dict[object, int] = {}
        variants = points.loops.variants
        self.host_reads = _memories_host_reads(program, variants)
        self.wires: list[EndpointWires] = [self._all()] * variants
        self.structures: list[object] = [None] * variants
        self.read_of: list[list[int]] = [[]] * variants
        # By offset, every node may have to do what any other does.
        if not program.by_offset:
            self._wire()
            self._keep_order()
        self._share_reads()

    def _rank(self, what: object) -> int:
        """A number for what a point does: the first that does something else has the next."""
        return self._ranks.setdefault(what, len(self._ranks))

    def _all(self) -> EndpointWires:
        """The wires of what does everything that any variant does, in the order of the program."""
        points, variants = self._points, range(self._points.loops.variants)
        stores = [points.stored(number, variants) for number in range(len(points.stores))]
        words = {(k, SHARED) for sources, _ in stores for k in sources if k < self._first}
        return EndpointWires(
            readers=tuple(points.column_of),
            injections=tuple(range(len(points.loops.first.sources.injections))),
            words=tuple(sorted(words)),
            reads=(),
            strobes=tuple(sorted({strobe for _, strobes in stores for strobe in strobes})),
        )

    def _add(self, variant: int, readings: dict[int, Reading]) -> None:
        """Find the wires of a variant, and its structure."""
        ports = []
        reading = sorted(readings, key=self._places.__getitem__)
        for port, joined in groupby(reading, key=lambda reader: self._places[reader][0]):
            readers = tuple(joined)
            # Readers that only ever read the word that changes nothing are none.
            own = tuple(reader for reader in readers if max(readings[reader][1]) >= 0)
            ports.append((self._rank(tuple(map(readings.__getitem__, readers))), port, own))
        ports.sort()
        readers = tuple(reader for _, _, own in ports for reader in own)
        memories = [memory[variant] for memory in self._memories]
        storing: dict[tuple[int, int], list[int]] = {}
        for number, (stored, *_) in enumerate(memories):
            for source in stored:
                word = source, number if len(stored) == 1 else SHARED
                storing.setdefault(word, []).append(number)
        words = sorted(word for word in storing if word[0] < self._first)
        words.sort(key=lambda word: self._rank((word[1], *storing[word])))
        strobes = tuple(dict.fromkeys(strobe for _, own, *_ in memories for strobe in own))
        self.wires[variant] = wires = EndpointWires(
            readers=readers,
            injections=tuple(port for _, port, _ in ports),
            words=tuple(words),
            reads=(),
            strobes=strobes,
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

    def _wire(self) -> None:
        """Find the wires of all variants: of the first of those alike, and the others by these."""
        read, first = self._read, self._first
        ports = np.full_like(read.reader, IDLE)
        ports[read.reader >= 0] = self._port_of[read.reader[read.reader >= 0]]
        injections = different(ports)
        stores = self._points.stores
        stored = np.concatenate([different(each.source.T) for each in stores], axis=1)
        strobes = np.concatenate([different(each.strobe.T) for each in stores], axis=1)
        words = different(np.where(stored < first, stored, IDLE))
        keys = [
            read.reading,
            ranks(ports, injections),
            ranks(np.where(stored < first, stored, IDLE), words),
            ranks(np.where(stored >= first, stored - first, IDLE), injections),
            firsts(strobes),
            self._others,
        ]
        _, rows, alike = np.unique(
            np.concatenate(keys, axis=1), axis=0, return_index=True, return_inverse=True
        )
        # What does something else has the next number, in the order of variants.
        for number in np.argsort(rows).tolist():
            variant, members = int(rows[number]), np.flatnonzero(alike.ravel() == number)
            self._add(variant, read.at(variant))
            made, structure = self.wires[variant], self.structures[variant]
            readers = taken(read.reader, variant, made.readers)
            sources = taken(words, variant, [source for source, _ in made.words])
            every = zip(
                readers[members].tolist(),
                taken(injections, variant, made.injections)[members].tolist(),
                sources[members].tolist(),
                taken(strobes, variant, made.strobes)[members].tolist(),
                strict=True,
            )
            memories = [memory for _, memory in made.words]
            for member, (reads, by, given, when) in zip(members.tolist(), every, strict=True):
                self.structures[member] = structure
                self.wires[member] = EndpointWires(
                    tuple(reads), tuple(by), tuple(zip(given, memories, strict=True)), (),
                    tuple(when),
                )  # fmt: skip

    @cached_property
    def _read(self) -> Read:
        """What each variant reads, in the order of injection ports."""
        return Read.of(self._points, self._order)

    @cached_property
    def _order(self) -> IntArray:
        """The place of each reader among all, by injection ports."""
        found = np.zeros(self._points.loops.first.sources.readers, int)
        found[[*self._places]] = np.arange(len(self._places))
        return found

    @cached_property
    def _port_of(self) -> IntArray:
        """The injection port of each reader."""
        found = np.full(self._points.loops.first.sources.readers, IDLE)
        found[[*self._places]] = [port for port, _ in self._places.values()]
        return found

    @cached_property
    def _column_at(self) -> IntArray:
        """The column that gives the addresses of each reader."""
        found = np.full(self._points.loops.first.sources.readers, IDLE)
        found[[*self._points.column_of]] = [*self._points.column_of.values()]
        return found

    @cached_property
    def _others(self) -> IntArray:
        """What else makes variants differ: sizes, first addresses, delays, what hosts read."""
        host: dict[frozenset[int], int] = {}
        reads = [host.setdefault(each, len(host)) for each in self.host_reads]
        spans, found = [span for _, span in self._points.loops.spans()], [np.array(reads)[:, None]]
        for number, stores in enumerate(self._points.stores):
            depths, at = np.unique(self._program.depth[:, number], return_inverse=True)
            sizes = [memory_size(self._program, number, depth) for depth in depths.tolist()]
            found.append(np.array(sizes)[at.ravel()][:, None])
            found += [different(stores.start[span].T) for span in spans]
            found.append(stores.late.T)
            # Of which memory each source, strobe and first address is.
            found += [(each >= 0).sum(axis=1, keepdims=True) for each in
                      (different(stores.source.T), different(stores.strobe.T))]  # fmt: skip
        return np.concatenate(found, axis=1)

    def _share_reads(self) -> None:
        """Let readers have one address where in all variants of a structure one column gives it."""
        for members in self._alike():
            readers = np.array([self.wires[variant].readers for variant in members], int)
            if not readers.size:
                continue
            columns = self._column_at[readers]
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
            for variant in members:
                old = self.wires[variant]
                self.wires[variant] = replace(
                    old,
                    readers=tuple(sorted(old.readers)),
                    injections=tuple(sorted(old.injections)),
                    words=tuple(sorted(old.words)),
                )

    @cached_property
    def _places(self) -> dict[int, tuple[int, int]]:
        """The injection port of each reader, and which of those of the port it is."""
        ports = self._points.loops.first.sources.injections
        return {
            reader: (port, place)
            for port, readers in enumerate(ports)
            for place, reader in enumerate(readers)
        }

    @cached_property
    def _memories(self) -> list[list[_Memory]]:
        """Of each memory, what each variant stores."""
        program, points = self._program, self._points
        spans = [span for _, span in points.loops.spans()]
        found: list[list[_Memory]] = []
        for number, stores in enumerate(points.stores):
            depths = program.depth[:, number].tolist()
            sizes = {depth: memory_size(program, number, depth) for depth in {*depths}}
            by_variant = (
                of_each(stores.source, known),
                of_each(stores.strobe, known),
                of_each(stores.start, lambda starts: tuple(known(starts[span]) for span in spans)),
                list(map(tuple, stores.late.T.tolist())),
                [sizes[depth] for depth in depths],
            )
            found.append([*zip(*by_variant, strict=True)])
        return found


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
