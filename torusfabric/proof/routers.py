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
    """Check, and count, the words of out-ports of all routers."""
    count = 0
    for name, make in fabric.netlist.modules.items():
        module = text.modules.get(fabric.prefix + name)
        # A part of a fabric may have no such node.
        if fabric.netlist.roles.get(name) is Role.ROUTER and module is not None:
            router = make()
            assert isinstance(router, Router)
            count += _check_selections(fabric, module, [*_selections(router)])
    return count


def _selections(router: Router) -> Iterator[_Selection]:
    """Yield the words that the out-ports of a router can select."""
    ports = router.word_count("rx")
    for port, choice in enumerate(router.choices):
        if choice is None:
            continue
        for number, chosen in enumerate(choice.words + (NEUTRAL_WORD,) * choice.idles):
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


def _check_selections(fabric: Fabric, module: GateModule, selections: list[_Selection]) -> int:
    """Check that words of out-ports are those for which the select bits stand.

    Of the inputs, only those are known on which a word depends, each in one cycle: the select bits
    and the operator in cycle 1, the word in cycle 2. A word that passes the register behind an
    in-port comes in cycle 1.
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
    _, early, now = given
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
