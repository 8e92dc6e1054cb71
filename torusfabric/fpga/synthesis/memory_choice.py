"""Choice between LUTs and block RAMs for the memories of a fabric, so that the fabric fits.

The user is `synthesize`. A synthesis tool decides for one module, and does not know how many nodes
share the device. `choose_memory_rule` looks at the memories of all nodes instead. The *share* of a
resource is the part of the device that the fabric uses of it.

- All memories of one size are alike, so that nodes are alike. If the shares of LUTs and block RAMs
  can both stay below three quarters, the choice with the least price is taken: the share of LUTs,
  plus a quarter of the share of block RAMs. Why a quarter: other logic can use a free LUT, but a
  free block RAM is of use to memories alone.
- If no choice stays below three quarters, the larger share becomes as small as possible. One size
  is then divided, if that helps: block RAM at some nodes, LUTs at the others.
- If no choice fits the device at all, that with the least price is taken. Why: deep memories of
  LUTs would hide how large a device the fabric needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ...verilog.design import count_instances
from ...verilog.module_text import MemoryRule, MemoryRuleEntry, MemoryStyle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...topology import BoolArray, IntArray
    from ...verilog import Design
    from .family import Cost, Family
    from .report import SynthesisReport
    from .target import Target

__all__ = ["ALL_BLOCKS", "block_ram_fill", "choose_memory_rule", "memory_rows"]

#: Depth up to which registers and a multiplexer take fewer LUTs than a LUT memory.
REGISTER_DEPTH = 2

#: Rule by which all memories are block RAMs, except those of few words.
ALL_BLOCKS = f"{MemoryStyle.REGISTERS.value}:{REGISTER_DEPTH},{MemoryStyle.BLOCK.value}"

#: Share of a resource up to which a fabric fits easily. Fuller devices are hard to place and route.
COMFORTABLE_SHARE = 3 / 4

#: Price of all block RAMs of a device, where all its LUTs have the price 1. On an ECP5, a block RAM
#: must therefore save 100 LUTs. A memory of 32 words of 32 bits saves 128, one of 16 words 48.
BLOCK_RAM_PRICE = 1 / 4

#: Number of LUTs of a choice that does not exist.
NEVER = 1 << 60

#: Number of memories of each size, as {(width, depth): number}.
Memories: TypeAlias = Mapping[tuple[int, int], int]

#: Function of the LUTs and of the block RAMs of several choices, whose least value decides.
Price: TypeAlias = "Callable[[IntArray, IntArray], NDArray[np.float64]]"


class _Size(NamedTuple):
    """The memories of one size: their number, and the cost of one in either kind of RAM."""

    width: int
    depth: int
    number: int
    blocks: int
    luts: int


def choose_memory_rule(memories: Memories, device: Target, cost: Cost) -> str:
    """Return the memory rule by which a fabric fits a device at the least price.

    Parameters
    ----------
    memories : dict of (int, int) to int
        Number of memories of each size (width, depth), those of `REGISTER_DEPTH` or less left out.
    device : Target
        Target whose capacity and family decide.
    cost : Cost
        Cost of the fabric with all these memories in block RAM, the rule `ALL_BLOCKS`.

    Returns
    -------
    str
        Rule in the notation of `MemoryRule.parse`.

    Examples
    --------
    The memories of 64 nodes would take all 256 block RAMs, but the device has 208. Then 35 nodes
    use block RAMs. If the device had more block RAMs, all nodes would.

    >>> from dataclasses import replace
    >>> from torusfabric.fpga.synthesis.family import Cost
    >>> from torusfabric.fpga.synthesis.target import find_target
    >>> device, cost = find_target("ecp5-85k"), Cost(luts=22000, brams=256)
    >>> choose_memory_rule({(128, 64): 64}, device, cost)
    'registers:2,block:64x128@35,distributed'
    >>> larger = replace(device, capacity=device.capacity | {"brams": 1000})
    >>> choose_memory_rule({(128, 64): 64}, larger, cost)
    'registers:2,block'
    """
    family = device.device_family
    sizes = [
        _Size(width, depth, number, blocks, _lut_memory_luts(family, width, depth))
        for (width, depth), number in memories.items()
        for blocks in [family.block_ram_count(width, depth)]
    ]
    rest = max(cost.brams - sum(size.number * size.blocks for size in sizes), 0)

    def larger_share(luts: IntArray, blocks: IntArray) -> NDArray[np.float64]:
        """Return the larger share; of equal ones, that with less of the other resource is less."""
        each = luts / device.capacity["luts"], (rest + blocks) / device.capacity["brams"]
        return np.maximum(*each) + sum(each) * 1e-6

    def price(luts: IntArray, blocks: IntArray) -> NDArray[np.float64]:
        """Return the price: the share of LUTs, and a part of the share of block RAMs."""
        of_block = BLOCK_RAM_PRICE / device.capacity["brams"]
        return luts / device.capacity["luts"] + of_block * (rest + blocks)

    def price_of_fit(luts: IntArray, blocks: IntArray) -> NDArray[np.float64]:
        """Return the price, less than 1, of choices that fit easily, and a larger one of others."""
        share = larger_share(luts, blocks)
        return np.where(share < COMFORTABLE_SHARE, price(luts, blocks), 1 + share)

    chosen, least = _choose_alike(sizes, cost.luts, price_of_fit)
    if least > 1:
        divided, share = _choose_divided(sizes, cost.luts, larger_share)
        chosen = divided if 1 + share < least else chosen
        if min(1 + share, least) > 2:
            chosen, _ = _choose_alike(sizes, cost.luts, price)
    return str(_write_rule(chosen, memories))


def _choose_alike(sizes: Sequence[_Size], luts: int, price: Price) -> tuple[Memories, float]:
    """Return the best choice in which memories of one size are alike, and its price.

    Entry b of `found` has the fewest LUTs of a choice with b block RAMs. Each size is added in
    turn, in LUTs or in block RAM (dynamic programming).
    """
    found = np.array([luts])
    taken: list[BoolArray] = []
    for size in sizes:
        step = size.number * size.blocks
        in_luts = np.append(found + size.number * size.luts, np.full(step, NEVER))
        in_blocks = np.append(np.full(step, NEVER), found)
        taken.append(in_blocks < in_luts)
        found = np.minimum(in_luts, in_blocks)
    every = price(found, np.arange(len(found)))
    left, chosen = int(every.argmin()), dict[tuple[int, int], int]()
    least = float(every[left])
    for size, is_block in zip(reversed(sizes), reversed(taken), strict=True):
        chosen[size.width, size.depth] = number = size.number * int(is_block[left])
        left -= number * size.blocks
    return chosen, least


def _choose_divided(sizes: Sequence[_Size], luts: int, price: Price) -> tuple[Memories, float]:
    """Return the best choice in which some memories of a size may be block RAMs, and its price.

    The memories that save the most LUTs for each block RAM become block RAM first.
    """
    sizes = sorted(sizes, key=lambda size: -size.luts / size.blocks)
    numbers, blocks, saved = (
        np.array([getattr(size, name) for size in sizes]) for name in ("number", "blocks", "luts")
    )
    added, less = (np.append(0, np.repeat(each, numbers)).cumsum() for each in (blocks, saved))
    every = price(luts + less[-1] - less, added)
    best = int(every.argmin())
    first = np.append(0, numbers.cumsum())[:-1]
    chosen = np.clip(best - first, 0, numbers).tolist()
    pairs = zip(sizes, chosen, strict=True)
    return {(size.width, size.depth): number for size, number in pairs}, float(every[best])


def _lut_memory_luts(family: Family, width: int, depth: int) -> int:
    """Return the LUTs of a memory made of LUTs, with those that select a word."""
    luts, words, bits = family.lut_memory
    tiles = -(-depth // words)
    return luts * tiles * -(-width // bits) + width * (tiles - 1)


def _write_rule(chosen: Memories, memories: Memories) -> MemoryRule:
    """Return the shortest rule by which `chosen` of the `memories` of each size are block RAMs."""
    entries = [MemoryRuleEntry(MemoryStyle.REGISTERS, REGISTER_DEPTH)]
    # An entry also serves smaller memories. They have entries of their own before it.
    for (width, depth), count in sorted(chosen.items(), key=lambda item: item[0][::-1]):
        limit = None if count == memories[width, depth] else count
        if count:
            entries.append(MemoryRuleEntry(MemoryStyle.BLOCK, depth, width, limit))
        if limit is not None:
            entries.append(MemoryRuleEntry(MemoryStyle.DISTRIBUTED, depth, width))
    find_styles = lambda rule: [[*_styles_of_size(rule, *size)] for size in chosen]
    whole = MemoryRule(tuple(entries))
    for entry in entries[1:]:
        fewer = MemoryRule(tuple(each for each in whole.entries if each != entry))
        if find_styles(fewer) == find_styles(whole):
            whole = fewer
    *others, last = whole.entries
    return MemoryRule((*others, replace(last, depth=None, width=None)))


def _styles_of_size(
    rule: MemoryRule, width: int, depth: int
) -> Iterator[tuple[MemoryStyle, int | None]]:
    """Yield the style and the count of each entry that can serve memories of a size, in order."""
    for entry in rule.entries:
        if entry.covers(width, depth):
            yield entry.style, entry.count
            if entry.count is None:
                return


def memory_rows(design: Design) -> list[dict[str, Any]]:
    """Return the rows `SynthesisReport.memories`: the RAMs of a design by size and kind.

    Parameters
    ----------
    design : Design
        The Verilog of the fabric.
    """
    found, times = Counter[tuple[int, int, str]](), count_instances(design)
    for module, structure in design.structures.items():
        for memory in structure.memories.values():
            if memory.style:
                size = memory.width, len(memory.rows), memory.style.value
                found[size] += times.get(module, 0)
    keys = ("width", "depth", "style", "memories")
    return [dict(zip(keys, (*size, n), strict=True)) for size, n in sorted(found.items()) if n]


def block_ram_fill(report: SynthesisReport, device: Target) -> float | None:
    """Return the share of the bits of the used block RAMs that memories of the fabric fill.

    Parameters
    ----------
    report : SynthesisReport
        Report with the memories, and the number of block RAMs in use.
    device : Target
        The device, which has the block RAMs.

    Returns
    -------
    float or None
        Share from 0 to 1; None if the tool chooses between LUTs and block RAMs.
    """
    shapes = device.device_family.block_shapes
    blocks: int = report.fabric["brams"]
    bits: int = sum(
        row["memories"] * row["width"] * row["depth"]
        for row in report.memories
        if row["style"] == MemoryStyle.BLOCK.value
    )
    if not (shapes and bits and blocks):
        return None
    return bits / (blocks * max(words * width for words, width in shapes))
