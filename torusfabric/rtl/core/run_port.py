"""The run port of a core: the signals that start a run and report its state.

An adapter drives the inputs and reads the outputs. It may offer the same port to another adapter.

============== ==================================================================================
input          meaning
============== ==================================================================================
``start``      starts a run; accepted in a cycle in which ``idle`` is high (between runs, or in the
               last cycle of a run)
``entry``      the number of the form
``last``       the number of the last flit of a block, from 0
``root``       the root
``operation``  the number of the operator
``section``    the section of the memories (one of several equal parts) that the run uses
``settling``   while high, delays the begin of a run that was started
``reset``      ends the run under way; memories keep their words
============== ==================================================================================

Inputs are left out if the program offers no choice. The inputs from ``entry`` to ``section`` are
sampled with the start. The exception is ``last`` in a program of several forms: it is sampled in
the cycle in which the run begins to count, at least one cycle after the start.

============== ==================================================================================
output         meaning
============== ==================================================================================
``idle``       high if a start is accepted
``ending``     high in the cycle before the last cycle of a run
``ends``       high `lead` cycles before the last cycle of a run, but no earlier than in the last
               slot of the run
``busy``       high during a run
``done``       high from the end of a run to the start of the next
``cycles``     clock edges from the start to done
``round``      the row under way, from 0 in each form; only if runs choose their length
``last_entry`` the form of the run under way, or else of the last run
``last_root``  the root of the run under way, or else of the last run
============== ==================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...program import Program
from ..memories import address_width

if TYPE_CHECKING:
    from .room import RoomShape

__all__ = ["RunPort"]


class RunPort:
    """The run port of a core: the names and widths of the signals that start and report runs.

    Parameters
    ----------
    program : Program
        The program, which decides the choices of a run.
    sections : int
        Number of equal parts of each memory. If there are several, each run chooses one.
    lead : int
        Cycles from `ends` to the last cycle of a run. With 0, a run never begins in the last cycle
        of another, and the port has no outputs `idle`, `ending` and `ends`.
    hold : int
        Cycles after a write by the memory port in which no run may begin.
    resets : bool
        True for an input ``reset``.
    room : RoomShape, optional
        The limits of the programs that can be loaded, for a core with writable tables.

    Attributes
    ----------
    inputs, outputs : dict of str to int
        The signals of the port, each with its width.
    cycles : int
        Clock edges of the longest run.

    Examples
    --------
    A run chooses the length, one of 9 roots and one of 2 sections.

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
        roots = [mode.groups.group_size for mode in program.modes if mode.any_root]
        flits = max(form.loop.flits for form in forms)
        rows = max(form.loop.n_rows for form in forms)
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
