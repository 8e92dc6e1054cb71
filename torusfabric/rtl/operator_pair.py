"""Operators as modules of their own in the text: what combines two words.

A proof of the text takes them for what they are, words for words, and proves them by themselves;
synthesis sees through them. For a simulator there are no such modules.
"""

from amaranth.hdl import Const, Elaboratable, Module, Signal, Value

from .operator_unit import OperatorUnit

__all__ = ["PAIR", "add_pair"]

#: What the names of their instances begin with.
PAIR = "operator"


class _Pair(Elaboratable):
    """Combines two words.

    Parameters
    ----------
    unit : OperatorUnit
    width : int
    """

    def __init__(self, unit: OperatorUnit, width: int) -> None:
        self._unit = unit
        self.a, self.b, self.result = (Signal(width, name=name) for name in ("a", "b", "result"))
        self.code: Value = Signal(unit.bits, name="code") if unit.bits else Const(0, 0)

    def elaborate(self, platform: object) -> Module:
        m, width = Module(), len(self.result)
        m.d.comb += self.result.eq(self._unit.combine(m, self.a, self.b, self.code, width))
        return m


def add_pair(
    m: Module, unit: OperatorUnit, words: tuple[Value, Value], code: Value, *, name: str | None
) -> Value:
    """What the chosen operator makes of two words.

    Parameters
    ----------
    m : Module
    unit : OperatorUnit
    words : (Value, Value)
    code : Value
        The control bits of the operator.
    name : str or None
        Of the instance; None where the text is of no matter.
    """
    a, b = words
    if name is None:
        return unit.combine(m, a, b, code, len(a))
    m.submodules[f"{PAIR}_{name}"] = pair = _Pair(unit, len(a))
    m.d.comb += [pair.a.eq(a), pair.b.eq(b)]
    if isinstance(pair.code, Signal):
        m.d.comb += pair.code.eq(code)
    return pair.result
