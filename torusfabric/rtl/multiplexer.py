"""Multiplexers of words, built from 4-input LUTs; routers and stores select their words by them.

A multiplexer passes one of k input words. Its control is a vector of *select bits*, in an encoding
of its own (`select_bits`, `branched_select_bits`) that makes the logic small. The settings of a
node hold select bits rather than a binary index, so that no decoder is needed.

**Cascade.** A cascade of k inputs s0, s1, .. has ceil(k / 2) stages, and takes one 4-input LUT for
each bit and stage::

    f = x ? (y ? s1 : s0) : y           first stage: inputs s0 and s1
    f = z ? (f ? odd : even) : f        one further stage for each pair of inputs
    f = z ? s : f                       last stage, if the number of inputs is odd

For the first pair, x is 1 and y chooses. For another pair, x is 0: the first stage passes the
constant y down to the stage whose z is 1, where y chooses between `even` and `odd`. With fewer than
four inputs x is not needed, unless the cascade must pass 0 when all its select bits are 0.

Left alone, synthesis sees through a cascade and builds a tree of up to twice as many LUTs.
Therefore the output of each stage is marked to be kept, and x is a signal of its own rather than
the complement of some z.

**Branches.** The delay of a cascade is its number of stages. From five inputs on (except six), the
multiplexer of an out-port is therefore split into two *branches* and a last input s::

    f = z ? s : (a | b)                 a, b: outputs of the branches

A branch is a cascade or is split again, and passes 0 when all its select bits are 0. Compared with
a cascade:

====== ===================== =================
inputs LUTs in series        LUTs for each bit
====== ===================== =================
5      2 instead of 3        the same
7      3 instead of 4        the same
8..29                        up to 2 more
6      no fewer: not split   would be 1 more
====== ===================== =================

No cascade has more than three stages. Why: beside a longer one, synthesis builds a second, faster
tree, which takes more LUTs than the cascade.

**Modules.** In the emitted Verilog a multiplexer is an instance of a *selector*. A selector cuts
the word into *slices* of up to `SLICE_BITS` bits, and for each slice it has a register of the
select bits and a module with the logic. Each of these modules is written once for each number of
inputs and width. The logic module has further forms for ECP5, which has wide multiplexers beside
its LUTs, for 6-input LUTs, and for silicon: see `torusfabric.verilog.ecp5`,
`torusfabric.verilog.lut6` and `torusfabric.verilog.one_hot`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from amaranth.hdl import Cat, ClockSignal, Const, Module, Mux, Signal, Value

from .modules import SharedInstance, SharedModule, unmerged_register

__all__ = ["SLICE_BITS", "Keep", "Multiplexer", "Selector", "select_bit_count",
           "branched_select_bits", "branched_lut_count", "branched_cascade", "branch_sizes",
           "plain_cascade", "continued_cascade", "extended_cascade", "register_select_slices",
           "make_keeper", "lut_count", "add_multiplexer", "select_bits", "select_code",
           "slice_bounds"]  # fmt: skip

#: Marks a value to be kept by synthesis.
Keep: TypeAlias = Callable[[Value], Value]


def lut_count(count: int) -> int:
    """Return the number of 4-input LUTs per bit of a cascade that passes one of `count` words.

    A cascade is a chain of stages with a LUT each: the first handles two inputs, each further one
    two more.
    """
    return (count + 1) // 2 if count > 1 else 0


def select_bit_count(count: int) -> int:
    """Return the number of select bits of a cascade that passes one of `count` words."""
    return len(select_bits(count, 0)) if count else 0


def select_bits(count: int, index: int, *, idles: bool = False) -> list[int]:
    """Return the select bits with which a cascade passes a given input.

    A cascade is a chain of LUTs. Its select bits are not the binary number of the input: they
    control the stages directly.

    Parameters
    ----------
    count : int
        Number of inputs.
    index : int
        The input to pass, from 0.
    idles : bool
        True for a cascade that passes 0 when all select bits are 0.

    Returns
    -------
    list of int
        The bits y, x, z1, z2, ..: with x = 1, the first stage passes one of its two inputs; with
        zk = 1, stage k behind it does. In each case y says which input passes. The bit x is absent
        for fewer than four inputs, unless the cascade idles.

    Examples
    --------
    The select bits of each of four inputs, and of two inputs if 0 can be passed, too.

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
    """Return the select bits of an input as one number, the first bit of `select_bits` lowest.

    Parameters
    ----------
    count, index
        The same as in `select_bits`.

    Examples
    --------
    >>> select_code(4, 2)
    4
    """
    return sum(bit << k for k, bit in enumerate(select_bits(count, index)))


def plain_cascade(
    inputs: Sequence[Value],
    bits: Sequence[Value],
    width: int,
    keep: Keep,
    *,
    idles: bool = False,
) -> Value:
    """Return the input that the select bits choose, as the output of a chain of 4-input LUTs.

    Parameters
    ----------
    inputs : list of Value
        The input words, at least one.
    bits : list of Value
        The select bits, in the order of `select_bits`.
    width : int
        Bits of a word.
    keep : function of Value -> Value
        Marks the output of a stage to be kept by synthesis.
    idles : bool
        True if the cascade must pass 0 when all select bits are 0. It then needs two inputs or
        more.
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
    """Return the output of further stages of a cascade, behind its output `f`.

    Each stage passes `f`, or one of two more inputs if its select bit is 1.

    Parameters
    ----------
    f : Value
        The output of the stages in front.
    inputs : sequence of Value
        The input words of the further stages, two for each; the last stage may have a single one.
    bits : sequence of Value
        The select bit of each further stage.
    keep : function of Value -> Value
        Marks the output of a stage to be kept by synthesis.
    """
    for z, even, odd in zip(bits, inputs[::2], [*inputs[1::2], None], strict=False):
        f = keep(f)
        chosen = even if odd is None else (f & odd) | (~f & even)
        f = Mux(z, chosen, f)
    return f


def make_keeper(m: Module, width: int) -> Keep:
    """Return a function that marks a value to be kept by synthesis, as a signal of its own.

    Simulation gains too: a signal is evaluated once, an expression at each of its uses.

    Parameters
    ----------
    m : Module
        The module that takes the signals.
    width : int
        Bits of a value.
    """

    def keep_value(value: Value) -> Value:
        kept = Signal(width, name="stage", attrs={"keep": 1})
        m.d.comb += kept.eq(value)
        return kept

    return keep_value


def branch_sizes(count: int) -> tuple[int, ...]:
    """Return the number of inputs of each branch of a multiplexer with `count` inputs.

    Two branches select in parallel, and the last input is in no branch. A single number means that
    there are no branches.

    Examples
    --------
    Five inputs are two branches of two inputs each, and the last input.

    >>> [branch_sizes(count) for count in (4, 5, 6, 7, 8, 9, 15)]
    [(4,), (2, 2), (6,), (4, 2), (4, 3), (4, 4), (8, 6)]
    """
    if count < 5 or count == 6:
        return (count,)
    first = 2 * ((count + 1) // 4)
    return first, count - 1 - first


def branched_lut_count(count: int) -> int:
    """Return the number of 4-input LUTs per bit of a multiplexer with branches and `count` inputs.

    Examples
    --------
    >>> [branched_lut_count(count) for count in (1, 2, 5, 8, 9, 15)]
    [0, 1, 3, 5, 5, 9]
    """
    sizes = branch_sizes(count)
    return lut_count(count) if len(sizes) == 1 else sum(map(branched_lut_count, sizes)) + 1


def branched_select_bits(count: int, index: int, *, idles: bool = False) -> list[int]:
    """Return the select bits with which a multiplexer with branches passes a given input.

    Two branches select in parallel. The last input is in no branch.

    Parameters
    ----------
    count, index, idles
        The same as in `select_bits`.

    Returns
    -------
    list of int
        The select bits of the first branch, those of the second branch, and a bit that selects the
        last input. Without branches, the result of `select_bits`.

    Examples
    --------
    Five inputs are two branches of two inputs, with two bits each, and the last input.

    >>> [branched_select_bits(5, index) for index in range(5)]
    [[0, 1, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]]
    """
    sizes = branch_sizes(count)
    if len(sizes) == 1:
        return select_bits(count, index, idles=idles)
    bits: list[int] = []
    for size in sizes:
        inside = 0 <= index < size
        bits += [bit * inside for bit in branched_select_bits(size, index % size, idles=True)]
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
    """Return the input that the select bits choose, by two branches that select in parallel.

    Parameters
    ----------
    bits : sequence of Value
        The select bits, in the order of `branched_select_bits`.
    inputs, width, keep, idles
        The same as in `plain_cascade`.
    """
    sizes = branch_sizes(len(inputs))
    if len(sizes) == 1:
        return plain_cascade(inputs, bits, width, keep, idles=idles)
    passed, at, bit = [], 0, 0
    for size in sizes:
        used = len(branched_select_bits(size, 0, idles=True))
        of_branch = inputs[at : at + size], bits[bit : bit + used]
        passed.append(keep(branched_cascade(*of_branch, width, keep, idles=True)))
        at, bit = at + size, bit + used
    return Mux(bits[-1], inputs[-1], passed[0] | passed[1])


#: Bits of a word that share one copy of the select registers. Why: a small fan-out makes a fast
#: clock.
SLICE_BITS = 16

#: The multiplexer of a slice is a module from this number of inputs on. With two inputs synthesis
#: finds one LUT for each bit without help.
LEAST_INPUTS = 3

#: If an input is a constant, a multiplexer is a module from this number of inputs on. With fewer
#: inputs, synthesis makes smaller logic if it sees the constant. With more inputs, it makes larger
#: logic than the cells of a device could.
LEAST_INPUTS_WITH_CONSTANT = 4


@dataclass(frozen=True)
class Multiplexer:
    """A multiplexer of words: its logic, and the Verilog modules that it is made of.

    Parameters
    ----------
    count : int
        Number of inputs.
    width : int
        Bits of a word.
    branched : bool
        True for two branches that select in parallel (faster), controlled by
        `branched_select_bits`. False for one chain of LUTs, controlled by `select_bits`.

    Examples
    --------
    >>> Multiplexer(7, 16, branched=True).shared_module.name
    'branches_7_16'
    """

    count: int
    width: int
    branched: bool

    @property
    def select_codes(self) -> list[list[int]]:
        """Select bits of each input, in the encoding of the multiplexer."""
        encode = branched_select_bits if self.branched else select_bits
        return [encode(self.count, index) for index in range(self.count)]

    @property
    def select_bits(self) -> int:
        """Number of select bits in the encoding of the multiplexer."""
        return len(self.select_codes[0])

    def add_logic(
        self, m: Module, inputs: Sequence[Value], select: Value | Sequence[Value]
    ) -> Value:
        """Return the word that the select bits choose, and add the logic to a module.

        Synthesis is told to keep each LUT as a signal of its own.

        Parameters
        ----------
        m : Module
            The module that takes the logic.
        inputs : sequence of Value
            The input words.
        select : Value or sequence of Value
            The select bits, in the cycle of the words.
        """
        form = branched_cascade if self.branched else plain_cascade
        return form(inputs, [*select], self.width, make_keeper(m, self.width))[: self.width]

    def add_instance(
        self, m: Module, inputs: Sequence[Value], select: Value, name: str | None
    ) -> Value:
        """Return the word that the select bits choose, from an instance of `shared_module`.

        Parameters
        ----------
        m, inputs
            The same as in `add_logic`.
        select : Value
            The select bits, in the cycle of the words.
        name : str or None
            The name of the instance. None adds the logic itself.
        """
        if name is None:
            return self.add_logic(m, inputs, select)
        word = Signal(self.width, name=f"{name}_word")
        m.submodules[name] = SharedInstance(
            self.shared_module, i_words=Cat(*inputs), i_select=select, o_word=word
        )
        return word

    @property
    def shared_module(self) -> SharedModule:
        """The module with the logic of the multiplexer, without registers."""
        name, form = (
            ("branches", "two branches") if self.branched else ("cascade", "a chain of stages")
        )
        about = f"One of {self.count} words, in {form} of look-up tables."
        return self._make_module(name, about, self.add_logic, self)

    @property
    def selector_module(self) -> SharedModule:
        """The module of the multiplexer with registers of the select bits.

        Each slice, of up to `SLICE_BITS` bits of the word, has such a register. The select bits at
        the input of the module must come one cycle before the words.

        Examples
        --------
        >>> Multiplexer(7, 64, branched=True).selector_module.name
        'selector_7_64'
        """
        logic = lambda m, inputs, select: _multiplex_slices(
            m, inputs, select, self.width, branched=self.branched
        )
        about = f"One of {self.count} words; each slice of it holds its select bits."
        name = "selector" if self.branched else "selector_cascade"
        return self._make_module(name, about, logic, Selector(self) if self.count > 2 else None)

    def _make_module(
        self, name: str, about: str, logic: Callable[..., Value], shape: object = None
    ) -> SharedModule:
        """Return a module with the logic of a function, such as ``cascade_4_16``.

        The inputs are `words` (first word lowest) and `select`, and the output is `word`. `logic`
        is a function of (Module, list of words, select bits) that returns the word. The name of the
        module is `name` with the number of words and their bits. `about` describes the module in
        one line, and `shape` is the key for hand-written forms of the module.
        """

        def fill_module(m: Module, words: Value, select: Value, word: Value) -> None:
            inputs = [words[k : k + self.width] for k in range(0, len(words), self.width)]
            m.d.comb += word.eq(logic(m, inputs, select))

        widths = {"words": self.count * self.width, "select": self.select_bits, "word": self.width}
        return SharedModule(f"{name}_{self.count}_{self.width}", about, widths, fill_module, shape)


@dataclass(frozen=True)
class Selector:
    """A multiplexer with registers of its select bits: the key for hand-written forms of it."""

    multiplexer: Multiplexer


def add_multiplexer(
    m: Module,
    inputs: Sequence[Value],
    select: Value,
    width: int,
    *,
    name: str | None,
    branched: bool = False,
    small: bool = False,
) -> Value:
    """Add a multiplexer, and return the selected word (0 if there are no inputs).

    Parameters
    ----------
    m : Module
        The module that the multiplexer becomes a part of.
    inputs : sequence of Value
        The input words.
    select : Value
        The select bits. If `name` is given, they come one cycle ahead of the words, and the
        multiplexer has a register for them. Otherwise they come in the cycle of the words.
    width : int
        Bits of a word.
    name : str or None
        The name of the instance, if Verilog is emitted. None for simulation, which gets the logic
        without modules or registers.
    branched : bool
        True for two branches that select in parallel, False for one chain of LUTs.
    small : bool
        True to prefer few LUTs to a fast clock, on all devices.
    """
    if not inputs:
        return Const(0, width)
    if len(inputs) == 1:
        return inputs[0][:width]
    meant = Multiplexer(len(inputs), width, branched)
    if name is None:
        return meant.add_logic(m, inputs, select)
    constant = any(isinstance(word, Const) for word in inputs)
    if small or (constant and len(inputs) < LEAST_INPUTS_WITH_CONSTANT):
        return _multiplex_slices(
            m, inputs, select, width, branched=branched, name=name, small=small
        )
    word = Signal(width, name=f"{name}_word")
    words = Cat(*(each[:width] for each in inputs))
    m.submodules[name] = SharedInstance(
        meant.selector_module, i_clk=ClockSignal(), i_words=words, i_select=select, o_word=word
    )
    return word


def _multiplex_slices(
    m: Module,
    inputs: Sequence[Value],
    select: Value,
    width: int,
    *,
    branched: bool,
    name: str = "slice",
    small: bool = False,
) -> Value:
    """Return the word that a multiplexer selects, slice by slice.

    Each slice of up to `SLICE_BITS` bits has a register of the select bits, because a register with
    a small fan-out is faster. `width` is the number of bits of each of the words `inputs`. The
    names of the signals and instances of slice k begin with `name` and k. `branched` is True for
    two branches that select in parallel, and `small` to prefer few LUTs to a fast clock.
    """
    passed: list[Value] = []
    constant = any(isinstance(word, Const) for word in inputs)
    shared = not (small or constant) and len(inputs) >= LEAST_INPUTS
    slices = register_select_slices(m, select, width, name=name)
    for k, ((low, high), bits) in enumerate(
        zip(slice_bounds(width, len(slices)), slices, strict=True)
    ):
        cut = [word[low:high] for word in inputs]
        meant = Multiplexer(len(inputs), high - low, branched)
        passed.append(meant.add_instance(m, cut, Cat(*bits), f"{name}_{k}" if shared else None))
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
    """Return the output of the second half of a cascade, behind a pipeline register.

    A cascade is a chain of stages. Each stage passes the output of the stage before it, or one of
    two more words.

    Parameters
    ----------
    m : Module
        The module that the further stages become a part of.
    held : Value
        The output of the first stages, from the pipeline register.
    words : sequence of Value
        The input words of the stages behind the register, two for each stage; may be empty.
    select : Value
        The select bits of these stages, one cycle ahead of `held` and `words`.
    name : str
        The prefix of the names of the select registers.
    sliced : bool
        True for a register of the select bits for each slice of `SLICE_BITS` bits; False for one
        register.
    """
    width = len(held)
    slices = register_select_slices(m, select, width if sliced else 1, name=name)
    passed = []
    for (low, high), bits in zip(slice_bounds(width, len(slices)), slices, strict=True):
        inputs = [word[low:high] for word in words]
        passed.append(extended_cascade(held[low:high], inputs, bits, make_keeper(m, high - low)))
    return Cat(*passed)


def register_select_slices(m: Module, select: Value, width: int, *, name: str) -> list[list[Value]]:
    """Return copies of the select bits, one cycle later: a list for each slice of a word.

    Each slice, of up to `SLICE_BITS` bits, has registers of its own.

    Parameters
    ----------
    m : Module
        The module that takes the registers.
    select : Value
        The select bits.
    width : int
        Bits of the word.
    name : str
        The beginning of the names of the registers.
    """
    return [
        [*unmerged_register(m, select, name=f"{name}_{k}_select")]
        for k in range(-(-width // SLICE_BITS))
    ]


def slice_bounds(width: int, count: int) -> list[tuple[int, int]]:
    """Return the first bit of each slice of a word, and the bit after its last.

    All slices but the last have the same number of bits.

    Parameters
    ----------
    width : int
        Bits of the word.
    count : int
        Number of slices.

    Examples
    --------
    A word of 19 bits is cut into bits 0 to 9 and bits 10 to 18.

    >>> slice_bounds(19, 2)
    [(0, 10), (10, 19)]
    """
    size = -(-width // count)
    return [(low, min(low + size, width)) for low in range(0, width, size)]
