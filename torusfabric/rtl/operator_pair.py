"""Operators as modules of their own in the text: what combines two words, and what changes none.

A proof of the text takes them for what they are, words for words, and proves them by themselves;
synthesis sees through them. For a simulator there are no such modules.
"""

from amaranth.hdl import Const, Elaboratable, Module, Signal, Value

from .operator_unit import OperatorUnit

__all__ = ["NEUTRAL_WORD", "PAIR", "add_neutral", "add_pair"]

#: What the names of their instances begin with.
PAIR, NEUTRAL_WORD = "operator", "neutral"


class _Pair(Elaboratable):
    """Combines two words, or has the word that changes nothing.

    Parameters
    ----------
    unit : OperatorUnit
    width : int
    neutral : bool
    """

    def __init__(self, unit: OperatorUnit, width: int, *, neutral: bool) -> None:
        self._unit, self._neutral = unit, neutral
        self.a, self.b, self.result = (Signal(width, name=name) for name in ("a", "b", "result"))
        self.code: Value = Signal(unit.bits, name="code") if unit.bits else Const(0, 0)

    def elaborate(self, platform: object) -> Module:
        m, width = Module(), len(self.result)
        if self._neutral:
            result = self._unit.identity(self.code, width)
        else:
            result = self._unit.combine(m, self.a, self.b, self.code, width)
        m.d.comb += self.result.eq(result)
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
    m.submodules[f"{PAIR}_{name}"] = pair = _Pair(unit, len(a), neutral=False)
    m.d.comb += [pair.a.eq(a), pair.b.eq(b)]
    _give_code(m, pair, code)
    return pair.result


def add_neutral(m: Module, unit: OperatorUnit, code: Value, width: int, *, alone: bool) -> Value:
    """The word that changes nothing.

    Parameters
    ----------
    m, unit, code
        As for `add_pair`.
    width : int
    alone : bool
        Whether the text of the module is written.
    """
    if not alone:
        return unit.identity(code, width)
    m.submodules[NEUTRAL_WORD] = word = _Pair(unit, width, neutral=True)
    _give_code(m, word, code)
    return word.result


def _give_code(m: Module, pair: _Pair, code: Value) -> None:
    """Drive the control bits, if there are any."""
    if isinstance(pair.code, Signal):
        m.d.comb += pair.code.eq(code)
