"""What all loaders of a fabric have in common, and what all unloaders do; and what they are given.

What loaders are given is of two messages, of an even and of an odd number: no more of them wait.
What unloaders are given is of a run in each section of the memories.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from amaranth.hdl import Cat, Const, Mux, Value
from amaranth.lib import data
from amaranth.lib.wiring import Member

from ..memories import choose, constant_at, fitting
from ..modules import Leaf
from .sections import Sections
from .words import WordShape

__all__ = ["EndShape", "LoaderShape", "RowKey", "RunFacts", "StreamEnd", "UnloaderShape"]


@dataclass(frozen=True)
class RowKey:
    """Where the rows of each form begin in the ROM of a loader or unloader.

    The rows of a form are as many as it has packets and chunks, each to a power of two, and begin
    at a multiple of their number: the bits of a packet and a chunk stand below those of the form.

    Parameters
    ----------
    packet_bits, chunk_bits : tuple of int
        Of each form.

    Examples
    --------
    Of three forms, the first has two rows, the others have 64 each.

    >>> key = RowKey((0, 0, 6), (1, 6, 0))
    >>> key.starts, key.rows, key.bits
    ((128, 0, 64), 130, 8)
    """

    packet_bits: tuple[int, ...]
    chunk_bits: tuple[int, ...]

    @property
    def below(self) -> tuple[int, ...]:
        """Bits of a row within those of its form."""
        return tuple(sum(bits) for bits in zip(self.packet_bits, self.chunk_bits, strict=True))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first row of each form; the largest come first, so that all are aligned."""
        starts, start = [0] * len(self.below), 0
        for form in sorted(range(len(starts)), key=lambda form: -self.below[form]):
            starts[form], start = start, start + (1 << self.below[form])
        return tuple(starts)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(1 << bits for bits in self.below)

    @property
    def bits(self) -> int:
        """Bits of the number of a row."""
        return (self.rows - 1).bit_length()

    def value(self, chunk: Value, packet: Value, form: Value) -> Value:
        """The number of a row."""
        found = []
        for start, packets, chunks in zip(
            self.starts, self.packet_bits, self.chunk_bits, strict=True
        ):
            above = self.bits - packets - chunks
            parts = [fitting(chunk, chunks), fitting(packet, packets)]
            found.append(Cat(*parts, Const(start >> packets + chunks, above)))
        return found[0] if len(found) == 1 else choose(found, form)


@dataclass(frozen=True)
class RunFacts:
    """What commands say of a run, and what nodes look up of it.

    Parameters
    ----------
    commanded : bool
        Whether there are commands at all.
    form_bits, root_bits : int
        Bits of a form, and of a root; 0 where there is no choice.
    position_bits : int
        Bits of the position of a node in its group.
    sections : Sections
        Of memories.
    looked_up : dict of str to data.StructLayout
        Where nodes look up what there is to know of a run, rather than have constants of each form:
        the facts for what they ``load``, and for what they ``unload``.
    """

    commanded: bool
    form_bits: int
    root_bits: int
    position_bits: int
    sections: Sections
    looked_up: Mapping[str, data.StructLayout] = field(default_factory=dict)

    @property
    def by_form(self) -> bool:
        """Whether nodes have constants of each form."""
        return not self.looked_up

    def said_widths(self, verb: str) -> dict[str, int]:
        """Names and widths of what commands say of messages to ``load``, or runs to ``unload``."""
        bits = {"valid": int(self.commanded)} if verb == "load" else {}
        bits |= {"mode": self.form_bits, "root": self.root_bits}
        return {f"{verb}_{name}": self._runs(verb) * each for name, each in bits.items() if each}

    def end_widths(self, verb: str) -> dict[str, int]:
        """The same of what loaders, or unloaders, are given of them."""
        if self.by_form:
            return self.said_widths(verb)
        valid = {"load_valid": 2} if verb == "load" else {}
        return valid | {f"{verb}_facts": self._runs(verb) * self.looked_up[verb].size}

    def _runs(self, verb: str) -> int:
        """Of how many messages, or runs, anything is said."""
        return 2 if verb == "load" else self.sections.count


@dataclass(frozen=True, kw_only=True)
class EndShape:
    """What all loaders of a fabric have in common, or all unloaders.

    Parameters
    ----------
    words : WordShape
        How the words of a packet are divided into chunks.
    facts : RunFacts
        What commands say of a run.
    packets : tuple of int
        Packets of a message in each form, or that a node receives.
    rows : RowKey
        The rows of the ROM of each form.
    shifts : tuple of int
        Of each form, the lowest bits of all addresses at which chunks begin, which are 0 and not
        in the ROM.
    at_root : tuple of bool
        Of each form, whether the root of the run alone sends, or receives.
    by_position : bool
        Whether it matters which destination, or root, a node is.
    packet_bits : int
        Bits of what a packet is known by: of its destination; or of its number, or of a root by
        which rows are found. 0 where there is only one.
    row : data.StructLayout
        What is looked up of a chunk, in a ROM or a table that is loaded: the `memory`, or select
        bits of it as `code`, whether the node has it from itself as `kept`, word by word, the
        `base` at which it begins, and the `origin` of the packet; as much as there is to look up.
    memory_bits : int
        Bits of the number of a memory of what is sent, or of the select bits of one that is
        unloaded.
    address_bits : int
        Bits of the address of a memory.
    kept : bool
        Whether any node gets anything from itself.
    width : int
        Bits of a beat.
    beat : int
        Flits of a beat; the words that are counted are beats.
    most_flits : int
        Of a packet.
    """

    words: WordShape
    facts: RunFacts
    packets: tuple[int, ...]
    rows: RowKey
    shifts: tuple[int, ...]
    at_root: tuple[bool, ...]
    by_position: bool
    packet_bits: int
    row: data.StructLayout
    memory_bits: int
    address_bits: int
    kept: bool
    width: int
    beat: int
    most_flits: int

    @property
    def data_bits(self) -> int:
        """Bits of the data of a stream."""
        return 8 * -(-self.width // 8)

    @property
    def flit_bits(self) -> int:
        """Bits of the number of a flit in a beat."""
        return self.beat.bit_length() - 1

    @property
    def last_bits(self) -> int:
        """Bits of the number of the last flit of a packet."""
        return self.words.index_bits + self.flit_bits

    @property
    def keep_bits(self) -> int:
        """Bytes of a beat, if it has several flits."""
        return self.width // 8 if self.flit_bits else 0

    @property
    def any_length(self) -> bool:
        """Whether packets may be shorter; then their words go to chunks in turn."""
        return self.words.in_turn

    @property
    def row_bits(self) -> int:
        """Bits of what is looked up of a chunk."""
        return int(self.row.size)

    @property
    def base_bits(self) -> int:
        """Bits of what is looked up of the address at which a chunk begins."""
        return int(self.row["base"].width) if "base" in self.row.members else 0

    @property
    def key_bits(self) -> int:
        """Bits of the address of the ROM; 0 for a single row."""
        return self.rows.bits * (self.row_bits > 0)

    @property
    def shift_form_bits(self) -> int:
        """Bits of the form of a word whose row is there; 0 where all have the same shift."""
        return self.facts.form_bits * (len(set(self.shifts)) > 1)

    @property
    def apart(self) -> bool:
        """Whether words lie so far apart that no carry is needed to find them from a base."""
        reach = (1 << shift + self.base_bits for shift in self.shifts)
        pairs = zip(self.words.pitch, reach, strict=True)
        return self.base_bits > 0 and all(pitch % size == 0 for pitch, size in pairs)

    @property
    def position_bits(self) -> int:
        """Bits of the positions of a node in the groups of each form, where they matter."""
        return self.facts.position_bits * len(self.packets) * self.by_position

    @property
    def passes_bits(self) -> int:
        """Bits that say of each form whether anything passes at the node."""
        return len(self.packets) * self.facts.by_form


@dataclass(frozen=True, kw_only=True)
class LoaderShape(EndShape):
    """What all loaders of a fabric have in common.

    Parameters
    ----------
    named : tuple of bool
        Of each form, whether packets have destinations.
    some : bool
        Whether any nodes send nothing in any form, which matters where packets may be shorter.
    """

    named: tuple[bool, ...]
    some: bool

    @property
    def length_bits(self) -> int:
        """Bits of the number of the last flit of a packet, where that is to be found out."""
        return self.last_bits if self.any_length else 0


@dataclass(frozen=True, kw_only=True)
class UnloaderShape(EndShape):
    """What all unloaders of a fabric have in common.

    Parameters
    ----------
    by_root : tuple of bool
        Of each form, whether there is one packet, of the root of the run, and its row that of the
        root's number.
    roots : tuple of int
        The origin of the first packet in each other form.
    id_bits : int
        Bits of an origin.
    late : bool
        Whether a word comes three cycles after its address, and not two.
    lacking : bool
        Whether nodes lack some packets of a form, so that each knows the numbers of its own.
    memories : int
        How many memories rows tell apart, where these say the number of one; the last is of what
        the node has from itself.
    """

    by_root: tuple[bool, ...]
    roots: tuple[int, ...]
    id_bits: int
    late: bool
    lacking: bool
    memories: int = 0

    @property
    def count_bits(self) -> int:
        """Bits of the index of a packet in each form, where nodes lack some."""
        return (max(self.packets) - 1).bit_length() * self.lacking


class StreamEnd(Leaf):
    """A loader or an unloader."""

    #: What it does, by what stream, and the input that says of each form whether anything passes.
    verb, side, passes = "", "", ""

    def __init__(self, shape: EndShape, signature: Mapping[str, Member]) -> None:
        self.shape, self._facts = shape, shape.facts.looked_up.get(self.verb)
        super().__init__(signature)

    def _said(self, name: str, number: Value, bits: int, *, otherwise: int = 0) -> Value:
        """What is said of a run, by as many bits of its number; something else if nothing is."""
        name = f"{self.verb}_{name}"
        if name not in self.signature.members:
            return Const(otherwise, 1)
        return self.value(name).word_select(number, bits)

    def _form_of(self, number: Value) -> Value:
        """The form of a run; or, in its place, all facts of it that are looked up."""
        if self._facts:
            return self._said("facts", number, self._facts.size)
        return self._said("mode", number, self.shape.facts.form_bits)

    def _fact(self, name: str, form: Value, constants: Sequence[int] = ()) -> Value:
        """A fact of a form: looked up, a constant, or else an input with that of each form."""
        if self._facts:
            return data.View(self._facts, form)[name]
        if constants:
            return constant_at(constants, form)
        given = self.value(name)
        return given.word_select(form, len(given) // len(self.shape.packets))

    def _root_of(self, number: Value) -> Value:
        return self._said("root", number, self.shape.facts.root_bits)

    def _takes_part(self, number: Value) -> Value:
        """Whether anything of a run passes at the node."""
        form, at_root = self._form_of(number), self.shape.at_root
        passes = self._fact(self.passes, form)
        if not any(at_root):
            return passes
        is_root = self._root_of(number) == self._fact("position", form)
        return Mux(constant_at(at_root, form), is_root, passes)

    def _base(self, base: Value, form: Value) -> Value:
        """The address at which a chunk begins, given what its row says of it."""
        shifts = self.shape.shifts
        found = [Cat(Const(0, shift), base) for shift in shifts]
        if len(set(shifts)) == 1:
            return found[0]
        longest = max(map(len, found))
        return choose([fitting(each, longest) for each in found], form)
