"""A simulator of GPUs that execute the steps of an MSCCL file, one step after another.

A GPU has an input, an output and a scratch buffer, ``i``, ``o`` and ``s``. Each chunk of a buffer
holds a *value*, a pair (key, ranks). The *key* identifies the block, or in a reduction the sum.
`ranks` is the set of ranks that have contributed to a sum, as the bits of a number; 0 outside of
reductions.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...collective import Collective
from ...errors import InputError
from ...topology import IntArray, IntLike
from .msccl import RECEIVING, SENDING, MscclFile, MscclStep
from .steps import StepGraph

__all__ = ["Buffers", "Location", "MOST_CHUNKS", "GpuSimulator", "Value"]

#: A location in the memory of a GPU: a buffer and an offset in chunks.
Location = tuple[str, int]

#: A key, and the contributing ranks as bits.
Value = tuple[int, int]


@dataclass(frozen=True)
class Buffers:
    """The sizes and the initial and final contents of the buffers of all ranks.

    A *rank* is a GPU. It has an input (``i``), an output (``o``) and a scratch buffer (``s``), and
    a *location* is a buffer and an index in it, counted in chunks. Each block has a number, its
    *key* ``(origin * ranks + destination) * chunks + chunk``. An origin or destination that the
    collective does not distinguish is 0.

    Parameters
    ----------
    collective : Collective
        The collective; its root is a rank.
    ranks : int
        Number of GPUs.
    chunks : int
        Number of chunks of a message.
    in_place : bool
        True if input and output are one memory. If their sizes differ, the smaller one of rank r is
        part r of the larger one.

    Examples
    --------
    In an all-gather of two chunks, an output has four messages. The input of rank 3 is the last of
    them, so chunk 1 of this input is chunk 7 of the output.

    >>> from torusfabric.collective import parse_collective
    >>> buffers = Buffers(parse_collective("allgather"), ranks=4, chunks=2, in_place=True)
    >>> buffers.message_count("i"), buffers.message_count("o")
    (1, 4)
    >>> buffers.canonical_location(3, ("i", 1))
    ('o', 7)
    """

    collective: Collective
    ranks: int
    chunks: int
    in_place: bool

    @property
    def complete_mask(self) -> int:
        """The contributions of a complete sum: an integer with a 1 for each rank.

        The result is 0 if the collective is no reduction.
        """
        return (1 << self.ranks) - 1 if self.collective.reducing else 0

    def message_count(self, buffer: str) -> int:
        """Return the number of messages in an input (``"i"``) or output (``"o"``) buffer."""
        several = self.collective.personal if buffer == "i" else self.collective.from_each
        return self.ranks if several else 1

    def chunk_count(self, buffer: str) -> int:
        """Return the number of chunks of an input (``"i"``) or output (``"o"``) buffer."""
        parts = self.message_count(buffer)
        if self.in_place:
            parts = max(self.message_count("i"), self.message_count("o"))
        return parts * self.chunks

    def canonical_location(self, rank: int, location: Location) -> Location:
        """Return the canonical name of a location, so that equal memory has equal names.

        Where input and output are one memory, each of its chunks has two names. The one in the
        larger buffer is canonical: for an all-gather of two chunks, ``("i", 1)`` of rank 3 is
        ``("o", 7)``.
        """
        buffer, offset = location
        if not self.in_place or buffer == "s":
            return location
        larger = "o" if self.message_count("o") > self.message_count("i") else "i"
        if buffer == larger:
            return location
        apart = self.message_count("o") != self.message_count("i")
        return larger, offset + (rank * self.chunks if apart else 0)

    def block_key(self, origin: int, destination: int, chunk: int) -> int:
        """Return the key of chunk `chunk` of a message, by the formula of the class.

        `origin` and `destination` are the ranks that send and receive the message.
        """
        return (origin * self.ranks + destination) * self.chunks + chunk

    def split_key(self, key: IntLike) -> tuple[IntArray, IntArray, IntArray]:
        """Return origin, destination and chunk of the blocks that `key` numbers, elementwise."""
        rest, chunk = np.divmod(key, self.chunks)
        origin, destination = np.divmod(rest, self.ranks)
        return origin, destination, chunk

    def describe_key(self, key: int) -> str:
        """Return text for people about the block or the sum that `key` identifies."""
        origin, destination, chunk = self.split_key(key)
        words = [f"chunk {chunk}"]
        if not (self.collective.reducing or self.collective.single_origin):
            words.append(f"of rank {origin}")
        if self.collective.personal:
            words.append(f"for rank {destination}")
        return " ".join(words)

    def initial_values(self, rank: int) -> Iterator[tuple[Location, Value]]:
        """Yield pairs (location, value) for all data that a rank (GPU) holds at first.

        A value is a pair (key, ranks): the number of a block or sum, and its contributions as bits.
        The block of a rank for itself is in the output from the start, since some files copy it
        there and others do not.
        """
        collective = self.collective
        if collective.single_origin and rank != collective.root:
            return
        mask = 1 << rank if collective.reducing else 0
        origin = 0 if collective.reducing else rank
        for part in range(self.message_count("i")):
            for chunk in range(self.chunks):
                value = self.block_key(origin, part, chunk), mask
                yield self.canonical_location(rank, ("i", part * self.chunks + chunk)), value
                mine = part == rank or not collective.personal
                if mine and not collective.reducing:
                    at = (rank if self.message_count("o") > 1 else 0) * self.chunks + chunk
                    yield self.canonical_location(rank, ("o", at)), value

    def expected_values(self, rank: int) -> Iterator[tuple[Location, Value]]:
        """Yield pairs (location, value) for all data that a rank (GPU) must hold at the end.

        A value is a pair (key, ranks): the number of a block or sum, and its contributions as bits.
        """
        collective = self.collective
        if collective.to_root and rank != collective.root:
            return
        destination = rank if collective.personal else 0
        for part in range(self.message_count("o")):
            origin = part if collective.from_each else 0
            if collective.single_origin:
                origin = collective.root or 0
            for chunk in range(self.chunks):
                value = self.block_key(origin, destination, chunk), self.complete_mask
                yield self.canonical_location(rank, ("o", part * self.chunks + chunk)), value


#: The largest accepted number of chunks in all buffers together.
MOST_CHUNKS = 2**24


class GpuSimulator:
    """The buffers of all GPUs while the steps of a file are executed.

    Parameters
    ----------
    graph : StepGraph
        The graph of the steps. An edge is added to it for every step that reads a value which
        another step wrote.

    Attributes
    ----------
    sent : list of tuple of Value
        The values that each step has sent, one for each chunk: pairs of the number of a block or
        sum, and the contributions to it as bits.
    """

    def __init__(self, graph: StepGraph, buffers: Buffers, file: MscclFile) -> None:
        self.graph, self.buffers, self.scratch = graph, buffers, file.scratch
        #: A possible cause of a missing value, for messages.
        self._hint = "" if file.in_place else ' (input and output are one memory with inplace="1")'
        self.held = [dict(buffers.initial_values(rank)) for rank in range(buffers.ranks)]
        self.writer: list[dict[Location, int]] = [{} for _ in range(buffers.ranks)]
        self.sent: list[tuple[Value, ...]] = [()] * len(graph.steps)

    def execute(self, index: int) -> None:
        """Execute step `index`: read, receive or add values, then send or store the result.

        All steps for which the step waits must have been executed.
        """
        block, step = self.graph.steps[index]
        if step.type == "nop":
            return
        came = self.sent[self.graph.sent_by[index]] if step.type in RECEIVING else ()
        match step.type:
            case "s" | "cpy":
                values = self._read_values(index, step.source, "srcoff")
            case "r" | "rcs":
                values = came
            case "re":
                mine = self._read_values(index, step.source, "srcoff")
                values = self._add_values(
                    index, mine, self._read_values(index, step.target, "dstoff")
                )
            case _:
                # Executors add the value at `source`. Some tools write the sender's location there;
                # then the operand is at `target`. The location with the right keys is chosen.
                operand = step.source if step.source[1] >= 0 else step.target
                for buffer, offset in (step.target, step.source):
                    places = range(offset, offset + step.chunks) if offset >= 0 else ()
                    held = [
                        self.held[block.gpu].get(
                            self.buffers.canonical_location(block.gpu, (buffer, at))
                        )
                        for at in places
                    ]
                    if [value and value[0] for value in held] == [key for key, _ in came]:
                        operand = buffer, offset
                values = self._add_values(index, came, self._read_values(index, operand, "srcoff"))
        if step.type in SENDING:
            self.sent[index] = values
        if step.type not in ("s", "rrs"):
            self._write_values(index, step, values)

    def _step_locations(self, index: int, start: Location, name: str) -> Iterator[Location]:
        """Yield the locations that step `index` uses from `start` on, one for each of its chunks.

        `name` is the attribute of the file that gives the offset of `start`, for messages.
        """
        block, step = self.graph.steps[index]
        buffer, offset = start
        size = self.scratch[block.gpu] if buffer == "s" else self.buffers.chunk_count(buffer)
        last = MOST_CHUNKS if size is None else size
        if offset < 0 or offset + step.chunks > last:
            raise InputError(
                f"{name.capitalize()} of {block.location_text(step.number)} must lie within the "
                f"{last} "
                f"chunks of buffer {buffer}, not be {offset} with cnt {step.chunks}"
            )
        for place in range(offset, offset + step.chunks):
            yield self.buffers.canonical_location(block.gpu, (buffer, place))

    def _read_values(self, index: int, start: Location, name: str) -> tuple[Value, ...]:
        """Return the values that step `index` reads from location `start` on.

        In the graph, this step then waits for the steps that wrote these values.

        `name` is the attribute of the file that gives the offset of `start`, for messages.
        """
        gpu = self.graph.steps[index][0].gpu
        held, writer, values = self.held[gpu], self.writer[gpu], []
        for location in self._step_locations(index, start, name):
            value = held.get(location)
            if value is None:
                raise InputError(
                    f"{self.graph.location_text(index)} must read what was written before, not "
                    f"{location[0]}[{location[1]}], to which nothing was{self._hint}"
                )
            values.append(value)
            wrote = writer.get(location)
            if wrote is not None and self.graph.steps[wrote][0] is not self.graph.steps[index][0]:
                self.graph.follows[wrote].append(index)
        return tuple(values)

    def _write_values(self, index: int, step: MscclStep, values: tuple[Value, ...]) -> None:
        """Store values at the target of step `index`, in the buffers of its GPU."""
        gpu = self.graph.steps[index][0].gpu
        for location, value in zip(
            self._step_locations(index, step.target, "dstoff"), values, strict=True
        ):
            # An unchanged value keeps its first writer: readers need to wait only for that.
            if self.held[gpu].get(location) != value:
                self.held[gpu][location] = value
                self.writer[gpu][location] = index

    def _add_values(
        self, index: int, came: tuple[Value, ...], mine: tuple[Value, ...]
    ) -> tuple[Value, ...]:
        """Return the sums of the values `came` and `mine`, one by one, for step `index`.

        The two values of a pair must belong to the same sum, and have no contribution in common.
        """
        sums = []
        for (key, ranks), (other, others) in zip(came, mine, strict=True):
            names = self.buffers.describe_key(key), self.buffers.describe_key(other)
            if not self.buffers.collective.reducing:
                kind = self.buffers.collective.kind
                raise InputError(f"{self.graph.location_text(index)} must add up nothing in {kind}")
            if key != other:
                raise InputError(
                    f"{self.graph.location_text(index)} must add up the same chunk, not "
                    f"{names[0]} and "
                    f"{names[1]}"
                )
            if ranks & others:
                rank = (ranks & others).bit_length() - 1
                raise InputError(
                    f"{self.graph.location_text(index)} must add the contribution of gpu {rank} to "
                    f"{names[0]} once, not twice"
                )
            sums.append((key, ranks | others))
        return tuple(sums)

    def check_end(self) -> None:
        """Check that every rank (GPU) holds the data that the collective delivers.

        Raises
        ------
        InputError
            At the first rank that does not. The message names the last step that wrote the wrong
            value.
        """
        for rank in range(self.buffers.ranks):
            for location, value in self.buffers.expected_values(rank):
                found, (wanted, full) = self.held[rank].get(location), value
                if found == value:
                    continue
                name, what = f"{location[0]}[{location[1]}]", self.buffers.describe_key(wanted)
                start = f"Gpu {rank} must end with"
                if found is None:
                    text = f"{what} in {name}, to which no step ever wrote{self._hint}"
                    raise InputError(f"{start} {text}")
                wrote = self.writer[rank].get(location)
                by = "the start" if wrote is None else self.graph.location_text(wrote)
                if found[0] != wanted:
                    other = self.buffers.describe_key(found[0])
                    raise InputError(f"{start} {what} in {name}, not {other} (from {by})")
                lacking = (full & ~found[1]).bit_length() - 1
                raise InputError(
                    f"{start} the whole sum of {what} in {name}, not one without the contribution "
                    f"of gpu {lacking} (from {by})"
                )
