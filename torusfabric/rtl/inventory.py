"""What a fabric stores, counted without synthesis, and how origins are known.

A receiver has to know the origin of a word: what that takes is beside what a tag would.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from ..program import Form, Program
from .netlist import Netlist, Role

__all__ = ["Inventory", "Origins", "tag_cost", "take_inventory"]

#: Whose ROMs hold settings and addresses of the program.
PROGRAMMED = (Role.ROUTER, Role.SEQUENCER)


class Inventory(NamedTuple):
    """What a fabric stores.

    Parameters
    ----------
    rom_bits : int
        Bits of settings and addresses in the routers and the sequencer of all nodes together.
    memories : int
        Memories that a node writes and reads, of the node that has most; one with several read
        ports counts once for each.
    memory_bits : int
        Bits of them in all nodes together.
    """

    rom_bits: int
    memories: int
    memory_bits: int


def take_inventory(netlist: Netlist) -> Inventory:
    """Count what a fabric stores."""
    stored = {name: _stored(netlist, name) for name in netlist.modules}
    rom = bits = 0
    nodes = [array.nodes for array in netlist.arrays if array.nodes is not None]
    memories = np.zeros(1 + int(np.concatenate(nodes).max()), int)
    for array in netlist.arrays:
        if array.roms is not None:
            contents, which, width = array.roms
            rom += sum(len(contents[k]) for k in which.tolist()) * width
            continue
        here = stored[array.module]
        bits += len(array) * here.memory_bits
        if array.nodes is not None:
            memories[array.nodes] += here.memories
        if array.role in PROGRAMMED:
            rom += len(array) * here.rom_bits
    return Inventory(rom, int(memories.max()), bits)


def _stored(netlist: Netlist, module: str) -> Inventory:
    """What a module stores."""
    leaf = netlist.modules[module]()
    shapes = leaf.memories()
    written = [shape.width * shape.depth for shape in shapes if shape.written]
    rom = sum(shape.width * shape.depth for shape in shapes if not shape.written)
    return Inventory(rom, len(written), sum(written))


#: Bits of ROM that one 4-input look-up table holds.
ROM_BITS_A_CELL = 16


@dataclass(frozen=True)
class Origins:
    """How the origin of a word is known, beside what a tag in every flit would cost instead.

    Parameters
    ----------
    known_by : str
        What it follows from.
    rom_bits : int
        Bits of the ROMs with which the host finds a block by its origin, once for the whole
        fabric. None are needed where each node has ports of its own.
    tag_registers : int
        Bits of link registers that tags would take, in all routers together.
    tag_multiplexers : int
        Bits of two-way multiplexers that tags would take in all crossbars.
    """

    known_by: str
    rom_bits: int
    tag_registers: int
    tag_multiplexers: int

    @property
    def rom_cells(self) -> int:
        """Logic cells (a 4-input look-up table and a register) that hold the ROMs."""
        return -(-self.rom_bits // ROM_BITS_A_CELL)

    @property
    def tag_cells(self) -> int:
        """Logic cells that hold the tags, each a register bit or a two-way multiplexer or both."""
        return max(self.tag_registers, self.tag_multiplexers)

    def to_json(self) -> dict[str, Any]:
        """The costs as plain data."""
        return asdict(self) | {"rom_cells": self.rom_cells, "tag_cells": self.tag_cells}

    def __str__(self) -> str:
        tags = "tags would be all alike"
        if self.tag_registers:
            tags = (
                f"tags would take {self.tag_cells:,} ({self.tag_registers:,} registers and "
                f"{self.tag_multiplexers:,} multiplexers)"
            )
        return f"{self.known_by}, {self.rom_cells:,} cells ({self.rom_bits:,} ROM bits); {tags}"


def tag_cost(program: Program) -> tuple[int, int]:
    """Bits of registers and of two-way multiplexers that tags would take.

    A tag is the number of the origin, and is passed on by every router as the word is. Where all
    blocks are of one message, none is needed.

    Returns
    -------
    registers, multiplexers : int

    Examples
    --------
    Nine origins are four bits, and so many registers are behind each of 36 out-ports.

    >>> import torusfabric as tf
    >>> tag_cost(tf.compile(tf.plan(tf.Torus(3, 3), "allgather", algorithm="matching")))[0]
    144
    """
    topology, selects = program.topology, [form.loop.select for form in program.forms]
    tag = max(map(_tag_bits, program.forms))
    ordered = np.sort(np.concatenate(selects), axis=0)
    changes = np.diff(ordered, axis=0, prepend=-1) > 0
    inputs = (changes & (ordered >= 0)).sum(axis=0)
    nodes = np.bincount(program.variant_of, minlength=program.loop.variants)
    multiplexers = np.maximum(inputs - 1, 0).sum(axis=1) @ nodes
    return tag * topology.nodes * topology.ports, tag * int(multiplexers)


def _tag_bits(form: Form) -> int:
    """Bits of a tag; none where all blocks are of one message."""
    return 0 if form.schedule.blocks.single_origin else (form.groups.size - 1).bit_length()
