"""Multiplexers: which of several words passes, by select bits that are there for each slice of it.

In the text of a design each is an instance of a *selector*, which holds the select bits in a
register for each slice, and has a multiplexer for each: modules that are there once for each number
of inputs and bits. What is in a multiplexer, a *cascade* (see `torusfabric.rtl.cascade`), is made
for devices of look-up tables with four inputs. The text has other forms of the module as well, for
ECP5, which has wide multiplexers beside its tables, and for tables with six inputs: see
`torusfabric.verilog.ecp5` and `torusfabric.verilog.lut6`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import Cat, ClockSignal, Const, Module, Signal, Value

from .cascade import branch_bits, branched_cascade, cascade, keeper, select_bits
from .modules import SharedModule, Use
from .registers import apart

__all__ = ["SLICE", "Multiplexer", "Selector", "held_slices", "multiplexed", "slice_bounds"]

#: Bits of a word that share a copy of the select registers: few loads make a fast clock.
SLICE = 16

#: Inputs from which on the multiplexer of a slice is a module; one of two is a table a bit in any
#: case.
LEAST = 3

#: Inputs from which on it is one also where one of them is a constant: of fewer synthesis makes
#: less where it sees the constant, of more it makes more than the cells of a device can do.
LEAST_WITH_CONSTANT = 4


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

    def logic(self, m: Module, inputs: Sequence[Value], bits: Sequence[Value]) -> Value:
        """The word that is selected; synthesis keeps the stages of the cascade."""
        form = branched_cascade if self.branched else cascade
        return form(inputs, bits, self.width, keeper(m, self.width))[: self.width]

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
        m.d.comb += word.eq(self.logic(m, inputs, [*select]))
        return m


@dataclass(frozen=True)
class Selector(SharedModule):
    """One of several words, by select bits that are given a cycle before.

    Parameters
    ----------
    count, width, branched
        As of `Multiplexer`.

    Examples
    --------
    >>> Selector(7, 64, branched=True).name
    'selector_7_64'
    """

    count: int
    width: int
    branched: bool

    @property
    def name(self) -> str:
        """The name of its module."""
        return f"selector_{'' if self.branched else 'cascade_'}{self.count}_{self.width}"

    @property
    def about(self) -> str:
        """What it is."""
        return f"One of {self.count} words; each slice of it holds its select bits."

    def ports(self) -> list[Signal]:
        """The ports of the module: words, the first in the lowest bits, select bits, a word."""
        return Multiplexer(self.count, self.width, self.branched).ports()

    def module(self, ports: Sequence[Signal]) -> Module:
        """The module, with what `ports` has made."""
        m = Module()
        words, select, word = ports
        inputs = [words[k : k + self.width] for k in range(0, len(words), self.width)]
        m.d.comb += word.eq(_sliced(m, inputs, select, self.width, branched=self.branched))
        return m


def multiplexed(
    m: Module,
    inputs: Sequence[Value],
    select: Value,
    width: int,
    *,
    name: str | None,
    branched: bool = False,
) -> Value:
    """The word that is selected; 0 of no inputs.

    Parameters
    ----------
    select : Value
        The select bits; in the text of a module a cycle before they count.
    width : int
        Bits of a word.
    name : str or None
        Of the instance, if the text of a module is written; a simulator is given the logic itself.
    branched : bool
        As of `Multiplexer`.
    """
    if not inputs:
        return Const(0, width)
    if len(inputs) == 1:
        return inputs[0][:width]
    if name is None:
        return Multiplexer(len(inputs), width, branched).logic(m, inputs, [*select])
    constant = any(isinstance(word, Const) for word in inputs)
    if constant and len(inputs) < LEAST_WITH_CONSTANT:
        return _sliced(m, inputs, select, width, branched=branched, name=name)
    word = Signal(width, name=f"{name}_word")
    words = Cat(*(each[:width] for each in inputs))
    selector = Selector(len(inputs), width, branched)
    m.submodules[name] = Use(
        selector, i_clk=ClockSignal(), i_words=words, i_select=select, o_word=word
    )
    return word


def _sliced(
    m: Module,
    inputs: Sequence[Value],
    select: Value,
    width: int,
    *,
    branched: bool,
    name: str = "slice",
) -> Value:
    """The word that is selected in the text of a module, with select bits for each slice."""
    passed: list[Value] = []
    shared = not any(isinstance(word, Const) for word in inputs) and len(inputs) >= LEAST
    slices = held_slices(m, select, width, name=name)
    for k, ((low, high), bits) in enumerate(
        zip(slice_bounds(width, len(slices)), slices, strict=True)
    ):
        cut = [word[low:high] for word in inputs]
        meant = Multiplexer(len(inputs), high - low, branched)
        if not shared:
            passed.append(meant.logic(m, cut, bits))
            continue
        word = Signal(high - low, name=f"{name}_{k}_word")
        m.submodules[f"{name}_{k}"] = Use(
            meant, i_words=Cat(*cut), i_select=Cat(*bits), o_word=word
        )
        passed.append(word)
    return Cat(*passed)


def held_slices(m: Module, select: Value, width: int, *, name: str) -> list[list[Value]]:
    """Select bits a cycle later, in registers for each slice of a word."""
    return [
        [*apart(m, select, name=f"{name}_{k}_select", alone=True)]
        for k in range(-(-width // SLICE))
    ]


def slice_bounds(width: int, count: int) -> list[tuple[int, int]]:
    """The first bit of each slice of a word, and that after its last.

    Examples
    --------
    >>> slice_bounds(19, 2)
    [(0, 10), (10, 19)]
    """
    size = -(-width // count)
    return [(low, min(low + size, width)) for low in range(0, width, size)]
