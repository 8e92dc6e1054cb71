"""The operator unit: one piece of logic for all operators among which a run chooses.

A few *control bits* say what it does. Minima and maxima, signed or not, share a comparator; with
`and` and `or` they share what passes on the bits of one word, of the other, or of both. A control
that is the same for all operators is a constant, and those that can be the same, or each other's
opposite, are one bit: two operators seldom need more than one. The adder stays apart from the
comparator, for an adder that also subtracts takes as much for turning over one of the words. Any
other operator has its own hardware, beside what is shared, and a control that selects its result.

All results come as late as those of the slowest operator.

The control bits are sampled with the start and are in every node `program.timing.DISTRIBUTION`
cycles later. The first word comes after `SETTING` cycles, so that no run has to wait for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from amaranth.hdl import Cat, ClockSignal, Const, Module, Mux, ResetSignal, Signal, Value

from ..collective import ADD, OPERATORS, SIGNED, Operator
from ..program.timing import DISTRIBUTION, SETTING
from .memories import address_width
from .modules import SharedModule, Use, delayed
from .multiplexer import keeper

__all__ = ["OperatorUnit", "add_pair", "operator_pair"]

assert DISTRIBUTION <= SETTING, "control bits come before the words that they concern"

#: What a control bit is for an operator; None where it does not matter.
Bit = bool | None


class _Control(NamedTuple):
    """Where a control bit comes from.

    Parameters
    ----------
    column : int or None
        The bit of the code; None for a constant.
    flipped : bool
        Whether it is the opposite; the constant itself.
    """

    column: int | None
    flipped: bool


@dataclass(frozen=True)
class OperatorUnit:
    """The operators of a fabric, and how its hardware combines words by the one that is chosen.

    Parameters
    ----------
    operators : tuple of Operator
        At least one.

    Examples
    --------
    >>> unit = OperatorUnit((Operator.parse("add"), Operator.parse("max")))
    >>> unit.bits, unit.codes
    (1, (1, 0))
    """

    operators: tuple[Operator, ...]

    @property
    def choice_bits(self) -> int:
        """Bits of the number of an operator."""
        return address_width(len(self.operators))

    @property
    def bits(self) -> int:
        """Control bits; none for a single operator."""
        return len(self._planned[1])

    @property
    def codes(self) -> tuple[int, ...]:
        """The control bits of each operator."""
        columns = self._planned[1]
        return tuple(
            sum(bool(column[k]) << bit for bit, column in enumerate(columns))
            for k in range(len(self.operators))
        )

    @cached_property
    def _planned(self) -> tuple[dict[str, _Control], list[list[Bit]]]:
        """Where each control comes from, and what each control bit is for each operator."""
        wanted = [self._wanted(operator) for operator in self.operators]
        columns: list[list[Bit]] = []
        controls = {name: _placed([w[name] for w in wanted], columns) for name in wanted[0]}
        return controls, columns

    def _wanted(self, operator: Operator) -> dict[str, Bit]:
        """What the controls are for an operator: of what is shared, and of those apart."""
        shared = _SHARED.get(operator.name, dict.fromkeys(_CONTROLS))
        return shared | {other.name: other == operator for other in self._apart}

    @property
    def _apart(self) -> list[Operator]:
        """The operators with hardware of their own."""
        return [operator for operator in self.operators if operator.name not in _SHARED]

    @property
    def _shared(self) -> set[str]:
        """The names of the others, signed or not."""
        names = {operator.name for operator in self.operators} & _SHARED.keys()
        return {name.removesuffix(":signed") for name in names}

    @property
    def adds(self) -> bool:
        """Whether it does nothing but add."""
        return self.operators == (ADD,)

    @property
    def latency(self) -> int:
        """Cycles from two words to their result."""
        return max(operator.latency for operator in self.operators)

    def _control(self, name: str, code: Value) -> Value:
        """A control, given the control bits of the run."""
        column, flipped = self._planned[0][name]
        if column is None:
            return Const(int(flipped), 1)
        return ~code[column] if flipped else code[column]

    def identity_bits(self, width: int) -> int:
        """Control bits on which the word that changes nothing depends; none if it is a constant."""
        same = len({operator.identity(width) for operator in self.operators}) == 1
        return 0 if same else self.bits

    def identity(self, code: Value, width: int) -> Value:
        """The word that changes nothing; a constant where all operators have the same."""
        if not self.identity_bits(width):
            return Const(self.operators[0].identity(width), width)
        low, high = self._control("low", code), self._control("high", code)
        word: Value = Cat(*[low] * (width - 1), high)
        for operator in self._apart:
            word = Mux(self._control(operator.name, code), operator.identity(width), word)
        return word[:width]

    def combine(self, m: Module, a: Value, b: Value, code: Value, width: int) -> Value:
        """What the chosen operator makes of two words, given its control bits.

        It is there `latency` cycles after the words, if the control bits still are.
        """
        if len(self.operators) == 1:
            return self.operators[0].hardware(m, a, b)[:width]
        result = delayed(m, self._combined(m, a, b, code, width), self.latency)
        for operator in self._apart:
            own = operator.hardware(m, a, b)[:width]
            own = delayed(m, own, self.latency - operator.latency)
            result = Mux(self._control(operator.name, code), own, result)
        return result

    def _combined(self, m: Module, a: Value, b: Value, code: Value, width: int) -> Value:
        """What the operators make that share hardware; nothing if there are none."""
        names, alone = self._shared, [each for each in self.operators if each.name in _SHARED]
        if len(alone) == 1:
            return alone[0].hardware(m, a, b)
        result: Value = Const(0, width)
        if names - {"add", "xor"}:
            result = self._passed(m, a, b, code, width)
        if "xor" in names:
            passes = bool(names - {"add", "xor"})
            result = self._parity(m, a, b, result, code, width) if passes else a ^ b
        if "add" in names:
            total = (a + b)[:width]
            result = Mux(self._control("add", code), total, result) if names != {"add"} else total
        return result

    def _parity(
        self, m: Module, a: Value, b: Value, passed: Value, code: Value, width: int
    ) -> Value:
        """What bits are not equal, or what is passed on.

        Synthesis keeps what is before and after it where that is a look-up table of its own.
        """
        names, keep = self._shared, keeper(m, width)
        if names & {"min", "max"}:
            passed = keep(passed)
        result = Mux(self._control("parity", code), a ^ b, passed)
        return keep(result) if "add" in names else result

    def _passed(self, m: Module, a: Value, b: Value, code: Value, width: int) -> Value:
        """The greater or smaller of two words, or what their bits have in common or together."""
        names = self._shared
        most = self._control("most", code)
        if not names & {"min", "max"}:
            return Mux(most, a | b, a & b)
        # Turning the highest bits over puts two's complement in the order of plain numbers.
        sign = Cat(Const(0, width - 1), self._control("signed", code))
        above = (a ^ sign) >= (b ^ sign)
        first = Signal(name="first")
        compare = self._control("compare", code)
        m.d.comb += first.eq(Mux(compare, above == most, most))
        if not names & {"and", "or"}:
            return Mux(first, a, b)
        second = first ^ compare
        return (a & b) | Mux(first, a, 0) | Mux(second, b, 0)


def _controls(operator: Operator) -> dict[str, Bit]:
    """What the controls of what is shared are for an operator.

    `add` and `parity` select a sum and an `xor`; `signed`, `compare` and `most` say how bits are
    passed on; `low` and `high` are the lower bits and the highest one of the word that changes
    nothing.
    """
    name = operator.name.removesuffix(":signed")
    compares = name in ("min", "max")
    passes = compares or name in ("and", "or")
    identity = operator.identity(2)
    return {
        "add": name == "add",
        "parity": None if name == "add" else name == "xor",
        "signed": operator.signed if compares else None,
        "compare": compares if passes else None,
        "most": name in ("max", "or") if passes else None,
        "low": bool(identity & 1),
        "high": bool(identity >> 1),
    }


#: The operators that share hardware, and what its controls are for each.
_SHARED = {name: _controls(Operator.parse(name)) for name in (*OPERATORS, *SIGNED)}

#: The names of those controls.
_CONTROLS = tuple(_SHARED[ADD.name])


def _placed(wanted: Sequence[Bit], columns: list[list[Bit]]) -> _Control:
    """A constant, or the first control bit that can serve; one is added if there is none."""
    if len({*wanted} - {None}) < 2:
        return _Control(None, flipped=True in wanted)
    for number, column in enumerate(columns):
        for flipped in (False, True):
            bits = [bit if bit is None else bit != flipped for bit in wanted]
            if all(None in pair or pair[0] == pair[1] for pair in zip(column, bits, strict=True)):
                columns[number] = [c if b is None else b for c, b in zip(column, bits, strict=True)]
                return _Control(number, flipped)
    columns.append([*wanted])
    return _Control(len(columns) - 1, flipped=False)


def operator_pair(unit: OperatorUnit, width: int) -> SharedModule:
    """A module that combines two words."""

    def fill(m: Module, a: Value, b: Value, *ports: Value) -> None:
        *code, result = ports
        chosen = code[0] if code else Const(0, 0)
        m.d.comb += result.eq(unit.combine(m, a, b, chosen, width))

    return SharedModule(
        f"operator_{width}",
        "What the operator of a run makes of two words.",
        {"a": width, "b": width, "code": unit.bits, "result": width},
        fill,
        clocked=unit.latency > 0,
    )


def add_pair(
    m: Module, unit: OperatorUnit, words: tuple[Value, Value], code: Value, *, name: str | None
) -> Value:
    """What the chosen operator makes of two words.

    Parameters
    ----------
    code : Value
        The control bits of the operator.
    name : str or None
        Of the instance; None where the text is of no matter.
    """
    a, b = words
    if name is None:
        return unit.combine(m, a, b, code, len(a))
    pair, result = operator_pair(unit, len(a)), Signal(len(a), name=f"combined_{name}")
    inputs = {"i_a": a, "i_b": b} | ({"i_code": code} if unit.bits else {})
    if pair.clocked:
        inputs |= {"i_clk": ClockSignal(), "i_rst": ResetSignal(allow_reset_less=True)}
    m.submodules[f"operator_{name}"] = Use(pair, **inputs, o_result=result)
    return result
