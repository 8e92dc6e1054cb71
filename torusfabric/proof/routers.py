"""Routers by themselves: all words that out-ports can select, whether or not any run does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..rtl.place import columns_of
from .gate_program import GateProgram
from .report import refuted
from .symbols import UNKNOWN, word

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..rtl.placement import RouterPlan
    from ..rtl.router import Output
    from .gates import GateModule, GateText

__all__ = ["check_routers"]


def check_routers(fabric: Fabric, text: GateText) -> int:
    """Check, and count, the words of out-ports of all routers, and that out-ports keep them."""
    count = 0
    for number, plan in enumerate(fabric.placement.routers):
        module = text.modules.get(f"{fabric.prefix}router_{number}")
        if module is not None:  # a part of a fabric may have no such node
            count += _check_selections(fabric, module, plan) + _check_waits(module)
    return count


def _check_selections(fabric: Fabric, module: GateModule, plan: RouterPlan) -> int:
    """Check that words of out-ports are those for which the select bits stand.

    Of the inputs, only those are known on which a word depends, each in one cycle: the select bits,
    the operator and the enable in cycle 1, the word in cycle 2. A word that passes the register
    behind an in-port comes in cycle 1, with the enable also in cycle 0.
    """
    width, outputs, unit = fabric.width, plan.crossbar.outputs, fabric.operator_unit
    codes = dict(zip(unit.codes, unit.operators, strict=True)) if unit else {0: None}
    cases = [
        (port, source, bits, code)
        for port, output in enumerate(outputs)
        for number, source in enumerate(output.sources)
        for bits in [_select_bits(plan, output, number)]
        for code in codes
        if bits is not None
    ]
    program = GateProgram(module, {"tx": [*range(len(outputs) * width)]})
    given = [
        {name: np.full((len(bits), len(cases)), UNKNOWN, np.int32)
         for name, bits in module.inputs.items()}
        for _ in range(3)
    ]  # fmt: skip
    before, early, now = given
    early["enable"][:] = 1
    delayed = fabric.program.loop.sources.delayed
    injected = len(outputs) + len(delayed)
    letters = word(np.arange(width, dtype=np.int32))
    wanted = np.tile(letters[:, None], len(cases))
    for k, (_, source, bits, code) in enumerate(cases):
        for (name, row), bit in bits.items():
            early[name][row, k] = bit
        if "operator_code" in early:
            early["operator_code"][:, k] = code >> np.arange(len(early["operator_code"])) & 1
        if source < len(outputs):
            now["rx"][source * width :][:width, k] = letters
        elif source < injected:
            before["enable"][:, k] = 1
            early["rx"][delayed[source - len(outputs)] * width :][:width, k] = letters
        elif source < injected + plan.word_count:
            now["inject"][(source - injected) * width :][:width, k] = letters
        elif operator := codes[code]:
            wanted[:, k] = operator.identity(width) >> np.arange(width) & 1
    state = program.unknown(len(cases))
    for inputs in given:
        live = {name: values[program.inputs[name]] for name, values in inputs.items()}
        state = program.after(program.values(state, live), state)
    shown = program.outputs_of(program.values(state, {}), "tx")
    for k, (port, source, *_) in enumerate(cases):
        if (shown[port * width :][:width, k] != wanted[:, k]).any():
            message = f"Out-port {port} of {module.name} must select word {source} in its cycle"
            raise refuted(module.name, f"tx[{port}]", message)
    return len(cases)


def _select_bits(
    plan: RouterPlan, output: Output, number: int
) -> dict[tuple[str, int], int] | None:
    """Return values of inputs, by their bits, with which an out-port selects one of its words.

    A select bit is the `or` of a column and of a bit of the table; where there is a column, the
    table need not give 1. None if there are no such values, because others share these bits.
    """
    columns, found = columns_of(plan.given), dict[tuple[str, int], int]()
    code, wanted = output.code(number), []
    for at, value in zip((plan.bits[bit] for bit in output.bits), code, strict=True):
        column = None if at.column is None else ("select", columns.index(at.column))
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
