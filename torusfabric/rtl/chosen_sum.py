"""The sum of a word and one of several others, in a module of its own."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Value

from .modules import SharedModule
from .multiplexer import SLICE, Multiplexer, branch_bits, slice_bounds

__all__ = ["ChosenSum"]


@dataclass(frozen=True)
class ChosenSum:
    """The sum of a word and one of several others, or nothing.

    Parameters
    ----------
    count : int
        What is chosen among, with the select bits of `branch_bits`.
    width : int
        Bits of a word.
    idles : bool
        Whether the last of these is nothing: the sum is the word then.

    Examples
    --------
    >>> ChosenSum(4, 16, idles=True).shared.name
    'sum_idle_4_16'
    """

    count: int
    width: int
    idles: bool

    @property
    def words(self) -> int:
        """The words among which it chooses."""
        return self.count - self.idles

    @property
    def select_bits(self) -> int:
        """The select bits of a slice."""
        return len(branch_bits(self.count, 0))

    @property
    def slices(self) -> list[tuple[int, int]]:
        """The first bit of each slice, and that after its last; each has its select bits."""
        return slice_bounds(self.width, -(-self.width // SLICE))

    @property
    def shared(self) -> SharedModule:
        """Its module: the word, the others, select bits, and the sum.

        Of the others, the first is in the lowest bits; of select bits, those of the lowest slice.
        """
        return SharedModule(
            f"sum_{'idle_' * self.idles}{self.count}_{self.width}",
            f"A word plus one of {self.words} others{', or plus nothing' * self.idles}.",
            {
                "word": self.width,
                "words": self.words * self.width,
                "select": len(self.slices) * self.select_bits,
                "total": self.width,
            },
            self._fill,
            self,
        )

    def _fill(self, m: Module, word: Value, words: Value, select: Value, total: Value) -> None:
        """Add what is inside."""
        size, nothing = self.select_bits, [Const(0, self.width)] * self.idles
        inputs = [words[k : k + self.width] for k in range(0, len(words), self.width)]
        chosen = []
        for k, (low, high) in enumerate(self.slices):
            meant = Multiplexer(self.count, high - low, branched=True)
            cut = [each[low:high] for each in [*inputs, *nothing]]
            chosen.append(meant.logic(m, cut, [*select[k * size :][:size]]))
        m.d.comb += total.eq(word + Cat(*chosen))
