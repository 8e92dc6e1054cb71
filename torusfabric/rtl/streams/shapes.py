"""What all loaders of a fabric have in common, and what all unloaders do; and what they are given.

What loaders are given is of two messages, of an even and of an odd number: no more of them wait.
What unloaders are given is of a run in each section of the memories.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Const, Value

from ..leaf import Leaf
from .sections import Sections
from .words import WordShape

__all__ = ["LoaderShape", "RunFacts", "UnloaderShape", "of_run"]


@dataclass(frozen=True)
class RunFacts:
    """What commands say of a run.

    Parameters
    ----------
    commanded : bool
        Whether there are commands at all.
    mode_bits, root_bits : int
        Bits of a mode, and of a root; 0 where there is no choice.
    position_bits : int
        Bits of the position of a node in its group.
    sections : Sections
        Of memories.
    """

    commanded: bool
    mode_bits: int
    root_bits: int
    position_bits: int
    sections: Sections

    @property
    def load_widths(self) -> dict[str, int]:
        """Names and widths of what loaders are given of two messages."""
        return self._widths("load", 2, valid=int(self.commanded))

    @property
    def unload_widths(self) -> dict[str, int]:
        """Names and widths of what unloaders are given of a run in each section."""
        return self._widths("unload", self.sections.count)

    def _widths(self, prefix: str, runs: int, **others: int) -> dict[str, int]:
        """Names and widths of what is said of so many runs."""
        bits = others | {"mode": self.mode_bits, "root": self.root_bits}
        return {f"{prefix}_{name}": runs * width for name, width in bits.items() if width}


def of_run(leaf: Leaf, name: str, number: Value, bits: int, *, otherwise: int = 0) -> Value:
    """What is said of a run, by as many bits of its number; something else if nothing is."""
    if not bits or name not in leaf.signature.members:
        return Const(otherwise, 1)
    return leaf.value(name).word_select(number, bits)


@dataclass(frozen=True)
class LoaderShape:
    """What all loaders of a fabric have in common.

    Parameters
    ----------
    width, data_bits : int
        Bits of a flit, and of the data of a stream.
    words : WordShape
        How the words of a packet are divided into chunks.
    facts : RunFacts
        What commands say of a run.
    packets : tuple of int
        Packets of a message in each mode.
    named : tuple of bool
        Of each mode, whether packets have destinations.
    at_root : tuple of bool
        Of each mode, whether the root of the run alone sends.
    any_length : bool
        Whether packets may be shorter.
    some : bool
        Whether any nodes send nothing in any mode.
    dest_bits : int
        Bits of a destination; 0 where no message has several.
    bank_bits, base_bits : int
        Bits of the number of a memory, and of the address at which a chunk begins, as a ROM gives
        them; 0 where there is nothing to look up.
    address_bits : int
        Bits of the address of a memory.
    kept : bool
        Whether any node gets anything from itself.
    """

    width: int
    data_bits: int
    words: WordShape
    facts: RunFacts
    packets: tuple[int, ...]
    named: tuple[bool, ...]
    at_root: tuple[bool, ...]
    any_length: bool
    some: bool
    dest_bits: int
    bank_bits: int
    base_bits: int
    address_bits: int
    kept: bool

    @property
    def row_bits(self) -> int:
        """Bits of a row of the ROM."""
        return self.bank_bits + self.base_bits

    @property
    def key_bits(self) -> int:
        """Bits of the address of the ROM: chunk, destination, mode; 0 for a single row."""
        bits = self.words.chunk_bits + self.dest_bits + self.facts.mode_bits
        return bits * (self.row_bits > 0)

    @property
    def position_bits(self) -> int:
        """Bits of the positions of a node in the groups of each mode, where they matter."""
        needed = self.dest_bits or any(self.at_root)
        return self.facts.position_bits * len(self.packets) if needed else 0

    @property
    def length_bits(self) -> int:
        """Bits of the number of the last word of a packet, where that is to be found out."""
        return self.words.index_bits if self.any_length else 0


@dataclass(frozen=True)
class UnloaderShape:
    """What all unloaders of a fabric have in common.

    Parameters
    ----------
    words : WordShape
        How the words of a packet are divided into chunks.
    facts : RunFacts
        What commands say of a run.
    packets : tuple of int
        Packets that a node receives in each mode.
    at_root : tuple of bool
        Of each mode, whether the root of the run alone receives.
    by_root : tuple of bool
        Of each mode, whether there is one packet, of the root of the run, and its row that of the
        root's number.
    roots : tuple of int
        The origin of the first packet in each other mode.
    any_length : bool
        Whether packets may be shorter.
    id_bits : int
        Bits of an origin.
    packet_bits : int
        Bits of the number of a packet, or of a root by which rows are found; 0 for only one.
    code_bits, base_bits : int
        Bits of a row of the ROM: of the select bits of a memory, and of the address at which a
        chunk begins.
    address_bits : int
        Bits of the address of a memory.
    kept : bool
        Whether the lowest bit of a row says that the node has it from itself, word by word.
    late : bool
        Whether a word comes three cycles after its address, and not two.
    """

    words: WordShape
    facts: RunFacts
    packets: tuple[int, ...]
    at_root: tuple[bool, ...]
    by_root: tuple[bool, ...]
    roots: tuple[int, ...]
    any_length: bool
    id_bits: int
    packet_bits: int
    code_bits: int
    base_bits: int
    address_bits: int
    kept: bool
    late: bool

    @property
    def kept_bits(self) -> int:
        """Bits of a row that say that the node has something from itself."""
        return int(self.kept)

    @property
    def row_bits(self) -> int:
        """Bits of a row of the ROM."""
        return self.kept_bits + self.code_bits + self.base_bits

    @property
    def key_bits(self) -> int:
        """Bits of the address of the ROM: chunk, packet, mode; 0 for a single row."""
        bits = self.words.chunk_bits + self.packet_bits + self.facts.mode_bits
        return bits * (self.row_bits > 0)

    @property
    def position_bits(self) -> int:
        """Bits of the positions of a node in the groups of each mode, where they matter."""
        return self.facts.position_bits * len(self.packets) if any(self.at_root) else 0
