"""What a node sends in a memory for each reader, where one memory would need a copy for each."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..topology import IntArray
from .values import Reads

__all__ = ["SendBanks", "send_banks"]


@dataclass(frozen=True, eq=False)
class SendBanks:
    """Memories in place of one memory of blocks that are sent.

    Parameters
    ----------
    reads : tuple of Reads
        What all readers read, each of a memory of its own.
    depth : tuple of int
        Blocks in each memory.
    memory, slot : ndarray of int, shape (blocks,)
        Where each block lies: the memory, counted among these, and its place in it.
    """

    reads: tuple[Reads, ...]
    depth: tuple[int, ...]
    memory: IntArray
    slot: IntArray


def send_banks(reads: tuple[Reads, ...], own: int, blocks: int, flits: int) -> SendBanks | None:
    """Give each reader of a memory one of its own; None if a block is read twice, or none is.

    In each it finds the blocks in the order in which it reads them. What nobody reads is in the
    first: its reader mostly forwards as well, and so passes on to the host what that asks for.

    Parameters
    ----------
    reads : tuple of Reads
    own : int
        The memory; those that come in its place are numbered from it on.
    blocks : int
        Blocks in it.
    flits : int
        Of a block.

    Examples
    --------
    Of four blocks two readers read three; the last one, which nobody reads, is with the first.

    >>> first = Reads.single(7, np.array([[4], [0]]))
    >>> second = Reads.single(7, np.array([[8], [-1]]))
    >>> banks = send_banks((first, second), 7, blocks=4, flits=4)
    >>> banks.memory.tolist(), banks.slot.tolist(), banks.reads[0].base.tolist()
    ([0, 0, 1, 0], [1, 0, 0, 2], [0, 4])
    """
    memory, slot = np.full(blocks, -1), np.zeros(blocks, int)
    depth: list[int] = []
    placed = []
    for of_reader in reads:
        here = of_reader.memory == own
        base, bank = of_reader.base.copy(), len(depth)
        runs = zip((base[here] // flits).tolist(), of_reader.blocks[here].tolist(), strict=True)
        read = np.array([first + k for first, count in runs for k in range(count)], int)
        if len(np.unique(read)) < len(read) or (memory[read] >= 0).any():
            return None
        if len(read):
            depth.append(len(read))
            memory[read], slot[read] = bank, np.arange(len(read))
            base[here] = slot[base[here] // flits] * flits
        numbers = np.where(here, own + bank, of_reader.memory)
        placed.append(replace(of_reader, memory=numbers, base=base))
    if not depth:
        return None
    rest = np.nonzero(memory < 0)[0]
    memory[rest], slot[rest] = 0, depth[0] + np.arange(len(rest))
    depth[0] += len(rest)
    return SendBanks(tuple(placed), tuple(depth), memory, slot)
