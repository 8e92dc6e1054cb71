"""Accesses of nodes from outside: writes of their messages, reads of the words they have received.

All nodes are written, or read, at once: each is given a write or a read of its own in every step.
What nodes are given besides, and when, is a matter of the top: `Access` has a subclass for each.
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

#: The inputs that are sampled with the start.
CHOICES = ("mode", "length", "root", "operation")


@dataclass(frozen=True)
class Steps:
    """The values of inputs of nodes, step by step, in some runs.

    Parameters
    ----------
    numbers : dict of str to ndarray of int, shape (steps, nodes, runs)
        By port; -1 where it is not known.
    words : dict of str to ndarray of int, shape (steps, beat, nodes, runs)
        By port that brings beats of words: the bits that stand for them.
    always : dict of str to ndarray of int, shape (nodes,)
        By port, what each node is given in all steps.
    otherwise : dict of str to int
        By port, what all nodes are given before the first step and after the last.
    """

    count: int
    numbers: Mapping[str, IntArray]
    words: Mapping[str, IntArray] = field(default_factory=dict)
    always: Mapping[str, IntArray] = field(default_factory=dict)
    otherwise: Mapping[str, int] = field(default_factory=dict)


def side_by_side(steps: Steps, first: int, count: int) -> Steps:
    """Some reads at once, each in a run of its own; those of one run follow one another."""

    def columns(values: IntArray) -> IntArray:
        return np.moveaxis(values[first : first + count], 0, -1).reshape(1, values.shape[1], -1)

    return replace(
        steps,
        count=1,
        numbers={port: columns(values) for port, values in steps.numbers.items()},
    )


class Access:
    """The way in which the nodes of a fabric are written and read.

    Attributes
    ----------
    beat : int
        Words that a node is given, or shows, at a time.
    nodes : dict of str to (list of int)
        Of each module of endpoints.
    answer : int
        Cycles from a read at the inputs of a node to its word.
    """

    answer = 0

    #: The port by which nodes show words.
    port = "read_data"

    #: True if starts that ask for what there is not are refused.
    refuses = True

    #: Steps of writes that are left when a run begins as early as it may, and cycles by which that
    #: may be later than its start.
    overlap = hold = 0

    #: In how many of the last cycles of a run the next one may begin, and in how many of its first
    #: ones it is not shown yet.
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
        """Return the net of the top that is an input or an output of the run port."""
        return name

    @property
    def shown(self) -> Mapping[str, list[int]]:
        """The nodes of each module that shows words."""
        return self.nodes

    def asked(self, runs: Sequence[Run]) -> dict[str, IntArray]:
        """Return the numbers that are sampled with starts, by inputs that there may be."""
        return {name: np.array([getattr(run, name) for run in runs]) for name in CHOICES}

    def writes(self, runs: Sequence[Run]) -> Steps:
        """Return the writes of messages, which all end in the same step; none without memories."""
        del runs
        return Steps(0, {})

    def reads(self, runs: Sequence[Run]) -> Steps:
        """Return the reads of received words, in their order; none without memories."""
        del runs
        return Steps(0, {})

    def idle(self) -> dict[str, IntArray]:
        """Return the values that drive nets of the top while nobody writes."""
        return {}

    def settling(self, now: int) -> dict[str, IntArray]:
        """Return the value of the net that holds a run while words are on their way, if any."""
        return {"settling": np.array([[now]])} if self.hold else {}

    def given(self, *, rst: int = 0, start: int | IntArray = 0) -> dict[str, IntArray]:
        """Return the values that drive the fabric while nobody writes."""
        pulse = np.broadcast_to(np.asarray(start), (1, self.machine.runs))
        given = {"rst": np.array([[rst]]), self.net("start"): pulse} | self.idle()
        if "reset_run" in self.machine.text.nets:
            given["reset_run"] = np.array([[0]])
        return given

    def check_rest(self, rest: Snapshot) -> int:
        """Check what else must be so at rest; returns how many things were compared."""
        del rest
        return 0

    def check_others(self, begin: Snapshot) -> None:
        """Check that writes for other nodes change nothing that a node holds."""
        del begin

    def at(self, steps: Steps, step: int) -> dict[str, Override]:
        """Return the inputs of the modules of endpoints in a step."""
        return {module: self._of(steps, module, step) for module in self.nodes}

    def _of(self, steps: Steps, module: str, step: int) -> Override:
        """Return the inputs of the nodes of a module."""
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
        """Numbers as the bits of a port of a module that matter; -1 is not known."""
        bits = self.machine.groups[module].program.inputs.get(port, [])
        shifts = np.array(bits, int)[:, None, None]
        return np.where(values[None] < 0, UNKNOWN, values[None] >> shifts & 1)

    def located(
        self, runs: Sequence[Run], find: Callable[[Run], Locations], *, ends_at_once: bool = False
    ) -> tuple[IntArray, IntArray]:
        """Memories and addresses of beats in some runs, each of shape (steps, nodes, runs)."""
        found = [find(run).of_beats(run.length, self.beat) for run in runs]
        memory = of_runs([places.memory for places in found], ends_at_once=ends_at_once)
        return memory, of_runs([places.address for places in found], ends_at_once=ends_at_once)

    def sent(self, runs: Sequence[Run]) -> IntArray:
        """The words of messages, shape (steps, beat, nodes, runs)."""
        words = [in_beats(sent_words(self.program, run), run.length, self.beat)
                 for run in runs]  # fmt: skip
        return of_runs(words, ends_at_once=True)


def of_runs(values: Sequence[IntArray], *, ends_at_once: bool = False) -> IntArray:
    """Return the values of each node and step in some runs, shape (steps, .., nodes, runs).

    Parameters
    ----------
    values : sequence of ndarray of int, shape (nodes, steps, ..)
    ends_at_once : bool
        Whether they end, rather than begin, in the same step; where there is none it is -1.

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
