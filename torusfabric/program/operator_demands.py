"""Demands of operators on a program: time for their hardware, and a common order of operands.

Time: operators behind in-ports get theirs when sums are planned (see `table_timing`). Operators in
front of injection ports delay all words that leave a node. Each round then takes longer by this
delay, and its words are stored later by it.

Order: an operator that is not associative gives different results for different orders of its
operands. Nodes that receive the same sum must have combined equal words in the same order, or have
received the sum from one node that did.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..collective import Operator, tree_levels
from ..errors import InputError
from ..topology import CayleyGraph
from .fields import Action, Order
from .operand_orders import execute_with_function

if TYPE_CHECKING:
    from ..collective import Words
    from .mode import Form
    from .program import Program

__all__ = ["meet_operator_demands"]

#: Actions in front of the operators of injection ports; all other actions come behind them.
READER_ACTIONS = (Action.MEMORY, Action.READ)


def meet_operator_demands(program: Program) -> Program:
    """Return the program with time for its operators, and check the order of operands.

    If operators take cycles, words that are combined before they leave a node leave later. An
    operator that is not associative must combine words in the same order at all nodes that receive
    a sum.

    Raises
    ------
    InputError
        If the steps of a form leave no time for the operators, or nodes would receive different
        results for the same sum.
    """
    latency = max((operator.latency for operator in program.operators), default=0)
    if latency:
        delay = latency * tree_levels(max(map(len, program.loop.sources.injections)))

        def delay_forms(forms: Iterable[Form]) -> tuple[Form, ...]:
            return tuple(_delay_form(form, latency, delay, program.operators) for form in forms)

        parts = tuple(replace(part, forms=delay_forms(part.forms)) for part in program.parts)
        program = replace(program, forms=delay_forms(program.forms), parts=parts)
    unordered = [operator for operator in program.operators if not operator.associative]
    for number, form in enumerate(program.forms if unordered else ()):
        collective = form.schedule.collective
        if collective.reducing and not collective.rooted and not collective.personal:
            _check_agreement(program, number, unordered[0])
    return program


def _delay_form(form: Form, latency: int, delay: int, operators: tuple[Operator, ...]) -> Form:
    """Return a form, changed so that all words leave a node `delay` cycles later.

    `latency` is the number of cycles of the hardware of `operators`. An `InputError` is raised for
    a form that was not planned in rounds, because its rows leave no time for the delay.
    """
    loop = form.loop
    loop = replace(loop, sources=replace(loop.sources, latency=latency, injection_delay=delay))
    moving = form.moving
    if delay and (loop.order is not Order.ROW or not (moving.alpha or loop.rests)):
        slow = max(operators, key=lambda operator: operator.latency)
        raise InputError(
            f"{form.schedule.collective.kind} by {form.schedule.algorithm} cannot wait the "
            f"{slow.latency} cycles of operator {slow} in a fabric that combines words before "
            "they are sent; choose another algorithm, or a fabric of its own"
        )
    loop = replace(
        loop,
        # Circuits are held longer by the delay, and arriving words are stored later by it.
        least=loop.least + delay * loop.rests,
        pause=np.where(loop.pause > 0, loop.pause + delay, 0),
        fields=tuple(
            replace(field, delay=field.delay + delay * (field.point.action not in READER_ACTIONS))
            for field in loop.fields
        ),
        departure_skew=loop.departure_skew + delay,
    )
    alpha = moving.alpha and moving.alpha + delay
    return replace(form, loop=loop, moving=replace(moving, alpha=alpha))


def _check_agreement(program: Program, number: int, operator: Operator) -> None:
    """Refuse a program in which nodes receive different results for the same sum.

    The form `number` is executed with an operator whose result depends on the order of its
    operands. The error names `operator`, an operator of the program that is not associative.
    """
    form, nodes = program.forms[number], program.topology.nodes

    def combine_distinctly(a: Words, b: Words, width: int) -> Words:
        mixed = a * b + ((a + b) ^ (a + b) >> np.uint64(29))
        return np.where(a == 0, b, np.where(b == 0, a, mixed | np.uint64(1)))

    shape = nodes, program.part(number).layout.send_words(program.flits)
    words = np.random.default_rng(1).integers(1, 1 << 63, shape, np.uint64)
    received = execute_with_function(program, words, combine_distinctly, mode=number)
    members = form.groups.members
    if (received[members] != received[members[:, :1]]).any():
        alike = isinstance(form.schedule.topology, CayleyGraph)
        other = "matching" if alike else "any-network"
        raise InputError(
            f"{form.schedule.collective.kind} by {form.schedule.algorithm} needs an associative "
            f"operator, not {operator}, because nodes combine words in different orders; choose "
            f"--algorithm {other}, by which one node combines them for all"
        )
