"""Choice between LUTs and block RAMs for the memories of a fabric, where LUT memories are costly.

The users are `synthesize` and the command ``synth``. A synthesis tool decides for one module, and
does not know how many nodes share the device. So `fitting_rule` looks at the memories of all nodes,
and finds the smallest depth d for which

- all memories deeper than d fit into the block RAMs of the device, and
- all others fit into a third of its LUTs.

If no d exists, the device is too small. Then memories deeper than 16 words, or than the flits of
the longest block if those are fewer, are block RAM. Why a limit of depth: depths grow with
messages, so that a fabric for shorter messages has the same memories in block RAM, and takes no
more LUTs.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ...rtl.fabric import Fabric
from ...toolchain.values import of_type
from ...verilog.module_text import MemoryRule, MemoryStyle

if TYPE_CHECKING:
    from .target import Target

__all__ = ["block_share", "fitting_rule"]

#: Depth up to which the tool chooses; it makes registers of such a memory.
FEWEST = 2

#: Depth up to which the LUTs of a memory do not grow with its depth.
SMALL = 16

#: A LUT memory takes `TABLES` LUTs for each `OF_WORDS` words by `OF_BITS` bits; all together may
#: take the share `SHARE` of the LUTs of a device.
TABLES, OF_WORDS, OF_BITS, SHARE = 6, 16, 4, 1 / 3


def fitting_rule(fabric: Fabric, device: Target) -> str:
    """Return a memory rule that uses as many block RAMs as a device has.

    Returns
    -------
    str
        Rule in the notation of `MemoryRule.parse`; ``auto`` where LUT memories are cheap.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.fpga.synthesis.target import find_target
    >>> fabric = tf.Fabric(tf.compile(tf.plan("4x4", "allgather"), max_flits=8), width=32)
    >>> [fitting_rule(fabric, find_target(name)) for name in ("ecp5-85k", "ecp5-25k", "ice40-hx8k")]
    ['auto:2,block', 'auto', 'auto']
    """
    of_type("Fabric", fabric, Fabric, "a Fabric, as tf.Fabric makes it")
    family, most = device.tools, device.capacity.get("brams", 0)
    if not family.block_shapes or not most:
        return MemoryStyle.AUTO.value
    shapes = _memories(fabric)
    deepest = max((depth for _, depth in shapes), default=0)
    left = device.capacity["luts"] * SHARE
    longest = max(form.loop.flits for form in fabric.program.forms)
    fewest = max(FEWEST, min(SMALL, longest))
    for least in sorted({FEWEST, *(depth for _, depth in shapes if depth > FEWEST)}):
        blocks = tables = 0
        for (width, depth), count in shapes.items():
            if depth > least:
                blocks += count * family.blocks(width, depth)
            elif depth > FEWEST:
                tables += count * _tables(width, depth)
        if blocks <= most and tables <= left:
            fewest = least
            break
    if fewest >= deepest:
        return MemoryStyle.AUTO.value
    return f"{MemoryStyle.AUTO.value}:{fewest},{MemoryStyle.BLOCK.value}"


def block_share(fabric: Fabric, device: Target, rule: str, blocks: int) -> float | None:
    """Return the bits of memories in block RAM, as a share of the bits of the block RAMs in use.

    Parameters
    ----------
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
    >>> import torusfabric as tf
    >>> from torusfabric.fpga.synthesis.target import find_target
    >>> fabric = tf.Fabric(tf.compile(tf.plan("6x6", "allgather"), max_flits=16), width=16)
    >>> round(block_share(fabric, find_target("ecp5-85k"), "auto:2,block", 144), 3)
    0.128
    """
    shapes, style = device.tools.block_shapes, MemoryRule.parse(rule).style
    bits = sum(
        count * width * depth
        for (width, depth), count in _memories(fabric).items()
        if style(width, depth) is MemoryStyle.BLOCK
    )
    if not (shapes and bits and blocks):
        return None
    return bits / (blocks * max(words * width for words, width in shapes))


def _tables(width: int, depth: int) -> int:
    """Return the LUTs of a memory, without those that select among its rows."""
    return TABLES * -(-depth // OF_WORDS) * -(-width // OF_BITS)


def _memories(fabric: Fabric) -> Counter[tuple[int, int]]:
    """Return the number of writable memories of each (width, depth)."""
    netlist, found = fabric.netlist, Counter[tuple[int, int]]()
    stored = {name: make().memories() for name, make in netlist.modules.items()}
    for module, count in netlist.counts.items():
        for shape in stored.get(module, ()):
            found[shape.width, shape.depth] += count * shape.written
    return +found
