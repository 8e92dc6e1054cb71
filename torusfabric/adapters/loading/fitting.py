"""Fitting: turns schedules and programs into loadable modes, and modes into a fabric's program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InputError
from ...program import Program
from ...program.compile import versions
from ...program.fields import Action
from ...program.mode import Range
from ...rtl.flit_rows import AUTO, check_beat
from ...schedule import Lifted
from ...toolchain.values import natural
from ...topology import shared_network
from ..streams.sections import least_beat
from .loadable import Loadable, LoadableMode, entries_of
from .places import places_beside

if TYPE_CHECKING:
    from ...collective import Operator
    from ...program.mode import Form
    from ...schedule import Schedule
    from .room import Room

__all__ = ["choose_beat", "fit", "loadable_form", "loadable_mode", "loadable_modes"]


def fit(modes: Sequence[LoadableMode], room: Room) -> Program:
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
    entries = entries_of(modes)
    for entry in entries:
        room.check(entry.form)
    places_beside(room, entries)  # raises InputError if the entries do not fit together
    forms = [entry.form for entry in entries]
    served = [tuple(map(Range, mode.starts, range(len(mode.starts)))) for mode in modes]
    sent = max(int(form.program.depth[0, -1]) for form in forms)
    return replace(
        forms[0].program,
        topology=room.topology,
        forms=tuple(_fitted(form, room) for form in forms),
        depth=np.tile([room.sizes.words] * room.ports + [sent], (room.nodes, 1)),
        parts=tuple(form.compiled for form in forms),
        served=tuple(served) if len(entries) > len(modes) else (),
        roots=tuple(mode.roots for mode in modes) if any(mode.any_root for mode in modes) else (),
        writable=True,
    )


def _fitted(form: Loadable, room: Room) -> Form:
    """Return a form whose fields have the source numbers of a room."""
    program = form.program
    fields = tuple(
        field.renumbered(room.numbers, {})
        for field in program.loop.fields
        if room.operators or field.point.action is not Action.OPERAND
    )
    return replace(program.form, loop=replace(program.loop, sources=room.sources, fields=fields))


def choose_beat(program: Program, width: int, beat: int | str, *, streams: bool) -> int:
    """Return the beat of a new fabric: the flits in a word of its ports.

    Parameters
    ----------
    program : Program
        Program that the fabric has to execute.
    width : int
        Bits of a flit.
    beat : int or "auto"
        The option of `Fabric`. "auto" is 1 for a host port, and with streams the least beat with
        which streams do not limit the runs.
    streams : bool
        True if nodes have streams.

    Raises
    ------
    InputError
        If the program cannot be executed with this beat.
    """
    if beat == AUTO:
        return least_beat(program, width, fixed=False)[0] if streams else 1
    flits = natural("Beat", beat)
    check_beat(program, width, flits)
    return flits


def loadable_modes(
    program: Program, room: Room | None = None, *, beat: int = 1
) -> list[LoadableMode]:
    """Return the modes of a program in loadable form.

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
    >>> import torusfabric as tf
    >>> plans = [tf.plan("4x4", name, algorithm="matching") for name in ("allgather", "scatter")]
    >>> [mode.forms[0].rows for mode in loadable_modes(tf.compile(plans, max_flits=8))]
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
    """Return a mode of those schedules that can be loaded.

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
        If no schedule can be loaded, with the reason for the first.
    """
    found, wrong = list[Loadable](), list[InputError]()
    for schedule in schedules:
        try:
            found.append(loadable_form(schedule, flits, operators, room, beat=beat))
        except InputError as error:
            wrong.append(error)
    if not found:
        raise wrong[0]
    return LoadableMode.of(found, any_root=any_root)


def loadable_form(
    schedule: Schedule,
    flits: int,
    operators: Sequence[Operator],
    room: Room | None = None,
    *,
    beat: int = 1,
) -> Loadable:
    """Return the first compiled version of a schedule that can be loaded.

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
        If no version can be loaded, with the reason for the first.
    """
    if room is not None:
        beat = room.beat
        if schedule.topology.nodes != room.nodes:
            shared_network([room.topology, schedule.topology])  # raises InputError if it differs
        # A schedule around failed nodes is extended to the whole torus, where they stay idle.
        schedule = Lifted.within(schedule, room.topology)
    wrong = list[InputError]()
    for fixed in (True, False):
        for program in versions(schedule, flits, operators, beat=beat, fixed=fixed):
            try:
                form = Loadable.from_program(program)
                if room is not None:
                    room.check(form)
            except InputError as error:
                wrong.append(error)
            else:
                return form
    raise wrong[0]
