"""Check of the multiplexers of routers, with every selection that a table could contain.

Why: symbolic runs cover only the selections that some run uses.

Symbolic runs are runs that are executed with symbols in place of data (see `runs`). The *identity
word* of an operator is the word that changes no word it is combined with, such as 0 for a sum.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from ..rtl.core.node_module import IDENTITY_WORD, NodeMultiplexer
from ..rtl.core.places import BitPlace
from ..rtl.core.router import Router
from ..rtl.netlist import Role
from .gate_program import GateProgram
from .report import make_refutation
from .symbols import UNKNOWN, word_bits

if TYPE_CHECKING:
    from ..rtl import Fabric
    from .gates import GateModule, GateText

__all__ = ["check_routers"]


#: Values of input bits, by port and position.
InputBits: TypeAlias = dict[tuple[str, int], int]


class _Selection(NamedTuple):
    """A word that an out-port can select, and the inputs that select it.

    Parameters
    ----------
    port : int
        The out-port.
    source : str
        Name of the word in messages about a failure.
    bits : dict of (str, int) to int
        Value of each select bit: (input port of the router module, position) -> 0 or 1.
    word : (str, int) or None
        Input port and position of the word; None for the identity word, which leaves the result of
        an operator unchanged.
    late : bool
        True if the word passes a register of the router first, so that it arrives one cycle before
        other words.
    """

    port: int
    source: str
    bits: InputBits
    word: tuple[str, int] | None
    late: bool = False


def check_routers(fabric: Fabric, text: GateText) -> int:
    """Check, for all router modules, that each out-port outputs the word that its table selects.

    The result is the number of cases. `text` is the Verilog as gates.
    """
    count = 0
    for name, make in fabric.netlist.modules.items():
        module = text.modules.get(fabric.prefix + name)
        # The text of one part of a fabric may lack some router modules.
        if fabric.netlist.roles.get(name) is Role.ROUTER and module is not None:
            router = make()
            assert isinstance(router, Router)
            count += _check_selections(fabric, module, [*_list_selections(router)])
    return count


def _list_selections(router: Router) -> Iterator[_Selection]:
    """Yield the words that the out-ports of a router can select."""
    ports = router.word_count("rx")
    for port, choice in enumerate(router.choices):
        if choice is None:
            continue
        for number, chosen in enumerate(choice.words + (IDENTITY_WORD,) * choice.idles):
            bits = _select_bits(choice, number)
            if bits is not None:
                arrives = chosen.position < ports
                place = ("rx" if arrives else "inject", chosen.position - ports * (not arrives))
                source = None if chosen == IDENTITY_WORD else place
                yield _Selection(port, f"{number} of its words", bits, source, chosen.late)


def _select_bits(choice: NodeMultiplexer, number: int) -> InputBits | None:
    """Return the values of the select bits for which a multiplexer outputs input `number`.

    `choice` describes the multiplexer. The result is a dict: (input port, position) -> 0 or 1. It
    is None if these values cannot occur: a select bit is a constant with another value, or two
    select bits with different values are the same bit of a table.
    """
    found: InputBits = {}
    for bit, value in zip(choice.bits, choice.bits_for_input(number), strict=True):
        if bit.place is BitPlace.CONSTANT:
            if bit.number != value:
                return None
            continue
        name = "columns" if bit.place is BitPlace.COLUMN else f"table_{bit.table}"
        if found.setdefault((name, bit.number), value) != value:
            return None
    return found


def _check_selections(fabric: Fabric, module: GateModule, selections: list[_Selection]) -> int:
    """Check that each out-port shows the word for its select bits; returns the number of cases.

    A case is one of `selections` with one of the fabric's operators. Why each operator: one of the
    words is the identity word, which leaves the result of the operator unchanged. All cases of the
    router `module` are executed side by side. Inputs that the word must not depend on are unknown:

    =====  =====================================================================
    cycle  known inputs
    =====  =====================================================================
    0      none
    1      select bits, operator code, and the word if it passes a register first
    2      the word otherwise
    3      none; the out-port shows the word
    =====  =====================================================================
    """
    width, unit = fabric.width, fabric.operator_unit
    codes = dict(zip(unit.operator_codes, unit.operators, strict=True)) if unit else {0: None}
    cases = [(selection, code) for selection in selections for code in codes]
    program = GateProgram(module, {"tx": [*range(len(module.outputs["tx"]))]})
    given = [
        {name: np.full((len(bits), len(cases)), UNKNOWN, np.int32)
         for name, bits in module.inputs.items()}
        for _ in range(3)
    ]  # fmt: skip
    _, early, now = given
    letters = word_bits(np.arange(width, dtype=np.int32))
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
    state = program.unknown_state(len(cases))
    for inputs in given:
        live = {name: values[program.inputs[name]] for name, values in inputs.items()}
        state = program.next_state(program.cycle_bits(state, live), state)
    shown = program.outputs_of(program.cycle_bits(state, {}), "tx")
    for k, (selection, _) in enumerate(cases):
        port = selection.port
        if (shown[port * width :][:width, k] != wanted[:, k]).any():
            message = (
                f"Out-port {port} of {module.name} must select word {selection.source} in its cycle"
            )
            raise make_refutation(module.name, f"tx[{port}]", message)
    return len(cases)
