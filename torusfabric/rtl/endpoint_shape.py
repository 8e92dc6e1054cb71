"""The structure of an endpoint as data: its memories, and its readers with their addresses.

An address comes from the sequencer where all nodes that use it at that time use the same; otherwise
from the node itself: the reader adds the word count to a *base* from the node's row ROM. What a
node stores on its own is appended: a pointer moves with the strobe that the row ROM names.
In a fabric of several forms this may differ from form to form. Numbers are those of the module,
not those of the program; see `torusfabric.rtl.endpoint_wires`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..program.fields import NEUTRAL
from .flit_rows import FlitRows
from .place import Location

__all__ = ["STAGE_INPUTS", "EndpointMemory", "EndpointReader", "EndpointShape", "bank_name",
           "wide_memories"]  # fmt: skip


@dataclass(frozen=True)
class EndpointMemory:
    """A memory of an endpoint.

    Parameters
    ----------
    number : int
        In the program.
    depth : int
        Words.
    own : int or None
        Its number among those that the host writes by the same send map.
    layout : int
        Which of the send maps that is.
    sources : tuple of int
        Whose words it stores: those of the node that come from outside, or behind them those that
        it injects, by their numbers in the shape.
    address, enable : Location or None
        Where, and whether, it stores what is the same at all nodes. What lies at the node of
        `enable` is which of the strobes counts in a row, from 1: 0 for none. Where it has no
        column, `address` is for these.
    strobes : tuple of int
        The strobes by which it stores what is its own, by their numbers among those of the node.
    skips : bool
        Whether it counts which words are the last of their blocks, as each strobe says.
    source : Location or None
        Which of the sources, as select bits.
    start : Location
        Where its pointer starts.
    groups : tuple of (tuple of int)
        Readers in groups; each group has a copy of the memory of its own.
    host_reads : bool
        Whether the host reads it.
    late : tuple of int
        Of each form, how many cycles after a row is looked up what is said of it counts.
    """

    number: int
    depth: int
    own: int | None
    layout: int
    sources: tuple[int, ...]
    address: Location | None
    enable: Location | None
    strobes: tuple[int, ...]
    skips: bool
    source: Location | None
    start: Location
    groups: tuple[tuple[int, ...], ...]
    host_reads: bool
    late: tuple[int, ...] = (0,)

    @property
    def columns(self) -> tuple[int, int] | None:
        """The columns for where, and whether, it stores what is the same at all nodes."""
        if self.address is None or self.enable is None or self.enable.column is None:
            return None
        assert self.address.column is not None
        return self.address.column, self.enable.column

    @property
    def chooses(self) -> bool:
        """Whether the node says when it stores, and the sequencer where."""
        return self.address is not None and self.columns is None

    def rows(self, beat: int, pitch: int) -> FlitRows:
        """How flits lie in it where it is written or read from outside by beats."""
        return FlitRows(beat, pitch if self.own is None else 1)

    def in_rows(self, copy: int) -> bool:
        """Whether a copy is written or read from outside, where it is the first that is read."""
        return self.own is not None or (self.host_reads and not copy)

    @property
    def locations(self) -> tuple[Location, ...]:
        """Everything that may depend on the form."""
        locations = self.enable, self.source, self.start
        return tuple(each for each in locations if each is not None)


#: Words that are chosen from in a cycle: two 4-input look-up tables in a row.
STAGE_INPUTS = 4


@dataclass(frozen=True)
class EndpointReader:
    """A reader of an endpoint.

    Parameters
    ----------
    address : Location
        First addresses, where the column also counts words: where it gives those, they are whole.
    memories : tuple of int
        What it reads; `NEUTRAL` among them for the word that changes nothing.
    code : Location or None
        Select bits of the memory; None for one memory.
    sending : Location or None
        Whether it reads anything in a row, where that matters.
    own : int or None
        The column that counts words in the last of the memories, if they lie otherwise there.
    """

    address: Location
    memories: tuple[int, ...]
    code: Location | None = None
    sending: Location | None = None
    own: int | None = None

    @property
    def column(self) -> int:
        """The column that gives addresses, or counts words: its number among those of the node."""
        assert self.address.column is not None
        return self.address.column

    @property
    def locations(self) -> tuple[Location, ...]:
        """Everything that may depend on the form."""
        locations = self.code, self.address, self.sending
        return tuple(each for each in locations if each is not None)


@dataclass(frozen=True)
class EndpointShape:
    """The structure of an endpoint.

    Parameters
    ----------
    injections : tuple of (tuple of int)
        The readers, by their index in `readers`, whose words are combined for each injection port.
    words : int
        Words that come from outside to be stored.
    row_bits : int
        Bits of the row ROM; 0 without one.
    sectioned : bool
        Whether memories have two or more sections, of which one is read while a run is under way.
    beat : int
        Flits that are written, or read, from outside at a time.
    """

    memories: tuple[EndpointMemory, ...]
    readers: tuple[EndpointReader, ...]
    injections: tuple[tuple[int, ...], ...]
    words: int
    row_bits: int
    sectioned: bool = False
    beat: int = 1

    @property
    def host_memories(self) -> tuple[int, ...]:
        """The numbers of the memories that the host reads."""
        return tuple(m.number for m in self.memories if m.depth and m.host_reads)

    @property
    def host_reader(self) -> int | None:
        """A reader that can pass on every memory the host reads, by its index, or None.

        It reads the first copy of each, as the host does.
        """
        first = [{*m.groups[0]} if m.groups else set() for m in self.memories
                 if m.number in self.host_memories]  # fmt: skip
        if len(first) < 2:
            return None
        return min(set.intersection(*first), default=None)

    @property
    def read_stages(self) -> int:
        """Cycles from the words that the host reads to the one of the memory that it asks for."""
        count = len(self.host_memories) if self.host_reader is None else 1
        return max(-(-count // STAGE_INPUTS), 1)

    @property
    def combines(self) -> bool:
        """Whether it combines words, or passes on the one that changes nothing."""
        neutral = any(NEUTRAL in reader.memories for reader in self.readers)
        return neutral or any(len(members) > 1 for members in self.injections)

    @property
    def uses_form(self) -> bool:
        """Whether anything depends on the form."""
        locations = [each for reader in self.readers for each in reader.locations]
        locations += [each for memory in self.memories for each in memory.locations]
        late = any(len({*memory.late}) > 1 for memory in self.memories)
        return late or any(each.by_form for each in locations)


def bank_name(number: int, copy: int) -> str:
    """The name of a copy of a memory in its module; a wide one has the number of its first."""
    return f"bank_{number}" + (f"_copy_{copy}" if copy else "")


def wide_memories(shape: EndpointShape) -> list[list[EndpointMemory]]:
    """Memories in groups that are always written, and read, at the same address.

    One wide memory takes less block RAM than several narrow ones.
    """
    groups: dict[object, list[EndpointMemory]] = {}
    for memory in shape.memories:
        if not memory.depth:
            continue
        readers = [shape.readers[index] for group in memory.groups for index in group]
        alone = (
            shape.beat > 1
            or len(readers) > 1
            or any(reader.address.at_node for reader in readers)
            or any(reader.code is not None for reader in readers)
            or bool(memory.strobes)
            or () in memory.groups
        )
        columns = tuple({reader.column for reader in readers})
        kept_by = None if memory.own is None else memory.layout
        key = (kept_by, memory.columns, columns, memory.depth, memory.host_reads)
        groups.setdefault(memory.number if alone else key, []).append(memory)
    return list(groups.values())
