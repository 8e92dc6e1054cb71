"""What a fabric stores, counted without synthesis: memories, and bits of settings."""

import re
from collections import defaultdict
from typing import NamedTuple

from ..verilog import module_il

__all__ = ["Inventory", "take_inventory"]


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


def take_inventory(fabric):
    """Count what a fabric stores.

    Parameters
    ----------
    fabric : Fabric

    Returns
    -------
    Inventory
    """
    netlist = fabric.netlist
    stored = _stored(module_il(netlist))
    rom = bits = 0
    node: dict = defaultdict(int)
    for instance in netlist.instances:
        name = instance.module
        here = stored.get(name, _NOTHING)
        bits += here.memory_bits
        node[instance.node] += here.memories
        if name.startswith("router_") or name == "sequencer":
            rom += here.rom_bits
    for number, size in enumerate(fabric.program.class_sizes.tolist()):
        rom += size * _logic_bits(netlist.modules.get(f"router_{number}"))
    return Inventory(rom, max((n for k, n in node.items() if k is not None), default=0), bits)


_NOTHING = Inventory(0, 0, 0)


def _stored(il):
    """What each module of a text in the language of Yosys stores; parts belong to the whole."""
    stored: dict[str, Inventory] = {}
    for name, text in re.findall(r"^module \\(\S+)\n(.*?)^end\n", il, re.M | re.S):
        rom, memories, bits = stored.get(name.partition(".")[0], _NOTHING)
        for width, size, memory in re.findall(r"memory width (\d+) size (\d+) (\S+)", text):
            cells = re.findall(
                r"cell \$mem(rd|wr)_v2 [^\n]*\n(?:(?!^  end).)*?parameter \\MEMID \"(\S+?)\"",
                text,
                re.M | re.S,
            )
            kinds = [kind for kind, of in cells if of.lstrip("\\") == memory.lstrip("\\")]
            if "wr" in kinds:
                memories += max(kinds.count("rd"), 1)
                bits += int(width) * int(size)
            else:
                rom += int(width) * int(size)
        stored[name.partition(".")[0]] = Inventory(rom, memories, bits)
    return stored


def _logic_bits(make):
    """Bits of settings that a router makes of logic rather than reading them."""
    router = make() if make else None
    return getattr(router, "logic_bits", 0)
