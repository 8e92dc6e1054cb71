"""Writer of schedules as MSCCL XML.

Each node gets one thread block for each port by which it sends, and one for each port by which it
receives. Only step types that every tool accepts are used: ``s``, ``r``, ``rrc`` and ``nop``, and
in an all-to-all ``cpy`` for the blocks that a node keeps. A block has the same offset at every
node. The exception is an all-to-all, where blocks are ordered by destination at the start and by
origin at the end.

MSCCL has no attributes for the round of a send, and for topology, ports and root. They are written
as additional attributes, which other tools skip. With them, reading the file gives the same
schedule again.
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from ...errors import InputError
from ...toolchain.destinations import AnyPath
from ...toolchain.files import open_text_for_writing
from ...toolchain.quoting import xml_attribute
from ..base import Schedule
from ..held_blocks import HeldBlocks
from ..model import Switching
from ..transfers import KeptSums, Transfers
from .buffer_locations import BufferLocations
from .machine import Location
from .msccl import MscclStep, ThreadBlock

__all__ = ["write_msccl"]

#: A step of a node: its thread block, and its number in the thread block.
StepName = tuple[int, int]

#: Source and target of a step that uses no location.
NO_LOCATIONS: tuple[Location, Location] = ("i", -1), ("o", -1)


def write_msccl(schedule: Schedule, path: AnyPath) -> None:
    """Write a schedule as MSCCL XML.

    Parameters
    ----------
    schedule : Schedule
        A schedule with store-and-forward switching, in one group of all nodes.
    path : path
        The file to write.

    Raises
    ------
    InputError
        If MSCCL cannot express the schedule, or the file cannot be written.
    """
    if schedule.switching != Switching.STORE_AND_FORWARD:
        raise InputError(
            f"Format msccl takes store-and-forward schedules, not {schedule.switching}; choose "
            "another algorithm"
        )
    if schedule.collective.axes is not None or schedule.collective.is_irregular:
        raise InputError(
            "Format msccl takes collectives of all nodes together, not "
            f"{schedule.collective.name}; choose --format csv"
        )
    if schedule.collective.local:
        raise InputError(
            f"Format msccl does not know {schedule.collective.name}; choose --format csv, which "
            "takes any collective"
        )
    if any(isinstance(transfers.payload, KeptSums) for transfers in schedule.rounds()):
        raise InputError(
            f"Format msccl takes schedules that move partial sums, but {schedule.algorithm} keeps "
            "them; choose another algorithm, or --format csv"
        )
    program = _MscclProgram(schedule)
    with open_text_for_writing(path) as file:
        file.writelines(program.xml_lines())


class _MscclProgram:
    """The steps of all nodes in the form of MSCCL, made from a schedule.

    A node is a GPU. It has a thread block, a sequence of steps, for each port by which it sends and
    for each port by which it receives.
    """

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.topology = schedule, schedule.topology
        self.homes = BufferLocations(schedule)
        self.blocks: list[dict[tuple[bool, int], ThreadBlock]] = [
            {} for _ in range(self.topology.nodes)
        ]
        #: By node and location: the step that wrote it last, and the steps that have read it since.
        self.writer: dict[tuple[int, Location], StepName] = {}
        self.readers: defaultdict[tuple[int, Location], list[StepName]] = defaultdict(list)
        neighbours = self.topology.neighbours
        #: The number of each out-port among the parallel links to the same neighbour.
        self.channels = np.zeros(neighbours.shape, np.int64)
        for port in range(neighbours.shape[1]):
            alike = neighbours[:, :port] == neighbours[:, [port]]
            self.channels[:, port] = alike.sum(axis=1)
        state = HeldBlocks(self.topology, schedule.blocks)
        for number, transfers in enumerate(schedule.rounds()):
            self._add_round(number, state.execute(transfers))
        for node, pair in self.homes.local_copies():
            self._add_step(node, (True, -1), "cpy", pair)

    def _add_round(self, number: int, transfers: Transfers) -> None:
        """Add the steps of round `number`, counted from 0: first all departures, then all arrivals.

        `transfers` are the transfers of the round, with their blocks listed.
        """
        targets = transfers.walk(self.topology)[:, -1].tolist()
        ports = transfers.hops[:, 0].tolist()
        moved = []
        for source, port, target, ids in zip(
            transfers.source.tolist(), ports, targets, transfers.listed.lists, strict=True
        ):
            for block, complete in self.homes.carried_units(ids):
                start = self.homes.record_departure(source, block, complete=complete)
                moved.append((source, port, target, block, complete, start))
        for source, port, target, block, complete, start in moved:
            new = self.homes.is_first_arrival(target, block)
            end, adds = self.homes.record_arrival(target, block, complete=complete)
            self._add_step(source, (True, port), "s", (start, end), round_=number)
            channel = self.blocks[source][True, port].channel
            back = int(self.topology.opposite[port])
            if adds is None:
                self._add_step(target, (False, back), "r", (start, end), channel, anew=new)
            else:
                self._add_step(target, (False, back), "rrc", (adds, end), channel)

    def _add_step(
        self,
        node: int,
        way: tuple[bool, int],
        type_: str,
        pair: tuple[Location, Location],
        channel: int = 0,
        *,
        anew: bool = True,
        round_: int | None = None,
    ) -> None:
        """Add a step, and the waiting that it needs, to a thread block of a node.

        Parameters
        ----------
        node : int
            Number of the GPU that executes the step.
        way : (bool, int)
            Thread block of the node: True for sending or False for receiving, and the port (-1 for
            copies).
        type_ : str
            Type of the step in MSCCL, such as ``s`` for a send.
        pair : (Location, Location)
            Locations that the step reads and writes.
        channel : int
            Channel of the thread block, if this is new and receives.
        anew : bool
            False for a receive of a block that is already there: the step changes nothing, and
            waits for no other step.
        round_ : int, optional
            Round of a send, counted from 0.
        """
        block = self._thread_block(node, way, channel)
        reads = {"s": pair[:1], "cpy": pair[:1], "rrc": pair}.get(type_, ())
        writes = pair[1:] if type_ != "s" and anew else ()
        awaited = [self.writer.get((node, location)) for location in reads]
        for location in writes:
            awaited += [self.writer.get((node, location)), *self.readers[node, location]]
        # A step can wait for one other step only. It must wait for the last awaited step of each
        # other thread block, so a nop is inserted for each of them except one.
        last: dict[int, int] = {}
        for number, step in filter(None, awaited):
            if number != block.number:
                last[number] = max(step, last.get(number, -1))
        waits = [*last.items()]
        for other in waits[:-1]:
            block.steps.append(MscclStep(len(block.steps), "nop", *NO_LOCATIONS, 0, other, None))
        name = block.number, len(block.steps)
        awaits = waits[-1] if waits else None
        block.steps.append(MscclStep(name[1], type_, *pair, 1, awaits, round_))
        for location in reads:
            self.readers[node, location].append(name)
        for location in writes:
            self.writer[node, location], self.readers[node, location] = name, []

    def _thread_block(self, node: int, way: tuple[bool, int], channel: int) -> ThreadBlock:
        """Return the thread block of a node for sending or receiving by a port; make it if needed.

        `way` is a pair: True for sending or False for receiving, and the number of the port (-1 for
        copies). A new thread block that receives or copies gets the channel `channel`.
        """
        found = self.blocks[node].get(way)
        if found is None:
            sends, port = way
            peer = int(self.topology.neighbours[node, port]) if port >= 0 else -1
            found = ThreadBlock(
                gpu=node,
                number=len(self.blocks[node]),
                send=peer if sends else -1,
                recv=-1 if sends else peer,
                channel=int(self.channels[node, port]) if sends and port >= 0 else channel,
                steps=[],
            )
            self.blocks[node][way] = found
        return found

    def xml_lines(self) -> Iterator[str]:
        """Yield the lines of the XML file: the GPUs, their thread blocks, and the steps of each."""
        yield f"<algo{_attribute_text(self._file_attributes())}>\n"
        sizes = {
            f"{buffer}_chunks": size
            for buffer, size in zip("ios", self.homes.buffer_sizes(), strict=True)
        }
        for node, blocks in enumerate(self.blocks):
            yield f"  <gpu{_attribute_text({'id': node, **sizes})}>\n"
            awaited = {step.waits_for for block in blocks.values() for step in block.steps}
            for block in blocks.values():
                names = {"id": block.number, "send": block.send, "recv": block.recv}
                yield f"    <tb{_attribute_text({**names, 'chan': block.channel})}>\n"
                for step in block.steps:
                    yield _step_line(step, is_awaited=(block.number, step.number) in awaited)
                yield "    </tb>\n"
            yield "  </gpu>\n"
        yield "</algo>\n"

    def _file_attributes(self) -> dict[str, object]:
        """Return the attributes of ``<algo>``, the outermost XML element, by name."""
        schedule = self.schedule
        collective = schedule.collective
        used = [block.channel for blocks in self.blocks for block in blocks.values()]
        ours: dict[str, object] = {"topology": schedule.topology, "ports": schedule.ports}
        if collective.rooted:
            ours["root"] = collective.root
        if schedule.duplex != "full":
            ours["duplex"] = schedule.duplex
        return {
            "name": schedule.algorithm,
            "proto": "Simple",
            "nchannels": max(used, default=0) + 1,
            "nchunksperloop": max(self.homes.buffer_sizes()[:2]),
            "ngpus": schedule.topology.nodes,
            "coll": collective.kind.replace("-", "_"),
            "inplace": int(self.homes.in_place),
            "outofplace": int(not self.homes.in_place),
            "minBytes": 0,
            "maxBytes": 2**63 - 1,
            "redop": "sum" if collective.reducing else "nop",
            **ours,
        }


def _step_line(step: MscclStep, *, is_awaited: bool) -> str:
    """Return the XML element of a step; `is_awaited` is True if another step waits for it."""
    depid, deps = step.waits_for or (-1, -1)
    attributes: dict[str, object] = {
        "s": step.number,
        "type": step.type,
        "srcbuf": step.source[0],
        "srcoff": step.source[1],
        "dstbuf": step.target[0],
        "dstoff": step.target[1],
        "cnt": step.chunks,
        "depid": depid,
        "deps": deps,
        "hasdep": int(is_awaited),
    }
    if step.round is not None:
        attributes["round"] = step.round
    return f"      <step{_attribute_text(attributes)}/>\n"


def _attribute_text(values: dict[str, object]) -> str:
    """Return attributes, given by name in `values`, as text of an XML tag."""
    return "".join(f" {name}={xml_attribute(str(value))}" for name, value in values.items())
