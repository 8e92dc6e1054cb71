"""Fitting: schedules and programs as loadable modes, and the program of a fabric with such modes.

A *loadable* form is a schedule whose program has been rewritten so that every large enough fabric
with loaded tables can execute it. A *room* is the capacity of such a fabric. A form *fits* into a
room if the room has the rows, memories and selector inputs that the form needs.

`Image` and `make_tables` use this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError
from ...program import Program
from ...program.compile import compile_versions
from ...program.fields import Action
from ...program.mode import Range
from ...rtl.flit_rows import AUTO, check_beat
from ...schedule import Lifted
from ...toolchain.values import parse_non_negative_int
from ...topology import shared_network
from ..streams.sections import least_beat
from .loadable import LoadableForm, LoadableMode, list_entries
from .places import allocate_entries

if TYPE_CHECKING:
    from ...collective import Collective, Operator
    from ...program.mode import Form
    from ...schedule import Schedule
    from .room import Room

__all__ = ["choose_beat", "program_from_modes", "loadable_form", "loadable_mode", "loadable_modes"]


def program_from_modes(modes: Sequence[LoadableMode], room: Room) -> Program:
    """Return the program that a fabric executes after some modes are loaded.

    Parameters
    ----------
    modes : sequence of LoadableMode
        All modes of the fabric.
    room : Room
        Capacity of the fabric.

    Raises
    ------
    InputError
        If the modes do not fit.
    """
    entries = list_entries(modes)
    for entry in entries:
        room.check_form(entry.form)
    allocate_entries(room, entries)  # raises InputError if the entries do not fit together
    forms = [entry.form for entry in entries]
    served = [tuple(map(Range, mode.starts, range(len(mode.starts)))) for mode in modes]
    sent = max(int(form.program.depth[0, -1]) for form in forms)
    return replace(
        forms[0].program,
        topology=room.topology,
        forms=tuple(_fit_form(form, room) for form in forms),
        depth=np.tile([room.sizes.words] * room.ports + [sent], (room.nodes, 1)),
        parts=tuple(form.compiled for form in forms),
        served=tuple(served) if len(entries) > len(modes) else (),
        roots=tuple(mode.n_roots for mode in modes) if any(mode.any_root for mode in modes) else (),
        writable=True,
    )


def _fit_form(form: LoadableForm, room: Room) -> Form:
    """Return a form that refers to inputs of multiplexers by their numbers in one fabric.

    `form` has the numbers of canonical form, which are the same for all fabrics. `room` is the
    capacity of the fabric, with the inputs that its multiplexers have. If it has no operators, the
    actions of operators are left out.
    """
    program = form.program
    fields = tuple(
        field.renumber(room.numbers_in_room, {})
        for field in program.loop.fields
        if room.operators or field.point.action is not Action.OPERAND
    )
    return replace(program.form, loop=replace(program.loop, sources=room.sources, fields=fields))


def choose_beat(program: Program, width: int, beat: int | str, *, streams: bool) -> int:
    """Return the beat of a new fabric: the number of flits in a word of its ports.

    Parameters
    ----------
    program : Program
        Program that the fabric has to execute.
    width : int
        Bits of a flit.
    beat : int or "auto"
        The option of `Fabric`. "auto" is 1 for a host port. With streams it is the least beat with
        which streams move messages as fast as runs do.
    streams : bool
        True if nodes have streams.

    Raises
    ------
    InputError
        If the program cannot be executed with this beat.
    """
    if beat == AUTO:
        return least_beat(program, width, fixed=False)[0] if streams else 1
    flits = parse_non_negative_int("Beat", beat)
    check_beat(program, width, flits)
    return flits


def loadable_modes(
    program: Program, room: Room | None = None, *, beat: int = 1
) -> list[LoadableMode]:
    """Return the modes of a program, rewritten so that loaded tables can hold them.

    Forms of a mode that cannot be loaded are left out.

    Parameters
    ----------
    program : Program
        A program for messages of any length.
    room : Room, optional
        Capacity of an existing fabric, into which each form has to fit.
    beat : int
        Flits in a word of ports of a new fabric; ignored if `room` is given.

    Raises
    ------
    InputError
        If no form of a mode can be loaded, or the program has a fixed length or a barrier.

    Examples
    --------
    Each of the two modes has one form, with four rows.

    >>> import torusfabric as tf
    >>> plans = [tf.plan("4x4", name, algorithm="matching") for name in ("allgather", "scatter")]
    >>> [mode.forms[0].n_rows for mode in loadable_modes(tf.compile(plans, max_flits=8))]
    [4, 4]
    """
    if not program.any_length:
        raise InputError(
            "Loaded tables need messages whose length each run chooses; give max_flits "
            "(--max-flits) in place of flits"
        )
    if program.barrier:
        raise InputError(
            "Tables must be rom for a barrier, not ram; leave out the barrier or the loaded tables"
        )
    found = []
    for mode in program.modes:
        schedules = dict.fromkeys(form.schedule for form in mode.forms)
        found.append(
            loadable_mode(
                schedules, program.flits, mode.operators, room, any_root=mode.any_root, beat=beat
            )
        )
    return found


def loadable_mode(
    schedules: Iterable[Schedule], flits: int, operators: Sequence[Operator],
    room: Room | None, *, any_root: bool, beat: int = 1,
) -> LoadableMode:  # fmt: skip
    """Return a mode of those schedules that loaded tables can hold; the others are left out.

    Parameters
    ----------
    schedules : iterable of Schedule
        Schedules of one collective.
    flits : int
        Flits of the longest message.
    operators : sequence of Operator
        Operators of the mode.
    room : Room or None
        Capacity of an existing fabric, into which each form has to fit.
    any_root : bool
        True if each run chooses the root.
    beat : int
        Flits in a word of ports of a new fabric; ignored if `room` is given.

    Raises
    ------
    InputError
        If no schedule can be loaded. The message says why the first one cannot.
    """
    found, wrong = list[LoadableForm](), list[InputError]()
    for schedule in schedules:
        try:
            found.append(loadable_form(schedule, flits, operators, room, beat=beat))
        except InputError as error:
            wrong.append(error)
    if not found:
        raise wrong[0]
    return LoadableMode.from_forms(found, any_root=any_root)


def loadable_form(
    schedule: Schedule,
    flits: int,
    operators: Sequence[Operator],
    room: Room | None = None,
    *,
    beat: int = 1,
) -> LoadableForm:
    """Return the program of a schedule, rewritten so that loaded tables can hold it.

    The compiler makes several versions of its program, which differ in the use of registers and
    memories. The first version that can be loaded is taken.

    Parameters
    ----------
    schedule : Schedule
        The schedule to load.
    flits : int
        Flits of the longest message.
    operators : sequence of Operator
        Operators of the fabric.
    room : Room, optional
        Capacity of an existing fabric, into which the form has to fit.
    beat : int
        Flits in a word of ports of a new fabric; ignored if `room` is given.

    Raises
    ------
    InputError
        If no version can be loaded. The message says why the first one cannot.
    """
    if room is not None:
        beat = room.beat
    _check_lengths(schedule.collective, flits, beat)
    if room is not None:
        if schedule.topology.nodes != room.nodes:
            shared_network([room.topology, schedule.topology])  # raises InputError if it differs
        # A schedule around failed nodes is extended to the whole torus, where they stay idle.
        schedule = Lifted.for_network(schedule, room.topology)
    wrong = list[InputError]()
    for fixed in (True, False):
        for program in compile_versions(schedule, flits, operators, beat=beat, fixed=fixed):
            try:
                form = LoadableForm.from_program(program)
                if room is not None:
                    room.check_form(form)
            except InputError as error:
                wrong.append(error)
            else:
                return form
    raise wrong[0]


def _check_lengths(collective: Collective, flits: int, beat: int) -> None:
    """Raise InputError if messages of unequal lengths are too long, or their chunks do not fit.

    The chunks of a message take `beat` flits in turn, and runs have at most `flits` flits.
    """
    longest = collective.longest_flits
    if longest is None:
        return
    if not 0 < collective.turn_flits <= beat:
        raise InputError(
            "This plan of messages of unequal lengths is for fixed tables; give the collective "
            "with counts or traffic in place of the plan"
        )
    if longest > flits:
        raise InputError(
            f"Messages must have at most {flits} flits for these tables, not {longest}; build the "
            f"fabric with --max-flits {longest}"
        )
