"""What lies where in the buffers of GPUs, before and after a collective.

A GPU has an input, an output and a scratch buffer, ``i``, ``o`` and ``s``. A *value* is what one
chunk of a buffer holds: a pair of a *key*, which says what block it is (of a reduction: which sum),
and of the set of ranks that have contributed to it, as the bits of a number; 0 where nothing is
summed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...collective import Collective
from ...topology import IntArray, IntLike

__all__ = ["Buffers", "Location", "Value"]

#: A buffer and an offset.
Location = tuple[str, int]

#: A key and the ranks that contributed.
Value = tuple[int, int]


@dataclass(frozen=True)
class Buffers:
    """The buffers of all ranks.

    Key ``(origin * ranks + destination) * chunks + chunk`` stands for a block; of an origin or a
    destination that the collective does not tell apart it has 0.

    Parameters
    ----------
    collective : Collective
        Its root is a rank.
    chunks : int
        Of a message.
    in_place : bool
        Whether input and output are one memory: the smaller lies in the larger, at the place of its
        rank, if they differ in size.

    Examples
    --------
    >>> from torusfabric.collective import parse_collective
    >>> buffers = Buffers(parse_collective("allgather"), ranks=4, chunks=2, in_place=True)
    >>> buffers.parts("i"), buffers.parts("o")
    (1, 4)
    >>> buffers.home(3, ("i", 1))
    ('o', 7)
    """

    collective: Collective
    ranks: int
    chunks: int
    in_place: bool

    @property
    def full(self) -> int:
        """The contributions of a complete sum; 0 where nothing is summed."""
        return (1 << self.ranks) - 1 if self.collective.reducing else 0

    def parts(self, buffer: str) -> int:
        """How many messages an input or output buffer holds."""
        several = self.collective.personal if buffer == "i" else self.collective.from_each
        return self.ranks if several else 1

    def size(self, buffer: str) -> int:
        """Chunks that may be named in an input or output buffer."""
        parts = self.parts(buffer)
        if self.in_place:
            parts = max(self.parts("i"), self.parts("o"))
        return parts * self.chunks

    def home(self, rank: int, location: Location) -> Location:
        """The one name of a location that has two."""
        buffer, offset = location
        if not self.in_place or buffer == "s":
            return location
        larger = "o" if self.parts("o") > self.parts("i") else "i"
        if buffer == larger:
            return location
        apart = self.parts("o") != self.parts("i")
        return larger, offset + (rank * self.chunks if apart else 0)

    def key(self, origin: int, destination: int, chunk: int) -> int:
        """The key of a block."""
        return (origin * self.ranks + destination) * self.chunks + chunk

    def split(self, key: IntLike) -> tuple[IntArray, IntArray, IntArray]:
        """Origin, destination and chunk of keys, elementwise."""
        rest, chunk = np.divmod(key, self.chunks)
        origin, destination = np.divmod(rest, self.ranks)
        return origin, destination, chunk

    def name(self, key: int) -> str:
        """What a key stands for, for people."""
        origin, destination, chunk = self.split(key)
        words = [f"chunk {chunk}"]
        if not (self.collective.reducing or self.collective.single_origin):
            words.append(f"of rank {origin}")
        if self.collective.personal:
            words.append(f"for rank {destination}")
        return " ".join(words)

    def initial(self, rank: int) -> Iterator[tuple[Location, Value]]:
        """What a rank holds before.

        Its own block counts as delivered to itself, whether the file copies it or not.
        """
        collective = self.collective
        if collective.single_origin and rank != collective.root:
            return
        mask = 1 << rank if collective.reducing else 0
        origin = 0 if collective.reducing else rank
        for part in range(self.parts("i")):
            for chunk in range(self.chunks):
                value = self.key(origin, part, chunk), mask
                yield self.home(rank, ("i", part * self.chunks + chunk)), value
                mine = part == rank or not collective.personal
                if mine and not collective.reducing:
                    at = (rank if self.parts("o") > 1 else 0) * self.chunks + chunk
                    yield self.home(rank, ("o", at)), value

    def expected(self, rank: int) -> Iterator[tuple[Location, Value]]:
        """What a rank must hold after."""
        collective = self.collective
        if collective.to_root and rank != collective.root:
            return
        destination = rank if collective.personal else 0
        for part in range(self.parts("o")):
            origin = part if collective.from_each else 0
            if collective.single_origin:
                origin = collective.root or 0
            for chunk in range(self.chunks):
                value = self.key(origin, destination, chunk), self.full
                yield self.home(rank, ("o", part * self.chunks + chunk)), value
