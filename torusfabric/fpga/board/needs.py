"""A lower bound of the resources of a fabric, known within a second.

The user is `build`, which refuses a fabric that cannot fit before it runs tools that take minutes.
The bound counts the registers that Amaranth makes, and the bits of memories, of which a block RAM
holds a limited number. LUTs, and the bridge in front of the fabric, come on top. The module also
knows the capacity of the devices of boards, by their names in Amaranth's platforms.
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

__all__ = ["ResourceNeeds", "smaller_fabric_hint", "check_fabric", "check_selection",
           "build_minutes", "largest_sides", "least_needs", "fabric_needs",
           "target_of"]  # fmt: skip

#: Bits, most of them in flip-flops, that the tools process in a minute on a slow machine.
BITS_PER_MINUTE = 1500

#: Width of a register in RTLIL, and width and depth of a memory.
_REGISTER_CELL = re.compile(
    r"^  cell \\?\$\w*dff\w* .*\n(?:    .*\n)*?    parameter \\WIDTH (\d+)$", re.MULTILINE
)
_MEMORY_LINE = re.compile(r"^  memory width (\d+) size (\d+) ", re.MULTILINE)


#: Family -> bits of a block RAM, and the bits of its widest read port.
BRAM_SHAPES = {"ice40": (4096, 16), "ecp5": (18432, 36), "gowin": (18432, 36)}

#: Name of a device in Amaranth -> synthesis target of the same capacity.
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
    """Return the target (FPGA device) of a platform of Amaranth; None for an unknown device."""
    name = getattr(platform, "device", None) or getattr(platform, "part", None)
    return _TARGETS.get(name) if isinstance(name, str) else None


def lutram_bits(target: Target) -> int:
    """Return the bits that the LUTs of the device `target` can hold as memory."""
    return 64 * target.capacity.get("lutrams", 0)


@dataclass(frozen=True)
class ResourceNeeds:
    """A lower bound of the resources that a fabric needs.

    Parameters
    ----------
    registers : int
        Bits of registers.
    memories : Counter
        Number of memories of each (width in bits, depth in words), such as ``{(32, 64): 16}``.
    """

    registers: int
    memories: "Counter[tuple[int, int]]"

    @property
    def total_bits(self) -> int:
        """All bits in registers and memories."""
        return self.registers + sum(
            width * depth * count for (width, depth), count in self.memories.items()
        )

    def least_flip_flops(self, target: Target) -> int:
        """Return the fewest flip-flops that the fabric needs on the device `target`.

        They are the registers, and those bits of memories that fit neither into the block RAMs nor
        into the LUT memories of the device. Block RAMs and LUT memories are assumed to be filled
        as well as possible.
        """
        left, held = 0, Counter[int]()
        bram_bits, bram_width = BRAM_SHAPES[target.family]
        for (width, depth), count in self.memories.items():
            bits = width * depth
            most = min(bits, bram_bits, bram_width * depth)
            left += bits * count
            held[most] += -(-bits // most) * count
        brams = target.capacity["brams"]
        for most, count in sorted(held.items(), reverse=True):
            used = min(count, brams)
            left, brams = left - used * most, brams - used
        return self.registers + max(0, left - lutram_bits(target))


def least_needs(
    topology: Topology, collective: Collective, *, flits: int = 1, width: int
) -> ResourceNeeds:
    """Return a lower bound of the resources of every fabric for a collective.

    No schedule is needed. The bound counts one register of `width` bits for each node. If every
    node receives from every node without reduction, it also counts a memory for the received words.
    `flits` is the number of flits of a message.
    """
    needs = ResourceNeeds(topology.nodes * width, Counter())
    if collective.from_each and collective.to_all and not collective.reducing:
        received = collective.layout(topology, chunks=1).recv_words(flits)
        needs.memories[width, received] = topology.nodes
    return needs


def fabric_needs(fabric: "Fabric") -> ResourceNeeds:
    """Count the registers and the memories of all modules of a fabric.

    Each module is converted to RTLIL, in which they are counted, only once.
    """
    registers, memories = 0, Counter[tuple[int, int]]()
    times = fabric.netlist.instance_counts
    for name, make in fabric.netlist.modules.items():
        text = rtlil.convert(make(), name=name, emit_src=False)
        registers += times[name] * sum(map(int, _REGISTER_CELL.findall(text)))
        for width, depth in _MEMORY_LINE.findall(text):
            memories[int(width), int(depth)] += times[name]
    return ResourceNeeds(registers, memories)


def check_selection(
    board: Board, topology: Topology, collective: Collective, *, flits: int | None, width: int
) -> None:
    """Raise `Misfit` if no fabric for a collective can fit on a board, before it is planned.

    Parameters
    ----------
    board : Board
        Board of the bitstream.
    topology : Topology
        Topology of the fabric.
    collective : Collective
        Collective that the fabric is to execute.
    flits : int or None
        Flits of a message; None if not known yet.
    width : int
        Bits of a flit.

    Raises
    ------
    Misfit
        If no fabric for the collective can fit.
    """
    needs = least_needs(topology, collective, flits=flits or 1, width=width)
    _check_needs(needs, board, topology)


def check_fabric(board: Board, fabric: "Fabric") -> None:
    """Raise `Misfit` if a fabric cannot fit on a board.

    That is known if the recorded limit of the board excludes it, or if the device has fewer
    flip-flops or memory bits than the fabric needs at least.

    Raises
    ------
    Misfit
        If the fabric cannot fit.
    """
    limit = board.limit
    if limit and limit.excludes(fabric):
        raise Misfit(
            f"Fabric must fit into {board.name}, not be larger than what does: "
            f"{limit.describe(board.name)} (--force tries all the same)"
        )
    _check_needs(fabric_needs(fabric), board, fabric.program.topology)


def _check_needs(needs: ResourceNeeds, board: Board, topology: Topology) -> None:
    """Raise a `Misfit` if the resources in `needs` exceed the device of a board.

    The topology is for the advice in the message. An unknown device is not checked.
    """
    target = target_of(board.make_platform())
    if target is None:
        return
    flip_flops, bram_bits = target.capacity["ffs"], BRAM_SHAPES[target.family][0]
    bits = flip_flops + target.capacity["brams"] * bram_bits + lutram_bits(target)
    amounts = (
        (needs.total_bits, bits, "bits of memory and registers"),
        (needs.least_flip_flops(target), flip_flops, "flip-flops"),
    )
    for needed, most, unit in amounts:
        if needed > most:
            raise Misfit(
                f"Fabric must fit into {board.name}, not need at least {needed} of {most} {unit}; "
                f"{smaller_fabric_hint(topology, Fraction(needed, most), board)}"
            )


def build_minutes(board: Board, fabric: "Fabric") -> int:
    """Return a rough guess of the minutes that a build of a fabric takes, on a slow machine."""
    target = target_of(board.make_platform())
    if target is None:
        return 1
    return 1 + min(fabric_needs(fabric).total_bits, target.capacity["ffs"]) // BITS_PER_MINUTE


def smaller_fabric_hint(topology: Topology, share: float | Fraction, board: Board) -> str:
    """Return a clause for an error message: a smaller torus that may fit, and the board's limit.

    `topology` is the network that does not fit.

    Parameters
    ----------
    share : float or Fraction
        Share of the device that the fabric takes, for example 1.5 if it needs half as much again.
    """
    smaller = largest_sides(getattr(topology, "sides", ()), share)
    said = (
        f"by these totals up to {'x'.join(map(str, smaller))} may fit"
        if smaller
        else "fewer bits or flits may fit"
    )
    return "; ".join([said, *([board.limit.describe(board.name)] if board.limit else [])])


def largest_sides(sides: Sequence[int], share: float | Fraction) -> list[int] | None:
    """Return the sides of the largest torus that may fit; None if even the smallest does not.

    The estimate takes all resources to grow with the number of nodes.

    Parameters
    ----------
    sides : sequence of int
        Sides of the torus that is too large; empty for another topology, for which the result is
        None.
    share : float or Fraction
        Share of the device that this torus takes.
    """
    nodes, smaller = math.prod(sides), list(sides)
    room = min(int(nodes / share), nodes - 1)
    while smaller and math.prod(smaller) > room:
        longest = len(smaller) - 1 - smaller[::-1].index(max(smaller))
        smaller[longest] -= 1
        if smaller[longest] < 2:
            return None
    return smaller or None
