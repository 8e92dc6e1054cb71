"""The operator unit: the logic that combines two words, by the operator that a run chooses.

Built-in operators share hardware:

- Minimum and maximum, signed or unsigned, share a comparator.
- Minimum, maximum, `and` and `or` share the multiplexer behind the comparator, which passes the
  bits of one word, of the other, or of both.
- `add` has its own adder. Why: a comparator that also adds would need to invert one of the words,
  which takes as many LUTs as the adder.
- `xor` is combined with the result of the others by a multiplexer.

Any other operator has its own hardware and a multiplexer behind the shared logic. All results are
delayed to the latency of the slowest operator.

The logic is controlled by named *controls*, such as ``add`` and ``signed``. For a given set of
operators, most controls need no signal: a control with the same value for all operators is a
constant, and controls that are equal or opposite for all operators share one *control bit*. Two
operators seldom need more than one control bit.

Control bits are sampled with the start of a run, and arrive at all nodes
`program.timing.DISTRIBUTION` cycles later. The first word arrives after `SETTING` cycles, so that
no run has to wait for the control bits.
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
from .modules import SharedInstance, SharedModule, delay_value
from .multiplexer import make_keeper

__all__ = ["OperatorUnit", "add_operator", "make_pair_module"]

assert DISTRIBUTION <= SETTING, "control bits come before the words that they concern"

#: The value of a control for an operator; None if it does not matter.
Bit = bool | None


class _Control(NamedTuple):
    """The driver of a control, a signal such as ``signed`` that configures the operators' logic.

    The driver is a constant, or one of the control bits that are sent to all nodes, perhaps
    inverted.

    Parameters
    ----------
    column : int or None
        The number of the control bit; None for a constant.
    flipped : bool
        True if the control is the inverted bit. For a constant, its value.
    """

    column: int | None
    flipped: bool


@dataclass(frozen=True)
class OperatorUnit:
    """The operators of a fabric, and the logic that combines words by one of them.

    Parameters
    ----------
    operators : tuple of Operator
        The operators that a run can choose, at least one.

    Examples
    --------
    A single control bit distinguishes the two operators: 1 for `add`, 0 for `max`.

    >>> unit = OperatorUnit((Operator.parse("add"), Operator.parse("max")))
    >>> unit.n_control_bits, unit.operator_codes
    (1, (1, 0))
    """

    operators: tuple[Operator, ...]

    @property
    def choice_bits(self) -> int:
        """Width of the input ``operation``, the number of the operator that a run chooses."""
        return address_width(len(self.operators))

    @property
    def n_control_bits(self) -> int:
        """Number of bits that tell the logic which operator to execute; 0 for a single operator."""
        return len(self._control_plan[1])

    @property
    def operator_codes(self) -> tuple[int, ...]:
        """The value of all control bits, as a number, for each of `operators`."""
        columns = self._control_plan[1]
        return tuple(
            sum(bool(column[k]) << bit for bit, column in enumerate(columns))
            for k in range(len(self.operators))
        )

    @cached_property
    def _control_plan(self) -> tuple[dict[str, _Control], list[list[Bit]]]:
        """The driver of each control, by its name, and the values of each control bit.

        A *control* is a signal that configures the logic, such as ``signed``. A *control bit* is
        sent to all nodes, and drives one control or several. Its values are a list with an entry
        for each operator, None where the bit does not matter. For `add` and `max` the plan is
        ``({"add": _Control(0, False), ..}, [[True, False]])``: control bit 0 drives the control
        ``add``, and is 1 for `add` and 0 for `max`.
        """
        wanted = [self._control_values(operator) for operator in self.operators]
        columns: list[list[Bit]] = []
        controls = {name: _place_control([w[name] for w in wanted], columns) for name in wanted[0]}
        return controls, columns

    def _control_values(self, operator: Operator) -> dict[str, Bit]:
        """Return the value of each control for an operator: ``{"add": True, "signed": None, ..}``.

        A control is a signal that configures the logic. It is None if it does not matter. Operators
        that do not share hardware have a control each, which selects their result.
        """
        shared = _SHARED.get(operator.name, dict.fromkeys(_CONTROLS))
        return shared | {other.name: other == operator for other in self._separate_operators}

    @property
    def _separate_operators(self) -> list[Operator]:
        """The operators with hardware of their own: those that are not built in."""
        return [operator for operator in self.operators if operator.name not in _SHARED]

    @property
    def _shared_names(self) -> set[str]:
        """The names of the operators that share hardware; ``max:signed`` counts as ``max``."""
        names = {operator.name for operator in self.operators} & _SHARED.keys()
        return {name.removesuffix(":signed") for name in names}

    @property
    def is_sum(self) -> bool:
        """True if the only operator is the sum."""
        return self.operators == (ADD,)

    @property
    def latency(self) -> int:
        """Cycles from two words to their result."""
        return max(operator.latency for operator in self.operators)

    def _control_value(self, name: str, code: Value) -> Value:
        """Return the signal of the control `name`, such as ``signed``, which configures the logic.

        `code` has the control bits of the run.
        """
        column, flipped = self._control_plan[0][name]
        if column is None:
            return Const(int(flipped), 1)
        return ~code[column] if flipped else code[column]

    def identity_bits(self, width: int) -> int:
        """Return the number of control bits that the logic of `identity_word` needs.

        It is 0 if all operators have the same identity word, the word that leaves their result
        unchanged. The word is then a constant.

        Parameters
        ----------
        width : int
            Bits of a word.
        """
        same = len({operator.identity(width) for operator in self.operators}) == 1
        return 0 if same else self.n_control_bits

    def identity_word(self, code: Value, width: int) -> Value:
        """Return the word that does not change the result of the run's operator: 0 for `add`.

        It is a constant if all operators have the same.

        Parameters
        ----------
        code : Value
            The control bits of the run.
        width : int
            Bits of a word.
        """
        if not self.identity_bits(width):
            return Const(self.operators[0].identity(width), width)
        low, high = self._control_value("low", code), self._control_value("high", code)
        word: Value = Cat(*[low] * (width - 1), high)
        for operator in self._separate_operators:
            word = Mux(self._control_value(operator.name, code), operator.identity(width), word)
        return word[:width]

    def combine(self, m: Module, a: Value, b: Value, code: Value, width: int) -> Value:
        """Return the result of the chosen operator, `latency` cycles after the words.

        Parameters
        ----------
        m : Module
            The module that takes the logic.
        a, b : Value
            The words.
        code : Value
            The control bits of the run, which must not change until the result.
        width : int
            Bits of a word.
        """
        if len(self.operators) == 1:
            return self.operators[0].hardware(m, a, b)[:width]
        result: Value | None = None
        if self._shared_names:
            result = delay_value(m, self._combine_shared(m, a, b, code, width), self.latency)
        for operator in self._separate_operators:
            own = operator.hardware(m, a, b)[:width]
            own = delay_value(m, own, self.latency - operator.latency)
            chosen = self._control_value(operator.name, code)
            result = own if result is None else Mux(chosen, own, result)
        assert result is not None
        return result

    def _combine_shared(self, m: Module, a: Value, b: Value, code: Value, width: int) -> Value:
        """Return the result for `a` and `b`, if the run's operator shares hardware with others.

        Operators such as `add` and `max` share hardware. The unit has at least one of them. The
        words have `width` bits, and `code` has the control bits of the run.
        """
        names, alone = self._shared_names, [each for each in self.operators if each.name in _SHARED]
        if len(alone) == 1:
            return alone[0].hardware(m, a, b)
        result: Value = Const(0, width)
        if names - {"add", "xor"}:
            result = self._choose_or_mask(m, a, b, code, width)
        if "xor" in names:
            passes = bool(names - {"add", "xor"})
            result = self._xor_or_pass(m, a, b, result, code, width) if passes else a ^ b
        if "add" in names:
            total = (a + b)[:width]
            result = (
                Mux(self._control_value("add", code), total, result) if names != {"add"} else total
            )
        return result

    def _xor_or_pass(
        self, m: Module, a: Value, b: Value, passed: Value, code: Value, width: int
    ) -> Value:
        """Return the exclusive or of `a` and `b` if the operator is `xor`, otherwise `passed`.

        The words have `width` bits, and `code` has the control bits of the run. Signals are marked
        to be kept by synthesis, so that this logic is one LUT per bit.
        """
        names, keep = self._shared_names, make_keeper(m, width)
        if names & {"min", "max"}:
            passed = keep(passed)
        result = Mux(self._control_value("parity", code), a ^ b, passed)
        return keep(result) if "add" in names else result

    def _choose_or_mask(self, m: Module, a: Value, b: Value, code: Value, width: int) -> Value:
        """Return the maximum, minimum, bitwise and, or bitwise or of `a` and `b`.

        The words have `width` bits, and `code` has the control bits of the run.
        """
        names = self._shared_names
        most = self._control_value("most", code)
        if not names & {"min", "max"}:
            return Mux(most, a | b, a & b)
        # Inverting the highest bits maps the order of two's complement to the unsigned order.
        sign = Cat(Const(0, width - 1), self._control_value("signed", code))
        above = (a ^ sign) >= (b ^ sign)
        first = Signal(name="first")
        compare = self._control_value("compare", code)
        m.d.comb += first.eq(Mux(compare, above == most, most))
        if not names & {"and", "or"}:
            return Mux(first, a, b)
        second = first ^ compare
        return (a & b) | Mux(first, a, 0) | Mux(second, b, 0)


def _shared_controls(operator: Operator) -> dict[str, Bit]:
    """Return the value of each control for an operator that shares hardware with others.

    A control is a signal that configures the shared hardware. Its value is None if it does not
    matter. The controls and their meaning when True:

    ========== =================================================================
    `add`      select the sum
    `parity`   select the exclusive or
    `signed`   compare as signed numbers
    `compare`  pass the maximum or minimum, rather than a bitwise operation
    `most`     maximum or `or`, rather than minimum or `and`
    `low`      the lower bits of the identity word, which are all equal
    `high`     the highest bit of the identity word
    ========== =================================================================
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


#: The controls of the shared hardware, for each operator that shares hardware.
_SHARED = {name: _shared_controls(Operator.parse(name)) for name in (*OPERATORS, *SIGNED)}

#: The names of the controls of the shared hardware.
_CONTROLS = tuple(_SHARED[ADD.name])


def _place_control(wanted: Sequence[Bit], columns: list[list[Bit]]) -> _Control:
    """Return the driver of a control: a constant, or a control bit, perhaps inverted.

    ``wanted[k]`` is the value of the control for operator k, None if it does not matter.
    ``columns[c][k]`` is the value of control bit c for operator k. If no control bit has the right
    values, one is added to `columns`.
    """
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


def make_pair_module(unit: OperatorUnit, width: int) -> SharedModule:
    """Return the Verilog module that combines two words by the operators of a unit.

    The module is written once, and each place that combines words has an instance of it.

    Parameters
    ----------
    unit : OperatorUnit
        The operators that a run chooses from.
    width : int
        Bits of a word.
    """

    def fill_module(m: Module, a: Value, b: Value, *ports: Value) -> None:
        *code, result = ports
        chosen = code[0] if code else Const(0, 0)
        m.d.comb += result.eq(unit.combine(m, a, b, chosen, width))

    return SharedModule(
        f"operator_{width}",
        "What the operator of a run makes of two words.",
        {"a": width, "b": width, "code": unit.n_control_bits, "result": width},
        fill_module,
        clocked=unit.latency > 0,
    )


def add_operator(
    m: Module, unit: OperatorUnit, words: tuple[Value, Value], code: Value, *, name: str | None
) -> Value:
    """Add an operator, and return its result for two words.

    Parameters
    ----------
    m : Module
        The module that takes the operator.
    unit : OperatorUnit
        The logic to add.
    words : tuple of (Value, Value)
        The two words.
    code : Value
        The control bits of the run.
    name : str or None
        The name of the instance, if Verilog is emitted. None for simulation, which gets the logic
        without a module.
    """
    a, b = words
    if name is None:
        return unit.combine(m, a, b, code, len(a))
    pair, result = make_pair_module(unit, len(a)), Signal(len(a), name=f"combined_{name}")
    inputs = {"i_a": a, "i_b": b} | ({"i_code": code} if unit.n_control_bits else {})
    if pair.clocked:
        inputs |= {"i_clk": ClockSignal(), "i_rst": ResetSignal(allow_reset_less=True)}
    m.submodules[f"operator_{name}"] = SharedInstance(pair, **inputs, o_result=result)
    return result
