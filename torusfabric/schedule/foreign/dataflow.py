"""What the messages of an MSCCL file carry: its steps carried out, in any order that they allow.

The result no longer knows of buffers. It says which values each step sends, and which steps must be
done before; when they are done, and along which links, is left open.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from ...collective import COLLECTIVES, Collective, parse_collective
from ...errors import InputError
from .buffers import Buffers, Location, Value
from .moves import order_sums
from .msccl import RECEIVING, SENDING, MscclFile, MscclStep, read_msccl
from .steps import StepGraph, step_graph

__all__ = ["Dataflow", "Message", "read_dataflow"]

#: Names of collectives that are not ours, in the letters that are left without dashes.
NAMES = {kind.replace("-", ""): kind for kind in COLLECTIVES}

#: More chunks in all buffers together are not worth a try.
MOST_CHUNKS = 2**24


@dataclass(frozen=True)
class Message:
    """What a step sends.

    Parameters
    ----------
    source, target : int
        Ranks.
    channel : int
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
    file : MscclFile
    buffers : Buffers
        They know the collective, and what keys of values stand for.
    graph : StepGraph
    order : list of int
        All steps, each behind those that it waits for.
    messages : list of (Message or None)
        What each step sends.
    """

    file: MscclFile
    buffers: Buffers
    graph: StepGraph
    order: list[int]
    messages: list[Message | None]

    def pairs(self) -> Iterator[tuple[int, int, int]]:
        """Every pair of ranks of which one sends to the other, with the first step that does."""
        seen: set[tuple[int, int]] = set()
        for index, message in enumerate(self.messages):
            if message and (message.source, message.target) not in seen:
                seen.add((message.source, message.target))
                yield message.source, message.target, index


def read_dataflow(path: str | os.PathLike[str], root: int | None = None) -> Dataflow:
    """Read an MSCCL file and carry out its steps.

    Parameters
    ----------
    path : str or Path
    root : int, optional
        The rank that broadcasts, scatters, gathers or reduces, if the file does not say and it does
        not follow from the file.

    Raises
    ------
    InputError
        If the file is not right: a deadlock, a send without a receipt, a read of what nothing was
        written to, a block that does not come; names GPU, thread block and step.
    """
    file = read_msccl(path)
    try:
        return _dataflow(file, root)
    except InputError as error:
        raise InputError(f"MSCCL file {path}: {error}") from None


def _dataflow(file: MscclFile, root: int | None) -> Dataflow:
    """Carry out the steps of a file."""
    graph = step_graph(file)
    collective = _collective(file, root)
    buffers = Buffers(collective, file.gpus, _chunks(file, collective), file.in_place)
    order = graph.order()
    machine = _Machine(graph, buffers, file)
    for index in order:
        machine.carry_out(index)
    machine.check_end()
    if collective.reducing:
        order_sums(graph, order, machine.sent, buffers)
        order = graph.order()
    return Dataflow(file, buffers, graph, order, [*_messages(graph, machine.sent)])


def _messages(graph: StepGraph, sent: list[tuple[Value, ...]]) -> Iterator[Message | None]:
    """What each step sends."""
    for (block, step), values in zip(graph.steps, sent, strict=True):
        if step.type not in SENDING:
            yield None
            continue
        together = step.round is not None
        yield Message(block.gpu, block.send, block.channel, values, step.round or 0, together)


def _collective(file: MscclFile, root: int | None) -> Collective:
    """The collective of a file; its root is a rank."""
    letters = "".join(char for char in file.collective.lower() if char.isalpha())
    collective = parse_collective(NAMES.get(letters, file.collective))
    if not collective.rooted:
        return parse_collective(collective.kind, root=root)
    if root is None and "root" in file.facts:
        text = file.facts["root"]
        root = int(text) if text.isascii() and text.isdigit() else -1
    if root is None:
        root = _root(file, collective)
    if not 0 <= root < file.gpus:
        raise InputError(f"Root must be a gpu from 0 to {file.gpus - 1}, not {root}")
    return parse_collective(collective.kind, root=root)


def _root(file: MscclFile, collective: Collective) -> int:
    """The only rank that receives nothing, or of a reduction or gather sends nothing."""
    types, what = (SENDING, "sends") if collective.to_root else (RECEIVING, "receives")
    busy = {block.gpu for block in file.blocks for step in block.steps if step.type in types}
    found = sorted(set(range(file.gpus)) - busy)
    if len(found) != 1:
        raise InputError(
            f"Root of the {collective.kind} must be given, for not just one gpu {what} nothing"
        )
    return found[0]


def _chunks(file: MscclFile, collective: Collective) -> int:
    """Chunks of a message: of the larger of input and output, a part for each rank if several."""
    if file.chunks is None:
        raise InputError("The algo must have the attribute nchunksperloop")
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


class _Machine:
    """The buffers of all GPUs while the steps of a file are carried out.

    Parameters
    ----------
    graph : StepGraph
        Is told of every step that reads what another one wrote.
    buffers : Buffers
    file : MscclFile

    Attributes
    ----------
    sent : list of tuple of Value
        What each step has sent.
    """

    def __init__(self, graph: StepGraph, buffers: Buffers, file: MscclFile) -> None:
        self.graph, self.buffers, self.scratch = graph, buffers, file.scratch
        self.held = [dict(buffers.initial(rank)) for rank in range(buffers.ranks)]
        self.writer: list[dict[Location, int]] = [{} for _ in range(buffers.ranks)]
        self.sent: list[tuple[Value, ...]] = [()] * len(graph.steps)

    def carry_out(self, index: int) -> None:
        """Do one step."""
        _, step = self.graph.steps[index]
        if step.type == "nop":
            return
        came = self.sent[self.graph.sent_by[index]] if step.type in RECEIVING else ()
        match step.type:
            case "s" | "cpy":
                values = self._read(index, step.source, "srcoff")
            case "r" | "rcs":
                values = came
            case "re":
                mine = self._read(index, step.source, "srcoff")
                values = self._add(index, mine, self._read(index, step.target, "dstoff"))
            case _:
                operand = step.source if step.source[1] >= 0 else step.target
                values = self._add(index, came, self._read(index, operand, "srcoff"))
        if step.type in SENDING:
            self.sent[index] = values
        if step.type not in ("s", "rrs"):
            self._write(index, step, values)

    def _locations(self, index: int, start: Location, name: str) -> Iterator[Location]:
        """The adjacent locations that a step names."""
        block, step = self.graph.steps[index]
        buffer, offset = start
        size = self.scratch[block.gpu] if buffer == "s" else self.buffers.size(buffer)
        last = MOST_CHUNKS if size is None else size
        if offset < 0 or offset + step.chunks > last:
            raise InputError(
                f"{name.capitalize()} of {block.place(step.number)} must lie within the {last} "
                f"chunks of buffer {buffer}, not be {offset} with cnt {step.chunks}"
            )
        for place in range(offset, offset + step.chunks):
            yield self.buffers.home(block.gpu, (buffer, place))

    def _read(self, index: int, start: Location, name: str) -> tuple[Value, ...]:
        """What lies somewhere; whoever wrote it comes before."""
        gpu = self.graph.steps[index][0].gpu
        held, writer, values = self.held[gpu], self.writer[gpu], []
        for location in self._locations(index, start, name):
            value = held.get(location)
            if value is None:
                raise InputError(
                    f"{self.graph.place(index)} must read what was written before, not "
                    f"{location[0]}[{location[1]}], to which nothing was"
                )
            values.append(value)
            wrote = writer.get(location)
            if wrote is not None and self.graph.steps[wrote][0] is not self.graph.steps[index][0]:
                self.graph.follows[wrote].append(index)
        return tuple(values)

    def _write(self, index: int, step: MscclStep, values: tuple[Value, ...]) -> None:
        """Put values somewhere."""
        gpu = self.graph.steps[index][0].gpu
        for location, value in zip(self._locations(index, step.target, "dstoff"), values,
                                   strict=True):  # fmt: skip
            if self.held[gpu].get(location) != value:  # else who wrote it first will do
                self.held[gpu][location] = value
                self.writer[gpu][location] = index

    def _add(
        self, index: int, came: tuple[Value, ...], mine: tuple[Value, ...]
    ) -> tuple[Value, ...]:
        """Sums of values, which must be of the same chunks and have no contribution twice."""
        sums = []
        for (key, ranks), (other, others) in zip(came, mine, strict=True):
            names = self.buffers.name(key), self.buffers.name(other)
            if not self.buffers.collective.reducing:
                kind = self.buffers.collective.kind
                raise InputError(f"{self.graph.place(index)} must add up nothing in {kind}")
            if key != other:
                raise InputError(
                    f"{self.graph.place(index)} must add up the same chunk, not {names[0]} and "
                    f"{names[1]}"
                )
            if ranks & others:
                rank = (ranks & others).bit_length() - 1
                raise InputError(
                    f"{self.graph.place(index)} must add the contribution of gpu {rank} to "
                    f"{names[0]} once, not twice"
                )
            sums.append((key, ranks | others))
        return tuple(sums)

    def check_end(self) -> None:
        """Check that every rank holds what the collective delivers.

        Raises
        ------
        InputError
            At the first that does not; names the last step that wrote there.
        """
        for rank in range(self.buffers.ranks):
            for location, value in self.buffers.expected(rank):
                found = self.held[rank].get(location)
                if found != value:
                    raise self._missing(rank, location, value, found)

    def _missing(
        self, rank: int, location: Location, wanted: Value, found: Value | None
    ) -> InputError:
        """The error of what is not at its place in the end."""
        name = f"{location[0]}[{location[1]}]"
        what = self.buffers.name(wanted[0])
        if found is None:
            return InputError(
                f"Gpu {rank} must end with {what} in {name}, to which no step ever wrote"
            )
        wrote = self.writer[rank].get(location)
        by = "the start" if wrote is None else self.graph.place(wrote)
        if found[0] != wanted[0]:
            other = self.buffers.name(found[0])
            return InputError(f"Gpu {rank} must end with {what} in {name}, not {other} (from {by})")
        lacking = (wanted[1] & ~found[1]).bit_length() - 1
        return InputError(
            f"Gpu {rank} must end with the whole sum of {what} in {name}, not one without the "
            f"contribution of gpu {lacking} (from {by})"
        )
