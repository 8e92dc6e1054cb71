"""The memory port: the port at which an adapter writes and reads the memories of a node.

A port is *private* (`MemoryPort`: each node has its own) or *shared* (`SharedPort`: the inputs of
all nodes are connected, and include the number of the addressed node).

Cycles of a read, counted at the inputs of the node:

=======  ======  ====================================================================
private  shared  event
=======  ======  ====================================================================
..       0       the inputs have the node, the bank and the address
0        1       the memories have the address
1        2       the memories show their words; the bank is in select registers
2        3       ``read_data`` has the word
=======  ======  ====================================================================

If a node has more than `STAGE_INPUTS` memories to read, the multiplexer has two stages, and
``read_data`` comes one cycle later.

The *bank* is the number of a memory. A *section* is one of several equal parts of each memory, of
which a run uses one.

A port that is used during runs (*concurrent*) has the input ``read_advance`` in place of
``read_enable``. In a cycle in which it is low, all stages of a read stand still, and ``read_data``
keeps its word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from amaranth.hdl import Value

from ...program.fields import Memory, number_by_value
from ..memories import address_width
from ..modules import delay_value

if TYPE_CHECKING:
    from .node_module import NodeModule
    from .store_shape import AddressSource

__all__ = ["STAGE_INPUTS", "MemoryPort", "PortSignals", "SharedPort", "write_enable_numbers",
           "number_suffix"]  # fmt: skip

#: Words that a stage of the multiplexer chooses among in a cycle, with two 4-input LUTs in series.
STAGE_INPUTS = 4


class PortSignals(NamedTuple):
    """The signals of a memory port inside a node, after the number of the node was compared.

    Parameters
    ----------
    loads : dict of int to Value
        Memory number -> write strobe, for each memory that the port writes.
    layouts : dict of int to Value
        Number of a send map -> write address. A send map gives the addresses of the words of a
        message. Forms can have different send maps, and then different memories for them.
    word : Value
        The word to write.
    asks : Value
        The read enable; a constant if the port reads in every cycle. For a concurrent port,
        ``read_advance``.
    address : Value
        The read address.
    bank : Value
        The number of the memory to read.
    """

    loads: dict[int, Value]
    layouts: dict[int, Value]
    word: Value
    asks: Value
    address: Value
    bank: Value


class MemoryPort:
    """A memory port that each node has for itself: an adapter writes and reads the memories by it.

    Parameters
    ----------
    memories : sequence of Memory
        The memories of a node.
    depth : int
        Words of the deepest memory.
    width : int
        Bits of a word of the port: one flit, or a row of several flits.
    sections : int
        Number of equal parts of each memory, a power of two. Each run uses one part.
    concurrent : bool
        True if the port writes and reads during runs.

    Attributes
    ----------
    stages : int
        Stages of the multiplexer of ``read_data``, 1 or 2.
    inputs : dict of str to int
        The inputs of the port at a node, each with its width.

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

    def set_stages(self, memories: int) -> None:
        """Set the number of pipeline stages of the read multiplexer: 1, or 2 for many memories.

        `memories` is the largest number of memories that the port reads at a node.
        """
        self.stages = 1 if memories <= STAGE_INPUTS else 2

    @property
    def read_cycles(self) -> int:
        """Cycles from an address at the inputs of a node to the word read, at its output."""
        return 1 + self.stages + self.shared

    def shares_read_address(self, address: AddressSource) -> bool:
        """Return True if the port reads through the same address signal as the run.

        This needs one port for all nodes, and an address that the sequencer sends. The sequencer
        drives the signal with the address of the run during a run, and with the address of the port
        between runs. So the nodes need no multiplexer of the two addresses.
        """
        return self.shared and address.column is not None

    def node_signals(self, node: NodeModule, written: Sequence[int]) -> PortSignals:
        """Return the strobes, addresses and data of the port inside a node.

        Parameters
        ----------
        node : NodeModule
            The module with the memories of the node.
        written : sequence of int
            The numbers of the memories that the port writes.
        """
        bank, enable = node.input_value("write_bank"), node.input_value("write_enable")
        address = node.input_value("write_address")
        return PortSignals(
            {number: enable & (bank == number) for number in written},
            {self.memories[number].layout: address for number in written},
            *(node.input_value(name)
              for name in ("write_data", self._asks, "read_address", "read_bank")),
        )  # fmt: skip


class SharedPort(MemoryPort):
    """A memory port that is shared by all nodes, with an input for the number of the node.

    A *send map* gives the memory and address of each word of a message. If forms have different
    send maps, the node has memories for each, and a write stores the word in all of them. Each send
    map has an address and a bank (memory number) at the port; the bank counts only the memories of
    this send map. Write data come one cycle after the address.

    Parameters
    ----------
    memories, depth, width
        The same as in `MemoryPort`.
    nodes : int
        Number of nodes that the host port serves.
    place_bits : int
        Bits of the position of a node within its group, see `NodeGroups`.
    enables : sequence of int
        The number of the write enable of each send map.
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
        self.inputs |= {f"write_enable{number_suffix(number)}": 1 for number in sorted({*enables})}
        for layout, banks in enumerate(self._banks):
            self.inputs |= {
                f"write_bank{number_suffix(layout)}": address_width(len(banks)),
                f"write_address{number_suffix(layout)}": self.address_bits,
            }
        self.inputs |= {"read_node": node_bits, "read_bank": self.bank_bits}
        self.inputs["read_address"] = self.address_bits

    def node_signals(self, node: NodeModule, written: Sequence[int]) -> PortSignals:
        """Return the strobes, addresses and data of the port inside a node.

        The strobes are high only if the number of this node is at the inputs of the port.

        Parameters
        ----------
        node, written
            The same as in `MemoryPort.node_signals`.
        """
        m, number, place = node.m, node.input_value("node"), node.input_value("write_node")
        here = place == number[: len(place)]
        loads, layouts = {}, {}
        for memory in written:
            layout = self.memories[memory].layout
            banks, way = self._banks[layout], number_suffix(layout)
            chosen = node.input_value(f"write_enable{number_suffix(self._enables[layout])}") & here
            if len(banks) > 1:
                chosen = chosen & (node.input_value(f"write_bank{way}") == banks.index(memory))
            loads[memory] = delay_value(m, chosen, 1, f"write_{memory}")
            layouts[layout] = node.node_register(f"write_address{way}")
        return PortSignals(
            loads,
            layouts,
            node.input_value("write_data"),
            delay_value(m, node.input_value("read_node") == number, 1, "asked"),
            node.node_register("read_address"),
            node.node_register("read_bank"),
        )


def number_suffix(number: int) -> str:
    """Return the end of the name of signal `number` of several: ``_1`` for 1, nothing for 0."""
    return f"_{number}" if number else ""


def write_enable_numbers(words: Iterable[int]) -> tuple[int, ...]:
    """Return the number of the write enable of each send map, given its number of words.

    A send map gives the address of each word of a message. Send maps with equally many words share
    a write enable.

    Examples
    --------
    The first and the last send map share write enable 0.

    >>> write_enable_numbers([72, 24, 72])
    (0, 1, 0)
    """
    return tuple(number_by_value(words)[0].tolist())
