"""`Engine`, the base class of `Loader` and `Unloader`, and `EngineShape`, their parameters.

Each node has two engines (not those of the glossary). The loader takes packets from the user and
writes them into the memories of the node; the unloader reads received words from the memories and
sends them as packets. Both use the *memory port* of the node, by which one word a cycle is written
and one is read. A *bank* is the number of one of the memories behind this port. The *packet table*
says in which bank, and from which address on, each block of each packet lies. The *own block* is
the part of a message that a node sends to itself; a memory outside of the core holds it.

A loader needs form and root of the message that it loads, an unloader those of the run that it
unloads. `Commands` drives inputs for them, with one field for each of the few messages or runs
under way. The lowest bits of the number of a message or run select its field; see `RunFacts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from amaranth.hdl import Cat, Const, Value
from amaranth.lib.wiring import Member

from ...rtl.core import Core
from ...rtl.core.memory_port import MemoryPort
from ...rtl.memories import constant_at, resize
from ...rtl.modules import Leaf
from ...topology import IntArray
from .packets import NO_BLOCK, OWN_BLOCK, Packets
from .run_facts import RunFacts
from .sections import stream_id_bits
from .table import ANY_VALUE, PacketTable
from .words import WordShape

__all__ = ["Engine", "EngineShape"]


@dataclass(frozen=True, eq=False)
class EngineShape:
    """Parameters that all loaders, or all unloaders, of a fabric share.

    Each node has a loader, which writes the packets that the node sends into memories, and an
    unloader, which reads the received packets from memories.

    Parameters
    ----------
    verb : str
        ``load`` for loaders, ``unload`` for unloaders.
    core : Core
        The core of the fabric.
    packets : tuple of Packets
        For each form, the packets that nodes send (for loaders) or receive (for unloaders).
    facts : RunFacts
        Widths of the signals that tell engines the form and root of a run.
    keeps : bool
        True if any node sends a block to itself. The block is then kept in a memory beside the
        core.
    """

    verb: str
    core: Core
    packets: tuple[Packets, ...]
    facts: RunFacts
    keeps: bool

    @cached_property
    def packet_table(self) -> PacketTable:
        """The table with the location of each block of each packet: a memory and first address.

        Unloaders also have a bit for blocks that the node sent to itself.
        """
        packets = self.packets
        bank = [np.where(each.bank < 0, ANY_VALUE, each.bank) for each in packets]
        base = [np.where(each.bank < 0, ANY_VALUE, each.base) for each in packets]
        own = [
            np.where(each.bank == NO_BLOCK, ANY_VALUE, each.bank == OWN_BLOCK) for each in packets
        ]
        fields = {"bank": bank, "base": base} | ({"own": own} if self.verb == "unload" else {})
        return PacketTable(packets, fields)

    @property
    def memory_port(self) -> MemoryPort:
        """The port of each node by which loader and unloader write and read one word a cycle."""
        port = self.core.memory_port
        assert isinstance(port, MemoryPort)
        return port

    @property
    def beat(self) -> int:
        """Number of flits in a word of the stream, and of the memory port."""
        return self.core.beat

    @property
    def most_flits(self) -> int:
        """Flits of the longest packet."""
        return self.core.program.flits

    @property
    def any_length(self) -> bool:
        """True if runs choose the length of packets; False if all have one fixed length."""
        return self.core.program.any_length

    @property
    def stream_id_bits(self) -> int:
        """Bits of the signals `tdest` and `tid`: the destination, or origin, of a packet."""
        return stream_id_bits(self.core.program)

    @cached_property
    def packet_counts(self) -> list[int]:
        """For each form, the largest number of packets that a node sends, or receives, in a run."""
        return [each.most_packets for each in self.packets]

    @cached_property
    def word_shape(self) -> WordShape:
        """The division of the words of a packet into blocks: number and length of the blocks."""
        most = -(-self.most_flits // self.beat)
        return WordShape(
            most=most,
            chunks=tuple(each.n_blocks for each in self.packets),
            block=tuple(
                each.words if self.any_length or each.n_blocks > 1 else most
                for each in self.packets
            ),
            in_turn=self.any_length,
            pitch=tuple(each.pitch for each in self.packets),
        )

    @property
    def data_bits(self) -> int:
        """Bits of the data of a stream."""
        return 8 * -(-self.memory_port.width // 8)

    @property
    def keep_bits(self) -> int:
        """Bits of `tkeep`, one for each byte of a word; 0 if a word is one flit."""
        return self.memory_port.width // 8 if self.beat > 1 else 0

    @property
    def flit_bits(self) -> int:
        """Bits of the position of a flit within a word; 0 if a word is one flit."""
        return self.beat.bit_length() - 1

    @property
    def last_flit_bits(self) -> int:
        """Bits of the number of the last flit of a packet, counted from 0."""
        return self.word_shape.index_bits + self.flit_bits

    @property
    def length_bits(self) -> int:
        """Bits of a packet length (the number of the last flit); 0 if the length is fixed."""
        return self.last_flit_bits if self.any_length else 0

    @property
    def has_idle_senders(self) -> bool:
        """True if lengths vary and, in some form, some nodes have no packets.

        These nodes must be left out when the lengths of the messages of all nodes are compared.
        """
        return self.any_length and any(
            each.at_root or not each.has_packets.all() for each in self.packets
        )

    @property
    def has_unequal_packets(self) -> bool:
        """True if, in some form, nodes differ in the number or the origins of their packets."""
        return any(each.numbers is not None and each.most_packets > 1 for each in self.packets)

    @property
    def has_lengths(self) -> bool:
        """True if, in some form, nodes have different packets: unequally many or long ones."""
        return any(each.lengths is not None for each in self.packets)

    @property
    def has_packet_counts(self) -> bool:
        """True if nodes have different numbers of packets, as the constant input `own_last`."""
        return self.has_unequal_packets if self.verb == "unload" else self.has_lengths

    @cached_property
    def planned_lengths(self) -> IntArray:
        """The flits of each packet of each node, shape (nodes, forms, 2 ** `packet_bits`).

        It is 0 for packets that a node does not have, and in forms in which lengths are equal it is
        the length of all packets.
        """
        shape = len(self.core.nodes), len(self.packets), 1 << self.packet_bits
        planned = np.zeros(shape, np.int64)
        for form, each in enumerate(self.packets):
            lengths = self.most_flits if each.lengths is None else each.lengths
            planned[:, form, : each.most_packets] = lengths
        return planned

    @property
    def planned_length_bits(self) -> int:
        """Bits of the number of the last flit of a packet, one of which stands for no packet."""
        return self.last_flit_bits + 1

    def planned_length(self, lengths: Value, packet: Value, form: Value) -> Value:
        """Return one field of `planned_lengths`, which a node has as the constant input `lengths`.

        Parameters
        ----------
        lengths : Value
            All fields of the node.
        packet, form : Value
            Number of the packet in its run, counted from 0, and number of the form of the run.
        """
        at = Cat(resize(packet, self.packet_bits), form[: self.facts.form_bits])
        return lengths.word_select(at, len(lengths) // len(self.packets) >> self.packet_bits)

    @property
    def packet_bits(self) -> int:
        """Bits of a packet number: the packets of a node in one run are numbered from 0."""
        return (max(self.packet_counts) - 1).bit_length()

    @property
    def has_destinations(self) -> list[bool]:
        """For each form, True if each packet names its destination in `tdest`."""
        return [each.named for each in self.packets]

    @property
    def position_bits(self) -> int:
        """Bits of the input `position` of a loader or unloader, which has a field for each form.

        The field is the number of the node within its group. The loader or unloader compares it
        with roots and destinations. The result is 0 if no form needs this comparison.
        """
        matters = any(each.at_root for each in self.packets)
        matters |= self.verb == "load" and any(self.has_destinations)
        return self.facts.position_bits * len(self.packets) * matters

    @property
    def rom_address_bits(self) -> int:
        """Bits of the address of the ROM with the locations of blocks; 0 if no ROM is needed."""
        return self.packet_table.address_bits * (self.packet_table.rom_bits > 0)

    @property
    def address_is_disjoint(self) -> bool:
        """True if a block's first address has no 1 at a bit that a distance within the block uses.

        The address of a word is then the OR of first address and distance, which needs no adder.
        """
        most, bits = (1 << self.word_shape.offset_bits) - 1, min(self.word_shape.pitch) - 1
        pitches = {*self.word_shape.pitch}
        low = bits if len(pitches) == 1 and not (bits + 1) & bits else 0
        return self.packet_table.is_disjoint("base", most & ~low)


class Engine(Leaf):
    """Base class of the loader and the unloader of a node.

    The loader writes packets from the user into memories; the unloader sends received words.

    Parameters
    ----------
    shape : EngineShape
        Parameters that all loaders, or all unloaders, of the fabric share.
    signature : mapping of str to Member
        Inputs and outputs of the module, keyed by name.
    """

    #: Prefix of the stream, and the input with one bit for each form, high if the node has packets.
    side, passes = "", ""

    def __init__(self, shape: EngineShape, signature: Mapping[str, Member]) -> None:
        self.shape = shape
        super().__init__(signature)

    def _run_choice(self, name: str, number: Value, bits: int, *, otherwise: int = 0) -> Value:
        """Return one choice of a message or run, such as ``mode`` or ``root``, as a signal.

        The inputs ``load_<name>`` of a loader, or ``unload_<name>`` of an unloader, have a field of
        `bits` bits for each message or run under way. `number`, the lowest bits of the number of
        the message or run, selects the field. If commands have no such choice, return the constant
        `otherwise`.
        """
        name = f"{self.shape.verb}_{name}"
        if name not in self.signature.members:
            return Const(otherwise, 1)
        return self.input_value(name).word_select(number, bits)

    def _form_of(self, number: Value) -> Value:
        """Return the form of a message or run as a signal, given the lowest bits of its number."""
        return self._run_choice("mode", number, self.shape.facts.form_bits)

    def _root_of(self, number: Value) -> Value:
        """Return the root of a message or run as a signal, given the lowest bits of its number."""
        return self._run_choice("root", number, self.shape.facts.root_bits)

    def _form_field(self, name: str, form: Value) -> Value:
        """Return the field for a form, as a signal, of an input that has one field for each form.

        `name` is the name of the input, and `form` a signal with the number of the form.
        """
        given = self.input_value(name)
        return given.word_select(form, len(given) // len(self.shape.packets))

    def _has_packets(self, number: Value) -> Value:
        """Return a signal: high if the node sends (loader) or receives (unloader) packets in a run.

        `number` has the lowest bits of the number of the run.
        """
        form, at_root = self._form_of(number), [each.at_root for each in self.shape.packets]
        passes = self._form_field(self.passes, form)
        if not any(at_root):
            return passes
        is_root = self._root_of(number) == self._form_field("position", form)
        # The root counts only in forms in which the root alone has packets.
        return passes & (is_root | ~constant_at(list(map(int, at_root)), form)[0])

    def _word_address(self, base: Value, within: Value) -> Value:
        """Return the memory address of a word: the sum of `base` and `within`.

        `base` is the first address of its block, and `within` the distance of the word from it.
        """
        if not len(base):
            return within
        return base | within if self.shape.address_is_disjoint else base + within
