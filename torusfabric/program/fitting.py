"""What of schedules and programs can be loaded into a fabric, and the program of one that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..topology import shared_network
from .address_map import AddressMap
from .compile import versions
from .fields import memories_of
from .frame import places_beside
from .loadable import Loadable, LoadableMode, entries_of
from .mode import Range
from .program import Program
from .rewriting import loadable

if TYPE_CHECKING:
    from ..collective import Operator
    from ..schedule import Schedule
    from .frame import Frame
    from .mode import Form

__all__ = ["fitted", "loadable_form", "loadable_mode", "loadable_modes"]


def fitted(modes: Sequence[LoadableMode], frame: Frame) -> Program:
    """The program of a fabric into which modes are loaded.

    Raises
    ------
    InputError
        If they do not fit.
    """
    entries = entries_of(modes)
    forms = [entry.form for entry in entries]
    for form in forms:
        frame.check(form)
    places_beside(frame, entries)  # which refuses more than there is room for
    served = [tuple(map(Range, mode.starts, range(len(mode.starts)))) for mode in modes]
    programs = [form.program for form in forms]
    depth = [frame.words] * frame.ports + [frame.nodes * frame.flits]
    return Program(
        topology=frame.topology,
        flits=frame.flits,
        forms=tuple(_form(form, frame) for form in forms),
        memories=memories_of(range(frame.ports), 1),
        depth=np.array([depth]),
        variant_of=np.zeros(frame.nodes, np.int32),
        parts=tuple(programs),
        served=tuple(served) if len(forms) > len(modes) else (),
        roots=tuple(mode.roots for mode in modes) if any(mode.any_root for mode in modes) else (),
        loaded=True,
    )


def _form(form: Loadable, frame: Frame) -> Form:
    """A form as it is in the fabric: its data lie where hosts of all images find them."""
    program, ports = form.program, frame.ports
    layout, chunks = program.layout, form.chunks
    part, chunk = np.mgrid[: layout.send_parts, : layout.part_chunks]
    base = part * (layout.part_chunks if layout.in_shares else frame.flits) + chunk
    shape = frame.nodes, layout.recv_parts, layout.part_chunks
    memory, first = (form.received[..., k].reshape(shape) for k in (0, 1))
    return replace(
        program.form,
        loop=replace(program.loop, pitch=(1,) * ports + (chunks,), sources=frame.sources),
        send_map=AddressMap(np.full((1, *base.shape), ports), base[None]),
        receive_map=AddressMap(np.maximum(memory, 0), first),
        write_delay=0,
        chosen=True,
        layout=0,
    )


def loadable_modes(program: Program, frame: Frame | None = None) -> list[LoadableMode]:
    """What each mode of a program does, in forms that can be loaded.

    Raises
    ------
    InputError
        If a mode has none.

    Examples
    --------
    >>> import torusfabric as tf
    >>> plans = [tf.plan("4x4", name, algorithm="matching") for name in ("allgather", "scatter")]
    >>> [mode.forms[0].rows for mode in loadable_modes(tf.compile(plans, max_flits=8))]
    [4, 4]
    """
    if not program.any_length:
        raise InputError("Length must be left to each run, by max_flits, for loaded tables")
    if program.barrier:
        raise InputError("Tables must be rom for a barrier, not ram")
    found = []
    for mode in program.modes:
        schedules = dict.fromkeys(form.schedule for form in mode.forms)
        found.append(
            loadable_mode(schedules, program.flits, mode.operators, frame, any_root=mode.any_root)
        )
    return found


def loadable_mode(
    schedules: Iterable[Schedule], flits: int, operators: Sequence[Operator],
    frame: Frame | None, *, any_root: bool,
) -> LoadableMode:  # fmt: skip
    """A mode of those of some schedules that can be loaded, into a fabric if one is given.

    Raises
    ------
    InputError
        If none can; it says why the first cannot.
    """
    found, wrong = list[Loadable](), list[InputError]()
    for schedule in schedules:
        try:
            found.append(loadable_form(schedule, flits, operators, frame))
        except InputError as error:
            wrong.append(error)
    if not found:
        raise wrong[0]
    return LoadableMode.of(found, any_root=any_root)


def loadable_form(
    schedule: Schedule,
    flits: int,
    operators: Sequence[Operator],
    frame: Frame | None = None,
) -> Loadable:
    """The first version of a schedule that can be loaded, into a fabric if one is given.

    Raises
    ------
    InputError
        If none can; it says why the first cannot.
    """
    if frame is not None:
        from ..schedule import Lifted

        if schedule.topology.nodes != frame.nodes:
            shared_network([frame.topology, schedule.topology])  # which refuses any other
        # One that lacks nodes leaves them out.
        schedule = Lifted.within(schedule, frame.topology)
    wrong = list[InputError]()
    for fixed in (True, False):
        for program in versions(schedule, flits, operators, fixed=fixed):
            try:
                form = loadable(program)
                if frame is not None:
                    frame.check(form)
            except InputError as error:
                wrong.append(error)
            else:
                return form
    raise wrong[0]
