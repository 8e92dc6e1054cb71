"""Engines: the base class of the loader and the unloader of a node, and their parameters.

Parameters that all loaders, or all unloaders, of a fabric share are an `EngineShape`. Commands say
the form and the root of a message, or of a run, by the lowest bits of its number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from amaranth.hdl import Const, Value
from amaranth.lib.wiring import Member

from ...rtl.core import Core
from ...rtl.core.memory_port import MemoryPort
from ...rtl.memories import constant_at
from ...rtl.modules import Leaf
from .packets import NOWHERE, OWN, Packets
from .run_facts import RunFacts
from .sections import number_bits
from .table import FREE, PacketTable
from .words import WordShape

__all__ = ["Engine", "EngineShape"]


@dataclass(frozen=True, eq=False)
class EngineShape:
    """Parameters that all loaders, or all unloaders, of a fabric share.

    Parameters
    ----------
    verb : str
        ``load`` or ``unload``.
    core : Core
        The core of the fabric.
    packets : tuple of Packets
        One entry for each form.
    facts : RunFacts
        Widths of the choices that commands make for a run.
    keeps : bool
        True if any node keeps a block that it sends to itself.
    """

    verb: str
    core: Core
    packets: tuple[Packets, ...]
    facts: RunFacts
    keeps: bool

    @cached_property
    def table(self) -> PacketTable:
        """The rows that each engine steps through."""
        packets = self.packets
        bank = [np.where(each.bank < 0, FREE, each.bank) for each in packets]
        base = [np.where(each.bank < 0, FREE, each.base) for each in packets]
        own = [np.where(each.bank == NOWHERE, FREE, each.bank == OWN) for each in packets]
        fields = {"bank": bank, "base": base} | ({"own": own} if self.verb == "unload" else {})
        return PacketTable(packets, fields)

    @property
    def port(self) -> MemoryPort:
        """The memory port of each node."""
        port = self.core.memory_port
        assert isinstance(port, MemoryPort)
        return port

    @property
    def beat(self) -> int:
        """Flits of a word."""
        return self.core.beat

    @property
    def most_flits(self) -> int:
        """Flits of the longest packet."""
        return self.core.program.flits

    @property
    def any_length(self) -> bool:
        """True if packets may be shorter."""
        return self.core.program.any_length

    @property
    def number_bits(self) -> int:
        """Bits of a destination, or of an origin."""
        return number_bits(self.core.program)

    @cached_property
    def counts(self) -> list[int]:
        """Packets of a node in each form."""
        return [each.count for each in self.packets]

    @cached_property
    def words(self) -> WordShape:
        """The division of the words of a packet into blocks."""
        return WordShape(
            most=-(-self.most_flits // self.beat),
            chunks=tuple(each.blocks for each in self.packets),
            block=max(each.words for each in self.packets),
            in_turn=self.any_length,
            pitch=tuple(each.pitch for each in self.packets),
        )

    @property
    def data_bits(self) -> int:
        """Bits of the data of a stream."""
        return 8 * -(-self.port.width // 8)

    @property
    def keep_bits(self) -> int:
        """Bytes of a word, if it has several flits."""
        return self.port.width // 8 if self.beat > 1 else 0

    @property
    def flit_bits(self) -> int:
        """Bits of the number of a flit in a word."""
        return self.beat.bit_length() - 1

    @property
    def last_bits(self) -> int:
        """Bits of the number of the last flit of a packet."""
        return self.words.index_bits + self.flit_bits

    @property
    def length_bits(self) -> int:
        """Bits of the number of the last flit of a packet, where that is to be found out."""
        return self.last_bits if self.any_length else 0

    @property
    def some(self) -> bool:
        """True if some nodes have no packets in a form, which matters for their length."""
        return self.any_length and any(
            each.at_root or not each.there.all() for each in self.packets
        )

    @property
    def lacks(self) -> bool:
        """True if nodes lack some packets of a form."""
        return any(each.numbers is not None and each.count > 1 for each in self.packets)

    @property
    def packet_bits(self) -> int:
        """Bits of the number of a packet of a node."""
        return (max(self.counts) - 1).bit_length()

    @property
    def named(self) -> list[bool]:
        """True for each form in which packets have destinations."""
        return [each.named for each in self.packets]

    @property
    def position_bits(self) -> int:
        """Bits of the positions of a node in the groups of each form, where they matter."""
        matters = any(each.at_root for each in self.packets)
        matters |= self.verb == "load" and any(self.named)
        return self.facts.position_bits * len(self.packets) * matters

    @property
    def key_bits(self) -> int:
        """Bits of the address of the ROM; 0 if there is none."""
        return self.table.address_bits * (self.table.rom_bits > 0)

    @property
    def address_is_disjoint(self) -> bool:
        """True if an address is the first one of a block OR a word of it."""
        most, bits = (1 << self.words.within_bits) - 1, min(self.words.pitch) - 1
        pitches = {*self.words.pitch}
        low = bits if len(pitches) == 1 and not (bits + 1) & bits else 0
        return self.table.is_disjoint("base", most & ~low)


class Engine(Leaf):
    """A loader or an unloader."""

    #: The prefix of its stream; the input with a bit for each form in which the node has packets.
    side, passes = "", ""

    def __init__(self, shape: EngineShape, signature: Mapping[str, Member]) -> None:
        self.shape = shape
        super().__init__(signature)

    def _said(self, name: str, number: Value, bits: int, *, otherwise: int = 0) -> Value:
        """Return a choice that commands make for a run, by the lowest bits of its number."""
        name = f"{self.shape.verb}_{name}"
        if name not in self.signature.members:
            return Const(otherwise, 1)
        return self.value(name).word_select(number, bits)

    def _form_of(self, number: Value) -> Value:
        """Return the form of a run."""
        return self._said("mode", number, self.shape.facts.form_bits)

    def _root_of(self, number: Value) -> Value:
        """Return the root of a run."""
        return self._said("root", number, self.shape.facts.root_bits)

    def _given(self, name: str, form: Value) -> Value:
        """Return an input that has an entry for each form."""
        given = self.value(name)
        return given.word_select(form, len(given) // len(self.shape.packets))

    def _takes_part(self, number: Value) -> Value:
        """Return True if the node has packets in a run."""
        form, at_root = self._form_of(number), [each.at_root for each in self.shape.packets]
        passes = self._given(self.passes, form)
        if not any(at_root):
            return passes
        is_root = self._root_of(number) == self._given("position", form)
        # In other forms the root does not matter.
        return passes & (is_root | ~constant_at(list(map(int, at_root)), form)[0])

    def _address(self, base: Value, within: Value) -> Value:
        """Return an address, given the first one of its block."""
        if not len(base):
            return within
        return base | within if self.shape.address_is_disjoint else base + within
