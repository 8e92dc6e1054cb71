"""The size of hardware, estimated before it is built, to choose between programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .fields import IDLE, Action

if TYPE_CHECKING:
    from ..topology import IntArray
    from .fields import Loop
    from .program import Program

__all__ = ["estimated_luts"]

#: Bits that a look-up table holds.
LUT_BITS = 16

#: Bits of a row of a ROM for each reader: the memory, where in it, and whether it reads.
READER_BITS = 3


def estimated_luts(program: Program, *, width: int = 32) -> int:
    """Look-up tables of a node, as if all memories were made of them.

    Counted are memories, with a copy for each reader that reads them at once, what chooses between
    words, operators, and ROMs that are addressed by the offset from the root.

    Parameters
    ----------
    program : Program
    width : int
        Bits of a flit.

    Examples
    --------
    A gather to any root needs as much memory as an all-gather, and ROMs besides.

    >>> import torusfabric as tf
    >>> gather = tf.compile(tf.plan("8x8", "gather"), flits=4, root="any")
    >>> allgather = tf.compile(tf.plan("8x8", "allgather"), flits=4)
    >>> estimated_luts(gather), estimated_luts(allgather)
    (1696, 648)
    """
    loop, depth = program.loop, program.depth.max(axis=0)
    # Where nodes differ, it is the largest.
    every = list(range(loop.variants))
    alike = [every] if program.by_offset else [[variant] for variant in every]
    chosen = max(_words_chosen(loop, variants) for variants in alike)
    stored = int((depth * _copies(program)).sum()) * width / LUT_BITS
    return round(stored + chosen * width + _rom_bits(program) / LUT_BITS)


def _copies(program: Program) -> IntArray:
    """How many readers read each memory at once, at least one."""
    read = np.stack([field.values for field in program.loop.of(Action.MEMORY)])
    numbers = range(len(program.memories))
    return np.array([max(int((read == k).sum(axis=0).max()), 1) for k in numbers])


def _words_chosen(loop: Loop, variants: list[int]) -> int:
    """Look-up tables of a bit that choose between words, or combine them."""
    choosing = (Action.SELECT, Action.OPERAND, Action.MEMORY)
    inputs = [
        len(np.unique(field.values[:, variants][field.values[:, variants] != IDLE]))
        for field in loop.fields
        if field.point.action in choosing
    ]
    combined = sum(len(readers) - 1 for readers in loop.sources.injections)
    combined += loop.ports if loop.combining else 0
    # Two inputs take a look-up table, and two more another.
    return combined + sum(-(-count // 2) for count in inputs if count > 1)


def _rom_bits(program: Program) -> int:
    """Bits of the ROMs of a node with rows for every offset from the root."""
    if not program.by_offset:
        return 0
    loop = program.loop
    bits = loop.ports + len(program.memories) + READER_BITS * loop.sources.readers
    return loop.rows * program.groups.size * bits
