"""Crossbars: the router and the operators of a node.

A crossbar has a multiplexer for each port. The multiplexers of a `Router` choose the words that
leave by the out-ports. The multiplexers of a `PortOperators` choose the operands that are combined
with the words of the in-ports.

`plan_all_crossbars` finds, for each family of nodes, the inputs of these multiplexers and the
places of their select bits. The result is a `CrossbarPlan` for each module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from amaranth.hdl import Cat, Const, Signal, Value
from amaranth.lib.wiring import In, Out

from ...program.fields import Action
from ...program.timing import COMBINE, LINK, SETTING
from ...topology import BoolArray
from ..modules import SharedInstance
from ..multiplexer import register_select_slices
from .families import ModuleFamily, find_multiplexer_sources, group_kinds
from .node_module import (
    IDENTITY_WORD,
    NodeInputs,
    NodeModule,
    NodeMultiplexer,
    NodeSettings,
    needs_branches,
    operator_code_input,
    plan_multiplexer,
)
from .places import Bit, BitPlacer, MemberDelays, SequencerSignals
from .rows import NodeKinds, Rows

__all__ = ["CrossbarPlan", "PortOperators", "Router", "plan_all_crossbars"]

assert SETTING + 1 == LINK, "a router has one register"
assert COMBINE == 1, "a result has one register, besides those of the operator's own hardware"


class CrossbarPlan(NamedTuple):
    """The plan of the multiplexers of a router, or of those in front of the operators of a node.

    A node has a multiplexer for each out-port, which selects the words that leave. It may also have
    an operator behind each in-port, with a multiplexer that selects the other operand. Nodes whose
    multiplexers have the same structure form a family, and share one Verilog module.

    Parameters
    ----------
    family : ModuleFamily
        The nodes that share the module.
    choices : tuple of (NodeMultiplexer or None)
        For a router, the multiplexer of each out-port; for operators, that of each in-port. None if
        the port needs no multiplexer.
    placer : BitPlacer
        The source of each select bit: a constant, the sequencer, or a table at the node.
    strobes : dict of int to (Bit, int), or None
        For each out-port with a strobe, the source of a bit that is 1 in the rows in which the port
        sends, and the input of the module for the strobe of these rows. None if no node has one.
    """

    family: ModuleFamily
    choices: tuple[NodeMultiplexer | None, ...]
    placer: BitPlacer
    strobes: Mapping[int, tuple[Bit, int]] | None


def plan_crossbars(
    rows: Rows,
    kinds: NodeKinds,
    columns: SequencerSignals,
    action: Action,
    *,
    idles: bool,
    fast: bool,
    strobed: BoolArray | None = None,
) -> list[CrossbarPlan]:
    """Plan the routers, or the operators, of all nodes.

    A kind are nodes with equal values in all rows of the program. Kinds whose multiplexers have the
    same structure form a family, which shares a module: the result has a plan for each family.

    Parameters
    ----------
    rows, kinds : Rows, NodeKinds
        The values of the program in each row, and the kinds of nodes.
    columns : SequencerSignals
        The signals of the sequencer, to which the plan adds those that it needs.
    action : Action
        `SELECT` for out-ports, `OPERAND` for operators.
    idles : bool
        True if the identity word, which leaves the result of an operator unchanged, is 0. A
        multiplexer then needs no input for it.
    fast : bool
        True if all multiplexers have branches that select in parallel, even if this takes more
        LUTs.
    strobed : ndarray of bool, shape (kinds, ports), optional
        True for an out-port with a strobe; by default no port has one.
    """
    sources, ports = rows.sources, range(rows.ports)
    fields = {port: field for port in ports if (field := rows.field(action, port))}
    uses = find_multiplexer_sources(
        sources, kinds, ((port, field.values) for port, field in fields.items())
    )
    found = []
    for members in group_kinds([uses.signature]):
        words = [uses.input_words(int(members[0]), port) for port in ports]
        counts, family = list(map(len, words)), uses.make_family(members)
        branched = [True] * len(ports)
        if not fast:
            branched = needs_branches(counts, family.sources.shape[1] - family.arriving)
        placer = BitPlacer(columns, many=kinds.outnumber_groups(members))
        choices: list[NodeMultiplexer | None] = []
        strobes = {}
        for port in ports:
            if not words[port]:
                choices.append(None)
                continue
            field = fields[port]
            given, codes = plan_multiplexer(words[port], idles=idles, branched=branched[port])
            values = kinds.values_at_kinds(field.values, members)
            index = uses.find_inputs(port, members, values)
            delays = MemberDelays.from_common_delays(field.delays, len(members))
            table = action.value
            bits = placer.place_select_bits(
                index, codes, delays, alike=field.is_equal_at_all_nodes, table=table
            )
            choices.append(
                NodeMultiplexer(given, bits, branched[port], idles=len(codes) > len(given))
            )
            if strobed is not None and strobed[members, port].any():
                sends = placer.place_bit((values >= 0).astype(int), delays, early=True)
                strobes[port] = sends, placer.place_strobe(delays)
        of_family = None if strobed is None else strobes
        found.append(CrossbarPlan(family, tuple(choices), placer, of_family))
    return found


def plan_all_crossbars(
    rows: Rows,
    kinds: NodeKinds,
    columns: SequencerSignals,
    *,
    idles: bool,
    strobed: BoolArray | None = None,
) -> tuple[list[CrossbarPlan], list[CrossbarPlan]]:
    """Plan all routers, and all operators if the program has any; see `plan_crossbars`.

    Parameters
    ----------
    rows, kinds, columns, idles, strobed
        The same as in `plan_crossbars`. Operators have no strobes.

    Returns
    -------
    routers, operators : list of CrossbarPlan
        One plan of routers, and one plan of operators, for each family (nodes that share a module).
    """
    routers = plan_crossbars(
        rows, kinds, columns, Action.SELECT, idles=idles, fast=False, strobed=strobed
    )
    operators: list[CrossbarPlan] = []
    if rows.sources.results:
        operators = plan_crossbars(rows, kinds, columns, Action.OPERAND, idles=idles, fast=True)
    return routers, operators


class Router(NodeModule):
    """The router of a node: a multiplexer and a register for each out-port.

    The word of an idle out-port is arbitrary.

    Parameters
    ----------
    choices : sequence of (NodeMultiplexer or None)
        The multiplexer of each out-port; None for an out-port that is never used.
    inputs, settings, words
        The same as in `NodeModule`.

    Members
    -------
    operator_code : In
        The control bits of the operator, if the identity word (which leaves the result of the
        operator unchanged) depends on them.
    tx : Out(ports * width)
        The word of each out-port.
    sends : Out(ports)
        High for an out-port with a strobe in the cycle in which `tx` has a word that leaves by it.
        It exists if `strobes` is given.
    """

    def __init__(
        self,
        choices: Sequence[NodeMultiplexer | None],
        inputs: NodeInputs,
        settings: NodeSettings,
        words: Mapping[str, int],
        *,
        strobes: Mapping[int, tuple[Bit, int]] | None = None,
    ) -> None:
        self.choices, self._strobes = choices, strobes
        neutral = any(choice and IDENTITY_WORD in choice.words for choice in choices)
        super().__init__(
            inputs,
            settings,
            words,
            operator_code_input(settings, neutral=neutral)
            | {"tx": Out(settings.ports * settings.width)}
            | ({} if strobes is None else {"sends": Out(settings.ports)}),
        )
        self.tx = Signal(settings.ports * settings.width, reset_less=True, name="tx")

    @property
    def n_own_words(self) -> int:
        """Number of different words at the multiplexers that come from the node itself.

        A word of an in-port counts, too, if it is delayed by a cycle.
        """
        words = {word for choice in self.choices if choice for word in choice.words}
        return sum(word.late or not 0 <= word.position < self._given["rx"] for word in words)

    def add_logic(self) -> None:
        """Build a multiplexer for each used out-port, and the register of all out-ports."""
        chosen = [
            Const(0, self.settings.width)
            if choice is None
            else self.choose_word(choice, f"to_port_{port}")
            for port, choice in enumerate(self.choices)
        ]
        self.m.d.sync += self.tx.eq(Cat(*chosen))
        for port, (sends, strobe) in (self._strobes or {}).items():
            # The word of the row is chosen a cycle later, and in `tx` two cycles later.
            chooses = Signal(name=f"chooses_{port}")
            self.m.d.sync += [
                chooses.eq(self.early_bit_value(sends) & self.input_value(f"valid_{strobe}")),
                self.sends[port].eq(chooses),
            ]


class PortOperators(NodeModule):
    """The operators behind the in-ports of a node: each combines an arriving word with an operand.

    Parameters
    ----------
    choices : sequence of (NodeMultiplexer or None)
        The multiplexer of the operand of each in-port; None for an in-port without an operator.
    inputs, settings, words
        The same as in `NodeModule`.

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
        choices: Sequence[NodeMultiplexer | None],
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

    def add_logic(self) -> None:
        """Build an operator behind each used in-port, and the register of the results."""
        width = self.settings.width
        arriving = self.input_words("rx", width)
        made = [
            Const(0, width)
            if choice is None
            else self.add_port_operator(arriving[port], choice, f"at_port_{port}")
            for port, choice in enumerate(self._choices)
        ]
        self.m.d.comb += self.made.eq(Cat(*made))
        self.m.d.sync += self.result.eq(self.made)

    def add_port_operator(self, word: Value, choice: NodeMultiplexer, name: str) -> Value:
        """Add an operator behind an in-port, and return the signal of its result.

        It combines the arriving word with an operand, which a multiplexer chooses.

        Parameters
        ----------
        word : Value
            The arriving word.
        choice : NodeMultiplexer
            The multiplexer of the operand.
        name : str
            The name of the operator in emitted Verilog.
        """
        unit = self.settings.unit
        assert unit is not None
        if self.is_unbound and unit.is_sum and len(choice.words) > 1:
            return self._add_chosen_sum(word, choice, name)
        operand = self.choose_word(choice, name)
        pair_name = name if self.is_unbound else None
        from ..operator_unit import add_operator

        return add_operator(self.m, unit, (word, operand), self.run_operator_code(), name=pair_name)

    def _add_chosen_sum(self, word: Value, choice: NodeMultiplexer, name: str) -> Value:
        """Return the sum of `word` and the operand that `choice` selects.

        The sum is made by a `ChosenSum`, a module with a multiplexer and an adder, which is used in
        emitted Verilog only. `name` is the name of its instance.
        """
        width, inputs = self.settings.width, [self.word_value(each) for each in choice.words]
        from ..chosen_sum import ChosenSum

        meant = ChosenSum(len(inputs), width, isinstance(inputs[-1], Const))
        code = Cat(*map(self.early_bit_value, choice.bits))
        held = Cat(*map(Cat, register_select_slices(self.m, code, width, name=name)))
        total = Signal(width, name=f"{name}_total")
        self.m.submodules[name] = SharedInstance(
            meant.shared_module,
            i_word=word,
            i_words=Cat(*inputs[: meant.n_inputs]),
            i_select=held,
            o_total=total,
        )
        return total
