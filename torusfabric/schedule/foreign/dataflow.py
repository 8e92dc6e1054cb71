"""The data that each message of an MSCCL file carries, found by executing the file.

In this module a *rank* is one of the GPUs of the file, and a *step* is one instruction of a GPU,
such as a send or a receive. Steps are executed in any valid order.

The result, a `Dataflow`, no longer refers to buffers. It lists the values that each step sends and
the steps that must come before. It leaves open when a step is executed, and along which links its
message travels.

Reductions differ between GPUs and fabrics. A GPU may keep a partial sum that it has sent, beside
another partial sum of the same chunk. A node of a fabric either moves its sums or keeps them:

- *Moved sums:* a node has one partial sum of each chunk. A sum that arrives is added at once, and a
  sum that is sent is gone. A file fits if no contribution leaves a rank twice. Then only some
  waiting is added: a sum that a rank sends later must not arrive before an earlier one has left.
- *Kept sums:* every node keeps its sum and sends copies. A word that arrives is added, or replaces
  the sum if it has all contributions of the sum. This is for files in which two ranks swap their
  sums, or a contribution leaves a rank again. `algorithms.foreign.kept_sums` finds a possible
  order, or refuses the file.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...collective import COLLECTIVES, Collective, parse_collective
from ...errors import InputError
from ...toolchain.destinations import AnyPath
from ...toolchain.reading import read_bytes
from .machine import MOST_CHUNKS, Buffers, GpuSimulator, Value
from .msccl import RECEIVING, SENDING, MscclFile, parse_msccl
from .steps import StepGraph, step_graph

__all__ = ["Dataflow", "Message", "read_dataflow"]


@dataclass
class _SumMoves:
    """The departures and arrivals of one partial sum at one rank (GPU) of an MSCCL file.

    `departures` and `arrivals` list pairs: the index of the step, and the contributions to the sum
    that moves, as bits of an integer. `left` has the contributions of all departures together.
    """

    left: int = 0
    departures: list[tuple[int, int]] = field(default_factory=list)
    arrivals: list[tuple[int, int]] = field(default_factory=list)


def order_sums(
    graph: StepGraph, order: list[int], sent: Sequence[tuple[Value, ...]], buffers: Buffers
) -> tuple[list[int], bool]:
    """Return an order of all steps of an MSCCL file, and True if nodes have to keep their sums.

    If a node *moves* its partial sums, a sum that it sends is gone. If it *keeps* them, it sends
    copies. Sums are moved if this gives the results of the file; otherwise they are kept.

    Parameters
    ----------
    graph : StepGraph
        The graph of the steps. The waiting that moved sums need is added to it.
    order : list of int
        All steps in a valid order.
    sent : sequence of tuple of Value
        The values that each step sends.
    buffers : Buffers
        The buffers of the ranks, with the collective.

    Returns
    -------
    order : list of int
        All steps in an order that suits moved sums, or kept sums.
    kept : bool
        True if nodes keep their sums.

    Raises
    ------
    InputError
        If sums cannot move in a reduce-scatter, where kept sums are impossible: a contribution
        leaves a rank twice, a rank sends a partial sum without its own contribution, or sums would
        have to wait for each other.
    """
    if not buffers.collective.personal and _has_copied_sums(graph, order, sent, buffers):
        return order, True
    follows = [[*steps] for steps in graph.follows]
    try:
        _order_departures(graph, order, sent, buffers)
        try:
            moving = graph.topological_order()
        except InputError as error:
            raise InputError(
                f"{error}, for in a fabric a partial sum leaves its node before the next of the "
                "same chunk arrives"
            ) from None
        _check_moved_sums(graph, moving, sent, buffers)
    except InputError:
        if buffers.collective.personal:
            raise
        graph.follows[:] = follows
        return order, True
    return moving, False


def _order_departures(
    graph: StepGraph, order: Sequence[int], sent: Sequence[tuple[Value, ...]], buffers: Buffers
) -> None:
    """Let steps wait for others, so that a partial sum leaves a rank before the next one arrives.

    A rank is a GPU, and both partial sums are of the same chunk. The waiting is added to `graph`,
    which has the steps of the file. `buffers` describes the buffers of the ranks. `order` lists
    indices of steps in an order in which they can run; ``sent[index]`` are the values that step
    `index` sends.
    """
    sums: dict[tuple[int, int], _SumMoves] = {}
    for index in order:
        block, _ = graph.steps[index]
        for key, ranks in sent[index]:
            if ranks == buffers.complete_mask:
                continue
            _add_departure(
                graph, buffers, sums.setdefault((block.gpu, key), _SumMoves()), index, (key, ranks)
            )
            sums.setdefault((block.send, key), _SumMoves()).arrivals.append((index, ranks))
    for found in sums.values():
        # A sum that arrives leaves again with some departure. The departure before that one must
        # come first, else the sum would leave too early.
        for arrival, ranks in found.arrivals:
            before = -1
            for departure, those in found.departures:
                if ranks & those:
                    break
                before = departure
            if before >= 0:
                graph.follows[before].append(arrival)


def _check_moved_sums(
    graph: StepGraph, order: Sequence[int], sent: Sequence[tuple[Value, ...]], buffers: Buffers
) -> None:
    """Refuse a file whose result needs a partial sum at a rank (GPU) that has already sent it.

    The arguments `graph`, `order`, `sent` and `buffers` are those of `_order_departures`.
    """
    held: dict[tuple[int, int], int] = {}
    for index in order:
        block, _ = graph.steps[index]
        for key, ranks in sent[index]:
            here, there = (block.gpu, key), (block.send, key)
            if held.get(here, 1 << block.gpu) != ranks:
                raise InputError(
                    f"{graph.location_text(index)} must send the sum of "
                    f"{buffers.describe_key(key)} that gpu "
                    f"{block.gpu} has left: partial sums are moved, not copied"
                )
            if ranks != buffers.complete_mask:
                held[here] = 0
            held[there] = ranks | held.get(there, 1 << block.send)
    for rank in range(buffers.ranks):
        for _, (key, full) in buffers.expected_values(rank):
            if held.get((rank, key), 1 << rank) != full:
                raise InputError(
                    f"Gpu {rank} must end with the whole sum of {buffers.describe_key(key)} "
                    "though partial "
                    "sums are moved, not copied"
                )


def _has_copied_sums(
    graph: StepGraph, order: Sequence[int], sent: Sequence[tuple[Value, ...]], buffers: Buffers
) -> bool:
    """Return True if the contribution of some rank (GPU) leaves one rank in two partial sums.

    The arguments `graph`, `order`, `sent` and `buffers` are those of `_order_departures`.
    """
    left: dict[tuple[int, int], int] = {}
    for index in order:
        for key, ranks in sent[index]:
            at = graph.steps[index][0].gpu, key
            if ranks != buffers.complete_mask:
                if ranks & left.get(at, 0):
                    return True
                left[at] = left.get(at, 0) | ranks
    return False


def _add_departure(
    graph: StepGraph, buffers: Buffers, at: _SumMoves, index: int, value: Value
) -> None:
    """Add the departure of a partial sum to `at`, all moves of this sum at its rank (GPU).

    The sum leaves with step `index`. `value` is the sum, a pair (key, ranks). `graph` and `buffers`
    describe the file for messages. An `InputError` is raised if the sum cannot be moved: one of its
    contributions has left the rank before, or the first departure lacks the rank's own
    contribution.
    """
    key, ranks = value
    rank = graph.steps[index][0].gpu
    name = buffers.describe_key(key)
    again = ranks & at.left
    if again:
        other = again.bit_length() - 1
        before = next(step for step, those in at.departures if those >> other & 1)
        raise InputError(
            f"{graph.location_text(index)} must not send the contribution of gpu {other} to "
            f"{name} a "
            f"second time, after {graph.location_text(before)}: partial sums are moved, not copied"
        )
    if not at.left and not ranks >> rank & 1:
        raise InputError(
            f"{graph.location_text(index)} must send a partial sum of {name} with the "
            "contribution of "
            f"gpu {rank} itself, not without it"
        )
    at.left |= ranks
    at.departures.append((index, ranks))


#: The collectives by their names without dashes, for names of other systems such as all_gather.
COLLECTIVE_NAMES = {kind.replace("-", ""): kind for kind in COLLECTIVES}


@dataclass(frozen=True)
class Message:
    """The message that a step of a GPU (a rank) sends.

    Parameters
    ----------
    source, target : int
        The ranks of sender and receiver.
    values : tuple of (key, contributions)
        One value for each chunk: the key of a block or sum, and the contributions to it.
    round : int
        The first round in which the message may be sent, counted from 0.
    together : bool
        True if the file gives the round of the message; all messages of that round are then sent
        together.
    """

    source: int
    target: int
    channel: int
    values: tuple[Value, ...]
    round: int
    together: bool


@dataclass(frozen=True, eq=False)
class Dataflow:
    """The messages of an MSCCL file, and the order of its steps.

    A *rank* is one of the GPUs of the file, and a *step* is one instruction of a GPU, such as a
    send.

    Parameters
    ----------
    file : MscclFile
        The parsed file.
    buffers : Buffers
        The buffers of the ranks. They also give the collective, and the data that each key of a
        buffer stands for.
    graph : StepGraph
        The steps, and which of them wait for which.
    order : list of int
        All steps, each after the steps that it waits for.
    messages : list of (Message or None)
        The message of each step, None for a step that sends nothing.
    kept : bool
        True if a node that sends a sum keeps the sum too.
    """

    file: MscclFile
    buffers: Buffers
    graph: StepGraph
    order: list[int]
    messages: list[Message | None]
    kept: bool

    def rank_pairs(self) -> Iterator[tuple[int, int, int]]:
        """Yield each pair of ranks (source, target) with a message, and the first step that
        sends one.
        """
        seen: set[tuple[int, int]] = set()
        for index, message in enumerate(self.messages):
            if message and (message.source, message.target) not in seen:
                seen.add((message.source, message.target))
                yield message.source, message.target, index


def read_dataflow(path: AnyPath, root: int | None = None) -> Dataflow:
    """Read an MSCCL file and execute its steps.

    Parameters
    ----------
    path : path
        The MSCCL file.
    root : int, optional
        The root of the collective, if it is neither in the file nor follows from the file.

    Raises
    ------
    InputError
        If the file has a fault: a deadlock, a send without a receive, a read of a chunk that was
        never written, or a block that is not delivered. The message names GPU, thread block and
        step.
    """
    raw = read_bytes(path, "MSCCL file")
    try:
        return _execute_file(parse_msccl(raw), root)
    except InputError as error:
        raise InputError(f"MSCCL file {path}: {error}") from None


def _execute_file(file: MscclFile, root: int | None) -> Dataflow:
    """Execute the steps of a parsed file, and return its messages.

    `root` is as in `read_dataflow`.
    """
    graph = step_graph(file)
    collective = _file_collective(file, root)
    buffers = Buffers(collective, file.gpus, _chunks_per_message(file, collective), file.in_place)
    order = graph.topological_order()
    machine = GpuSimulator(graph, buffers, file)
    for index in order:
        machine.execute(index)
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


def _file_collective(file: MscclFile, root: int | None) -> Collective:
    """Return the collective of a file; its root is a rank."""
    letters = "".join(char for char in file.collective.lower() if char.isalpha())
    collective = parse_collective(COLLECTIVE_NAMES.get(letters, file.collective))
    if not collective.rooted:
        return parse_collective(collective.kind, root=root)
    if root is None and "root" in file.facts:
        text = file.facts["root"]
        root = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else -1
    if root is None:
        # The root is the only rank that receives nothing; in a reduce or gather, the only rank that
        # sends nothing.
        types, what = (SENDING, "sends") if collective.to_root else (RECEIVING, "receives")
        busy = {block.gpu for block in file.blocks for step in block.steps if step.type in types}
        idle = sorted(set(range(file.gpus)) - busy)
        if len(idle) != 1:
            raise InputError(
                f"The root of the {collective.kind} is not clear, for not just one gpu {what} "
                "nothing; give it by --root"
            )
        root = idle[0]
    if not 0 <= root < file.gpus:
        raise InputError(f"Root must be a gpu from 0 to {file.gpus - 1}, not {root}")
    return parse_collective(collective.kind, root=root)


def _chunks_per_message(file: MscclFile, collective: Collective) -> int:
    """Return the number of chunks of a message of `collective`.

    The file gives the number of chunks of a buffer, input or output, whichever is larger. This
    buffer has a message for each rank (GPU) or, in a broadcast for example, a single message.
    """
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
