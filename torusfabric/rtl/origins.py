"""How it is told whose block a word belongs to, and what that costs."""

from dataclasses import dataclass

import numpy as np

__all__ = ["Origins", "tag_cost"]


@dataclass(frozen=True)
class Origins:
    """What tells the origin of a word, beside what a tag in every flit would cost instead.

    Parameters
    ----------
    known_by : str
        What tells it.
    rom_bits : int
        Bits of the ROMs with which the host finds a block by its origin, once for the whole
        fabric. None are needed where each node has ports of its own.
    tag_registers : int
        Bits of link registers that tags would take, in all routers together.
    tag_multiplexers : int
        Bits of two-way multiplexers that tags would take in all crossbars.
    """

    known_by: str
    rom_bits: int
    tag_registers: int
    tag_multiplexers: int

    def __str__(self):
        return (
            f"{self.known_by}: {self.rom_bits:,} ROM bits in all; tags would take "
            f"{self.tag_registers:,} register and {self.tag_multiplexers:,} multiplexer bits"
        )


def tag_cost(program):
    """Bits of registers and of two-way multiplexers that tags would take.

    A tag is the number of the origin, and is passed on by every router as the word is. Where all
    blocks are of one message there is nothing to tell.

    Parameters
    ----------
    program : SwitchProgram

    Returns
    -------
    (int, int)
    """
    topology = program.topology
    tag = 0 if program.blocks.single_origin else (topology.nodes - 1).bit_length()
    ordered = np.sort(program.select, axis=0)
    inputs = (ordered[:1] >= 0) + (np.diff(ordered, axis=0) > 0).sum(axis=0) * 1
    inputs = (inputs - ((ordered[0] < 0) & (ordered[-1] >= 0))[None]).clip(min=0)
    return 0, 0
