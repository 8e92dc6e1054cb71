"""`NodeMemoryPort`: the memory port of each node of a bare core, driven by the user's design.

The port accepts one write and one read in every cycle, without a handshake. The clock edge that
ends the cycle of a write stores the word. A read takes these cycles:

======  ===========================================================
cycle   read
======  ===========================================================
0       the user's design drives bank and address
1       first input register of the node
2       second input register, which addresses the memories
3       each memory outputs a word; one is selected by the bank
4       `read_data`; one cycle later in a node with many memories,
        which selects the word in two stages
======  ===========================================================

Why two registers: they keep the wires from the user to the memories short. A read in the cycle of a
start still reaches the memories before the first address of the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Value

from ...program.fields import Memory
from ...rtl.core.memory_port import MemoryPort, PortSignals
from ...rtl.core.node_module import NodeModule
from ...rtl.memories import address_width, resize
from ...rtl.modules import delay_value

__all__ = ["NodeMemoryPort"]

#: Registers between the inputs of a node and the addresses of its memories.
INPUT_REGISTERS = 2


class NodeMemoryPort(MemoryPort):
    """The memory port of a node, with a write and a read side that the user's design drives.

    A *bank* is one memory of the node. The input `write_bank` is the number of a bank among those
    that the port can write, `read_bank` the number of a bank among all.

    Parameters
    ----------
    memories : sequence of Memory
        The memories of a node.
    depth, width : int
        Number of words of the deepest memory, and number of bits of a word.
    half : int
        Number of words in the lower half of each memory, if the node's own message is in the lower
        half and received words are in the upper half: the port then has an input `upper`, which
        selects the half for reads. Otherwise 0.

    Attributes
    ----------
    outside : dict of str to int
        Widths in bits of the inputs that the user's design drives, by name.
    inputs : dict of str to int
        Widths in bits of all inputs of the port, by name.

    Examples
    --------
    A node has two memories, of which the port can write only the second one. So it has an input
    `read_bank`, but no `write_bank`.

    >>> NodeMemoryPort([Memory(()), Memory((), own=True)], depth=16, width=8).inputs
    {'write_address': 4, 'write_data': 8, 'write_enable': 1, 'read_bank': 1, 'read_address': 4}
    """

    def __init__(
        self, memories: Sequence[Memory], depth: int, width: int, *, half: int = 0
    ) -> None:
        super().__init__(memories, depth, width)
        self._half_bits = (half - 1).bit_length() if half else 0
        self._halves = half > 0
        self._own = [number for number, memory in enumerate(memories) if memory.own]
        banks = len(self._own)
        # `upper` comes from a ROM of the core, not from the user.
        self.outside = {"write_bank": address_width(banks)} if banks > 1 else {}
        self.outside |= {
            "write_address": self.address_bits,
            "write_data": width,
            "write_enable": 1,
            "read_bank": self.bank_bits,
            "read_address": self.address_bits,
        }
        self.inputs = self.outside | ({"upper": 1} if self._halves else {})

    @property
    def read_cycles(self) -> int:
        """Cycles from the address of a read to its word."""
        return super().read_cycles + INPUT_REGISTERS

    def node_signals(self, node: NodeModule, written: Sequence[int]) -> PortSignals:
        """Return the signals by which the port accesses the memories of one node.

        Parameters
        ----------
        node : NodeModule
            The node, whose inputs the port reads.
        written : sequence of int
            Numbers of the memories of this node that the port can write.
        """
        enable, address = node.input_value("write_enable"), node.input_value("write_address")
        loads: dict[int, Value] = dict.fromkeys(written, enable)
        if len(self._own) > 1:
            bank = node.input_value("write_bank")
            loads = {k: enable & (bank == self._own.index(k)) for k in written}
        asked, bank = (
            delay_value(node.m, node.input_value(name), INPUT_REGISTERS)
            for name in ("read_address", "read_bank")
        )
        if self._halves:
            asked = Cat(resize(asked, self._half_bits), node.input_value("upper"))
        layouts = {self.memories[number].layout: address for number in written}
        return PortSignals(loads, layouts, node.input_value("write_data"), Const(1, 1), asked, bank)
