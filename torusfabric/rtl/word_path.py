"""The way of a word through the hardware: in each cycle what has it, and which code makes that."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ..program import Program
from ..program.timing import ADDRESS, COMBINE, DISTRIBUTION, SETTING
from ..program.trace import Arrival
from .combiner import Combiner
from .distribution import ControlStage
from .endpoint_builder import EndpointBuilder
from .memories import add_memory
from .router import Router
from .sequencer import Sequencer

__all__ = ["Stage", "word_path"]


class Stage(NamedTuple):
    """Where a word, or what controls it, is after a clock edge.

    Parameters
    ----------
    cycle : int
        The clock edge; the edge that takes the start pulse is number 0.
    what : str
    file : str
        The file whose code makes it, from the folder of the package's repository.
    line : int
        Where that code begins.
    """

    cycle: int
    what: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"cycle {self.cycle:3}  {self.what:52} {self.file}:{self.line}"


def word_path(program: Program, arrival: Arrival, flit: int = 0) -> list[Stage]:
    """The stages of a flit from the sequencer's row to the memory of its receiver.

    Parameters
    ----------
    program : Program
    arrival : Arrival
        Of `torusfabric.program.trace.arrivals`.
    flit : int
        Which flit of the message.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.program.trace import arrivals
    >>> program = tf.compile(tf.plan("3x3", "allgather", algorithm="matching"))
    >>> [stage.cycle for stage in word_path(program, next(arrivals(program)))]
    [0, 1, 2, 3, 4, 5, 6]
    """
    there = arrival.cycle + flit * arrival.stride
    slot = there - SETTING - len(arrival.hops) * program.topology.link_latency
    sender, names = arrival.path[0], program.topology.port_names
    steps: list[tuple[int, str, Callable[..., object]]] = [
        (slot, f"the sequencer shows the row of round {arrival.round}", vars(Sequencer)["_slots"]),
        (slot + ADDRESS - DISTRIBUTION, "it sends the address", vars(Sequencer)["_addresses"]),
        (slot + ADDRESS - 1, "a register near the group has it", vars(ControlStage)["elaborate"]),
        (slot + ADDRESS, f"a register of node {sender} has it", vars(EndpointBuilder)["_held"]),
        (slot + SETTING, f"a memory of node {sender} gives the word", add_memory),
    ]
    for hop, (node, port) in enumerate(zip(arrival.path, arrival.hops, strict=False), 1):
        cycle = slot + SETTING + hop * program.topology.link_latency
        steps.append(
            (cycle, f"out-port {names[port]} of node {node} has it", vars(Router)["elaborate"])
        )
    if program.loop.combining:
        there += COMBINE + program.loop.latency
        what = f"the operator at in-port {names[arrival.port]} has combined it"
        steps.append((there, what, vars(Combiner)["_result"]))
    steps.append((there + 1, f"node {arrival.node} has stored or passed it on", add_memory))
    return [Stage(cycle, what, *_place(code)) for cycle, what, code in steps]


def _place(code: Callable[..., object]) -> tuple[str, int]:
    """The file and line of a function, as they are in the repository."""
    root = Path(__file__).parents[2]
    file = Path(inspect.getsourcefile(code) or "").relative_to(root).as_posix()
    return file, inspect.getsourcelines(code)[1]
