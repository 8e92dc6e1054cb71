"""What a fabric needs at least of a device, known in a second, and refusing what cannot fit.

A lower bound: the registers that Amaranth makes, and the bits of the memories, of which a block RAM
holds at most so much. Tables, and the bridge in front of the fabric, come on top of it. What the
devices of boards have stands here too, by the names that Amaranth's platforms give them.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from amaranth.back import rtlil

from ...collective import Collective
from ...topology import Topology
from ..synthesis.target import TARGETS
from .catalogue import Board, Misfit

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["Device", "Needs", "advice", "check_fabric", "check_selection", "device_of", "duration",
           "largest_sides", "least_needs", "needs_of"]  # fmt: skip

#: Bits, most of them in flip-flops, that the tools get through in a minute, on a slow machine.
PER_MINUTE = 1500

#: The width of a register, and those of a memory, in RTLIL.
_REGISTER = re.compile(
    r"^  cell \\?\$\w*dff\w* .*\n(?:    .*\n)*?    parameter \\WIDTH (\d+)$", re.MULTILINE
)
_MEMORY = re.compile(r"^  memory width (\d+) size (\d+) ", re.MULTILINE)


@dataclass(frozen=True)
class Device:
    """What a device has.

    Parameters
    ----------
    bram_bits, bram_width : int
        Bits of a block RAM, and how many of them can be read at once.
    lutram_bits : int
        Bits that tables can hold as memory.
    """

    flip_flops: int
    brams: int
    bram_bits: int
    bram_width: int
    lutram_bits: int = 0

    @property
    def bits(self) -> int:
        """All bits that it can hold at most."""
        return self.flip_flops + self.brams * self.bram_bits + self.lutram_bits


#: Block RAMs of each family: bits, and how many of them can be read at once.
_BRAMS = {"ice40": (4096, 16), "ecp5": (18432, 36), "gowin": (18432, 36)}


def _of_target(name: str) -> Device:
    """A device that is a target of synthesis too."""
    target = TARGETS[name]
    capacity, lutrams = target.capacity, 64 * target.capacity.get("lutrams", 0)
    return Device(capacity["ffs"], capacity["brams"], *_BRAMS[target.family], lutrams)


_DEVICES = {
    "iCE40HX1K": Device(1280, 16, *_BRAMS["ice40"]),
    "iCE40HX8K": _of_target("ice40-hx8k"),
    "iCE40LP8K": _of_target("ice40-hx8k"),
    "iCE40UP5K": _of_target("ice40-up5k"),
    **{
        f"{family}-{size}F": _of_target(f"ecp5-{size.lower()}k")
        for family in ("LFE5U", "LFE5UM", "LFE5UM5G")
        for size in ("25", "45", "85")
    },
    "GW1NR-LV9QN88PC6/I5": _of_target("gowin-gw1nr-9"),
}


def device_of(platform: Any) -> Device | None:
    """The device of a platform, or None if it is not known here."""
    name = getattr(platform, "device", None) or getattr(platform, "part", None)
    return _DEVICES.get(name) if isinstance(name, str) else None


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
    """What any fabric for a collective needs: a register a node, and what all nodes receive."""
    needs = Needs(topology.nodes * width, Counter())
    if collective.from_each and collective.to_all and not collective.reducing:
        received = collective.layout(topology, chunks=1).recv_words(flits)
        needs.memories[width, received] = topology.nodes
    return needs


def needs_of(fabric: "Fabric") -> Needs:
    """What a fabric needs at least; a module is looked at once, however many instances it has."""
    registers, memories = 0, Counter[tuple[int, int]]()
    times = fabric.netlist.counts
    for name, make in fabric.netlist.modules.items():
        text = rtlil.convert(make(), name=name, emit_src=False)
        registers += times[name] * sum(map(int, _REGISTER.findall(text)))
        for width, depth in _MEMORY.findall(text):
            memories[int(width), int(depth)] += times[name]
    return Needs(registers, memories)


def check_selection(
    board: Board, topology: Topology, collective: Collective, *, flits: int | None, width: int
) -> None:
    """See that a fabric may fit, before it is planned, and perhaps before its flits are known.

    Raises
    ------
    Misfit
        If no fabric for it can fit.
    """
    if device := device_of(board.make_platform()):
        needs = least_needs(topology, collective, flits=flits or 1, width=width)
        _check(needs, device, board, topology)


def check_fabric(board: Board, fabric: "Fabric") -> None:
    """See that a fabric may fit: by what is known of the board, and by what it needs at least.

    Raises
    ------
    Misfit
        If it cannot fit.
    """
    limit = board.limit
    if limit and limit.excludes(fabric):
        raise Misfit(
            f"Fabric must fit into {board.name}, not be larger than what does: "
            f"{limit.describe(board.name)} (--force tries all the same)"
        )
    if device := device_of(board.make_platform()):
        _check(needs_of(fabric), device, board, fabric.program.topology)


def _check(needs: Needs, device: Device, board: Board, topology: Topology) -> None:
    """Compare what is needed with what there is."""
    amounts = (
        (needs.bits, device.bits, "bits of memory and registers"),
        (needs.flip_flops(device), device.flip_flops, "flip-flops"),
    )
    for needed, most, unit in amounts:
        if needed > most:
            raise Misfit(
                f"Fabric must fit into {board.name}, not need at least {needed} of {most} {unit}; "
                f"{advice(topology, Fraction(needed, most), board)}"
            )


def duration(board: Board, fabric: "Fabric") -> int:
    """Minutes that a build is expected to take, a rough guess for a slow machine."""
    device = device_of(board.make_platform())
    if device is None:
        return 1
    return 1 + min(needs_of(fabric).bits, device.flip_flops) // PER_MINUTE


def advice(topology: Topology, share: float | Fraction, board: Board) -> str:
    """What would fit in the place of a fabric that takes a share of what a board has."""
    smaller = largest_sides(getattr(topology, "sides", ()), share)
    said = (
        f"by these totals up to {'x'.join(map(str, smaller))} may fit"
        if smaller
        else "fewer bits or flits may fit"
    )
    return "; ".join([said, *([board.limit.describe(board.name)] if board.limit else [])])


def largest_sides(sides: Sequence[int], share: float | Fraction) -> list[int] | None:
    """The sides of the largest torus that may fit in place of one that takes a share of a device.

    All that is taken is counted as if it grew with the nodes: an estimate. None if not even the
    smallest may, and for another topology, of which there are no sides.
    """
    nodes, smaller = math.prod(sides), list(sides)
    room = min(int(nodes / share), nodes - 1)
    while smaller and math.prod(smaller) > room:
        longest = len(smaller) - 1 - smaller[::-1].index(max(smaller))
        smaller[longest] -= 1
        if smaller[longest] < 2:
            return None
    return smaller or None
