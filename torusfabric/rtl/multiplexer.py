"""Multiplexers: which of several words passes, by select bits that are there for each slice of it.

In the text of a design each is an instance of a module, which is there once for each number of
inputs and bits. What is in it, a cascade, is made for devices that have look-up tables alone; for
ECP5, which has wide multiplexers beside them, the text has another form of the module as well: see
`torusfabric.verilog.ecp5`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Signal, Value

from .cascade import branch_bits, branched_cascade, cascade, keeper, select_bits, unmarked
from .modules import SharedModule, Use

__all__ = ["Multiplexer", "multiplexed", "slice_bounds"]

#: Inputs from which on a multiplexer is a module; one of two is a table a bit in any case. So is
#: one with a constant among its inputs, of which synthesis makes less.
LEAST = 3


@dataclass(frozen=True)
class Multiplexer(SharedModule):
    """One of several words.

    Parameters
    ----------
    count : int
        Inputs.
    width : int
        Bits of a word.
    branched : bool
        Whether it is a cascade in branches, as an out-port is, with select bits of `branch_bits`;
        or one cascade, with those of `select_bits`.

    Examples
    --------
    >>> Multiplexer(7, 16, branched=True).name
    'branches_7_16'
    """

    count: int
    width: int
    branched: bool

    @property
    def name(self) -> str:
        """The name of its module."""
        return f"{'branches' if self.branched else 'cascade'}_{self.count}_{self.width}"

    @property
    def about(self) -> str:
        """What it is."""
        form = "two branches" if self.branched else "a chain of stages"
        return f"One of {self.count} words, in {form} of look-up tables."

    def logic(
        self, m: Module, inputs: Sequence[Value], bits: Sequence[Value], *, keep: bool
    ) -> Value:
        """The word that is selected; whether synthesis has to keep the stages of the cascade."""
        form = branched_cascade if self.branched else cascade
        mark = keeper(m, self.width) if keep else unmarked
        return form(inputs, bits, self.width, mark)[: self.width]

    def instance(
        self, m: Module, name: str, inputs: Sequence[Value], bits: Sequence[Value]
    ) -> Signal:
        """The word that is selected, by an instance of the module with a name."""
        word = Signal(self.width, name=f"{name}_word")
        m.submodules[name] = Use(self, i_words=Cat(*inputs), i_select=Cat(*bits), o_word=word)
        return word

    def ports(self) -> list[Signal]:
        """The ports of the module: words, the first in the lowest bits, select bits, a word."""
        bits = (branch_bits if self.branched else select_bits)(self.count, 0)
        return [
            Signal(self.count * self.width, name="words"),
            Signal(len(bits), name="select"),
            Signal(self.width, name="word"),
        ]

    def module(self, ports: Sequence[Signal]) -> Module:
        """The module, with what `ports` has made."""
        m = Module()
        words, select, word = ports
        inputs = [words[k : k + self.width] for k in range(0, len(words), self.width)]
        m.d.comb += word.eq(self.logic(m, inputs, [*select], keep=True))
        return m


def multiplexed(
    m: Module,
    inputs: Sequence[Value],
    slices: Sequence[Sequence[Value]],
    width: int,
    *,
    name: str | None,
    branched: bool = False,
) -> Value:
    """The word that is selected; 0 of no inputs.

    Parameters
    ----------
    slices : sequence of (sequence of Value)
        The select bits of each slice, the lowest first.
    width : int
        Bits of a word.
    name : str or None
        Of the instances, if the text of a module is written; a simulator is given the logic itself.
    branched : bool
        As of `Multiplexer`.
    """
    if not inputs:
        return Const(0, width)
    if len(inputs) == 1:
        return inputs[0][:width]
    passed: list[Value] = []
    shared = len(inputs) >= LEAST and not any(isinstance(word, Const) for word in inputs)
    for (low, high), bits in zip(slice_bounds(width, len(slices)), slices, strict=True):
        cut = [word[low:high] for word in inputs]
        meant = Multiplexer(len(inputs), high - low, branched=branched)
        if name and shared:
            passed.append(meant.instance(m, f"{name}_{len(passed)}", cut, bits))
        else:
            passed.append(meant.logic(m, cut, bits, keep=name is not None))
    return passed[0] if len(passed) == 1 else Cat(*passed)


def slice_bounds(width: int, count: int) -> list[tuple[int, int]]:
    """The first bit of each slice of a word, and that after its last.

    Examples
    --------
    >>> slice_bounds(19, 2)
    [(0, 10), (10, 19)]
    """
    size = -(-width // count)
    return [(low, min(low + size, width)) for low in range(0, width, size)]
