"""What a node sends in a memory for each reader, where one memory would need a copy for each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..topology import IntArray
from .fields import Action, Field, Loop, Point

__all__ = ["SendBanks", "send_banks"]


@dataclass(frozen=True, eq=False)
class SendBanks:
    """Memories in place of one memory of blocks that are sent.

    Parameters
    ----------
    fields : tuple of Field
        Those of the loop, in which each reader reads a memory of its own.
    depth : tuple of int
        Blocks in each memory.
    memory, slot : ndarray of int, shape (blocks,)
        Where each block lies: the memory, counted among these, and its place in it.
    """

    fields: tuple[Field, ...]
    depth: tuple[int, ...]
    memory: IntArray
    slot: IntArray


def send_banks(loop: Loop, own: int, blocks: int) -> SendBanks | None:
    """Give each reader of a memory one of its own; None if a block is read twice, or none is.

    In each it finds the blocks in the order in which it reads them. What nobody reads is in the
    first: its reader mostly forwards as well, and so passes on to the host what that asks for.

    Parameters
    ----------
    loop : Loop
    own : int
        The memory; those that come in its place are numbered from it on.
    blocks : int
        Blocks in it.

    Examples
    --------
    A scatter from any root: a reader for each out-port, and what each sends is a memory.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "scatter"), root="any")
    >>> [int(words) for words, memory in zip(program.depth[0], program.memories) if memory.own]
    [3, 2, 2, 2]
    """
    memory, slot = np.full(blocks, -1), np.zeros(blocks, int)
    depth: list[int] = []
    placed: dict[Point, Field] = {}
    for reader in range(loop.sources.readers):
        of_memory, of_base = (loop.field(a, reader) for a in (Action.MEMORY, Action.READ))
        if of_memory is None or of_base is None:
            continue
        here, bank = of_memory.values == own, len(depth)
        first = of_base.values[here] // loop.flits
        count = np.broadcast_to(loop.blocks[:, None], here.shape)[here]
        read = np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())
        if len(np.unique(read)) < len(read) or (memory[read] >= 0).any():
            return None
        base = of_base.values.copy()
        if len(read):
            depth.append(len(read))
            memory[read], slot[read] = bank, np.arange(len(read))
            base[here] = slot[first] * loop.flits
        numbers = np.where(here, own + bank, of_memory.values)
        placed[of_memory.point] = replace(of_memory, values=numbers)
        placed[of_base.point] = replace(of_base, values=base)
    if not depth:
        return None
    rest = np.nonzero(memory < 0)[0]
    memory[rest], slot[rest] = 0, depth[0] + np.arange(len(rest))
    depth[0] += len(rest)
    fields = tuple(placed.get(field.point, field) for field in loop.fields)
    return SendBanks(fields, tuple(depth), memory, slot)
