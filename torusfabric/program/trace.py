"""Traces: all arrivals of messages in a run, with their clock cycles.

A trace is computed from the schedule and the fixed latencies of the hardware, without a simulation.
Cycles are counted like the `cycles` port of the fabric counts: the edge that takes the start pulse
has number 0, and a flit arrives in cycle c if it is on the link into the node after edge c.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..schedule.held_blocks import HeldBlocks
from ..toolchain.files import open_text_for_writing

if TYPE_CHECKING:
    from ..schedule import Schedule
    from .program import Program

__all__ = ["MessageArrival", "list_arrivals", "write_trace"]


class MessageArrival(NamedTuple):
    """The arrival of a message of one round at the end of its path.

    Parameters
    ----------
    round : int
        Round, counted from 1.
    cycle, stride, flits : int
        Flit k of `flits` flits arrives in cycle ``cycle + k * stride``.
    node, port : int
        Receiver, and its in-port.
    path : list of int
        Nodes on the path, from the sender to the receiver.
    hops : list of int
        Out-port taken at each node of the path except the last.
    blocks : list of int
        Numbers of the blocks in the message. In messages of several blocks, they need not be in the
        order of the flits.
    """

    round: int
    cycle: int
    stride: int
    flits: int
    node: int
    port: int
    path: list[int]
    hops: list[int]
    blocks: list[int]


def list_arrivals(program: Program) -> Iterator[MessageArrival]:
    """Yield the arrivals of all messages in a run of a program, round by round.

    Parameters
    ----------
    program : Program
        Program with a fixed root and one form, such as `Program.alone` of several.

    Raises
    ------
    InputError
        If the program is for any root, or too large to follow.

    Examples
    --------
    In the first step on a ring of three, node 0 sends to both neighbours, and so does each other
    node. The first flits arrive in cycle 5.

    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan(tf.Torus(3), "allgather", algorithm="matching"))
    >>> [(arrival.cycle, arrival.path) for arrival in list_arrivals(program)][:3]
    [(5, [0, 1]), (5, [0, 2]), (5, [1, 2])]
    """
    if program.any_root:
        raise InputError("A trace needs a root that is fixed; compile the program without root any")
    schedule, topology = program.schedule, program.topology
    block, timing = program.block_flits, program.timing
    held = HeldBlocks(topology, schedule.blocks)
    for number, transfers in enumerate(schedule.rounds(), 1):
        listed = held.execute(transfers)
        walk, ports = listed.walk(topology).tolist(), listed.hops.tolist()
        lengths, links = listed.lengths.tolist(), listed.link_cycles(topology).tolist()
        bounds, ids = listed.listed.indptr.tolist(), listed.listed.ids.tolist()
        for k, (path, hops) in enumerate(zip(walk, lengths, strict=True)):
            cycle = timing.arrival_cycle(number - 1, ports[k][0], links[k], node=path[0])
            blocks = ids[bounds[k] : bounds[k + 1]]
            yield MessageArrival(
                number,
                cycle,
                program.loop.flit_interval_cycles,
                _message_blocks(schedule, blocks) * block,
                path[hops],
                int(topology.opposite[ports[k][hops - 1]]),
                path[: hops + 1],
                ports[k][:hops],
                blocks,
            )


def _message_blocks(schedule: Schedule, blocks: list[int]) -> int:
    """Return the number of blocks that travel on a link for a message with these block numbers.

    In a reduction, all contributions to one chunk are combined, so they travel as one block.
    """
    if not schedule.collective.reducing:
        return len(blocks)
    return len(set(schedule.blocks.chunk(np.array(blocks)).tolist()))


def write_trace(program: Program, path: str | Path) -> None:
    """Write the trace of a program to a file, as lines of JSON.

    A line that describes the form, the *head*, comes first, then a line for each arrival. A program
    of several forms gets these lines for each form, one form after another.

    Parameters
    ----------
    program : Program
        Program whose runs are described.
    path : str or Path
        File to write. An existing file is replaced; a name that ends in ``.gz`` compresses the
        text.

    Raises
    ------
    InputError
        If the file cannot be written, or the program cannot be followed.
    """
    with open_text_for_writing(path) as file:
        for number, mode in enumerate(program.modes):
            head = {"mode": number} if len(program.modes) > 1 else {}
            for form in range(mode.first, mode.first + len(mode.forms)):
                for line in _trace_lines(program.alone(form), head):
                    file.write(json.dumps(line, separators=(",", ":")) + "\n")


def _trace_lines(program: Program, head: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the lines of the trace of one form, as dictionaries that JSON can represent.

    `head` has additional entries for the first line.
    """
    schedule, names = program.schedule, program.topology.port_names
    yield {
        "format": "torusfabric-trace",
        "version": 1,
        **head,
        "topology": schedule.topology.to_entry(),
        "collective": schedule.collective.to_json(),
        "algorithm": schedule.algorithm,
        "flits": program.flits,
        "cycles": program.cycles(),
    }
    blocks = schedule.blocks
    for arrival in list_arrivals(program):
        ids = np.array(arrival.blocks, np.int64)
        columns = blocks.entry_columns(ids)
        rows = np.stack([np.broadcast_to(column, ids.shape) for column in columns], axis=1)
        yield arrival._asdict() | {
            "port": names[arrival.port],
            "hops": [names[port] for port in arrival.hops],
            "blocks": rows.tolist(),
        }
