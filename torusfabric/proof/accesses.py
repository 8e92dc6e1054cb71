"""Access to nodes from outside: writes of messages before a run, reads of received words after.

In each step every node is written, or read, at the same time, each with inputs of its own. The
inputs depend on the interface of the fabric, so each interface has a subclass of `Access`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ..rtl.netlist import Role
from ..topology import IntArray
from .messages import Locations, Run, in_beats, sent_words
from .symbols import UNKNOWN

if TYPE_CHECKING:
    from ..rtl import Fabric
    from .machine import Machine, Override
    from .snapshot import Snapshot

__all__ = ["CHOICES", "Access", "Steps", "of_runs", "side_by_side"]

#: Inputs that the fabric samples at the start.
CHOICES = ("mode", "length", "root", "operation")


@dataclass(frozen=True)
class Steps:
    """Values of node inputs, step by step, for several runs.

    Parameters
    ----------
    count : int
        Number of steps.
    numbers : dict of str to ndarray of int, shape (steps, nodes, runs)
        By port: numbers; -1 for unknown.
    words : dict of str to ndarray of int, shape (steps, beat, nodes, runs)
        By port: symbolic bits of words.
    always : dict of str to ndarray of int, shape (nodes,)
        By port: a number for each node, the same in all steps.
    otherwise : dict of str to int
        By port: the number for all nodes before the first step and after the last.
    """

    count: int
    numbers: Mapping[str, IntArray]
    words: Mapping[str, IntArray] = field(default_factory=dict)
    always: Mapping[str, IntArray] = field(default_factory=dict)
    otherwise: Mapping[str, int] = field(default_factory=dict)


def side_by_side(steps: Steps, first: int, count: int) -> Steps:
    """Return one step that makes `count` reads at once, each in a run of its own.

    The reads of one original run are adjacent.
    """

    def columns(values: IntArray) -> IntArray:
        return np.moveaxis(values[first : first + count], 0, -1).reshape(1, values.shape[1], -1)

    return replace(
        steps,
        count=1,
        numbers={port: columns(values) for port, values in steps.numbers.items()},
    )


class Access:
    """The interface through which the nodes of a fabric are written and read.

    Attributes
    ----------
    beat : int
        Words that a node accepts or shows in one cycle.
    nodes : dict of str to (list of int)
        Nodes of each endpoint module, in the order of its instances.
    answer : int
        Cycles from a read at the inputs of a node to the word at its outputs.
    """

    answer = 0

    #: Port at which nodes show words.
    port = "read_data"

    #: True if the fabric refuses starts with choices out of range.
    refuses = True

    #: Write steps still to come when a run begins as early as possible, and the most cycles by
    #: which the fabric delays the beginning of a run after its start.
    overlap = hold = 0

    #: Number of last cycles of a run in which the next start is accepted, and number of first
    #: cycles in which busy and done do not yet show the run.
    follows = 0
    unshown = 0

    def __init__(self, fabric: Fabric, machine: Machine) -> None:
        self.program, self.machine = fabric.program, machine
        self.beat, self._width = fabric.beat, fabric.width
        roles, prefix = fabric.netlist.roles, fabric.prefix
        self.nodes = {
            module: [int(name.rsplit("_", 1)[1]) for name in group.names]
            for module, group in machine.groups.items()
            if roles.get(module.removeprefix(prefix)) is Role.ENDPOINT
        }

    def net(self, name: str) -> str:
        """Return the net of the top for an input or output of the run port."""
        return name

    @property
    def shown(self) -> Mapping[str, list[int]]:
        """The nodes of each module that shows words."""
        return self.nodes

    def asked(self, runs: Sequence[Run]) -> dict[str, IntArray]:
        """Return the numbers that the fabric samples at the start, by input."""
        return {name: np.array([getattr(run, name) for run in runs]) for name in CHOICES}

    def writes(self, runs: Sequence[Run]) -> Steps:
        """Return the writes of messages, which all end in the same step; none without memories."""
        del runs
        return Steps(0, {})

    def reads(self, runs: Sequence[Run]) -> Steps:
        """Return the reads of received words, in order; none without memories."""
        del runs
        return Steps(0, {})

    def idle(self) -> dict[str, IntArray]:
        """Return the values of the write and read nets of the top while there is no access."""
        return {}

    def settling(self, now: int) -> dict[str, IntArray]:
        """Return the value of the net that delays a run while writes are in progress, if any."""
        return {"settling": np.array([[now]])} if self.hold else {}

    def given(self, *, rst: int = 0, start: int | IntArray = 0) -> dict[str, IntArray]:
        """Return the values of the inputs of the top while there is no access."""
        pulse = np.broadcast_to(np.asarray(start), (1, self.machine.runs))
        given = {"rst": np.array([[rst]]), self.net("start"): pulse} | self.idle()
        if "reset_run" in self.machine.text.nets:
            given["reset_run"] = np.array([[0]])
        return given

    def check_rest(self, rest: Snapshot) -> int:
        """Check further properties of the resting state; returns the number of comparisons."""
        del rest
        return 0

    def check_others(self, begin: Snapshot) -> None:
        """Check that a write for another node leaves a node unchanged."""
        del begin

    def at(self, steps: Steps, step: int) -> dict[str, Override]:
        """Return the inputs of all endpoint modules in one step."""
        return {module: self._of(steps, module, step) for module in self.nodes}

    def _of(self, steps: Steps, module: str, step: int) -> Override:
        """Return the inputs of the nodes of one module in one step."""
        nodes = self.nodes[module]
        given = {p: self.bits(module, p, v[nodes][:, None]) for p, v in steps.always.items()}
        if not 0 <= step < steps.count:
            for port, value in steps.otherwise.items():
                given[port] = self.bits(module, port, np.full((1, 1), value))
            return given
        for port, values in steps.numbers.items():
            given[port] = self.bits(module, port, values[step][nodes])
        inputs = self.machine.groups[module].program.inputs
        for port, words in steps.words.items():
            of_beat = np.array(inputs.get(port, []), int) // self._width
            given[port] = words[step][of_beat][:, nodes]
        return given

    def bits(self, module: str, port: str, values: IntArray) -> IntArray:
        """Return numbers as the relevant bits of a port; -1 becomes unknown bits."""
        bits = self.machine.groups[module].program.inputs.get(port, [])
        shifts = np.array(bits, int)[:, None, None]
        return np.where(values[None] < 0, UNKNOWN, values[None] >> shifts & 1)

    def located(
        self, runs: Sequence[Run], find: Callable[[Run], Locations], *, ends_at_once: bool = False
    ) -> tuple[IntArray, IntArray]:
        """Return memory and address of each beat of some runs, each shape (steps, nodes, runs)."""
        found = [find(run).of_beats(run.length, self.beat) for run in runs]
        memory = of_runs([places.memory for places in found], ends_at_once=ends_at_once)
        return memory, of_runs([places.address for places in found], ends_at_once=ends_at_once)

    def sent(self, runs: Sequence[Run]) -> IntArray:
        """Return the symbolic bits of messages, shape (steps, beat, nodes, runs)."""
        words = [in_beats(sent_words(self.program, run), run.length, self.beat)
                 for run in runs]  # fmt: skip
        return of_runs(words, ends_at_once=True)


def of_runs(values: Sequence[IntArray], *, ends_at_once: bool = False) -> IntArray:
    """Stack arrays of several runs with different numbers of steps, shape (steps, .., nodes, runs).

    Parameters
    ----------
    values : sequence of ndarray of int, shape (nodes, steps, ..)
        Values of each run.
    ends_at_once : bool
        True to align the last steps of all runs, False to align the first; missing steps are -1.

    Examples
    --------
    >>> of_runs([np.array([[5, 6]]), np.array([[7]])], ends_at_once=True)[:, 0].tolist()
    [[5, -1], [6, 7]]
    """
    count = max(of_run.shape[1] for of_run in values)
    nodes, _, *each = values[0].shape
    found: IntArray = np.full((count, *each, nodes, len(values)), -1)
    for k, of_run in enumerate(values):
        first = count - of_run.shape[1] if ends_at_once else 0
        found[first : first + of_run.shape[1], ..., k] = np.moveaxis(of_run, 0, -1)
    return found
