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

from dataclasses import dataclass

import numpy as np
from amaranth.hdl import Const, Mux, Signal

__all__ = ["Crossbar", "Output", "cascade", "crossbar_words", "keeper",
           "plan_crossbar"]  # fmt: skip


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
    kinds : tuple
        The kind of each select register, as given to `plan_crossbar`.
    """

    outputs: tuple[Output, ...]
    rom: np.ndarray
    kinds: tuple = ()

    @property
    def rows(self):
        """The ROM as integers, one a setting; bit k is select register k."""
        weights = [1 << k for k in range(self.rom.shape[1])]
        return [sum(w for w, bit in zip(weights, row, strict=True) if bit) for row in self.rom]

    @property
    def luts_per_bit(self):
        """4-input look-up tables for each bit of the width, over all out-ports."""
        return sum(lut_count(len(out.sources)) for out in self.outputs)


def lut_count(count):
    """4-input look-up tables a bit for so many inputs."""
    return (count + 1) // 2 if count > 1 else 0


def bit_count(count):
    """Select bits for so many inputs."""
    return min(count - 1, 1) + int(count >= 4) + (count - 1) // 2 if count else 0


def select_bits(count, place):
    """The select bits that make one of so many inputs pass.

    Returns
    -------
    list of int
        y, x, z1, z2, ..; x is left out where no further pair needs it.
    """
    if count == 1:
        return []
    stages = (count - 1) // 2
    bits = [place % 2] + ([int(place < 2)] if count >= 4 else [])
    return bits + [int(place // 2 == stage) for stage in range(1, stages + 1)]


def plan_crossbar(select, kinds=None):
    """The crossbar of a router class.

    Parameters
    ----------
    select : ndarray of int, shape (settings, ports)
        What feeds each out-port in each setting; negative where it does not matter.
    kinds : sequence, optional
        Of each out-port: only those of the same kind share select registers.

    Returns
    -------
    Crossbar
    """
    registers: list[np.ndarray] = []
    of_kind: list = []
    outputs = []
    kinds = [0] * select.shape[1] if kinds is None else list(kinds)
    for kind, column in zip(kinds, select.T, strict=True):
        sources = tuple(sorted({int(s) for s in column if s >= 0}))
        count, width = len(sources), bit_count(len(sources))
        rows = [
            select_bits(count, sources.index(s)) if s >= 0 else [-1] * width
            for s in column.tolist()
        ]
        wanted = np.array(rows, np.int8).reshape(len(rows), width)
        bits = tuple(_share(registers, of_kind, kind, wanted[:, k]) for k in range(width))
        outputs.append(Output(sources, bits))
    rom = np.stack(registers, axis=1) if registers else np.zeros((len(select), 0), np.int8)
    return Crossbar(tuple(outputs), np.maximum(rom, 0), tuple(of_kind))


def _share(registers, kinds, kind, wanted):
    """The first register of a kind that can serve a column of select bits (-1: does not matter)."""
    for k, column in enumerate(registers):
        if kinds[k] == kind and not ((column != wanted) & (column >= 0) & (wanted >= 0)).any():
            registers[k] = np.where(column >= 0, column, wanted)
            return k
    registers.append(wanted)
    kinds.append(kind)
    return len(registers) - 1


def cascade(inputs, bits, width, keep=lambda value: value):
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
    for z, even, odd in zip(bits, inputs[2::2], [*inputs[3::2], None], strict=False):
        f = keep(f)
        chosen = even if odd is None else (f & odd) | (~f & even)
        f = Mux(z, chosen, f)
    return f


def crossbar_words(m, crossbar, words, select, width, *, keep):
    """What each out-port of a crossbar passes on.

    Parameters
    ----------
    m : Module
    crossbar : Crossbar
    words : list of Value
        Its inputs.
    select : Value
        Its select registers.
    width : int
    keep : bool
        Whether synthesis has to keep the stages; for a simulator they are only more signals.

    Returns
    -------
    list of Value
        0 for an out-port without inputs.
    """
    marks = [keeper(m, width)] if keep else []
    passed = []
    for output in crossbar.outputs:
        inputs = [words[source] for source in output.sources]
        bits = [select[bit] for bit in output.bits]
        word = cascade(inputs, bits, width, *marks) if inputs else Const(0, width)
        passed.append(word[:width])
    return passed


def keeper(m, width):
    """Makes a function that marks values to be kept by synthesis."""

    def keep(value):
        kept = Signal(width, name="stage", attrs={"keep": 1})
        m.d.comb += kept.eq(value)
        return kept

    return keep
