"""Sums of a word and one of several others, as modules of the text.

Where there are carry chains whose tables have inputs to spare, a part of the choice goes there: see
`torusfabric.verilog.ecp5`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Signal, Value

from .modules import SharedModule, Use
from .multiplexer import SLICE, Multiplexer, branch_bits, slice_bounds

__all__ = ["ChosenSum", "add_chosen"]


@dataclass(frozen=True)
class ChosenSum(SharedModule):
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
    >>> ChosenSum(4, 16, idles=True).name
    'sum_idle_4_16'
    """

    count: int
    width: int
    idles: bool

    @property
    def name(self) -> str:
        """The name of its module."""
        return f"sum_{'idle_' * self.idles}{self.count}_{self.width}"

    @property
    def about(self) -> str:
        """What it is."""
        return (
            f"A word plus one of {self.words} others"
            + ", or plus nothing." * self.idles
            + "." * (not self.idles)
        )

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

    def ports(self) -> list[Signal]:
        """The ports of the module: the word, the others, select bits, the lowest slice first, sum.

        Of the others, the first is in the lowest bits.
        """
        return [
            Signal(self.width, name="word"),
            Signal(self.words * self.width, name="words"),
            Signal(len(self.slices) * self.select_bits, name="select"),
            Signal(self.width, name="total"),
        ]

    def module(self, ports: Sequence[Signal]) -> Module:
        """The module, with what `ports` has made."""
        m, size = Module(), self.select_bits
        word, words, select, total = ports
        inputs = [words[k : k + self.width] for k in range(0, len(words), self.width)]
        nothing = [Const(0, self.width)] * self.idles
        chosen = []
        for k, (low, high) in enumerate(self.slices):
            meant = Multiplexer(self.count, high - low, branched=True)
            cut = [each[low:high] for each in [*inputs, *nothing]]
            chosen.append(meant.logic(m, cut, [*select[k * size :][:size]]))
        m.d.comb += total.eq(word + Cat(*chosen))
        return m


def add_chosen(
    m: Module,
    word: Value,
    inputs: Sequence[Value],
    slices: Sequence[Sequence[Value]],
    width: int,
    *,
    name: str,
) -> Signal:
    """The sum of a word and one of several inputs, by an instance of the module.

    Parameters
    ----------
    inputs : sequence of Value
        Two or more; a constant, the last of them, is nothing.
    slices : sequence of (sequence of Value)
        The select bits of each slice, the lowest first.
    width : int
        Bits of a word.
    name : str
        Of the instance.
    """
    meant = ChosenSum(len(inputs), width, isinstance(inputs[-1], Const))
    total = Signal(width, name=f"{name}_total")
    words = Cat(*inputs[: meant.words])
    select = Cat(*(bit for bits in slices for bit in bits))
    m.submodules[name] = Use(meant, i_word=word, i_words=words, i_select=select, o_total=total)
    return total
