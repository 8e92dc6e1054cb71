"""Crossbars: the router and the operators of a node.

Both modules have a multiplexer for each port. In `Router` it chooses the word that leaves by an
out-port. In `Operators` it chooses the operand that is combined with the word of an in-port.

`plan_all_crossbars` finds, for each family of nodes, the inputs of these multiplexers and the
places of their select bits. The result is a `Crossbar` for each module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Signal, Value
from amaranth.lib.wiring import In, Out

from ...program.fields import Action
from ...program.timing import COMBINE, LINK, SETTING
from ..modules import Use
from ..multiplexer import held_slices
from .families import Family, find_uses, group_kinds
from .part import (
    NEUTRAL_WORD,
    Choice,
    NodeInputs,
    NodePart,
    NodeSettings,
    is_branched,
    operator_code_input,
    plan_choice,
)
from .places import BitPlacer, Columns, MemberDelays
from .rows import NodeKinds, Rows

__all__ = ["Crossbar", "Operators", "Router", "plan_all_crossbars"]

assert SETTING + 1 == LINK, "a router has one register"
assert COMBINE == 1, "a result has one register, besides those of the operator's own hardware"


class Crossbar(NamedTuple):
    """The plan of a router or of operators, for the nodes of a family.

    Parameters
    ----------
    family : Family
        The nodes that share the module.
    choices : tuple of (Choice or None)
        The multiplexer of each port; None if the port is not used.
    placer : BitPlacer
        The places of the select bits.
    """

    family: Family
    choices: tuple[Choice | None, ...]
    placer: BitPlacer


def plan_crossbars(
    rows: Rows, kinds: NodeKinds, columns: Columns, action: Action, *, idles: bool, fast: bool
) -> list[Crossbar]:
    """Plan the routers, or the operators, of all kinds of nodes: one crossbar for each family.

    Parameters
    ----------
    rows, kinds : Rows, NodeKinds
        The values of all control points, and the kinds of nodes.
    columns : Columns
        The signals of the sequencer, to which the plan adds those that it needs.
    action : Action
        `SELECT` for out-ports, `OPERAND` for operators.
    idles : bool
        True if the neutral word is 0.
    fast : bool
        True if all multiplexers have branches, whatever their size.
    """
    sources, ports = rows.sources, range(rows.ports)
    fields = {port: field for port in ports if (field := rows.field(action, port))}
    uses = find_uses(sources, kinds, ((port, field.values) for port, field in fields.items()))
    found = []
    for members in group_kinds([uses.signature]):
        words = [uses.words(int(members[0]), port) for port in ports]
        counts, family = list(map(len, words)), uses.family(members)
        branched = [True] * len(ports)
        if not fast:
            branched = is_branched(counts, family.sources.shape[1] - family.arriving)
        placer = BitPlacer(columns, many=kinds.are_many(members))
        choices: list[Choice | None] = []
        for port in ports:
            if not words[port]:
                choices.append(None)
                continue
            field = fields[port]
            given, codes = plan_choice(words[port], idles=idles, branched=branched[port])
            index = uses.inputs(port, members, kinds.values(field.values, members))
            delays = MemberDelays.alike(field.delays, len(members))
            table = action.value
            bits = placer.code(index, codes, delays, alike=field.agrees, table=table)
            choices.append(Choice(given, bits, branched[port], idles=len(codes) > len(given)))
        found.append(Crossbar(family, tuple(choices), placer))
    return found


def plan_all_crossbars(
    rows: Rows, kinds: NodeKinds, columns: Columns, *, idles: bool
) -> tuple[list[Crossbar], list[Crossbar]]:
    """Plan all routers, and all operators if the program has any; see `plan_crossbars`."""
    routers = plan_crossbars(rows, kinds, columns, Action.SELECT, idles=idles, fast=False)
    operators: list[Crossbar] = []
    if rows.sources.results:
        operators = plan_crossbars(rows, kinds, columns, Action.OPERAND, idles=idles, fast=True)
    return routers, operators


class Router(NodePart):
    """The router of a node: a multiplexer and a register for each out-port.

    The word of an idle out-port is arbitrary.

    Parameters
    ----------
    choices : sequence of (Choice or None)
        The multiplexer of each out-port; None for an out-port that is never used.
    inputs, settings, words
        The same as in `NodePart`.

    Members
    -------
    operator_code : In
        The control bits of the operator, if the neutral word depends on them.
    tx : Out(ports * width)
        The word of each out-port.
    """

    def __init__(
        self,
        choices: Sequence[Choice | None],
        inputs: NodeInputs,
        settings: NodeSettings,
        words: Mapping[str, int],
    ) -> None:
        self.choices = choices
        neutral = any(choice and NEUTRAL_WORD in choice.words for choice in choices)
        super().__init__(
            inputs,
            settings,
            words,
            operator_code_input(settings, neutral=neutral)
            | {"tx": Out(settings.ports * settings.width)},
        )
        self.tx = Signal(settings.ports * settings.width, reset_less=True, name="tx")

    @property
    def own_words(self) -> int:
        """Number of different words at the multiplexers that do not come from in-ports."""
        words = {word for choice in self.choices if choice for word in choice.words}
        return sum(word.late or not 0 <= word.position < self._given["rx"] for word in words)

    def build(self) -> None:
        """Build the crossbar."""
        chosen = [
            Const(0, self.settings.width)
            if choice is None
            else self.chosen(choice, f"to_port_{port}")
            for port, choice in enumerate(self.choices)
        ]
        self.m.d.sync += self.tx.eq(Cat(*chosen))


class Operators(NodePart):
    """The operators behind the in-ports of a node: each combines an arriving word with an operand.

    Parameters
    ----------
    choices : sequence of (Choice or None)
        The multiplexer of the operand of each in-port; None for an in-port without an operator.
    inputs, settings, words
        The same as in `NodePart`.

    Members
    -------
    operator_code : In
        The control bits of the operator, if runs choose one.
    rx : In(ports * width)
        The word of each in-port.
    result : Out(ports * width)
        The result of each in-port, in a register.
    made : Out(ports * width)
        The result of each in-port one cycle earlier, before its register.
    """

    def __init__(
        self,
        choices: Sequence[Choice | None],
        inputs: NodeInputs,
        settings: NodeSettings,
        words: Mapping[str, int],
    ) -> None:
        self._choices, size = choices, settings.ports * settings.width
        super().__init__(
            inputs,
            settings,
            {"inject": sum(words.values())},
            operator_code_input(settings, neutral=True, combines=True)
            | {"rx": In(size)}
            | {"result": Out(size), "made": Out(size)},
        )
        self.result = Signal(size, reset_less=True, name="result")
        self.made = Signal(size, name="made")

    def build(self) -> None:
        """Build an operator for each in-port."""
        width = self.settings.width
        arriving = self.words("rx", width)
        made = [
            Const(0, width)
            if choice is None
            else self.combined(arriving[port], choice, f"at_port_{port}")
            for port, choice in enumerate(self._choices)
        ]
        self.m.d.comb += self.made.eq(Cat(*made))
        self.m.d.sync += self.result.eq(self.made)

    def combined(self, word: Value, choice: Choice, name: str) -> Value:
        """Add an operator, and return its result for an arriving word and a chosen operand."""
        unit = self.settings.unit
        assert unit is not None
        if self.alone and unit.adds and len(choice.words) > 1:
            return self._sum(word, choice, name)
        operand = self.chosen(choice, name)
        pair_name = name if self.alone else None
        from ..operator_unit import add_pair

        return add_pair(self.m, unit, (word, operand), self.run_operator(), name=pair_name)

    def _sum(self, word: Value, choice: Choice, name: str) -> Value:
        """Return a sum, from a shared module that contains the multiplexer of the operand.

        Used in emitted Verilog only.
        """
        width, inputs = self.settings.width, [self.word(each) for each in choice.words]
        from ..chosen_sum import ChosenSum

        meant = ChosenSum(len(inputs), width, isinstance(inputs[-1], Const))
        code = Cat(*map(self.early_bit, choice.bits))
        held = Cat(*map(Cat, held_slices(self.m, code, width, name=name)))
        total = Signal(width, name=f"{name}_total")
        self.m.submodules[name] = Use(
            meant.shared,
            i_word=word,
            i_words=Cat(*inputs[: meant.words]),
            i_select=held,
            o_total=total,
        )
        return total
