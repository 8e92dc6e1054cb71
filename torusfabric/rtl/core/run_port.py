"""The run port of a core: how a run is started, and what is said of it.

An adapter drives the inputs of the run port and reads its outputs; it may offer the same port to
another adapter. A start is accepted in a cycle in which `idle` is high: at rest, or in the last
cycle of a run. Everything else that a run chooses is sampled with it.

Inputs: ``start``; ``entry``, the number of a form; ``last``, the number of the last flit of a
block, from 0; ``root``; ``operation``, the number of an operator; ``section``; ``settling``, which
holds a run that was started; ``reset``, which ends a run, so that memories keep their words. Those
that a program has no choice of are left out. With several forms, ``last`` is sampled in the cycle
in which the run begins to count, at least a cycle after its start.

Outputs: ``idle``; ``ending``, high in the cycle before the last one of a run; ``ends``, high `lead`
cycles before the last one, but with a `room` no earlier than the last slot of the run; ``busy``;
``done``, high from the end of a run to the start of the next; ``cycles``, the clock edges from the
start to done; ``round``, the row under way, from 0 in each form; ``last_entry`` and ``last_root``,
those of the run under way, or of the last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...program import Program
from ..memories import address_width

if TYPE_CHECKING:
    from .room import RoomShape

__all__ = ["RunPort"]


class RunPort:
    """The run port of a program.

    Parameters
    ----------
    sections : int
        Sections of each memory.
    lead : int
        Cycles from `ends` to the last cycle of a run; 0 if no run follows another at once.
    hold : int
        Cycles after a write by the memory port in which no run may begin.
    resets : bool
        True if an input ends runs.
    room : RoomShape, optional
        What may be loaded, if tables are.

    Attributes
    ----------
    inputs, outputs : dict of str to int
        The members, each with its width.
    cycles : int
        Clock edges of the longest run.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "broadcast"), max_flits=8, root="any")
    >>> RunPort(program, sections=2).inputs
    {'start': 1, 'last': 1, 'root': 4, 'section': 1, 'reset': 1}
    """

    def __init__(
        self,
        program: Program,
        *,
        sections: int = 1,
        lead: int = 2,
        hold: int = 0,
        resets: bool = True,
        room: RoomShape | None = None,
    ) -> None:
        self.lead, self.resets, self.hold = lead, resets, hold
        forms = program.forms
        timings = [form.timing_of(form.block_of(program.flits)) for form in forms]
        self.cycles = max(timing.cycles for timing in timings)
        roots = [mode.groups.size for mode in program.modes if mode.any_root]
        flits = max(form.loop.flits for form in forms)
        rows = max(form.loop.rows for form in forms)
        counts = {
            "entry": len(forms),
            "last": max(flits, 2) if program.any_length else 0,
            "root": max(roots, default=0),
            "operation": len(program.operators),
            "section": sections,
        }
        if room is not None:
            self.cycles, rows = (1 << 32) - 1, room.sizes.rows
            counts |= {"entry": room.sizes.entries, "last": max(room.flits, 2), "root": 0}
            counts["operation"] = len(room.parsed_operators())
        chosen = {name: address_width(count) for name, count in counts.items() if count > 1}
        also = {"settling": self.hold > 0, "reset": resets}
        self.inputs = {"start": 1} | chosen | {name: 1 for name, there in also.items() if there}
        states = [*(("idle", "ending", "ends") if lead else ()), "busy", "done"]
        self.outputs = dict.fromkeys(states, 1) | {"cycles": 32}
        if program.any_length:
            self.outputs["round"] = address_width(rows)
        held = {"last_entry": "entry", "last_root": "root"}
        self.outputs |= {name: chosen[of] for name, of in held.items() if of in chosen}
