"""Access to nodes from outside: writes of messages before a run, reads of received words after.

In each step every node is written, or read, at the same time, each with inputs of its own. The
inputs depend on the interface of the fabric, so each interface has a subclass of `NodeAccess`.

The *machine* executes the gates of the fabric for several runs at once (see `machine`). A
*snapshot* is the state of all registers and memories of the fabric. The *resting state* is a
snapshot that stands for every state between two runs: bits that can differ are unknown in it. In
arrays, -1 stands for an unknown or missing number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ..rtl.netlist import Role
from ..topology import IntArray
from .messages import Locations, Run, group_by_beats, sent_words
from .symbols import UNKNOWN

if TYPE_CHECKING:
    from ..rtl import Fabric
    from .machine import Override, SymbolicMachine
    from .snapshot import Snapshot

__all__ = ["RUN_CHOICES", "NodeAccess", "AccessSteps", "stack_runs", "reads_in_one_step"]

#: Inputs that the fabric samples at the start.
RUN_CHOICES = ("mode", "length", "root", "operation")


@dataclass(frozen=True)
class AccessSteps:
    """The values at the input ports of nodes while messages are written or words are read.

    There is one step for each cycle. Values are given for several runs at once.

    Parameters
    ----------
    count : int
        Number of steps.
    numbers : dict of str to ndarray of int, shape (steps, nodes, runs)
        Port, such as an address -> its value in each step; -1 for unknown.
    words : dict of str to ndarray of int, shape (steps, beat, nodes, runs)
        Port that takes words -> for each word one symbolic bit (see `symbols`), which stands for
        all bits of the word.
    always : dict of str to ndarray of int, shape (nodes,)
        Port -> its value at each node, the same in all steps.
    otherwise : dict of str to int
        Port, such as an enable -> its value at all nodes before the first step and after the last.
    """

    count: int
    numbers: Mapping[str, IntArray]
    words: Mapping[str, IntArray] = field(default_factory=dict)
    always: Mapping[str, IntArray] = field(default_factory=dict)
    otherwise: Mapping[str, int] = field(default_factory=dict)


def reads_in_one_step(steps: AccessSteps, first: int, count: int) -> AccessSteps:
    """Return some reads, which are made one after another, as a single step with more runs.

    Why: reads do not affect each other, so the machine can execute them side by side. Run r and
    read ``first + k`` become run ``r * count + k`` of the result. With two runs and reads 4 to 6::

        run of the result    0   1   2   3   4   5
        original run         0   0   0   1   1   1
        read                 4   5   6   4   5   6

    Parameters
    ----------
    steps : AccessSteps
        Reads, one in each step.
    first, count : int
        Number of the first read to take, and how many reads to take.
    """

    def runs_from_steps(values: IntArray) -> IntArray:
        return np.moveaxis(values[first : first + count], 0, -1).reshape(1, values.shape[1], -1)

    return replace(
        steps,
        count=1,
        numbers={port: runs_from_steps(values) for port, values in steps.numbers.items()},
    )


class NodeAccess:
    """The interface through which the nodes of a fabric are written and read.

    Attributes
    ----------
    beat : int
        Words that a node accepts or shows in one cycle.
    nodes : dict of str to (list of int)
        Nodes of each endpoint module, in the order of its instances.
    answer : int
        Number of cycles after a read is requested until the word is at the outputs of the node.
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

    def __init__(self, fabric: Fabric, machine: SymbolicMachine) -> None:
        self.program, self.machine = fabric.program, machine
        self.beat, self._width = fabric.beat, fabric.width
        roles, prefix = fabric.netlist.roles, fabric.prefix
        self.nodes = {
            module: [int(name.rsplit("_", 1)[1]) for name in group.names]
            for module, group in machine.groups.items()
            if roles.get(module.removeprefix(prefix)) is Role.ENDPOINT
        }

    def top_net(self, name: str) -> str:
        """Return the name of the net at a port of the sequencer, such as the port ``start``."""
        return name

    @property
    def nodes_by_module(self) -> Mapping[str, list[int]]:
        """The nodes at whose outputs words are read, as a dict: module -> its nodes.

        The nodes are in the order of the instances of the module. The attribute `port` is the name
        of the output at which a node shows words.
        """
        return self.nodes

    def sampled_choices(self, runs: Sequence[Run]) -> dict[str, IntArray]:
        """Return the choices of runs, as the fabric samples them at the start.

        Returns
        -------
        dict of str to ndarray of int, shape (runs,)
            Input for mode, length, root or operator (`RUN_CHOICES`) -> its value in each run.
        """
        return {name: np.array([getattr(run, name) for run in runs]) for name in RUN_CHOICES}

    def message_writes(self, runs: Sequence[Run]) -> AccessSteps:
        """Return the values at the ports of nodes while the messages of runs are written.

        There is one step for each cycle. Runs with fewer writes begin later, so that the last write
        of every run is in the last step. A core without memories has no writes.
        """
        del runs
        return AccessSteps(0, {})

    def message_reads(self, runs: Sequence[Run]) -> AccessSteps:
        """Return the values at the ports of nodes while all received words of runs are read.

        Each step reads one beat at every node. A core without memories has no reads.
        """
        del runs
        return AccessSteps(0, {})

    def idle_access_nets(self) -> dict[str, IntArray]:
        """Return the nets for writes and reads, with their values while no node is accessed.

        The result is a dict: net -> its bits, shape (bits, 1). A core without memories has no such
        nets.
        """
        return {}

    def settling_net(self, now: int) -> dict[str, IntArray]:
        """Return the net ``settling`` with the value `now`, as a dict: net -> array of one bit.

        While this net is 1, writes are in progress, and the fabric delays a run that is started.
        The dict is empty for a fabric that cannot delay a run.
        """
        return {"settling": np.array([[now]])} if self.hold else {}

    def idle_inputs(self, *, rst: int = 0, start: int | IntArray = 0) -> dict[str, IntArray]:
        """Return the inputs of the top, with their values while no node is written or read.

        Parameters
        ----------
        rst : int
            Value of the reset.
        start : int or ndarray of int, shape (runs,)
            Value of the start input, the same in all runs or one for each.

        Returns
        -------
        dict of str to ndarray of int, shape (bits, runs) or (bits, 1)
            Input -> its bits.
        """
        pulse = np.broadcast_to(np.asarray(start), (1, self.machine.runs))
        given = {"rst": np.array([[rst]]), self.top_net("start"): pulse} | self.idle_access_nets()
        if "reset_run" in self.machine.text.nets:
            given["reset_run"] = np.array([[0]])
        return given

    def check_rest(self, rest: Snapshot) -> int:
        """Check additional properties of the state between runs; return the number of comparisons.

        `rest` is this state: a bit that is not the same between all runs is unknown in it. By
        default nothing is checked; the subclass of an interface may add checks.
        """
        del rest
        return 0

    def check_others(self, begin: Snapshot) -> None:
        """Check that a write for one node leaves the memories of all other nodes unchanged.

        The write begins in the state `begin`. By default nothing is checked; the subclass of an
        interface may add the check.
        """
        del begin

    def endpoint_inputs(self, steps: AccessSteps, step: int) -> dict[str, Override]:
        """Return the values at the inputs of all endpoints in one step of an access.

        Parameters
        ----------
        steps : AccessSteps
            Values of all steps.
        step : int
            Number of the step. Before step 0 and after the last step, inputs have the values of
            `AccessSteps.otherwise`.

        Returns
        -------
        dict of str to Override
            Endpoint module -> the symbolic bits of its ports, for `SymbolicMachine.settle_nets`.
        """
        return {module: self._module_inputs(steps, module, step) for module in self.nodes}

    def _module_inputs(self, steps: AccessSteps, module: str, step: int) -> Override:
        """Return the values at the inputs of the endpoints of one module in one step.

        The result is a dict: port -> its symbolic bits, shape (bits, nodes, runs). `steps` has the
        values of all steps.
        """
        nodes = self.nodes[module]
        given = {p: self.port_bits(module, p, v[nodes][:, None]) for p, v in steps.always.items()}
        if not 0 <= step < steps.count:
            for port, value in steps.otherwise.items():
                given[port] = self.port_bits(module, port, np.full((1, 1), value))
            return given
        for port, values in steps.numbers.items():
            given[port] = self.port_bits(module, port, values[step][nodes])
        inputs = self.machine.groups[module].program.inputs
        for port, words in steps.words.items():
            of_beat = np.array(inputs.get(port, []), int) // self._width
            given[port] = words[step][of_beat][:, nodes]
        return given

    def port_bits(self, module: str, port: str, values: IntArray) -> IntArray:
        """Convert numbers at a port of the endpoints of a module into symbolic bits.

        Parameters
        ----------
        values : ndarray of int, shape (nodes, runs)
            The number at the port of each node, in each run; -1 for unknown.

        Returns
        -------
        ndarray of int, shape (bits, nodes, runs)
            Bits of the port, 0 or 1; -1 (unknown) if the number is unknown. Bits that affect no
            simulated output are left out.
        """
        bits = self.machine.groups[module].program.inputs.get(port, [])
        shifts = np.array(bits, int)[:, None, None]
        return np.where(values[None] < 0, UNKNOWN, values[None] >> shifts & 1)

    def locate_beats(
        self, runs: Sequence[Run], find: Callable[[Run], Locations], *, ends_at_once: bool = False
    ) -> tuple[IntArray, IntArray]:
        """Return the memory and the address of each beat of the messages of `runs`, at each node.

        Parameters
        ----------
        find : function of Run -> Locations
            Returns the locations of the sent, or of the received, words of a run.
        ends_at_once : bool
            Alignment of runs with different numbers of beats; see `stack_runs`.

        Returns
        -------
        memory, address : ndarray of int, shape (steps, nodes, runs)
            Number of the memory, and address of the beat; -1 for no beat.
        """
        found = [find(run).first_of_beats(run.length, self.beat) for run in runs]
        memory = stack_runs([places.memory for places in found], ends_at_once=ends_at_once)
        return memory, stack_runs([places.address for places in found], ends_at_once=ends_at_once)

    def message_bits(self, runs: Sequence[Run]) -> IntArray:
        """Return the symbolic bits of the words that nodes send, for `AccessSteps.words`.

        Parameters
        ----------
        runs : sequence of Run
            Runs that the machine executes at once.

        Returns
        -------
        ndarray of int, shape (steps, beat, nodes, runs)
            Symbolic bits; the last steps of all runs are aligned, and missing steps are -1.
        """
        words = [group_by_beats(sent_words(self.program, run), run.length, self.beat)
                 for run in runs]  # fmt: skip
        return stack_runs(words, ends_at_once=True)


def stack_runs(values: Sequence[IntArray], *, ends_at_once: bool = False) -> IntArray:
    """Stack one array for each run into a single array, although their numbers of steps differ.

    Parameters
    ----------
    values : sequence of ndarray of int, shape (nodes, steps, ..)
        Values of each run.
    ends_at_once : bool
        True to align the last steps of all runs, False to align the first.

    Returns
    -------
    ndarray of int, shape (steps, .., nodes, runs)
        The values; -1 in steps that a run does not have.

    Examples
    --------
    Run 0 has two steps, run 1 has one:

    >>> stack_runs([np.array([[5, 6]]), np.array([[7]])], ends_at_once=True)[:, 0].tolist()
    [[5, -1], [6, 7]]
    """
    count = max(of_run.shape[1] for of_run in values)
    nodes, _, *each = values[0].shape
    found: IntArray = np.full((count, *each, nodes, len(values)), -1)
    for k, of_run in enumerate(values):
        first = count - of_run.shape[1] if ends_at_once else 0
        found[first : first + of_run.shape[1], ..., k] = np.moveaxis(of_run, 0, -1)
    return found
