"""Routers by themselves: all words that out-ports can select, whether or not any run does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ..rtl.core.part import NEUTRAL_WORD, Choice
from ..rtl.core.places import Place
from ..rtl.core.router import Router
from ..rtl.netlist import Role
from .gate_program import GateProgram
from .report import refuted
from .symbols import UNKNOWN, word

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..rtl.placement import RouterPlan
    from ..rtl.router import Output
    from .gates import GateModule, GateText

__all__ = ["check_routers"]


#: Values of inputs, by their name and bit.
InputBits: TypeAlias = dict[tuple[str, int], int]


class _Selection(NamedTuple):
    """A word that an out-port can select.

    Parameters
    ----------
    port : int
        The out-port.
    source : str
        What the word is, for messages.
    bits : dict
        The select bits that stand for it.
    word : (str, int) or None
        The input that has it, and its place there; None for the word that changes nothing.
    late : bool
        True for the word of the cycle before.
    """

    port: int
    source: str
    bits: InputBits
    word: tuple[str, int] | None
    late: bool = False


def check_routers(fabric: Fabric, text: GateText) -> int:
    """Check, and count, the words of out-ports of all routers, and that out-ports keep them."""
    count = 0
    for name, selections in _selections(fabric):
        module = text.modules.get(fabric.prefix + name)
        if module is not None:  # a part of a fabric may have no such node
            count += _check_selections(fabric, module, [*selections])
            count += _check_waits(module) if "enable" in module.inputs else 0
    return count


def _selections(fabric: Fabric) -> Iterator[tuple[str, Iterator[_Selection]]]:
    """Yield the modules of routers, and what their out-ports can select."""
    if fabric.core is None:
        for number, plan in enumerate(fabric.placement.routers):
            yield f"router_{number}", _of_plan(fabric, plan)
        return
    for name, make in fabric.netlist.modules.items():
        if fabric.netlist.roles.get(name) is Role.ROUTER:
            router = make()
            assert isinstance(router, Router)
            yield name, _of_core(router)


def _of_core(router: Router) -> Iterator[_Selection]:
    """Yield what the out-ports of a router of a core can select."""
    ports = router.word_count("rx")
    for port, choice in enumerate(router.choices):
        if choice is None:
            continue
        idle = (NEUTRAL_WORD,) * choice.idles
        for number, chosen in enumerate(choice.words + idle):
            bits = _bits_of_choice(choice, number)
            if bits is not None:
                arrives = chosen.position < ports
                place = ("rx" if arrives else "inject", chosen.position - ports * (not arrives))
                source = None if chosen == NEUTRAL_WORD else place
                yield _Selection(port, f"{number} of its words", bits, source, chosen.late)


def _bits_of_choice(choice: Choice, number: int) -> InputBits | None:
    """Return the select bits for an input of a multiplexer; None if the tables never have them."""
    found: InputBits = {}
    for bit, value in zip(choice.bits, choice.code(number), strict=True):
        if bit.place is Place.CONSTANT:
            if bit.number != value:
                return None
            continue
        name = "columns" if bit.place is Place.COLUMN else f"table_{bit.table}"
        if found.setdefault((name, bit.number), value) != value:
            return None
    return found


def _of_plan(fabric: Fabric, plan: RouterPlan) -> Iterator[_Selection]:
    """Yield what the out-ports of a router can select that is not one of a core."""
    delayed, outputs = fabric.program.loop.sources.delayed, plan.crossbar.outputs
    injected = len(outputs) + len(delayed)
    for port, output in enumerate(outputs):
        for number, source in enumerate(output.sources):
            bits, late = _select_bits(plan, output, number), False
            place: tuple[str, int] | None = None
            if source < len(outputs):
                place = "rx", source
            elif source < injected:
                place, late = ("rx", delayed[source - len(outputs)]), True
            elif source < injected + plan.word_count:
                place = "inject", source - injected
            if bits is not None:
                yield _Selection(port, str(source), bits, place, late)


def _check_selections(fabric: Fabric, module: GateModule, selections: list[_Selection]) -> int:
    """Check that words of out-ports are those for which the select bits stand.

    Of the inputs, only those are known on which a word depends, each in one cycle: the select bits,
    the operator and the enable in cycle 1, the word in cycle 2. A word that passes the register
    behind an in-port comes in cycle 1, with the enable also in cycle 0.
    """
    width, unit = fabric.width, fabric.operator_unit
    codes = dict(zip(unit.codes, unit.operators, strict=True)) if unit else {0: None}
    cases = [(selection, code) for selection in selections for code in codes]
    program = GateProgram(module, {"tx": [*range(len(module.outputs["tx"]))]})
    given = [
        {name: np.full((len(bits), len(cases)), UNKNOWN, np.int32)
         for name, bits in module.inputs.items()}
        for _ in range(3)
    ]  # fmt: skip
    before, early, now = given
    if "enable" in early:
        early["enable"][:] = 1
    letters = word(np.arange(width, dtype=np.int32))
    wanted = np.tile(letters[:, None], len(cases))
    for k, (selection, code) in enumerate(cases):
        for (name, row), bit in selection.bits.items():
            early[name][row, k] = bit
        if "operator_code" in early:
            early["operator_code"][:, k] = code >> np.arange(len(early["operator_code"])) & 1
        if selection.word is None:
            operator = codes[code]
            identity = operator.identity(width) if operator else 0
            wanted[:, k] = identity >> np.arange(width) & 1
            continue
        name, place = selection.word
        if selection.late and "enable" in before:
            before["enable"][:, k] = 1
        (early if selection.late else now)[name][place * width :][:width, k] = letters
    state = program.unknown(len(cases))
    for inputs in given:
        live = {name: values[program.inputs[name]] for name, values in inputs.items()}
        state = program.after(program.values(state, live), state)
    shown = program.outputs_of(program.values(state, {}), "tx")
    for k, (selection, _) in enumerate(cases):
        port = selection.port
        if (shown[port * width :][:width, k] != wanted[:, k]).any():
            message = (
                f"Out-port {port} of {module.name} must select word {selection.source} in its cycle"
            )
            raise refuted(module.name, f"tx[{port}]", message)
    return len(cases)


def _select_bits(plan: RouterPlan, output: Output, number: int) -> InputBits | None:
    """Return values of inputs, by their bits, with which an out-port selects one of its words.

    A select bit is the `or` of a column and of a bit of the table; where there is a column, the
    table need not give 1. None if there are no such values, because others share these bits.
    """
    found = dict[tuple[str, int], int]()
    code, wanted = output.code(number), []
    for at, value in zip((plan.bits[bit] for bit in output.bits), code, strict=True):
        column = None if at.column is None else ("select", at.column)
        table = None if at.start is None else ("setting", at.start)
        for bit, given in ((column, value), (table, value and column is None)):
            if bit is not None:
                found[bit] = found.get(bit, 0) | given
        wanted.append(([bit for bit in (column, table) if bit is not None], value))
    right = all(any(found[bit] for bit in bits) == value for bits, value in wanted)
    return found if right else None


def _check_waits(module: GateModule) -> int:
    """Check that out-ports keep their words in the cycle after one in which the enable is 0."""
    program = GateProgram(module, {"tx": [*range(len(module.outputs["tx"]))]})
    enable = np.zeros((len(program.inputs["enable"]), 1), np.int32)
    state = program.unknown(1)
    state = program.after(program.values(state, {"enable": enable}), state)
    numbers = word(np.arange(state.flops.size, dtype=np.int32)).reshape(state.flops.shape)
    state.flops[:] = np.where(state.flops == UNKNOWN, numbers, state.flops)
    before = program.values(state, {})
    after = program.values(program.after(before, state), {})
    words = [program.outputs_of(each, "tx") for each in (before, after)]
    if (words[0] != words[1]).any():
        message = f"Out-ports of {module.name} must keep their words while the enable is 0"
        raise refuted(module.name, "tx", message)
    return len(words[0])
