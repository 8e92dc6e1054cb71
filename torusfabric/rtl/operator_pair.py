"""Operators as modules of their own in the text: what combines two words.

A proof of the text takes them for what they are, words for words, and proves them by themselves;
synthesis sees through them. For a simulator there are no such modules.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from amaranth.hdl import ClockSignal, Const, Module, ResetSignal, Signal, Value

from .modules import SharedModule, Use
from .operator_unit import OperatorUnit

__all__ = ["OperatorPair", "add_pair"]


@dataclass(frozen=True)
class OperatorPair(SharedModule):
    """Combines two words."""

    unit: OperatorUnit
    width: int

    @property
    def name(self) -> str:
        """Its name."""
        return f"operator_{self.width}"

    @property
    def about(self) -> str:
        """What it is."""
        return "What the operator of a run makes of two words."

    @property
    def clocked(self) -> bool:
        """Whether operators have registers."""
        return self.unit.latency > 0

    def ports(self) -> list[Signal]:
        """Two words, the control bits of the operator if there are any, and the result."""
        code = [Signal(self.unit.bits, name="code")] if self.unit.bits else []
        words = [Signal(self.width, name=name) for name in ("a", "b")]
        return [*words, *code, Signal(self.width, name="result")]

    def module(self, ports: Sequence[Signal]) -> Module:
        """What is inside."""
        m = Module()
        a, b, *code, result = ports
        chosen = code[0] if code else Const(0, 0)
        m.d.comb += result.eq(self.unit.combine(m, a, b, chosen, self.width))
        return m


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
    pair, result = OperatorPair(unit, len(a)), Signal(len(a), name=f"combined_{name}")
    inputs = {"i_a": a, "i_b": b} | ({"i_code": code} if unit.bits else {})
    if pair.clocked:
        inputs |= {"i_clk": ClockSignal(), "i_rst": ResetSignal(allow_reset_less=True)}
    m.submodules[f"operator_{name}"] = Use(pair, **inputs, o_result=result)
    return result
