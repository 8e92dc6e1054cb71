"""What a fabric stores, counted without synthesis: memories, and bits of settings."""

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

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
    memories: dict[int | None, int] = defaultdict(int)
    for instance in netlist.instances:
        if instance.role is Role.ROM:
            rom += len(instance.contents) * instance.width
            continue
        here = stored[instance.module]
        bits += here.memory_bits
        memories[instance.node] += here.memories
        if instance.role in PROGRAMMED:
            rom += here.rom_bits
    return Inventory(rom, max((n for k, n in memories.items() if k is not None), default=0), bits)


def _stored(netlist: Netlist, module: str) -> Inventory:
    """What a module stores."""
    leaf = netlist.modules[module]()
    shapes = leaf.memories()
    written = [shape.width * shape.depth for shape in shapes if shape.written]
    rom = sum(shape.width * shape.depth for shape in shapes if not shape.written)
    return Inventory(rom, len(written), sum(written))
