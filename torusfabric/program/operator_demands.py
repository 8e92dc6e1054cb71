"""What operators demand of a program: time for their hardware, and one order of what they combine.

Operators behind in-ports get their time when sums are planned (see `table_timing`). Those in front
of injection ports delay all words that leave: a round is as much longer, and its words are stored
as much later. An operator that is not associative asks for more: where several nodes receive the
same sum, all must have combined the same words in the same order, or have received it from one that
did.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..collective import Operator, tree_levels
from ..errors import InputError
from ..topology import CayleyGraph
from .fields import Action, Order

if TYPE_CHECKING:
    from ..collective import Words
    from .mode import Form
    from .program import Program

__all__ = ["obey_operators"]

#: Actions in front of the operators; all others concern words that have passed these.
READING = (Action.MEMORY, Action.READ)


def obey_operators(program: Program) -> Program:
    """A program that waits for its operators; it has some.

    Raises
    ------
    InputError
        If a form moves in steps which leave no time for them, or nodes receive different results.
    """
    program = _waiting(program)
    _check_agreement(program)
    return program


def _waiting(program: Program) -> Program:
    """The program with time for operators in front of injection ports, if they take any."""
    latency = max((operator.latency for operator in program.operators), default=0)
    if not latency:
        return program
    injections = program.loop.sources.injections
    delay = latency * tree_levels(max(map(len, injections)))
    forms = tuple(_later(form, latency, delay, program.operators) for form in program.forms)
    parts = tuple(
        replace(part, forms=(_later(part.form, latency, delay, program.operators),))
        for part in program.parts
    )
    return replace(program, forms=forms, parts=parts)


def _later(form: Form, latency: int, delay: int, operators: tuple[Operator, ...]) -> Form:
    """A form whose words leave so many cycles later."""
    loop = form.loop
    loop = replace(loop, sources=replace(loop.sources, latency=latency, injection_delay=delay))
    if not delay:
        return replace(form, loop=loop)
    moving = form.moving
    if loop.order is not Order.ROW or not (moving.alpha or loop.rests):
        slow = max(operators, key=lambda operator: operator.latency)
        raise InputError(
            f"Operator {slow}, which takes {slow.latency} cycles, must be used without "
            f"{form.schedule.collective.kind} by {form.schedule.algorithm} in a fabric that "
            "combines words in front of injection ports"
        )
    loop = replace(
        loop,
        # Circuits are held for as long as words pass; what arrives is stored later.
        least=loop.least + delay * loop.rests,
        pause=np.where(loop.pause > 0, loop.pause + delay, 0),
        fields=tuple(
            replace(field, delay=field.delay + delay * (field.point.action not in READING))
            for field in loop.fields
        ),
        departure_skew=tuple(skew + delay for skew in loop.departure_skew or (0,) * loop.ports),
    )
    alpha = moving.alpha and moving.alpha + delay
    return replace(form, loop=loop, moving=replace(moving, alpha=alpha))


def _check_agreement(program: Program) -> None:
    """See to it that nodes agree on sums by operators that are not associative.

    The program is executed with an operator of whose result the order can be told.
    """
    unordered = [operator for operator in program.operators if not operator.associative]
    for number, form in enumerate(program.forms if unordered else ()):
        collective = form.schedule.collective
        if not collective.reducing or collective.rooted or collective.personal:
            continue
        layout = program.part(number).layout
        length = program.length_of(None)
        shape = program.topology.nodes, layout.send_words(length)
        words = np.random.default_rng(1).integers(1, 1 << 63, shape, np.uint64)
        received = _telling(program).execute(words, mode=number)
        members = form.groups.members
        if (received[members] != received[members[:, :1]]).any():
            alike = isinstance(form.schedule.topology, CayleyGraph)
            other = "matching" if alike else "any-network"
            raise InputError(
                f"Operator of {collective.kind} by {form.schedule.algorithm} must be associative, "
                f"not {unordered[0]}: nodes combine words in different orders, so that results may "
                f"differ (by --algorithm {other} one node combines them for all)"
            )


def _telling(program: Program) -> Program:
    """The program with an operator of whose result the order of words can be told."""

    def tell(a: Words, b: Words, width: int) -> Words:
        mixed = a * b + ((a + b) ^ (a + b) >> np.uint64(29))
        return np.where(a == 0, b, np.where(b == 0, a, mixed | np.uint64(1)))

    telling = Operator("telling", tell, lambda width: 0, lambda m, a, b: a, associative=False)
    return replace(
        program,
        forms=tuple(
            replace(form, operators=(telling,) if form.operators else ()) for form in program.forms
        ),
    )
