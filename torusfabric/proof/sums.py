"""Sums of words, whatever the operator: which words went into each, and how often.

All operators are commutative and associative, so that a sum is known by what went into it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..rtl.placement import combiner_name
from ..topology import IntArray
from .gates import Bit, GateText
from .symbols import STANDS, UNKNOWN, multiplexed

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..rtl.placement import Placement, RouterPlan

__all__ = ["SLICE", "Adder", "Operand", "Sums", "adders"]

#: The bit of each word that is carried out.
SLICE = 0

#: The bit of the word that changes nothing; it has the number of no other word.
NEUTRAL = 2 * STANDS


@dataclass
class Sums:
    """Numbers of words and of sums of words.

    Parameters
    ----------
    words : int
        Words with numbers from 0 on; those of sums follow.
    neutral : ndarray of int, shape (runs,), optional
        What all bits are of the word that changes nothing in each run.

    Examples
    --------
    >>> sums = Sums(words=4)
    >>> sums.of([0, 1]), sums.of([1, 0]), sums.of([2])
    (4, 4, 2)
    >>> sums.added(4, 2) == sums.of([2, 1, 0])
    True
    """

    words: int
    neutral: IntArray | None = None
    _parts: list[tuple[int, ...]] = field(default_factory=list)
    _known: dict[tuple[int, ...], int] = field(default_factory=dict)

    def of(self, words: Sequence[int]) -> int:
        """The number of a sum of words."""
        key = tuple(sorted(words))
        if len(key) == 1:
            return key[0]
        if key not in self._known:
            self._known[key] = self.words + len(self._parts)
            self._parts.append(key)
        return self._known[key]

    def parts(self, number: int) -> tuple[int, ...]:
        """The words that went into a sum."""
        return (number,) if number < self.words else self._parts[number - self.words]

    def added(self, a: int, b: int) -> int:
        """The sum of two words or sums."""
        return self.of(self.parts(a) + self.parts(b))

    def combined_bits(self, a: IntArray, b: IntArray) -> IntArray:
        """The sums of words of which either may be the one that changes nothing in its run.

        That all bits of such a word are alike follows from the structure of what gives them.

        Parameters
        ----------
        a, b : ndarray of int, shape (words, instances and runs)
        """
        if self.neutral is None:
            return self.added_bits(a, b)
        neutral = np.tile(self.neutral, a.shape[1] // len(self.neutral))
        a, b = (np.where(word == neutral, NEUTRAL, word) for word in (a, b))
        return self.added_bits(a, b)

    def added_bits(self, a: IntArray, b: IntArray) -> IntArray:
        """The sums of words, each shown by one of its bits."""
        result = np.where(a == NEUTRAL, b, np.where(b == NEUTRAL, a, UNKNOWN)).astype(np.int32)
        there = (a > 1) & (b > 1) & (a % 2 == 0) & (b % 2 == 0)
        # What registers hold at rest is no word of a message.
        there &= np.maximum(a, b) < 2 * (self.words + len(self._parts)) + 2
        pairs = np.stack([a[there], b[there]])
        if pairs.size:
            unique, inverse = np.unique(pairs, axis=1, return_inverse=True)
            sums = [2 * self.added((x - 2) // 2, (y - 2) // 2) + 2 for x, y in unique.T.tolist()]
            result[there] = np.array(sums, np.int32)[inverse.ravel()]
        return result


@dataclass(frozen=True)
class Operand:
    """What an in-port's words can be combined with.

    Parameters
    ----------
    source : int
        A result, then an injection port; one beyond both is the word that changes nothing.
    registers, bits : tuple of int
        The select registers, and what they hold then.
    """

    source: int
    registers: tuple[int, ...]
    bits: tuple[int, ...]


@dataclass
class Adder:
    """The operators behind in-ports, as they are proved to be.

    Parameters
    ----------
    operands : tuple of (tuple of Operand)
        Of each in-port.
    delayed : tuple of int
        The in-ports whose results have a second register.
    made : bool
        Whether what is made is given away before it is in a register.
    slice_of : int
        Which bit of words is shown.
    codes : tuple of int
        The control bits of each operator; empty where there are none.
    """

    operands: tuple[tuple[Operand, ...], ...]
    delayed: tuple[int, ...]
    injections: int
    width: int
    slice_of: int
    sums: Sums
    codes: tuple[int, ...] = ()
    made: bool = False
    _code: IntArray = field(default_factory=lambda: np.zeros(0, int))
    _at: dict[str, IntArray] = field(default_factory=dict)
    _shape: tuple[int, int] = (0, 0)

    @property
    def results(self) -> int:
        """Results, those of second registers included."""
        return len(self.operands) + len(self.delayed)

    def place(self, names: list[str], text: GateText, net: Callable[[Bit], int]) -> None:
        """Find the nets of all instances."""
        pins = [text.instances[name].pins for name in names]
        self._shape = len(names), 1
        for port in pins[0]:
            if port in ("clk", "rst"):
                continue
            bits = range(len(pins[0][port]))
            if port in ("rx", "inject", "result", "made"):
                bits = range(self.slice_of, len(pins[0][port]), self.width)
            self._at[port] = np.array([[net(p[port][k]) for p in pins] for k in bits], np.intp)

    def prepare(self, runs: int) -> None:
        """Get ready for so many runs at once."""
        self._shape = self._shape[0], runs
        self._code = np.zeros(runs, int)

    def choose(self, operations: Sequence[int]) -> None:
        """Choose the operator of each run."""
        if self.codes:
            self._code = np.array([self.codes[number] for number in operations])

    def unknown(self) -> IntArray:
        """A state of which nothing is known: select bits, code, enable, results."""
        rows = len(self._at.get("select", ())) + len(self._at.get("operator_code", ()))
        return np.full((rows + 1 + self.results, *self._shape), UNKNOWN, np.int32)

    def show(self, state: IntArray, nets: IntArray) -> None:
        """Drive the nets of results."""
        nets[self._at["result"]] = state[-self.results :]

    @property
    def needs(self) -> IntArray:
        """The nets on which what is made depends."""
        ports = [self._at[port].ravel() for port in ("rx", "inject") if port in self._at]
        return np.concatenate(ports)

    @property
    def gives(self) -> IntArray:
        """The nets of what is made; none where that is not given away."""
        return self._at["made"].ravel() if self.made else np.zeros(0, int)

    def make(self, state: IntArray, nets: IntArray) -> None:
        """Drive the nets of what is made."""
        nets[self._at["made"]] = np.stack(self._made(state, nets))

    def after(self, state: IntArray, nets: IntArray) -> IntArray:
        """The state after the next edge."""
        given = [nets[self._at[p]] for p in ("select", "operator_code") if p in self._at]
        enable = nets[self._at["enable"]]
        return np.concatenate([*given, enable, self._results(state, nets)])

    def _results(self, state: IntArray, nets: IntArray) -> IntArray:
        """The results after the next edge."""
        enable, old = state[-1 - self.results], state[-self.results :]
        made = self._made(state, nets)
        results = [multiplexed(enable, old[port], word) for port, word in enumerate(made)]
        for k, port in enumerate(self.delayed):
            before = old[len(self.operands) + k]
            results.append(multiplexed(enable, before, old[port]))
        return np.stack(results)

    def _made(self, state: IntArray, nets: IntArray) -> list[IntArray]:
        """What operators make in a cycle."""
        selects = len(self._at.get("select", ()))
        select, code = state[:selects], state[selects : -1 - self.results]
        old, arriving = state[-self.results :], nets[self._at["rx"]]
        injected = [nets[self._at["inject"]]] if "inject" in self._at else []
        # With what is only made nothing is combined.
        placeholders = [arriving] if self.made else []
        words = np.concatenate([old, *placeholders, *injected])
        right = np.ones(self._shape, bool)
        for k, bit in enumerate(code):
            right &= bit == (self._code >> k & 1)
        results = []
        for port, operands in enumerate(self.operands):
            made: IntArray = np.full(self._shape, UNKNOWN, np.int32)
            for operand in operands:
                here = right.copy()
                for register, bit in zip(operand.registers, operand.bits, strict=True):
                    here &= select[register] == bit
                if operand.source == len(words):
                    result = arriving[port]
                else:
                    result = self.sums.combined_bits(arriving[port], words[operand.source])
                made = np.where(here, result, made)
            results.append(made)
        return results


def adders(fabric: Fabric, placement: Placement, sums: Sums) -> dict[str, Adder]:
    """The operators behind in-ports, as `routers` has them proved to be."""
    return {
        fabric.prefix + combiner_name(placement, number): _adder(fabric, plan, sums)
        for number, plan in enumerate(placement.operands)
    }


def _adder(fabric: Fabric, plan: RouterPlan, sums: Sums) -> Adder:
    """The operators of a shape."""
    sources, crossbar = fabric.program.loop.sources, plan.crossbar
    operands = tuple(
        tuple(
            Operand(source, output.bits, tuple(output.code(k)))
            for k, source in enumerate(output.sources)
        )
        for output in crossbar.outputs
    )
    unit = fabric.operator_unit
    assert unit is not None  # what adds has one
    codes = unit.codes if unit.bits else ()
    count = plan.word_count
    return Adder(
        operands, sources.delayed_results, count, fabric.width, SLICE, sums, codes, sources.made
    )
