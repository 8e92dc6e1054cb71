"""`PacketTable`: the table of a node with bank and base address of each block of each packet.

A *bank* is the number of one of the memories of a node. An *engine* is the loader of a node, which
takes packets from the user and writes them into the memories, or the unloader, which reads received
packets from the memories. A packet has one block for each chunk of a message. A *field* is one of
the values in a row of this table: bank, base address, and whether the node sends the block to
itself.

An engine reads one row of the table for each word of a packet, at the address ::

    | form | packet | block |

The first row of a form is a multiple of the number of its rows, so that this address needs no
adder. The tables of all nodes are optimised together, bit by bit and form by form:

- A bit that is constant in all rows at all nodes is a constant.
- A bit that equals an address bit at all nodes is a wire. So a base address that is the packet
  number times a power of two needs no memory.
- All other bits are in a ROM at the node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from amaranth.hdl import Cat, Const, Value

from ...rtl.memories import choose_value, resize
from ...topology import IntArray
from .packets import Packets

__all__ = ["PacketTable"]

#: The value of a field that does not matter.
ANY_VALUE = -1


class BitSource(NamedTuple):
    """The source of one bit of a value that is read from a packet table.

    The hardware stores only those bits of a table in a ROM that it cannot get without memory.

    Parameters
    ----------
    kind : {"constant", "address", "rom"}
        "constant" for a bit that is equal in all rows, "address" for a bit that equals a bit of the
        row address, "rom" for all others.
    number : int
        Value of the constant, number of the address bit, or number of the ROM bit.
    """

    kind: str
    number: int


@dataclass(frozen=True, eq=False)
class PacketTable:
    """The packet tables of all loaders, or of all unloaders, of a fabric.

    The packet table of a node has a row for each block of each packet in each form, at the address
    ``form | packet | block``. The *fields* of a row, such as bank (the number of a memory) and base
    address, give the location of the block.

    Parameters
    ----------
    packets : sequence of Packets
        The packets in each form.
    fields : dict of str to (sequence of ndarray of int)
        Values of each field, an array of shape (nodes, packets, blocks) for each form; `ANY_VALUE`
        where a value does not matter.

    Examples
    --------
    Base addresses 0, 4, .., 28 of eight packets are the packet number times four. So wires suffice,
    and a ROM row has 0 bits.

    >>> base = 4 * np.arange(8).reshape(1, 8, 1)
    >>> packets = Packets(bank=0 * base, base=base, words=4)
    >>> table = PacketTable([packets], {"base": [base]})
    >>> table.address_bits, table.field_widths, table.rom_bits
    (3, {'base': 5}, 0)
    """

    packets: Sequence[Packets]
    fields: Mapping[str, Sequence[IntArray]]

    @cached_property
    def packet_bits(self) -> list[int]:
        """For each form, the number of bits that the packet number has in a row address."""
        return [(each.base.shape[1] - 1).bit_length() for each in self.packets]

    @cached_property
    def block_bits(self) -> list[int]:
        """For each form, the number of bits that the block number has in a row address."""
        return [(each.n_blocks - 1).bit_length() for each in self.packets]

    @cached_property
    def _form_address_bits(self) -> list[int]:
        """For each form, the bits of packet number and block number together."""
        return [sum(bits) for bits in zip(self.packet_bits, self.block_bits, strict=True)]

    @cached_property
    def first_rows(self) -> list[int]:
        """The address of the first row of each form.

        Forms with more rows get lower addresses. Each form has a power of two of rows, so its first
        address is a multiple of this number. Three forms of 2, 8 and 4 rows begin at 12, 0 and 8.
        """
        starts, start = [0] * len(self._form_address_bits), 0
        for form in sorted(range(len(starts)), key=lambda form: -self._form_address_bits[form]):
            starts[form], start = start, start + (1 << self._form_address_bits[form])
        return starts

    @property
    def n_rows(self) -> int:
        """Number of rows of the table, for all forms together."""
        return sum(1 << bits for bits in self._form_address_bits)

    @property
    def address_bits(self) -> int:
        """Bits of the address of a row: form, packet and block together."""
        return (self.n_rows - 1).bit_length()

    def row_address(self, block: Value, packet: Value, form: Value) -> Value:
        """Return the row address of a block, given the numbers of block, packet and form."""
        found = []
        for start, packets, blocks in zip(
            self.first_rows, self.packet_bits, self.block_bits, strict=True
        ):
            parts = [resize(block, blocks), resize(packet, packets)]
            above = self.address_bits - packets - blocks
            found.append(Cat(*parts, Const(start >> packets + blocks, above)))
        return found[0] if len(found) == 1 else choose_value(found, form)

    @cached_property
    def field_widths(self) -> dict[str, int]:
        """Bits of each field of a row, by name, such as ``{"bank": 2, "base": 5}``."""
        return {
            name: max(int(each.max(initial=0)) for each in values).bit_length()
            for name, values in self.fields.items()
        }

    @cached_property
    def field_values(self) -> dict[str, IntArray]:
        """Values of each field of the rows, such as ``base``: an array of shape (nodes, rows).

        A value is `ANY_VALUE` where it does not matter, such as in a row without a block.
        """
        return {name: self._concatenate_forms(values) for name, values in self.fields.items()}

    def _concatenate_forms(self, values: Sequence[IntArray]) -> IntArray:
        """Return the values of one field in the rows of all forms, shape (nodes, rows).

        `values` has an array of shape (nodes, packets, blocks) for each form.
        """
        found = np.full((len(values[0]), self.n_rows), ANY_VALUE)
        for form, (each, packets) in enumerate(zip(values, self.packets, strict=True)):
            packet, block = np.ogrid[: each.shape[1], : each.shape[2]]
            at = self.first_rows[form] + (packet << self.block_bits[form]) + block
            found[:, at] = np.where(packets.has_packets[:, None, None], each, ANY_VALUE)
        return found

    @property
    def _rows_of_forms(self) -> list[IntArray]:
        """For each form, an array with the addresses of all its rows."""
        return [
            start + np.arange(1 << bits)
            for start, bits in zip(self.first_rows, self._form_address_bits, strict=True)
        ]

    @cached_property
    def bit_sources(self) -> dict[str, list[list[BitSource]]]:
        """For each field, by name, and each form: the source of each bit, the lowest bit first.

        For example, ``bit_sources["base"][0][2]`` says if bit 2 of base addresses in form 0 is a
        constant, a bit of the row address, or a bit of the ROM.
        """
        found = dict[str, list[list[BitSource]]]()
        for name, values in self.field_values.items():
            first = _row_bits(found)
            found[name] = [
                self._find_bit_sources(values[:, rows], rows, self.field_widths[name], first)
                for rows in self._rows_of_forms
            ]
        return found

    def _find_bit_sources(
        self, values: IntArray, rows: IntArray, width: int, first: int
    ) -> list[BitSource]:
        """Return the source of each bit of a field in one form: constant, address bit or ROM bit.

        `values`, of shape (nodes, rows), has the values of the field in the rows of the form, and
        `rows` the addresses of these rows. The field has `width` bits. Bits that need a ROM get the
        numbers `first`, `first` + 1, ..
        """
        known = values >= 0
        places: list[BitSource] = []
        for bit in range(width):
            column = np.where(known, values >> bit & 1, 0)
            ones = column[known]
            same = [k for k in range(self.address_bits)
                    if ((rows >> k & 1) == column)[known].all()]  # fmt: skip
            if not ones.any() or ones.all():
                places.append(BitSource("constant", int(ones.any())))
            elif same:
                places.append(BitSource("address", same[0]))
            else:
                places.append(BitSource("rom", first))
                first += 1
        return places

    @property
    def rom_bits(self) -> int:
        """Bits of a ROM row: bits of the fields that are neither constant nor address bits."""
        return _row_bits(self.bit_sources)

    @property
    def address_source_bits(self) -> list[int]:
        """Numbers of those bits of a row address that also serve as bits of some field."""
        every = (
            place for forms in self.bit_sources.values() for places in forms for place in places
        )
        return sorted({place.number for place in every if place.kind == "address"})

    @property
    def depends_on_form(self) -> bool:
        """True if the source (constant, address, ROM) of some field bit differs between forms."""
        return any(places != forms[0] for forms in self.bit_sources.values() for places in forms)

    @cached_property
    def rom_rows(self) -> IntArray:
        """Contents of the ROM of each node, an array of numbers of shape (nodes, rows)."""
        found = np.zeros((len(next(iter(self.field_values.values()))), self.n_rows), np.int64)
        for name, values in self.field_values.items():
            for rows, places in zip(self._rows_of_forms, self.bit_sources[name], strict=True):
                of_form = np.maximum(values[:, rows], 0)
                for bit, (kind, number) in enumerate(places):
                    if kind == "rom":
                        found[:, rows] |= (of_form >> bit & 1) << number
        return found

    def read_field(self, name: str, address: Value, row: Value, form: Value) -> Value:
        """Return a signal with a field of a row: its bits are constants, address bits and ROM bits.

        Parameters
        ----------
        name : str
            Name of the field.
        address : Value
            Address of the row, in the cycle in which the ROM outputs the row.
        row : Value
            Output of the ROM.
        form : Value
            Form of the packet, in the same cycle; needed if `depends_on_form` is True.
        """
        known = {"address": address, "rom": row}

        def read_bit(place: BitSource) -> Value:
            if place.kind == "constant":
                return Const(place.number, 1)
            return known[place.kind][place.number]

        bits = []
        for places in zip(*self.bit_sources[name], strict=True):
            found = {place: read_bit(place) for place in places}
            bits.append(choose_value([found[place] for place in places], form))
        return Cat(*bits)

    def is_disjoint(self, name: str, bits: int) -> bool:
        """Return True if the mask `bits` and each value of the field `name` have no 1 in common."""
        return not (np.maximum(self.field_values[name], 0) & bits).any()


def _row_bits(fields: Mapping[str, Sequence[Sequence[BitSource]]]) -> int:
    """Return the number of bits of a ROM row, given the source of each bit of the fields.

    `fields` has, for each field by name and for each form, a list with the source of each bit. A
    ROM row has the bits whose source is the ROM.
    """
    every = (place for forms in fields.values() for places in forms for place in places)
    return max((place.number + 1 for place in every if place.kind == "rom"), default=0)
