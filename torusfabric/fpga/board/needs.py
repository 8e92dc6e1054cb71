"""What a fabric needs at least of a device, known in a second: before any tool runs.

A lower bound: the registers that Amaranth makes, and the bits of the memories, of which a block RAM
holds at most so much. Tables, and the bridge in front of the fabric, come on top of it.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amaranth.back import rtlil

from ...collective import Collective
from ...topology import Topology
from .devices import Device

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["Needs", "least_needs", "needs_of"]

#: The width of a register, and those of a memory, in RTLIL.
_REGISTER = re.compile(
    r"^  cell \\?\$\w*dff\w* .*\n(?:    .*\n)*?    parameter \\WIDTH (\d+)$", re.MULTILINE
)
_MEMORY = re.compile(r"^  memory width (\d+) size (\d+) ", re.MULTILINE)


@dataclass(frozen=True)
class Needs:
    """What a fabric needs at least.

    Parameters
    ----------
    registers : int
        Bits of registers.
    memories : Counter
        How many memories there are of each width and depth.
    """

    registers: int
    memories: "Counter[tuple[int, int]]"

    @property
    def bits(self) -> int:
        """All bits that are held."""
        return self.registers + sum(
            width * depth * count for (width, depth), count in self.memories.items()
        )

    def flip_flops(self, device: Device) -> int:
        """Flip-flops that are needed at least: the best use is made of all other memory."""
        left, held = 0, Counter[int]()
        for (width, depth), count in self.memories.items():
            bits = width * depth
            most = min(bits, device.bram_bits, device.bram_width * depth)
            left += bits * count
            held[most] += -(-bits // most) * count
        brams = device.brams
        for most, count in sorted(held.items(), reverse=True):
            used = min(count, brams)
            left, brams = left - used * most, brams - used
        return self.registers + max(0, left - device.lutram_bits)


def least_needs(topology: Topology, collective: Collective, *, flits: int = 1, width: int) -> Needs:
    """What any fabric for a collective needs: a register a node, and what all nodes receive.

    Parameters
    ----------
    flits, width : int
        Of a message, and bits of a flit.
    """
    needs = Needs(topology.nodes * width, Counter())
    if collective.from_each and collective.to_all and not collective.reducing:
        received = collective.layout(topology, chunks=1).recv_words(flits)
        needs.memories[width, received] = topology.nodes
    return needs


def needs_of(fabric: "Fabric") -> Needs:
    """What a fabric needs at least; a module is looked at once, however many instances it has."""
    registers, memories = 0, Counter[tuple[int, int]]()
    times = Counter(instance.module for instance in fabric.netlist.instances)
    for name, make in fabric.netlist.modules.items():
        text = _text(name, make)
        registers += times[name] * sum(map(int, _REGISTER.findall(text)))
        for width, depth in _MEMORY.findall(text):
            memories[int(width), int(depth)] += times[name]
    return Needs(registers, memories)


def _text(name: str, make: Callable[[], Any]) -> str:
    """A module as RTLIL."""
    text: str = rtlil.convert(make(), name=name, emit_src=False)
    return text
