"""The storage of a fabric, counted without synthesis, and the cost of knowing origins.

A receiver must know the origin of each word. In a fabric the origin follows from the address or the
cycle of the word. `Origins` compares the cost of this with a tag in every flit.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from ..program import Form, Program
from .netlist import Netlist, Role

__all__ = ["Inventory", "Origins", "tag_cost", "take_inventory"]

#: The roles of modules whose ROMs hold settings and addresses of the program.
PROGRAM_ROLES = (Role.ROUTER, Role.SEQUENCER)


class Inventory(NamedTuple):
    """The memory bits of a fabric, or of one module of it.

    Parameters
    ----------
    rom_bits : int
        Bits of the ROMs that hold the settings and addresses of the program, in the sequencer and
        all nodes together.
    memories : int
        The largest number of RAMs at a node. A RAM with several read ports counts once for each.
    memory_bits : int
        Bits of all RAMs of all nodes together.
    """

    rom_bits: int
    memories: int
    memory_bits: int


def take_inventory(netlist: Netlist) -> Inventory:
    """Return the bits of ROMs and RAMs of a fabric, and the RAMs of a node, from its netlist."""
    stored = {name: _module_storage(netlist, name) for name in netlist.modules}
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
        if array.role in PROGRAM_ROLES:
            rom += len(array) * here.rom_bits
    return Inventory(rom, int(memories.max()), bits)


def _module_storage(netlist: Netlist, module: str) -> Inventory:
    """Return the bits of ROMs and RAMs, and the number of RAMs, of one instance of a module.

    `module` is the name of the module in `netlist`.
    """
    leaf = netlist.modules[module]()
    shapes = leaf.memory_shapes()
    written = [shape.width * shape.depth for shape in shapes if shape.is_ram]
    rom = sum(shape.width * shape.depth for shape in shapes if not shape.is_ram)
    return Inventory(rom, len(written), sum(written))


#: Bits of ROM that one 4-input look-up table holds.
ROM_BITS_A_CELL = 16


@dataclass(frozen=True)
class Origins:
    """The way in which receivers know the origin of a word, and its cost.

    For comparison, it has the cost of *tags*. A tag is the number of the origin, sent along with
    every flit.

    Parameters
    ----------
    known_by : str
        The fact from which the origin follows, such as the address.
    rom_bits : int
        Bits of the ROMs by which the host port finds a block by its origin, for the whole fabric. 0
        if each node has its own ports.
    tag_registers : int
        Bits of link registers that tags would take, in all routers together.
    tag_multiplexers : int
        Bits of two-way multiplexers that tags would take, in all crossbars together.
    """

    known_by: str
    rom_bits: int
    tag_registers: int
    tag_multiplexers: int

    @property
    def rom_cells(self) -> int:
        """Number of logic cells that hold the ROMs: one for 16 bits, in a 4-input LUT."""
        return -(-self.rom_bits // ROM_BITS_A_CELL)

    @property
    def tag_cells(self) -> int:
        """Number of logic cells for tags: the number of the origin, sent along with each flit.

        A cell holds a bit of a register and a bit of a two-way multiplexer.
        """
        return max(self.tag_registers, self.tag_multiplexers)

    def to_json(self) -> dict[str, Any]:
        """Return a dictionary for JSON: name -> value of each attribute and of two properties.

        The properties are the numbers of logic cells, `rom_cells` and `tag_cells`.
        """
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
    """Return the bits of registers and of two-way multiplexers that tags would take.

    A tag is the number of the origin, sent along with every flit. Every router would pass the tag
    on with the flit. If all blocks belong to one message, no tag is needed.

    Returns
    -------
    registers, multiplexers : int
        Bits of link registers, and bits of two-way multiplexers in crossbars, that tags would add
        to the whole fabric.

    Examples
    --------
    Nine origins need tags of 4 bits, with 4 registers behind each of 36 out-ports.

    >>> import torusfabric as tf
    >>> tag_cost(tf.compile(tf.plan(tf.Torus(3, 3), "allgather", algorithm="matching")))[0]
    144
    """
    topology, selects = program.topology, [form.loop.selected_sources for form in program.forms]
    tag = max(map(_tag_bits, program.forms))
    ordered = np.sort(np.concatenate(selects), axis=0)
    changes = np.diff(ordered, axis=0, prepend=-1) > 0
    inputs = (changes & (ordered >= 0)).sum(axis=0)
    nodes = np.bincount(program.variant_of, minlength=program.loop.n_variants)
    multiplexers = np.maximum(inputs - 1, 0).sum(axis=1) @ nodes
    return tag * topology.nodes * topology.ports, tag * int(multiplexers)


def _tag_bits(form: Form) -> int:
    """Return the bits of a tag (the number of the origin) that flits of `form` would need.

    The result is 0 if all blocks belong to one message.
    """
    return 0 if form.schedule.blocks.single_origin else (form.groups.group_size - 1).bit_length()
