"""What the messages of an MSCCL file carry: its steps carried out, in any order that they allow.

The result no longer knows of buffers. It says which values each step sends, and which steps must be
done before; when they are done, and along which links, is left open.

Sums go as a fabric moves them: a partial sum leaves its node as a whole, or all nodes keep theirs.
In a GPU a partial sum may stay where it was sent from, and lie beside another one of the same
chunk. A node has one partial sum of each chunk: what it received is added at once, and what it
sends is gone. A file fits if no contribution ever leaves a rank twice; then it only takes some more
waiting, for a sum that a rank sends later must not arrive before an earlier one has left.

In other files a rank goes on with what it has sent: two ranks swap their sums, or a contribution
leaves a rank again. There every node keeps its sum and sends copies. What arrives is added, or
replaces the sum if it has all of its contributions. `algorithms.foreign.kept_sums` finds an order
in which that is possible, or refuses the file.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...collective import COLLECTIVES, Collective, parse_collective
from ...errors import InputError
from ...toolchain.destinations import AnyPath
from ...toolchain.reading import read_bytes
from .machine import MOST_CHUNKS, Buffers, Machine, Value
from .msccl import RECEIVING, SENDING, MscclFile, parse_msccl
from .steps import StepGraph, step_graph

__all__ = ["Dataflow", "Message", "read_dataflow"]


@dataclass
class _Sum:
    """What happens to one sum at one rank: steps with the contributions that come and go."""

    left: int = 0
    departures: list[tuple[int, int]] = field(default_factory=list)
    arrivals: list[tuple[int, int]] = field(default_factory=list)


def order_sums(
    graph: StepGraph, order: list[int], sent: Sequence[tuple[Value, ...]], buffers: Buffers
) -> tuple[list[int], bool]:
    """Let partial sums move if that brings the file's results; else nodes keep them.

    Parameters
    ----------
    graph : StepGraph
        Gets the order that moving sums takes.
    order : list of int
        All steps in an order in which they can be done.
    sent : sequence of tuple of Value
        What each step sends.

    Returns
    -------
    order : list of int
        All steps in an order in which they can be done so.
    kept : bool
        Whether nodes keep their sums.

    Raises
    ------
    InputError
        If sums cannot move where each node has sums of its own: a contribution leaves a rank twice,
        a rank sends a partial sum without its own, or sums would have to wait for each other.
    """
    if not buffers.collective.personal and _copies(graph, order, sent, buffers):
        return order, True
    follows = [[*steps] for steps in graph.follows]
    try:
        _let_leave_first(graph, order, sent, buffers)
        try:
            moving = graph.order()
        except InputError as error:
            raise InputError(
                f"{error}, for in a fabric a partial sum leaves its node before the next of the "
                "same chunk arrives"
            ) from None
        _check_moving(graph, moving, sent, buffers)
    except InputError:
        if buffers.collective.personal:
            raise
        graph.follows[:] = follows
        return order, True
    return moving, False


def _let_leave_first(
    graph: StepGraph, order: Sequence[int], sent: Sequence[tuple[Value, ...]], buffers: Buffers
) -> None:
    """Let partial sums leave before others of the same chunk arrive."""
    sums: dict[tuple[int, int], _Sum] = {}
    for index in order:
        block, _ = graph.steps[index]
        for key, ranks in sent[index]:
            if ranks == buffers.full:
                continue
            _depart(graph, buffers, sums.setdefault((block.gpu, key), _Sum()), index, (key, ranks))
            sums.setdefault((block.send, key), _Sum()).arrivals.append((index, ranks))
    for found in sums.values():
        # A sum arrives behind the departure before the one with which it leaves.
        for arrival, ranks in found.arrivals:
            before = -1
            for departure, those in found.departures:
                if ranks & those:
                    break
                before = departure
            if before >= 0:
                graph.follows[before].append(arrival)


def _check_moving(
    graph: StepGraph, order: Sequence[int], sent: Sequence[tuple[Value, ...]], buffers: Buffers
) -> None:
    """Refuse sums that a rank has only if it keeps what it has sent."""
    held: dict[tuple[int, int], int] = {}
    for index in order:
        block, _ = graph.steps[index]
        for key, ranks in sent[index]:
            here, there = (block.gpu, key), (block.send, key)
            if held.get(here, 1 << block.gpu) != ranks:
                raise InputError(
                    f"{graph.location(index)} must send the sum of {buffers.name(key)} that gpu "
                    f"{block.gpu} has left: partial sums are moved, not copied"
                )
            if ranks != buffers.full:
                held[here] = 0
            held[there] = ranks | held.get(there, 1 << block.send)
    for rank in range(buffers.ranks):
        for _, (key, full) in buffers.expected(rank):
            if held.get((rank, key), 1 << rank) != full:
                raise InputError(
                    f"Gpu {rank} must end with the whole sum of {buffers.name(key)} though partial "
                    "sums are moved, not copied"
                )


def _copies(
    graph: StepGraph, order: Sequence[int], sent: Sequence[tuple[Value, ...]], buffers: Buffers
) -> bool:
    """Whether a contribution leaves a rank twice in partial sums."""
    left: dict[tuple[int, int], int] = {}
    for index in order:
        for key, ranks in sent[index]:
            at = graph.steps[index][0].gpu, key
            if ranks != buffers.full:
                if ranks & left.get(at, 0):
                    return True
                left[at] = left.get(at, 0) | ranks
    return False


def _depart(graph: StepGraph, buffers: Buffers, at: _Sum, index: int, value: Value) -> None:
    """Enter that a partial sum leaves."""
    key, ranks = value
    rank = graph.steps[index][0].gpu
    name = buffers.name(key)
    again = ranks & at.left
    if again:
        other = again.bit_length() - 1
        before = next(step for step, those in at.departures if those >> other & 1)
        raise InputError(
            f"{graph.location(index)} must not send the contribution of gpu {other} to {name} a "
            f"second time, after {graph.location(before)}: partial sums are moved, not copied"
        )
    if not at.left and not ranks >> rank & 1:
        raise InputError(
            f"{graph.location(index)} must send a partial sum of {name} with the contribution of "
            f"gpu {rank} itself, not without it"
        )
    at.left |= ranks
    at.departures.append((index, ranks))


#: Names of collectives that are not ours, in the letters that are left without dashes.
NAMES = {kind.replace("-", ""): kind for kind in COLLECTIVES}


@dataclass(frozen=True)
class Message:
    """What a step sends.

    Parameters
    ----------
    source, target : int
        Ranks.
    values : tuple of (key, contributions)
        One for each chunk.
    round : int
        The first round in which it may go, counted from 0.
    together : bool
        Whether the file says in which round it goes, along with all others of that round.
    """

    source: int
    target: int
    channel: int
    values: tuple[Value, ...]
    round: int
    together: bool


@dataclass(frozen=True, eq=False)
class Dataflow:
    """The messages of a file, and the order among its steps.

    Parameters
    ----------
    buffers : Buffers
        They know the collective, and what keys of values stand for.
    order : list of int
        All steps, each behind those that it waits for.
    messages : list of (Message or None)
        What each step sends.
    kept : bool
        Whether nodes keep their sums, and send copies.
    """

    file: MscclFile
    buffers: Buffers
    graph: StepGraph
    order: list[int]
    messages: list[Message | None]
    kept: bool

    def pairs(self) -> Iterator[tuple[int, int, int]]:
        """Every pair of ranks of which one sends to the other, with the first step that does."""
        seen: set[tuple[int, int]] = set()
        for index, message in enumerate(self.messages):
            if message and (message.source, message.target) not in seen:
                seen.add((message.source, message.target))
                yield message.source, message.target, index


def read_dataflow(path: AnyPath, root: int | None = None) -> Dataflow:
    """Read an MSCCL file and carry out its steps.

    Parameters
    ----------
    root : int, optional
        The rank that broadcasts, scatters, gathers or reduces, if the file does not say and it does
        not follow from the file.

    Raises
    ------
    InputError
        If the file is not right: a deadlock, a send without a receipt, a read of what nothing was
        written to, a block that does not come; names GPU, thread block and step.
    """
    raw = read_bytes(path, "MSCCL file")
    try:
        return _dataflow(parse_msccl(raw), root)
    except InputError as error:
        raise InputError(f"MSCCL file {path}: {error}") from None


def _dataflow(file: MscclFile, root: int | None) -> Dataflow:
    """Carry out the steps of a file."""
    graph = step_graph(file)
    collective = _collective(file, root)
    buffers = Buffers(collective, file.gpus, _chunks(file, collective), file.in_place)
    order = graph.order()
    machine = Machine(graph, buffers, file)
    for index in order:
        machine.carry_out(index)
    machine.check_end()
    kept = False
    if collective.reducing:
        order, kept = order_sums(graph, order, machine.sent, buffers)
    messages: list[Message | None] = [
        Message(block.gpu, block.send, block.channel, values, step.round or 0,
                together=step.round is not None) if step.type in SENDING else None
        for (block, step), values in zip(graph.steps, machine.sent, strict=True)
    ]  # fmt: skip
    return Dataflow(file, buffers, graph, order, messages, kept)


def _collective(file: MscclFile, root: int | None) -> Collective:
    """The collective of a file; its root is a rank."""
    letters = "".join(char for char in file.collective.lower() if char.isalpha())
    collective = parse_collective(NAMES.get(letters, file.collective))
    if not collective.rooted:
        return parse_collective(collective.kind, root=root)
    if root is None and "root" in file.facts:
        text = file.facts["root"]
        root = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else -1
    if root is None:
        # The only rank that receives nothing, or of a reduction or gather sends nothing.
        types, what = (SENDING, "sends") if collective.to_root else (RECEIVING, "receives")
        busy = {block.gpu for block in file.blocks for step in block.steps if step.type in types}
        idle = sorted(set(range(file.gpus)) - busy)
        if len(idle) != 1:
            raise InputError(
                f"Root of the {collective.kind} must be given, for not just one gpu {what} nothing"
            )
        root = idle[0]
    if not 0 <= root < file.gpus:
        raise InputError(f"Root must be a gpu from 0 to {file.gpus - 1}, not {root}")
    return parse_collective(collective.kind, root=root)


def _chunks(file: MscclFile, collective: Collective) -> int:
    """Chunks of a message: of the larger of input and output, a part for each rank if several."""
    parts = file.gpus if collective.personal or collective.from_each else 1
    if file.chunks % parts:
        raise InputError(
            f"Nchunksperloop must be a multiple of the {parts} gpus for {collective.kind}, "
            f"not {file.chunks}"
        )
    if file.chunks * file.gpus > MOST_CHUNKS:
        raise InputError(
            f"Nchunksperloop must be at most {MOST_CHUNKS // file.gpus}, not {file.chunks}"
        )
    return file.chunks // parts
