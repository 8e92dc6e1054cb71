"""The sum of a word and one of several operands, as a shared module.

An operator that adds uses it in emitted Verilog. Why one module: a device with suitable cells can
merge the multiplexer of the operand into the adder; see `torusfabric.verilog.ecp5`.
"""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Value

from .modules import SharedModule
from .multiplexer import SLICE_BITS, Multiplexer, branched_select_bits, slice_bounds

__all__ = ["ChosenSum"]


@dataclass(frozen=True)
class ChosenSum:
    """A module that adds a word and one of several operands, chosen by select bits.

    Parameters
    ----------
    count : int
        Number of operands, chosen by the select bits of `branched_select_bits`.
    width : int
        Bits of a word.
    idles : bool
        True if the last operand is the constant 0, so that the sum can be the word itself.

    Examples
    --------
    >>> ChosenSum(4, 16, idles=True).shared_module.name
    'sum_idle_4_16'
    """

    count: int
    width: int
    idles: bool

    @property
    def n_inputs(self) -> int:
        """Number of operands that are inputs: all except a constant 0."""
        return self.count - self.idles

    @property
    def select_bits(self) -> int:
        """Number of select bits by which each slice of the word chooses its operand."""
        return len(branched_select_bits(self.count, 0))

    @property
    def slice_bounds(self) -> list[tuple[int, int]]:
        """The first bit of each slice of the word, and the bit after: ``[(0, 16), (16, 32)]``.

        Each slice has its own copy of the select bits.
        """
        return slice_bounds(self.width, -(-self.width // SLICE_BITS))

    @property
    def shared_module(self) -> SharedModule:
        """The shared module, with ports for the word, the operands, the select bits and the sum.

        The first operand is in the lowest bits of ``words``. The select bits of the lowest slice
        are in the lowest bits of ``select``.
        """
        return SharedModule(
            f"sum_{'idle_' * self.idles}{self.count}_{self.width}",
            f"A word plus one of {self.n_inputs} others{', or plus nothing' * self.idles}.",
            {
                "word": self.width,
                "words": self.n_inputs * self.width,
                "select": len(self.slice_bounds) * self.select_bits,
                "total": self.width,
            },
            self._add_logic,
            self,
        )

    def _add_logic(self, m: Module, word: Value, words: Value, select: Value, total: Value) -> None:
        """Add the logic: a multiplexer of operands for each slice of the word, and one adder.

        It drives `total` with the sum of `word` and one operand. `words` has the operands side by
        side, the first one lowest. `select` has the select bits of each slice, one slice after
        another.
        """
        size, nothing = self.select_bits, [Const(0, self.width)] * self.idles
        inputs = [words[k : k + self.width] for k in range(0, len(words), self.width)]
        chosen = []
        for k, (low, high) in enumerate(self.slice_bounds):
            meant = Multiplexer(self.count, high - low, branched=True)
            cut = [each[low:high] for each in [*inputs, *nothing]]
            chosen.append(meant.add_logic(m, cut, [*select[k * size :][:size]]))
        m.d.comb += total.eq(word + Cat(*chosen))
