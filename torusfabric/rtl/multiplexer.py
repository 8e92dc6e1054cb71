"""Multiplexers: which of several words passes, by select bits that are there for each slice of it.

In the text of a design each is an instance of a *selector*, which holds the select bits in a
register for each slice, and has a multiplexer for each: modules that are there once for each number
of inputs and bits. What is in a multiplexer, a *cascade*, is made for devices of look-up tables
with four inputs. The text has other forms of the module as well, for ECP5, which has wide
multiplexers beside its tables, and for tables with six inputs: see `torusfabric.verilog.ecp5` and
`torusfabric.verilog.lut6`.

A cascade of k inputs has ceil(k / 2) stages a bit, each one 4-input look-up table::

    f = x ? (y ? s1 : s0) : y           first stage
    f = z ? (f ? odd : even) : f        one for each further pair
    f = z ? s : f                       a single last input

With x = 0 the first stage passes the constant y down to the pair that z selects; fewer than four
inputs need no x, unless the cascade has to pass 0 when all its select bits are 0. Left alone,
synthesis sees through a cascade and builds a tree that costs up to twice as much. So the stages are
marked to be kept, and x is never the same signal as a z: it is high for the first pair.

A cascade has as many tables in a row as it has stages. So from five inputs on, an out-port has two
*branches*, and a last input::

    f = z ? s : (a | b)                 a and b: what the branches pass

A branch passes 0 when all its select bits are 0. It is a cascade, or has branches itself. Five
inputs have two tables in a row rather than three, seven have three rather than four, of as many
tables; from eight on it takes up to two tables a bit more than a cascade would, to 29 inputs. Six
inputs would take one more and be no faster. No cascade has more than three stages, for synthesis
looks through those that it keeps: beside a longer one it builds a second, faster tree, of more
tables than the cascade has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from amaranth.hdl import Cat, ClockSignal, Const, Module, Mux, Signal, Value

from .modules import SharedModule, Use, apart

__all__ = ["SLICE", "Keep", "Multiplexer", "bit_count", "branch_bits", "branch_luts",
           "branched_cascade", "branches", "cascade", "continued_cascade", "extended_cascade",
           "held_slices", "keeper", "lut_count", "multiplexed", "select_bits", "select_code",
           "slice_bounds"]  # fmt: skip

#: Marks a value to be kept by synthesis.
Keep: TypeAlias = Callable[[Value], Value]


def lut_count(count: int) -> int:
    """4-input look-up tables a bit for so many inputs."""
    return (count + 1) // 2 if count > 1 else 0


def bit_count(count: int) -> int:
    """Select bits for so many inputs."""
    return len(select_bits(count, 0)) if count else 0


def select_bits(count: int, index: int, *, idles: bool = False) -> list[int]:
    """The select bits that make one of so many inputs pass.

    Parameters
    ----------
    idles : bool
        Whether the cascade passes 0 when all of them are 0.

    Returns
    -------
    list of int
        y, x, z1, z2, ..; x is left out where nothing needs it.

    Examples
    --------
    >>> [select_bits(4, index) for index in range(4)]
    [[0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1]]
    >>> [select_bits(2, index, idles=True) for index in range(2)]
    [[0, 1], [1, 1]]
    """
    if count == 1 and not idles:
        return []
    stages = (count - 1) // 2
    bits = [index % 2] + ([int(index < 2)] if idles or count >= 4 else [])
    return bits + [int(index // 2 == stage) for stage in range(1, stages + 1)]


def select_code(count: int, index: int) -> int:
    """The select bits of `select_bits` as a number.

    Examples
    --------
    >>> select_code(4, 2)
    4
    """
    return sum(bit << k for k, bit in enumerate(select_bits(count, index)))


def cascade(
    inputs: Sequence[Value],
    bits: Sequence[Value],
    width: int,
    keep: Keep,
    *,
    idles: bool = False,
) -> Value:
    """The input that is selected.

    Parameters
    ----------
    inputs : list of Value
        At least one.
    bits : list of Value
        The select bits, as `select_bits` gives them.
    keep : function of Value -> Value
        Marks a stage to be kept by synthesis.
    idles : bool
        Whether it passes 0 when all select bits are 0; of two inputs or more.
    """
    if len(inputs) == 1:
        return inputs[0]
    y, *bits = bits
    f = Mux(y, inputs[1], inputs[0])
    if idles or len(inputs) >= 4:
        x, *bits = bits
        f = Mux(x, f, Mux(y, (1 << width) - 1, 0))
    return extended_cascade(f, inputs[2:], bits, keep)


def extended_cascade(f: Value, inputs: Sequence[Value], bits: Sequence[Value], keep: Keep) -> Value:
    """The stages of a cascade that follow its first stages: each takes a pair of inputs."""
    for z, even, odd in zip(bits, inputs[::2], [*inputs[1::2], None], strict=False):
        f = keep(f)
        chosen = even if odd is None else (f & odd) | (~f & even)
        f = Mux(z, chosen, f)
    return f


def keeper(m: Module, width: int) -> Keep:
    """A function that marks values to be kept by synthesis.

    A simulator works out once what is kept, where each of its uses would be worked out for itself.
    """

    def keep(value: Value) -> Value:
        kept = Signal(width, name="stage", attrs={"keep": 1})
        m.d.comb += kept.eq(value)
        return kept

    return keep


def branches(count: int) -> tuple[int, ...]:
    """The inputs of each branch of an out-port, or of a branch, of so many; a last one is in none.

    Examples
    --------
    One number: there are no branches.

    >>> [branches(count) for count in (4, 5, 6, 7, 8, 9, 15)]
    [(4,), (2, 2), (6,), (4, 2), (4, 3), (4, 4), (8, 6)]
    """
    if count < 5 or count == 6:
        return (count,)
    first = 2 * ((count + 1) // 4)
    return first, count - 1 - first


def branch_luts(count: int) -> int:
    """4-input look-up tables a bit for so many inputs.

    Examples
    --------
    >>> [branch_luts(count) for count in (1, 2, 5, 8, 9, 15)]
    [0, 1, 3, 5, 5, 9]
    """
    sizes = branches(count)
    return lut_count(count) if len(sizes) == 1 else sum(map(branch_luts, sizes)) + 1


def branch_bits(count: int, index: int, *, idles: bool = False) -> list[int]:
    """The select bits that make one of so many inputs pass; parameters as of `select_bits`.

    Returns
    -------
    list of int
        Without branches those of `select_bits`. Else those of each branch, and z of the last input.

    Examples
    --------
    >>> [branch_bits(5, index) for index in range(5)]
    [[0, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]]
    """
    sizes = branches(count)
    if len(sizes) == 1:
        return select_bits(count, index, idles=idles)
    bits: list[int] = []
    for size in sizes:
        inside = 0 <= index < size
        bits += [bit * inside for bit in branch_bits(size, index % size, idles=True)]
        index -= size
    return [*bits, int(index == 0)]


def branched_cascade(
    inputs: Sequence[Value],
    bits: Sequence[Value],
    width: int,
    keep: Keep,
    *,
    idles: bool = False,
) -> Value:
    """The input that is selected; parameters as of `cascade`, select bits as of `branch_bits`."""
    sizes = branches(len(inputs))
    if len(sizes) == 1:
        return cascade(inputs, bits, width, keep, idles=idles)
    passed, at, bit = [], 0, 0
    for size in sizes:
        used = len(branch_bits(size, 0, idles=True))
        of_branch = inputs[at : at + size], bits[bit : bit + used]
        passed.append(keep(branched_cascade(*of_branch, width, keep, idles=True)))
        at, bit = at + size, bit + used
    return Mux(bits[-1], inputs[-1], passed[0] | passed[1])


#: Bits of a word that share a copy of the select registers: few loads make a fast clock.
SLICE = 16

#: Inputs from which on the multiplexer of a slice is a module; one of two is a table a bit in any
#: case.
LEAST = 3

#: Inputs from which on it is one also where one of them is a constant: of fewer synthesis makes
#: less where it sees the constant, of more it makes more than the cells of a device can do.
LEAST_WITH_CONSTANT = 4


@dataclass(frozen=True)
class Multiplexer:
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
    >>> Multiplexer(7, 16, branched=True).shared.name
    'branches_7_16'
    """

    count: int
    width: int
    branched: bool

    @property
    def select_bits(self) -> int:
        """Its select bits."""
        return len((branch_bits if self.branched else select_bits)(self.count, 0))

    def logic(self, m: Module, inputs: Sequence[Value], select: Value | Sequence[Value]) -> Value:
        """The word that is selected; synthesis keeps the stages of the cascade."""
        form = branched_cascade if self.branched else cascade
        return form(inputs, [*select], self.width, keeper(m, self.width))[: self.width]

    @property
    def shared(self) -> SharedModule:
        """Its module."""
        name, form = (
            ("branches", "two branches") if self.branched else ("cascade", "a chain of stages")
        )
        about = f"One of {self.count} words, in {form} of look-up tables."
        return self._module(name, about, self.logic, self)

    @property
    def selector(self) -> SharedModule:
        """A module that is given the select bits a cycle before, and holds them for each slice.

        Examples
        --------
        >>> Multiplexer(7, 64, branched=True).selector.name
        'selector_7_64'
        """
        logic = lambda m, inputs, select: _sliced(
            m, inputs, select, self.width, branched=self.branched
        )
        about = f"One of {self.count} words; each slice of it holds its select bits."
        return self._module("selector" if self.branched else "selector_cascade", about, logic)

    def _module(
        self, name: str, about: str, logic: Callable[..., Value], shape: object = None
    ) -> SharedModule:
        """A module: words, the first in the lowest bits, select bits, and the word selected."""

        def fill(m: Module, words: Value, select: Value, word: Value) -> None:
            inputs = [words[k : k + self.width] for k in range(0, len(words), self.width)]
            m.d.comb += word.eq(logic(m, inputs, select))

        widths = {"words": self.count * self.width, "select": self.select_bits, "word": self.width}
        return SharedModule(f"{name}_{self.count}_{self.width}", about, widths, fill, shape)


def multiplexed(
    m: Module,
    inputs: Sequence[Value],
    select: Value,
    width: int,
    *,
    name: str | None,
    branched: bool = False,
    small: bool = False,
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
    small : bool
        True if it had better be small than fast, on all devices.
    """
    if not inputs:
        return Const(0, width)
    if len(inputs) == 1:
        return inputs[0][:width]
    meant = Multiplexer(len(inputs), width, branched)
    if name is None:
        return meant.logic(m, inputs, select)
    constant = any(isinstance(word, Const) for word in inputs)
    if small or (constant and len(inputs) < LEAST_WITH_CONSTANT):
        return _sliced(m, inputs, select, width, branched=branched, name=name, small=small)
    word = Signal(width, name=f"{name}_word")
    words = Cat(*(each[:width] for each in inputs))
    m.submodules[name] = Use(
        meant.selector, i_clk=ClockSignal(), i_words=words, i_select=select, o_word=word
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
    small: bool = False,
) -> Value:
    """The word that is selected in the text of a module, with select bits for each slice."""
    passed: list[Value] = []
    constant = any(isinstance(word, Const) for word in inputs)
    shared = not (small or constant) and len(inputs) >= LEAST
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
            meant.shared, i_words=Cat(*cut), i_select=Cat(*bits), o_word=word
        )
        passed.append(word)
    return Cat(*passed)


def continued_cascade(
    m: Module,
    held: Value,
    words: Sequence[Value],
    select: Value,
    *,
    name: str,
    sliced: bool,
) -> Value:
    """Return the word of a cascade, given the word behind its first stages, from a register.

    Parameters
    ----------
    held : Value
        The word in that register.
    words : sequence of Value
        The words of the further stages, two a stage; perhaps none.
    select : Value
        The select bits of the further stages, a cycle before they count.
    name : str
        The prefix of the names of registers.
    sliced : bool
        True to hold the select bits for each slice of the word.
    """
    width = len(held)
    slices = held_slices(m, select, width if sliced else 1, name=name)
    passed = []
    for (low, high), bits in zip(slice_bounds(width, len(slices)), slices, strict=True):
        inputs = [word[low:high] for word in words]
        passed.append(extended_cascade(held[low:high], inputs, bits, keeper(m, high - low)))
    return Cat(*passed)


def held_slices(m: Module, select: Value, width: int, *, name: str) -> list[list[Value]]:
    """Select bits a cycle later, in registers for each slice of a word."""
    return [[*apart(m, select, name=f"{name}_{k}_select")] for k in range(-(-width // SLICE))]


def slice_bounds(width: int, count: int) -> list[tuple[int, int]]:
    """The first bit of each slice of a word, and that after its last.

    Examples
    --------
    >>> slice_bounds(19, 2)
    [(0, 10), (10, 19)]
    """
    size = -(-width // count)
    return [(low, min(low + size, width)) for low in range(0, width, size)]
