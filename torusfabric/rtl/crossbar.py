"""The crossbar of a router: only the inputs that its settings use, in the cheapest form.

An out-port with k inputs is a cascade of ceil(k / 2) stages a bit, each one 4-input look-up table::

    f = x ? (y ? s1 : s0) : y           first stage
    f = z ? (f ? odd : even) : f        one for each further pair
    f = z ? s : f                       a single last input

With x = 0 the first stage passes the constant y down to the pair that z selects. Left alone,
synthesis sees through a cascade and builds a tree that costs up to twice as much. So the stages are
marked to be kept, and x is never the same signal as a z: it is high for the first pair.

What an idle out-port carries does not matter, and select bits that may always be equal are one
register.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from ..topology import IntArray
from .apart import apart

__all__ = [
    "Crossbar",
    "Output",
    "bit_count",
    "cascade",
    "crossbar_words",
    "extended_cascade",
    "keeper",
    "lut_count",
    "plan_crossbar",
    "select_bits",
    "select_code",
    "select_registers",
    "sliced_cascade",
]

#: Marks a value to be kept by synthesis.
Keep: TypeAlias = Callable[[Value], Value]

#: Of each out-port, the select registers of each slice of its word, lowest slice first.
Selects: TypeAlias = Sequence[Sequence[Sequence[Value]]]

#: By how many cycles something changes later, in each mode; None where nobody looks.
Skew: TypeAlias = tuple[int | None, ...]

#: Bits of a word that share a copy of the select registers: few loads make a fast clock.
SLICE = 16


@dataclass(frozen=True)
class Output:
    """One out-port.

    Parameters
    ----------
    sources : tuple of int
        The inputs it can select: in-ports, and injection ports counted from their number on.
    bits : tuple of int
        The select register of each select bit, in the order of `select_bits`.
    """

    sources: tuple[int, ...]
    bits: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Crossbar:
    """A crossbar, and the values of its select registers.

    Parameters
    ----------
    outputs : tuple of Output
        One for each out-port.
    rom : ndarray of int8, shape (settings, select registers)
        The value of each select register for each setting.
    skews : tuple of Skew
        Of each select register: by how many cycles it changes later than others, in each mode;
        None where nobody looks.
    """

    outputs: tuple[Output, ...]
    rom: IntArray
    skews: tuple[Skew, ...] = ()

    @property
    def rows(self) -> list[int]:
        """The ROM as integers, one a setting; bit k is select register k."""
        weights = [1 << k for k in range(self.rom.shape[1])]
        return [sum(w for w, bit in zip(weights, row, strict=True) if bit) for row in self.rom]

    @property
    def luts_per_bit(self) -> int:
        """4-input look-up tables for each bit of the width, over all out-ports."""
        return sum(lut_count(len(out.sources)) for out in self.outputs)


def lut_count(count: int) -> int:
    """4-input look-up tables a bit for so many inputs."""
    return (count + 1) // 2 if count > 1 else 0


def bit_count(count: int) -> int:
    """Select bits for so many inputs."""
    return min(count - 1, 1) + int(count >= 4) + (count - 1) // 2 if count else 0


def select_bits(count: int, index: int) -> list[int]:
    """The select bits that make one of so many inputs pass.

    Returns
    -------
    list of int
        y, x, z1, z2, ..; x is left out where no further pair needs it.

    Examples
    --------
    >>> [select_bits(4, index) for index in range(4)]
    [[0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1]]
    """
    if count == 1:
        return []
    stages = (count - 1) // 2
    bits = [index % 2] + ([int(index < 2)] if count >= 4 else [])
    return bits + [int(index // 2 == stage) for stage in range(1, stages + 1)]


def select_code(count: int, index: int) -> int:
    """The select bits of `select_bits` as a number.

    Examples
    --------
    >>> select_code(4, 2)
    4
    """
    return sum(bit << k for k, bit in enumerate(select_bits(count, index)))


def plan_crossbar(select: IntArray, skews: Sequence[Skew] | None = None) -> Crossbar:
    """The crossbar of a router class.

    Parameters
    ----------
    select : ndarray of int, shape (settings, ports)
        What feeds each out-port in each setting; negative where it does not matter.
    skews : sequence of Skew, optional
        By how many cycles each out-port changes later than others in each mode; only those that
        change at once share select registers.

    Returns
    -------
    Crossbar

    Examples
    --------
    Out-port 0 always passes on in-port 1 and is made of wires; out-port 1 selects.

    >>> crossbar = plan_crossbar(np.array([[1, 0], [1, 2]]))
    >>> [output.sources for output in crossbar.outputs], crossbar.rom.tolist()
    ([(1,), (0, 2)], [[0], [1]])
    """
    registers: list[IntArray] = []
    skew_of: list[Skew] = []
    outputs = []
    skews = [(0,)] * select.shape[1] if skews is None else list(skews)
    for skew, column in zip(skews, select.T, strict=True):
        sources = tuple(sorted({int(s) for s in column if s >= 0}))
        count, width = len(sources), bit_count(len(sources))
        rows = [
            select_bits(count, sources.index(s)) if s >= 0 else [-1] * width
            for s in column.tolist()
        ]
        wanted = np.array(rows, np.int8).reshape(len(rows), width)
        bits = tuple(_share(registers, skew_of, skew, wanted[:, k]) for k in range(width))
        outputs.append(Output(sources, bits))
    rom = np.stack(registers, axis=1) if registers else np.zeros((len(select), 0), np.int8)
    return Crossbar(tuple(outputs), np.maximum(rom, 0), tuple(skew_of))


def _share(registers: list[IntArray], skews: list[Skew], skew: Skew, wanted: IntArray) -> int:
    """The first register of a skew that can serve a column of select bits (-1: does not matter)."""
    for k, column in enumerate(registers):
        if skews[k] == skew and not ((column != wanted) & (column >= 0) & (wanted >= 0)).any():
            registers[k] = np.where(column >= 0, column, wanted)
            return k
    registers.append(wanted)
    skews.append(skew)
    return len(registers) - 1


def cascade(
    inputs: Sequence[Value], bits: Sequence[Value], width: int, keep: Keep = lambda value: value
) -> Value:
    """The value of an out-port.

    Parameters
    ----------
    inputs : list of Value
        At least one.
    bits : list of Value
        The select bits, as `select_bits` gives them.
    width : int
    keep : function of Value -> Value
        Marks a stage to be kept by synthesis.
    """
    if len(inputs) == 1:
        return inputs[0]
    y, *bits = bits
    f = Mux(y, inputs[1], inputs[0])
    if len(inputs) >= 4:
        x, *bits = bits
        f = Mux(x, f, Mux(y, (1 << width) - 1, 0))
    return extended_cascade(f, inputs[2:], bits, keep)


def extended_cascade(
    f: Value, inputs: Sequence[Value], bits: Sequence[Value], keep: Keep = lambda value: value
) -> Value:
    """The stages of a cascade that follow its first stages: each takes a pair of inputs."""
    for z, even, odd in zip(bits, inputs[::2], [*inputs[1::2], None], strict=False):
        f = keep(f)
        chosen = even if odd is None else (f & odd) | (~f & even)
        f = Mux(z, chosen, f)
    return f


def crossbar_words(
    m: Module,
    crossbar: Crossbar,
    words: Sequence[Value],
    selects: Selects,
    width: int,
    *,
    keep: bool,
) -> list[Value]:
    """What each out-port of a crossbar passes on.

    Parameters
    ----------
    m : Module
    crossbar : Crossbar
    words : list of Value
        Its inputs.
    selects : sequence of (sequence of (sequence of Value))
        Of each out-port, its select registers, for each slice of the word, as `select_registers`
        makes them.
    width : int
    keep : bool
        Whether synthesis has to keep the stages; for a simulator they are only more signals.

    Returns
    -------
    list of Value
        0 for an out-port without inputs.
    """
    passed = []
    for output, slices in zip(crossbar.outputs, selects, strict=True):
        inputs = [words[source] for source in output.sources]
        passed.append(sliced_cascade(m, inputs, slices, width, keep=keep))
    return passed


def select_registers(
    m: Module, outputs: Sequence[Output], early: Sequence[Value], width: int, *, alone: bool
) -> list[list[list[Value]]]:
    """The select registers of a crossbar, given what they hold a cycle early.

    Parameters
    ----------
    m : Module
    outputs : sequence of Output
    early : sequence of Value
        By the numbers of the registers.
    width : int
        Bits of a word.
    alone : bool
        Whether the text of a module is written: then every slice of a word of every out-port has a
        copy of its own. For a simulator there is one.

    Returns
    -------
    list of (list of (list of Value))
        Of each out-port, its select bits, for each slice of the word.
    """
    if not alone:
        held = [*apart(m, Cat(*early), name="select_here", alone=False)] if early else []
        return [[[held[bit] for bit in output.bits]] for output in outputs]
    return [
        [
            [*apart(m, Cat(*(early[bit] for bit in output.bits)), name=f"select_{port}_{k}",
                    alone=True)]
            if output.bits else []
            for k in range(-(-width // SLICE))
        ]
        for port, output in enumerate(outputs)
    ]  # fmt: skip


def sliced_cascade(
    m: Module,
    inputs: Sequence[Value],
    slices: Sequence[Sequence[Value]],
    width: int,
    *,
    keep: bool,
) -> Value:
    """A cascade whose select bits are there once for each slice of the word; 0 of no inputs."""
    if not inputs:
        return Const(0, width)
    if len(inputs) == 1:
        return inputs[0][:width]
    size = -(-width // len(slices))
    parts = []
    for k, bits in enumerate(slices):
        low, high = k * size, min((k + 1) * size, width)
        marks = [keeper(m, high - low)] if keep else []
        cut = inputs if len(slices) == 1 else [word[low:high] for word in inputs]
        parts.append(cascade(cut, bits, high - low, *marks)[: high - low])
    return parts[0] if len(parts) == 1 else Cat(*parts)


def keeper(m: Module, width: int) -> Keep:
    """A function that marks values to be kept by synthesis."""

    def keep(value: Value) -> Value:
        kept = Signal(width, name="stage", attrs={"keep": 1})
        m.d.comb += kept.eq(value)
        return kept

    return keep
