"""Choice between LUTs and block RAMs for the memories of a fabric, where LUT memories are costly.

The users are `synthesize` and the command ``synth``. A synthesis tool decides for one module, and
does not know how many nodes share the device. So `fitting_memory_rule` looks at the memories of all
nodes, and finds the smallest depth d for which

- all memories deeper than d fit into the block RAMs of the device, and
- all others fit into a third of its LUTs.

If no d exists, the device is too small. Then d is 16, or the number of flits of the longest block
if that is smaller. Why a limit in words instead of a choice memory by memory: the depths of
memories grow with the messages, so that a fabric for shorter messages has the same memories in
block RAM, and takes no more LUTs than one for longer messages.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ...rtl.fabric import Fabric
from ...toolchain.values import require_type
from ...verilog.module_text import MemoryRule, MemoryStyle

if TYPE_CHECKING:
    from .target import Target

__all__ = ["block_ram_fill", "fitting_memory_rule"]

#: Depth up to which the tool chooses; it makes registers of such a memory.
REGISTER_DEPTH = 2

#: Depth up to which the LUTs of a memory do not grow with its depth.
SMALL_DEPTH = 16

#: A LUT memory takes `TILE_LUTS` LUTs for each `TILE_WORDS` words by `TILE_BITS` bits; all together
#: may take the share `LUT_SHARE` of the LUTs of a device.
TILE_LUTS, TILE_WORDS, TILE_BITS, LUT_SHARE = 6, 16, 4, 1 / 3


def fitting_memory_rule(fabric: Fabric, device: Target) -> str:
    """Return a memory rule that uses as many block RAMs as a device has.

    Returns
    -------
    str
        Rule in the notation of `MemoryRule.parse`; ``auto`` where LUT memories are cheap.

    Examples
    --------
    On the large ECP5, all memories of more than two words become block RAMs. The small ECP5 has
    fewer block RAMs than that takes, and on the iCE40 the choice is left to the tool.

    >>> import torusfabric as tf
    >>> from torusfabric.fpga.synthesis.target import find_target
    >>> fabric = tf.Fabric(tf.compile(tf.plan("4x4", "allgather"), max_flits=8), width=32)
    >>> [fitting_memory_rule(fabric, find_target(name)) for name in ("ecp5-85k", "ecp5-25k",
    ...     "ice40-hx8k")]
    ['auto:2,block', 'auto', 'auto']
    """
    require_type("Fabric", fabric, Fabric, "a Fabric, as tf.Fabric makes it")
    family, most = device.device_family, device.capacity.get("brams", 0)
    if not family.block_shapes or not most:
        return MemoryStyle.AUTO.value
    shapes = _count_memories(fabric)
    deepest = max((depth for _, depth in shapes), default=0)
    left = device.capacity["luts"] * LUT_SHARE
    longest = max(form.loop.flits for form in fabric.program.forms)
    fewest = max(REGISTER_DEPTH, min(SMALL_DEPTH, longest))
    for least in sorted(
        {REGISTER_DEPTH, *(depth for _, depth in shapes if depth > REGISTER_DEPTH)}
    ):
        blocks = tables = 0
        for (width, depth), count in shapes.items():
            if depth > least:
                blocks += count * family.block_ram_count(width, depth)
            elif depth > REGISTER_DEPTH:
                tables += count * _memory_luts(width, depth)
        if blocks <= most and tables <= left:
            fewest = least
            break
    if fewest >= deepest:
        return MemoryStyle.AUTO.value
    return f"{MemoryStyle.AUTO.value}:{fewest},{MemoryStyle.BLOCK.value}"


def block_ram_fill(fabric: Fabric, device: Target, rule: str, blocks: int) -> float | None:
    """Return the share of the bits of the used block RAMs that memories of the fabric fill.

    Parameters
    ----------
    fabric : Fabric
        The fabric, which has the memories.
    device : Target
        The device, which has the block RAMs.
    rule : str
        Memory rule in the notation of `MemoryRule.parse`.
    blocks : int
        Number of block RAMs in use, by a synthesis report.

    Returns
    -------
    float or None
        Share from 0 to 1; None if the tool chooses between LUTs and block RAMs.

    Examples
    --------
    The memories of the fabric fill 12.8 % of 144 block RAMs.

    >>> import torusfabric as tf
    >>> from torusfabric.fpga.synthesis.target import find_target
    >>> fabric = tf.Fabric(tf.compile(tf.plan("6x6", "allgather"), max_flits=16), width=16)
    >>> round(block_ram_fill(fabric, find_target("ecp5-85k"), "auto:2,block", 144), 3)
    0.128
    """
    shapes, style = device.device_family.block_shapes, MemoryRule.parse(rule).choose_style
    bits = sum(
        count * width * depth
        for (width, depth), count in _count_memories(fabric).items()
        if style(width, depth) is MemoryStyle.BLOCK
    )
    if not (shapes and bits and blocks):
        return None
    return bits / (blocks * max(words * width for words, width in shapes))


def _memory_luts(width: int, depth: int) -> int:
    """Return the LUTs that hold a memory of `depth` words of `width` bits.

    LUTs that select a word are not counted.
    """
    return TILE_LUTS * -(-depth // TILE_WORDS) * -(-width // TILE_BITS)


def _count_memories(fabric: Fabric) -> Counter[tuple[int, int]]:
    """Return the number of writable memories of each size, as {(width, depth): number}."""
    netlist, found = fabric.netlist, Counter[tuple[int, int]]()
    stored = {name: make().memory_shapes() for name, make in netlist.modules.items()}
    for module, count in netlist.instance_counts.items():
        for shape in stored.get(module, ()):
            found[shape.width, shape.depth] += count * shape.is_ram
    return +found
