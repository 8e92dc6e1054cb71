"""The addresses of the host port."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..program import DirectMap
from ..program.timing import block_cycles, chunk_cycles, part_cycles
from .memories import address_width

if TYPE_CHECKING:
    from ..program import Program

__all__ = ["HostLayout"]


class HostLayout:
    """Where the host finds what a node sends, and what it has received.

    Parameters
    ----------
    program : Program
        Of one form.
    words : int, optional
        The most words that a node sends or receives in any form.

    Attributes
    ----------
    chunks : int
        Of a message.
    in_turn : bool
        Whether the flits of a message go to its chunks in turn.
    flits, block_flits, part_flits : int
        Flits of a message, of a block, and of a part of a node's memory.
    send_base, recv_base : int
        First addresses.
    send_words, recv_words : int
    address_bits : int
    memory_by_chunk : bool
        Whether each chunk of what a node sends has a memory of its own.
    part_is_root : bool
        Whether where a node keeps what it has received depends on which node is the root.
    positions : ndarray of int or None
        The position of each node in its group; None where it is its number.

    Examples
    --------
    >>> import torusfabric as tf
    >>> layout = HostLayout(tf.compile(tf.plan(tf.Torus(3, 3), "allgather"), flits=4))
    >>> layout.send_words, layout.recv_words, layout.recv_base
    (4, 36, 64)
    """

    def __init__(self, program: Program, words: int | None = None) -> None:
        layout = program.layout
        self._program = program
        self.chunks, self.in_turn = program.schedule.chunks, program.any_length
        self.nodes = program.topology.nodes
        self.send_parts, self.recv_parts = layout.send_parts, layout.recv_parts
        self.part_chunks = layout.part_chunks
        self.flits, self.block_flits = program.flits, program.block_flits
        self.part_flits = layout.part_flits(program.flits)
        self.send_words, self.recv_words = program.send_words, program.recv_words
        self.send_base = 0
        # A power of two, so that one address bit chooses and no subtraction is needed.
        words = words or max(self.send_words, self.recv_words)
        self.recv_base = 1 << (words - 1).bit_length()
        self.address_bits = address_width(2 * self.recv_base)
        self.part_is_root = program.form.part_is_root
        send = program.form.send_map
        self.memory_by_chunk = isinstance(send, DirectMap) and send.by_chunk
        groups = program.groups
        self.positions = groups.position if groups.count > 1 else None

    @property
    def root_bits(self) -> int:
        """Bits of the number of a root: of a position in a group."""
        return address_width(self._program.groups.size)

    @property
    def position_bits(self) -> int:
        """Bits of the ROM of positions."""
        if self.positions is None:
            return 0
        return self.nodes * address_width(int(self.positions.max()) + 1)

    def block_cycles(self, parts: int) -> int:
        """Cycles to find out in which block, of so many parts, an address lies."""
        return block_cycles(self._program.layout, parts, self.flits, any_length=self.in_turn)

    def part_cycles(self, parts: int) -> int:
        """Cycles to find out in which of so many parts it lies."""
        return part_cycles(self._program.layout, parts, self.flits, any_length=self.in_turn)

    @property
    def chunk_cycles(self) -> int:
        """Cycles to find out in which chunk of a part it lies."""
        return chunk_cycles(self._program.layout, self.flits, any_length=self.in_turn)
