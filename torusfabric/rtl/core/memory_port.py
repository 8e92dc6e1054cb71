"""The memory port of a node: ports of its own, or one port that serves all nodes.

Cycles of a read, from the inputs of the node:

=======  =====  ===================================================
private  shared
=======  =====  ===================================================
..       0      node, bank and address are given
0        1      memories are given the address
1        2      the word is there, and its bank in select registers
2        3      ``read_data``
=======  =====  ===================================================

Where a node shows many memories, the word is chosen in two stages, and comes a cycle later.

A port that is used during runs has ``read_advance`` in place of ``read_enable``: in a cycle without
it no stage of a read goes on, so that the word that is shown stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from amaranth.hdl import Value

from ...program.fields import Memory, number_equal
from ..memories import address_width
from ..modules import delayed

if TYPE_CHECKING:
    from .part import NodePart
    from .store_plan import Address

__all__ = ["STAGE_INPUTS", "MemoryPort", "PortSignals", "SharedPort", "enable_numbers", "suffix"]

#: Words among which a stage chooses in a cycle: two 4-input look-up tables in a row.
STAGE_INPUTS = 4


class PortSignals(NamedTuple):
    """Signals of a memory port in a node.

    Parameters
    ----------
    loads : dict of int to Value
        For each memory that the port writes, high in the cycle of a write.
    layouts : dict of int to Value
        The address of a write, for each send map.
    word : Value
        The word that is written.
    asks : Value
        High in the cycle of a read; a constant if the port reads in every cycle. Of a concurrent
        port, high in a cycle in which reads go on.
    address, bank : Value
        The address of a read, and the number of the memory.
    """

    loads: dict[int, Value]
    layouts: dict[int, Value]
    word: Value
    asks: Value
    address: Value
    bank: Value


class MemoryPort:
    """A memory port of each node.

    Parameters
    ----------
    memories : sequence of Memory
        The memories of a node.
    depth : int
        Words of the deepest memory.
    width : int
        Bits of a word of the port: of a flit, or of a row of several.
    sections : int
        Sections of each memory, a power of two.
    concurrent : bool
        True if the port writes and reads during runs.

    Attributes
    ----------
    stages : int
        Stages in which the word that is read is chosen.

    Examples
    --------
    >>> MemoryPort([Memory(()), Memory((), own=True)], depth=16, width=8, sections=2).inputs
    {'write_enable': 1, 'write_data': 8, 'read_enable': 1, 'write_bank': 1, 'write_address': 4, \
'write_section': 1, 'read_bank': 1, 'read_address': 4, 'read_section': 1}
    """

    #: True if one port serves all nodes.
    shared = False

    def __init__(
        self,
        memories: Sequence[Memory],
        depth: int,
        width: int,
        *,
        sections: int = 1,
        concurrent: bool = False,
    ) -> None:
        self.stages, self.width = 1, width
        self.memories, self.depth = tuple(memories), depth
        self.sections, self.concurrent = sections, concurrent
        self.section_bits = (sections - 1).bit_length()
        self.bank_bits, self.address_bits = address_width(len(memories)), address_width(depth)
        self._asks = "read_advance" if concurrent else "read_enable"
        self.inputs = {"write_enable": 1, "write_data": width, self._asks: 1} | {
            f"{way}_{name}": bits
            for way in ("write", "read")
            for name, bits in (
                ("bank", self.bank_bits),
                ("address", self.address_bits),
                ("section", self.section_bits),
            )
            if bits
        }

    def choose_among(self, memories: int) -> None:
        """Let the port choose among so many memories of a node, at most."""
        self.stages = 1 if memories <= STAGE_INPUTS else 2

    @property
    def answer(self) -> int:
        """Cycles from a read to its word."""
        return 1 + self.stages + self.shared

    def passes(self, address: Address) -> bool:
        """Return True if the address of a read comes by a column of the sequencer."""
        return self.shared and address.column is not None

    def signals(self, node: NodePart, written: Sequence[int]) -> PortSignals:
        """Return the signals of the port in a node, given the memories that it writes there."""
        bank, enable = node.value("write_bank"), node.value("write_enable")
        address = node.value("write_address")
        return PortSignals(
            {number: enable & (bank == number) for number in written},
            {self.memories[number].layout: address for number in written},
            *(node.value(name)
              for name in ("write_data", self._asks, "read_address", "read_bank")),
        )  # fmt: skip


class SharedPort(MemoryPort):
    """A port that serves all nodes: it says which one is meant.

    Words of a message are written by all send maps at once, each with an address of its own. The
    number of a bank counts the memories of a send map. Data come a cycle after their address.

    Parameters
    ----------
    nodes : int
        As many as a host port serves.
    place_bits : int
        Bits that tell the nodes of a group apart.
    enables : sequence of int
        For each send map, the number of its write enable.
    """

    shared = True

    def __init__(
        self,
        memories: Sequence[Memory],
        depth: int,
        width: int,
        *,
        nodes: int,
        place_bits: int,
        enables: Sequence[int],
    ) -> None:
        super().__init__(memories, depth, width)
        self._enables, node_bits = enables, address_width(nodes)
        self._banks = [
            [k for k, memory in enumerate(memories) if memory.own and memory.layout == layout]
            for layout in range(len(enables))
        ]
        self.inputs = {"node": node_bits, "write_node": place_bits, "write_data": width}
        self.inputs |= {f"write_enable{suffix(number)}": 1 for number in sorted({*enables})}
        for layout, banks in enumerate(self._banks):
            self.inputs |= {
                f"write_bank{suffix(layout)}": address_width(len(banks)),
                f"write_address{suffix(layout)}": self.address_bits,
            }
        self.inputs |= {"read_node": node_bits, "read_bank": self.bank_bits}
        self.inputs["read_address"] = self.address_bits

    def signals(self, node: NodePart, written: Sequence[int]) -> PortSignals:
        """Return the signals of the port in a node, given the memories that it writes there."""
        m, number, place = node.m, node.value("node"), node.value("write_node")
        here = place == number[: len(place)]
        loads, layouts = {}, {}
        for memory in written:
            layout = self.memories[memory].layout
            banks, way = self._banks[layout], suffix(layout)
            chosen = node.value(f"write_enable{suffix(self._enables[layout])}") & here
            if len(banks) > 1:
                chosen = chosen & (node.value(f"write_bank{way}") == banks.index(memory))
            loads[memory] = delayed(m, chosen, 1, f"write_{memory}")
            layouts[layout] = node.here(f"write_address{way}")
        return PortSignals(
            loads,
            layouts,
            node.value("write_data"),
            delayed(m, node.value("read_node") == number, 1, "asked"),
            node.here("read_address"),
            node.here("read_bank"),
        )


def suffix(number: int) -> str:
    """Return the suffix of a name: nothing for the first of several."""
    return f"_{number}" if number else ""


def enable_numbers(words: Iterable[int]) -> tuple[int, ...]:
    """The number of the write enable of each send map, given the words of each.

    Examples
    --------
    >>> enable_numbers([72, 24, 72])
    (0, 1, 0)
    """
    return tuple(number_equal(words)[0].tolist())
