"""What commands say of a run, as nodes are given it.

What loaders are given is of two messages, of an even and of an odd number: no more of them wait.
What unloaders are given is of a run in each section of the memories.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Const, Value

from ..leaf import Leaf
from .sections import Sections

__all__ = ["RunFacts", "of_run"]


@dataclass(frozen=True)
class RunFacts:
    """What commands say of a run.

    Parameters
    ----------
    commanded : bool
        Whether there are commands at all.
    mode_bits, root_bits : int
        Bits of a mode, and of a root; 0 where there is no choice.
    position_bits : int
        Bits of the position of a node in its group.
    sections : Sections
        Of memories.
    """

    commanded: bool
    mode_bits: int
    root_bits: int
    position_bits: int
    sections: Sections

    @property
    def load_widths(self) -> dict[str, int]:
        """Names and widths of what loaders are given of two messages."""
        return self._widths("load", 2, valid=int(self.commanded))

    @property
    def unload_widths(self) -> dict[str, int]:
        """Names and widths of what unloaders are given of a run in each section."""
        return self._widths("unload", self.sections.count)

    def _widths(self, prefix: str, runs: int, **others: int) -> dict[str, int]:
        """Names and widths of what is said of so many runs."""
        bits = others | {"mode": self.mode_bits, "root": self.root_bits}
        return {f"{prefix}_{name}": runs * width for name, width in bits.items() if width}


def of_run(leaf: Leaf, name: str, number: Value, bits: int, *, otherwise: int = 0) -> Value:
    """What is said of a run, by as many bits of its number; something else if nothing is."""
    if not bits or name not in leaf.signature.members:
        return Const(otherwise, 1)
    return leaf.value(name).word_select(number, bits)
