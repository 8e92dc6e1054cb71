"""What commands say of a run, as nodes are given it: for runs of even, and of odd numbers."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Const, Value
from amaranth.lib.wiring import In, Member

from ..leaf import Leaf

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
    """

    commanded: bool
    mode_bits: int
    root_bits: int
    position_bits: int

    def widths(self, prefix: str, *, valid: bool = False) -> dict[str, int]:
        """Names and widths of what nodes are given of two runs."""
        bits = {
            f"{prefix}_valid": int(valid and self.commanded),
            f"{prefix}_mode": self.mode_bits,
            f"{prefix}_root": self.root_bits,
        }
        return {name: 2 * width for name, width in bits.items() if width}

    def members(self, prefix: str, *, valid: bool = False) -> dict[str, Member]:
        """The same as inputs of a leaf."""
        return {name: In(width) for name, width in self.widths(prefix, valid=valid).items()}


def of_run(leaf: Leaf, name: str, odd: Value, bits: int, *, otherwise: int = 0) -> Value:
    """What is said of a run, given whether its number is odd; something else if nothing is."""
    if not bits or name not in leaf.signature.members:
        return Const(otherwise, 1)
    return leaf.value(name).word_select(odd, bits)
