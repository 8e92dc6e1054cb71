"""The steps of an MSCCL file as a graph, whose edges say which step waits for which.

A *thread block* is a sequence of steps of one GPU. A thread block executes its steps in order. A
step also waits for the step that it names. A receive waits for its send: the k-th send to a peer on
a channel is matched with the k-th receive from that peer. A send does not wait until it is
received.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from ...errors import InputError
from .msccl import RECEIVING, SENDING, MscclFile, MscclStep, ThreadBlock

__all__ = ["StepGraph", "step_graph"]

#: The most steps of a deadlock that a message names.
MOST_LISTED = 4


@dataclass(frozen=True, eq=False)
class StepGraph:
    """The steps of an MSCCL file, and for each step the steps that wait for it.

    Steps are instructions of GPUs, such as a send. They are numbered from 0 over all thread blocks
    of all GPUs; this number is the index of a step.

    Parameters
    ----------
    follows : list of list of int
        For each step the steps that wait for its end. Receives that wait for its message are in
        `received_by`.
    received_by : dict of int to int
        For each step that sends: the step that receives its message.
    sent_by : dict of int to int
        For each step that receives: the step that sends its message.
    """

    steps: list[tuple[ThreadBlock, MscclStep]]
    follows: list[list[int]]
    received_by: dict[int, int] = field(default_factory=dict)
    sent_by: dict[int, int] = field(default_factory=dict)

    def location_text(self, index: int) -> str:
        """Return text for people that names the GPU, the thread block and the number of step
        `index`.
        """
        block, step = self.steps[index]
        return block.location_text(step.number)

    def successors(self, index: int) -> Iterable[int]:
        """Yield the indices of all steps that wait for step `index`."""
        yield from self.follows[index]
        if index in self.received_by:
            yield self.received_by[index]

    def topological_order(self) -> list[int]:
        """Return all steps, each after the steps that it waits for.

        Raises
        ------
        InputError
            If steps wait for each other in a circle. The message names them.
        """
        sorter: TopologicalSorter[int] = TopologicalSorter(
            dict.fromkeys(range(len(self.steps)), ())
        )
        for index in range(len(self.steps)):
            for other in self.successors(index):
                sorter.add(other, index)
        try:
            return [*sorter.static_order()]
        except CycleError as error:
            circle = error.args[1][:0:-1]
            first = circle.index(min(circle))
            circle = circle[first:] + circle[:first]
            names = [self.location_text(index) for index in circle[:MOST_LISTED]]
            names += [f"{len(circle) - MOST_LISTED} more"] * (len(circle) > MOST_LISTED)
            chain = ", which waits for ".join([*names, "the first"])
            text = f"Steps must not wait for each other, as does {chain}: a deadlock"
            raise InputError(text) from None


def step_graph(file: MscclFile) -> StepGraph:
    """Return the graph of the steps of a file.

    Raises
    ------
    InputError
        If a step waits for a step that does not exist, or a send has no receive, or the other way
        round.
    """
    steps = [(block, step) for block in file.blocks for step in block.steps]
    graph = StepGraph(steps, [[] for _ in steps])
    index_of = {
        (block.gpu, block.number, step.number): index
        for index, (block, step) in enumerate(graph.steps)
    }
    for index, (block, step) in enumerate(graph.steps):
        if index and graph.steps[index - 1][0] is block:
            graph.follows[index - 1].append(index)
        if step.waits_for is None:
            continue
        awaited = index_of.get((block.gpu, *step.waits_for))
        if awaited is None:
            number, deps = step.waits_for
            raise InputError(
                f"{block.location_text(step.number)} must wait for a step that there is, "
                f"not for thread block {number}, step {deps}"
            )
        graph.follows[awaited].append(index)
    _match_messages(graph)
    return graph


def _match_messages(graph: StepGraph) -> None:
    """Match each send with its receive, and write both into the graph.

    The k-th send from a GPU to a peer on a channel belongs to the k-th receive there.
    """
    sends: dict[tuple[int, int, int], list[int]] = {}
    receipts: dict[tuple[int, int, int], list[int]] = {}
    for index, (block, step) in enumerate(graph.steps):
        if step.type in SENDING:
            sends.setdefault((block.gpu, block.send, block.channel), []).append(index)
        if step.type in RECEIVING:
            receipts.setdefault((block.recv, block.gpu, block.channel), []).append(index)
    for pair in {**sends, **receipts}:
        out, into = sends.get(pair, []), receipts.get(pair, [])
        for sender, receiver in zip(out, into, strict=False):
            counts = graph.steps[sender][1].chunks, graph.steps[receiver][1].chunks
            if counts[0] != counts[1]:
                raise InputError(
                    f"{graph.location_text(receiver)} must receive the {counts[0]} chunks that "
                    f"{graph.location_text(sender)} sends, not {counts[1]}"
                )
            graph.received_by[sender], graph.sent_by[receiver] = receiver, sender
        if len(out) == len(into):
            continue
        source, target, channel = pair
        alone = out[len(into)] if len(out) > len(into) else into[len(out)]
        verbs, peer = ("receive", "sends", "to"), (source, target)
        if len(out) > len(into):
            verbs, peer = ("send", "receives", "from"), (target, source)
        raise InputError(
            f"{graph.location_text(alone)} must {verbs[0]} what gpu {peer[0]} {verbs[1]}, but that "
            f"{verbs[1]} nothing more {verbs[2]} gpu {peer[1]} on channel {channel}"
        )
