"""The memory port of each node of a bare core.

It writes and reads with every edge, without being asked. A word is written with the edge that ends
the cycle in which it is given. A read takes some cycles more::

    cycle  0          1, 2                3                  4
           bank and   registers of the    select registers,  read_data
           address    node, then memory   word of memory

A node that shows many memories chooses the word in two stages, and `read_data` comes a cycle later.

The registers of the node keep wires from its user to its memories short. A read that is asked for
with a start reaches the memories before the addresses of the run do.
"""

from __future__ import annotations

from collections.abc import Sequence

from amaranth.hdl import Cat, Const, Value

from ...program.fields import Memory
from ...rtl.core.memory_port import MemoryPort, PortSignals
from ...rtl.core.part import NodePart
from ...rtl.memories import address_width, fitting
from ...rtl.modules import delayed

__all__ = ["BarePort"]

#: Registers between the inputs of a node and the addresses of its memories.
REGISTERS = 2


class BarePort(MemoryPort):
    """A memory port that a user drives.

    The number of a bank to write counts the memories that are written by the port.

    Parameters
    ----------
    memories : sequence of Memory
        The memories of a node.
    depth, width : int
        Words of the deepest memory, and bits of a word.
    half : int
        Words of the lower half of each memory, if the upper half holds what nodes receive and the
        lower half what they would send as the root; else 0. An input says then which half is read.

    Examples
    --------
    >>> BarePort([Memory(()), Memory((), own=True)], depth=16, width=8).inputs
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
        #: The inputs that a user drives; what else there is comes from the core.
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
    def answer(self) -> int:
        """Cycles from a read to its word."""
        return super().answer + REGISTERS

    def signals(self, node: NodePart, written: Sequence[int]) -> PortSignals:
        """Return the signals of the port in a node, given the memories that it writes there."""
        enable, address = node.value("write_enable"), node.value("write_address")
        loads: dict[int, Value] = dict.fromkeys(written, enable)
        if len(self._own) > 1:
            bank = node.value("write_bank")
            loads = {k: enable & (bank == self._own.index(k)) for k in written}
        asked, bank = (
            delayed(node.m, node.value(name), REGISTERS) for name in ("read_address", "read_bank")
        )
        if self._halves:
            asked = Cat(fitting(asked, self._half_bits), node.value("upper"))
        layouts = {self.memories[number].layout: address for number in written}
        return PortSignals(loads, layouts, node.value("write_data"), Const(1, 1), asked, bank)
