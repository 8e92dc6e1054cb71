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
from ..synthesis.target import TARGETS, Target
from .catalogue import Board, Misfit

if TYPE_CHECKING:
    from ...rtl.fabric import Fabric

__all__ = ["Needs", "advice", "check_fabric", "check_selection", "duration", "largest_sides",
           "least_needs", "needs_of", "target_of"]  # fmt: skip

#: Bits, most of them in flip-flops, that the tools get through in a minute, on a slow machine.
PER_MINUTE = 1500

#: The width of a register, and those of a memory, in RTLIL.
_REGISTER = re.compile(
    r"^  cell \\?\$\w*dff\w* .*\n(?:    .*\n)*?    parameter \\WIDTH (\d+)$", re.MULTILINE
)
_MEMORY = re.compile(r"^  memory width (\d+) size (\d+) ", re.MULTILINE)


#: The bits of a block RAM of each family, and how many of them can be read at once.
BRAMS = {"ice40": (4096, 16), "ecp5": (18432, 36), "gowin": (18432, 36)}

#: The target of synthesis that has as much as each device.
_TARGETS = {
    "iCE40HX1K": Target("ice40-hx1k", "ice40", (), {"ffs": 1280, "brams": 16}),
    "iCE40HX8K": TARGETS["ice40-hx8k"],
    "iCE40LP8K": TARGETS["ice40-hx8k"],
    "iCE40UP5K": TARGETS["ice40-up5k"],
    **{
        f"{family}-{size}F": TARGETS[f"ecp5-{size}k"]
        for family in ("LFE5U", "LFE5UM", "LFE5UM5G")
        for size in ("25", "45", "85")
    },
    "GW1NR-LV9QN88PC6/I5": TARGETS["gowin-gw1nr-9"],
}


def target_of(platform: Any) -> Target | None:
    """The target that has what the device of a platform has; None if it is not known here."""
    name = getattr(platform, "device", None) or getattr(platform, "part", None)
    return _TARGETS.get(name) if isinstance(name, str) else None


def memory_bits(target: Target) -> int:
    """Bits that tables of a device can hold as memory."""
    return 64 * target.capacity.get("lutrams", 0)


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

    def flip_flops(self, target: Target) -> int:
        """Flip-flops that are needed at least: the best use is made of all other memory."""
        left, held = 0, Counter[int]()
        bram_bits, bram_width = BRAMS[target.family]
        for (width, depth), count in self.memories.items():
            bits = width * depth
            most = min(bits, bram_bits, bram_width * depth)
            left += bits * count
            held[most] += -(-bits // most) * count
        brams = target.capacity["brams"]
        for most, count in sorted(held.items(), reverse=True):
            used = min(count, brams)
            left, brams = left - used * most, brams - used
        return self.registers + max(0, left - memory_bits(target))


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
    needs = least_needs(topology, collective, flits=flits or 1, width=width)
    _check(needs, board, topology)


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
    _check(needs_of(fabric), board, fabric.program.topology)


def _check(needs: Needs, board: Board, topology: Topology) -> None:
    """Compare what is needed with what the device of a board has, where that is known."""
    target = target_of(board.make_platform())
    if target is None:
        return
    flip_flops, bram_bits = target.capacity["ffs"], BRAMS[target.family][0]
    bits = flip_flops + target.capacity["brams"] * bram_bits + memory_bits(target)
    amounts = (
        (needs.bits, bits, "bits of memory and registers"),
        (needs.flip_flops(target), flip_flops, "flip-flops"),
    )
    for needed, most, unit in amounts:
        if needed > most:
            raise Misfit(
                f"Fabric must fit into {board.name}, not need at least {needed} of {most} {unit}; "
                f"{advice(topology, Fraction(needed, most), board)}"
            )


def duration(board: Board, fabric: "Fabric") -> int:
    """Minutes that a build is expected to take, a rough guess for a slow machine."""
    target = target_of(board.make_platform())
    if target is None:
        return 1
    return 1 + min(needs_of(fabric).bits, target.capacity["ffs"]) // PER_MINUTE


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
