"""What is asserted of routers and of the operators behind in-ports, at their real width.

The program says which source feeds an out-port in a row; the select bits that stand for a source
are the fabric's own affair. So the bits are taken from the plan of the fabric as a claim, and it is
asserted that with these bits exactly this source passes, for all words, at all times. That a run
gives the bits that the program's rows ask for is proved apart, of the whole (`runs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..rtl.cascade import branch_bits
from .harness import HarnessText

if TYPE_CHECKING:
    from ..collective import Operator
    from ..rtl.crossbar import Crossbar
    from ..rtl.operator_unit import OperatorUnit
    from ..rtl.placement import RouterPlan

__all__ = ["Words", "combiner_harness", "router_harness", "unit_harness"]

#: Cycles from the select bits at the inputs to what they select at the outputs.
LATENCY = 2


@dataclass(frozen=True)
class Words:
    """The words among which a crossbar selects.

    Parameters
    ----------
    ports : int
        In-ports.
    delayed : tuple of int
        The in-ports with a register behind them.
    injections : int
        Words of injection ports, results before them included.
    width : int
        Bits of a word.
    """

    ports: int
    delayed: tuple[int, ...]
    injections: int
    width: int


def router_harness(name: str, router: RouterPlan, words: Words) -> HarnessText:
    """What is asserted of a router.

    Parameters
    ----------
    name : str
        Of the module.
    router : RouterPlan
        Claims which select bits stand for which source.
    words : Words
    """
    text = HarnessText(name)
    text.input("enable", 1)
    text.input("rx", words.ports * words.width)
    if words.injections:
        text.input("inject", words.injections * words.width)
    early = _early(text, router)
    text.output("tx", words.ports * words.width)
    sources = [text.word("rx", port, words.width, ago=1) for port in range(words.ports)]
    # A second register holds the word of the cycle before, while words advance.
    sources += [text.word("rx", port, words.width, ago=2) for port in words.delayed]
    sources += [text.word("inject", k, words.width, ago=1) for k in range(words.injections)]
    held = text.past(early, max(len(router.bits), 1), ago=LATENCY)
    advancing = text.past("enable", 1, ago=2)
    later = {words.ports + k for k in range(len(words.delayed))}
    for port, output in enumerate(router.crossbar.outputs):
        shown = text.word("tx", port, words.width)
        text.claim(
            f"tx_{port}_waits_while_not_enabled",
            f"{advancing} || {shown} == {text.word('tx', port, words.width, ago=1)}",
            ago=2,
        )
        for number, source in enumerate(output.sources):
            chosen = _selected(held, output.bits, branch_bits(len(output.sources), number))
            # The second register holds that word if words advanced the cycle before, too.
            before = [text.past("enable", 1, ago=3)] if source in later else []
            conditions = " && ".join([advancing, *before, *chosen])
            text.claim(
                f"tx_{port}_passes_source_{source}",
                f"!({conditions}) || {shown} == {sources[source]}",
                ago=3,
            )
    return text


def _early(text: HarnessText, router: RouterPlan) -> str:
    """What the select registers will hold: bits of the sequencer, or of the table, or of either."""
    columns = router.columns
    if columns:
        text.input("select", len(columns))
    if router.row_bits:
        text.input("setting", router.row_bits)
    bits = []
    for bit in router.bits:
        terms = [] if bit.column is None else [f"select[{columns.index(bit.column)}]"]
        terms += [] if bit.start is None else [f"setting[{bit.start}]"]
        bits.append("(" + " | ".join(terms) + ")")
    return "{" + ", ".join(reversed(bits)) + "}" if bits else "1'b0"


def _selected(held: str, registers: Sequence[int], bits: Sequence[int]) -> list[str]:
    """That select registers hold some bits."""
    return [f"{held}[{k}] == 1'b{bit}" for k, bit in zip(registers, bits, strict=True)]


def combiner_harness(
    name: str, crossbar: Crossbar, unit: OperatorUnit, words: Words
) -> HarnessText:
    """What is asserted of the operators behind in-ports: of each operator, for all words.

    Parameters
    ----------
    name : str
        Of the module.
    crossbar : Crossbar
        Claims which select bits stand for which operand.
    unit : OperatorUnit
        Claims which control bits stand for which operator.
    words : Words
        Those of in-ports that have a second register are those of results.
    """
    text, width = HarnessText(name), words.width
    text.input("enable", 1)
    text.input("rx", words.ports * width)
    if words.injections:
        text.input("inject", words.injections * width)
    if crossbar.rom.shape[1]:
        text.input("select", crossbar.rom.shape[1])
    if unit.bits:
        text.input("operator_code", unit.bits)
    results = words.ports + len(words.delayed)
    text.output("result", results * width)
    advancing = text.past("enable", 1, ago=2)
    for port in range(results):
        shown = text.word("result", port, width)
        before = text.word("result", port, width, ago=1)
        text.claim(
            f"result_{port}_waits_while_not_enabled", f"{advancing} || {shown} == {before}", ago=2
        )
    for k, port in enumerate(words.delayed):
        shown = text.word("result", words.ports + k, width)
        before = text.word("result", port, width, ago=1)
        text.claim(
            f"result_{words.ports + k}_is_that_of_the_cycle_before",
            f"!{advancing} || {shown} == {before}",
            ago=2,
        )
    for code, operator in zip(unit.codes, unit.operators, strict=True):
        _add_results(text, crossbar, words, operator, code if unit.bits else None)
    return text


def _add_results(
    text: HarnessText, crossbar: Crossbar, words: Words, operator: Operator, code: int | None
) -> None:
    """Assert what an operator makes of each operand."""
    width, results = words.width, words.ports + len(words.delayed)
    operands = [text.word("result", k, width, ago=1) for k in range(results)]
    operands += [text.word("inject", k, width, ago=1) for k in range(words.injections)]
    operands.append(f"{width}'d{operator.identity(width)}")
    assert operator.proof is not None  # `prove` sees to that
    conditions = [text.past("enable", 1, ago=2)]
    if code is not None:
        chosen = text.past("operator_code", code.bit_length() or 1, ago=LATENCY)
        conditions.append(f"{chosen} == {code}")
    select = text.past("select", 1, ago=LATENCY) if crossbar.rom.shape[1] else ""
    for port, output in enumerate(crossbar.outputs):
        arriving = text.word("rx", port, width, ago=1)
        for number, source in enumerate(output.sources):
            bits = branch_bits(len(output.sources), number)
            selected = _selected(select, output.bits, bits) if bits else []
            wanted = operator.proof(arriving, operands[source], width)
            text.claim(
                f"result_{port}_is_{operator.label}_with_{source}",
                f"!({' && '.join(conditions + selected)}) || "
                f"{text.word('result', port, width)} == {wanted}",
                ago=2,
            )


def unit_harness(name: str, unit: OperatorUnit, width: int) -> HarnessText:
    """What is asserted of a module of operators: of each operator, for all words.

    Parameters
    ----------
    name : str
    unit : OperatorUnit
        Claims which control bits stand for which operator.
    width : int
        Bits of a word.
    """
    text = HarnessText(name)
    for word in ("a", "b"):
        text.input(word, width)
    if unit.bits:
        text.input("code", unit.bits)
    text.output("result", width)
    for code, operator in zip(unit.codes, unit.operators, strict=True):
        assert operator.proof is not None
        wanted = operator.proof("a", "b", width)
        chosen = f"code == {code}" if unit.bits else "1'b1"
        text.claim(f"result_is_{operator.label}", f"!({chosen}) || result == {wanted}", ago=0)
    return text
