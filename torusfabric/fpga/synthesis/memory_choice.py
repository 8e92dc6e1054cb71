"""Which memories of a fabric are block RAM on a device: as many as it has, unless a user says it.

Made of tables, a memory takes more of them the deeper it is; tools know what either costs, but not
how many nodes share a device. So memories are made of block RAM from the least depth on for which
those of all nodes fit, if what is left fits into tables. Otherwise the device is too small, and all
are block RAM that are deeper than a message, or than 16 words. As depths grow with messages, the
same memories are block RAM with shorter messages, and these do not take more tables.
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

#: Up to so many words a memory is left to the tool: it makes registers of them.
FEWEST = 2

#: Up to so many words a memory takes no more tables than one of fewer, on a device that has both.
SMALL = 16

#: Tables of so many words and bits of a memory, and the share of the device that they may take.
TABLES, OF_WORDS, OF_BITS, SHARE = 6, 16, 4, 1 / 3


def fitting_rule(fabric: Fabric, device: Target) -> str:
    """What memories are made of, as of `MemoryRule.parse`.

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
    """Return the part of the bits of block RAMs that memories of a fabric have, from 0 to 1.

    Parameters
    ----------
    rule : str
        As of `MemoryRule.parse`.
    blocks : int
        Number of block RAMs that synthesis takes.

    Returns
    -------
    float or None
        None where the tool chooses what memories are made of.

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
    """Tables of a memory, but for those that choose among its rows."""
    return TABLES * -(-depth // OF_WORDS) * -(-width // OF_BITS)


def _memories(fabric: Fabric) -> Counter[tuple[int, int]]:
    """How many memories there are of each width and depth that are written."""
    netlist, found = fabric.netlist, Counter[tuple[int, int]]()
    stored = {name: make().memories() for name, make in netlist.modules.items()}
    for module, count in netlist.counts.items():
        for shape in stored.get(module, ()):
            found[shape.width, shape.depth] += count * shape.written
    return +found
