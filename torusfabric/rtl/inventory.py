"""What a fabric stores, counted without synthesis: memories, and bits of settings."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .netlist import Netlist, Role

if TYPE_CHECKING:
    from .fabric import Fabric

__all__ = ["Inventory", "take_inventory"]

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


def take_inventory(fabric: "Fabric") -> Inventory:
    """Count what a fabric stores."""
    netlist = fabric.netlist
    stored = {name: _stored(netlist, name) for name in netlist.modules}
    rom = bits = 0
    memories = np.zeros(fabric.nodes, int)
    for array in netlist.arrays:
        if array.which is not None:
            rom += sum(len(array.contents[k]) for k in array.which.tolist()) * array.width
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
