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
cycles before the last one; ``busy``; ``done``, high from the end of a run to the start of the next;
``cycles``, the clock edges from the start to done; ``round``, the row under way, from 0 in each
form; ``last_entry`` and ``last_root``, those of the run under way, or of the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...program import Program
from ..memories import address_width
from .rows import Rows

__all__ = ["RunPort"]


@dataclass(frozen=True)
class RunPort:
    """The choices of a run, and the widths of the run port.

    Parameters
    ----------
    entries : int
        Forms.
    flits : int
        Flits of the longest block; 0 if the length is fixed.
    roots : int
        Nodes of which each may be the root; 0 if the root is fixed.
    operations : int
        Operators.
    sections : int
        Sections of each memory.
    rows : int
        Rows of the longest form.
    cycles : int
        Clock edges of the longest run.
    lead : int
        Cycles from `ends` to the last cycle of a run; 0 if no run follows another at once.
    holds : bool
        True if an input holds runs that were started.
    resets : bool
        True if an input ends runs.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "broadcast"), max_flits=8, root="any")
    >>> RunPort.from_program(program, sections=2).inputs
    {'start': 1, 'last': 3, 'root': 4, 'section': 1, 'reset': 1}
    """

    entries: int
    flits: int
    roots: int
    operations: int
    sections: int
    rows: int
    cycles: int
    lead: int = 2
    holds: bool = False
    resets: bool = True

    @classmethod
    def from_program(
        cls,
        program: Program,
        *,
        sections: int = 1,
        lead: int = 2,
        holds: bool = False,
        resets: bool = True,
    ) -> RunPort:
        """Return the run port of a program."""
        loops = Rows(program).loops
        longest = (form.timing_of(form.block_of(program.flits)) for form in program.forms)
        return cls(
            entries=len(program.forms),
            flits=max(loop.flits for loop in loops) if program.any_length else 0,
            roots=max([mode.groups.size for mode in program.modes if mode.any_root], default=0),
            operations=len(program.operators),
            sections=sections,
            rows=max(loop.rows for loop in loops),
            cycles=max(timing.cycles for timing in longest),
            lead=lead,
            holds=holds,
            resets=resets,
        )

    @property
    def inputs(self) -> dict[str, int]:
        """The inputs, each with its width."""
        found = {"start": 1}
        if self.entries > 1:
            found["entry"] = address_width(self.entries)
        if self.flits:
            found["last"] = address_width(self.flits)
        if self.roots > 1:
            found["root"] = address_width(self.roots)
        if self.operations > 1:
            found["operation"] = address_width(self.operations)
        if self.sections > 1:
            found["section"] = address_width(self.sections)
        if self.holds:
            found["settling"] = 1
        if self.resets:
            found["reset"] = 1
        return found

    @property
    def outputs(self) -> dict[str, int]:
        """The outputs, each with its width."""
        found = dict.fromkeys(("idle", "ending", "ends") if self.lead else (), 1)
        found |= {"busy": 1, "done": 1, "cycles": 32}
        if self.flits:
            found["round"] = address_width(self.rows)
        if self.entries > 1:
            found["last_entry"] = address_width(self.entries)
        if self.roots > 1:
            found["last_root"] = address_width(self.roots)
        return found
