"""Traces: what arrives where, and in which clock cycle.

A trace follows from the schedule and the hardware's fixed latencies, without a simulation. Cycles
are counted like the fabric's own counter: the edge that takes the start pulse is number 0, and a
flit is there in cycle c if it is on the link into a node after edge c.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..schedule.held_blocks import HeldBlocks
from ..toolchain.files import writing_text

if TYPE_CHECKING:
    from ..schedule import Schedule
    from .program import Program

__all__ = ["Arrival", "arrivals", "write_trace"]


class Arrival(NamedTuple):
    """A message that comes to the end of its path.

    Parameters
    ----------
    round : int
        Counted from 1.
    cycle, stride, flits : int
        Flit k of so many is there in cycle ``cycle + k * stride``.
    node, port : int
        Where, and by which in-port.
    path : list of int
        The nodes on the way, sender and receiver included.
    hops : list of int
        The out-port taken at each of them but the last.
    blocks : list of int
        The numbers of the blocks. Those of longer messages are not in the order of their flits.
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


def arrivals(program: Program) -> Iterator[Arrival]:
    """All arrivals of a collective, round by round.

    Parameters
    ----------
    program : Program
        Of one root, and of one collective, or `Program.alone` of several.

    Raises
    ------
    InputError
        If the program is for any root, or too large to follow.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan(tf.Torus(3), "allgather", algorithm="matching"))
    >>> [(arrival.cycle, arrival.path) for arrival in arrivals(program)][:3]
    [(5, [0, 1]), (5, [0, 2]), (5, [1, 2])]
    """
    if program.any_root:
        raise InputError("Trace must be of a fabric of one root, not of any root")
    schedule, topology = program.schedule, program.topology
    block, timing = program.block_flits, program.timing
    held = HeldBlocks(topology, schedule.blocks)
    for number, transfers in enumerate(schedule.rounds(), 1):
        listed = held.carry_out(transfers)
        walk, ports = listed.walk(topology).tolist(), listed.hops.tolist()
        lengths, links = listed.lengths.tolist(), listed.link_cycles(topology).tolist()
        bounds, ids = listed.listed.indptr.tolist(), listed.listed.ids.tolist()
        for k, (path, hops) in enumerate(zip(walk, lengths, strict=True)):
            cycle = timing.arrival(number - 1, ports[k][0], links[k], node=path[0])
            blocks = ids[bounds[k] : bounds[k + 1]]
            yield Arrival(
                number, cycle, program.loop.interval, _length(schedule, blocks) * block,
                path[hops], int(topology.opposite[ports[k][hops - 1]]),
                path[: hops + 1], ports[k][:hops], blocks,
            )  # fmt: skip


def _length(schedule: Schedule, blocks: list[int]) -> int:
    """Blocks of a message; contributions of the same chunk are one sum."""
    if not schedule.collective.reducing:
        return len(blocks)
    return len(set(schedule.blocks.chunk(np.array(blocks)).tolist()))


def write_trace(program: Program, path: str | Path) -> None:
    """Write a trace as JSON lines: one that says of what, then one for each arrival.

    Of several collectives there is this for each, one after another.

    Raises
    ------
    InputError
        If the file cannot be written, or the program cannot be followed.
    """
    with writing_text(path) as file:
        for number, mode in enumerate(program.modes):
            head = {"mode": number} if len(program.modes) > 1 else {}
            for form in range(mode.first, mode.first + len(mode.forms)):
                for line in _lines(program.alone(form), head):
                    file.write(json.dumps(line, separators=(",", ":")) + "\n")


def _lines(program: Program, head: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The lines of a trace as plain values; the first one with what is said of the mode."""
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
    for arrival in arrivals(program):
        ids = np.array(arrival.blocks, np.int64)
        columns = [blocks.origin(ids), blocks.chunk(ids)]
        if blocks.collective.personal:
            columns.insert(1, blocks.destination(ids))
        rows = np.stack([np.broadcast_to(column, ids.shape) for column in columns], axis=1)
        yield arrival._asdict() | {
            "port": names[arrival.port],
            "hops": [names[port] for port in arrival.hops],
            "blocks": rows.tolist(),
        }
