"""Programs of broadcasts whose root is chosen anew for every run.

Topologies are Cayley graphs, so a broadcast planned for node 0 serves any root: a node does what
the plan says for its offset from the root. A chunk comes to a node once; from where and when
follows from the offset too. Each chunk has a memory of two halves, the lower for what the node
would send as the root, the upper for what it has received.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..schedule import Everything, Grouped
from .address_map import DirectMap
from .cost import CycleCost
from .program import Mode, Program, block_flits
from .rounds import DRAIN, SETUP, round_cycles
from .values import IDLE, IntArray, Loop, Memory, Order, Reads, Writes
from .variants import classify

if TYPE_CHECKING:
    from ..schedule import Schedule

__all__ = ["compile_any_root"]


def compile_any_root(schedule: Schedule, flits: int) -> Program:
    """The program of a broadcast in rounds from any root.

    Parameters
    ----------
    schedule : Schedule
        Of a broadcast from node 0.
    flits : int
        Flits of a message.

    Returns
    -------
    Program

    Raises
    ------
    InputError
        If it is no broadcast, or a message combines chunks.
    """
    if schedule.collective.kind != "broadcast":
        kind = schedule.collective.kind
        raise InputError(f"Root must be a node number for {kind}, not any")
    topology, chunks = schedule.topology, schedule.chunks
    block = block_flits(schedule, flits)
    half = 1 << (block - 1).bit_length()
    rows, came, hops = _follow(schedule)
    # A node does what its settings say, and stores what comes when it comes.
    arrival = np.full((topology.nodes, chunks, 3), -1)
    for (node, chunk), how in came.items():
        arrival[node, chunk] = how
    flat = np.hstack([rows.reshape(len(rows), -1), arrival.reshape(len(rows), -1)])
    variant_of, first = classify(flat)
    used = [tuple(np.unique(arrival[1:, chunk, 2]).tolist()) for chunk in range(chunks)]
    loop = _loop(rows[first].transpose(1, 0, 2), arrival[first], first == 0, hops, half, block)
    mode = Mode(
        schedule=schedule,
        any_root=True,
        loop=loop,
        send_map=DirectMap(0, chunks, block, by_chunk=True),
        receive_map=DirectMap(0, chunks, block, by_chunk=True, base=half),
        cost=CycleCost(
            loop.rows,
            int(hops.sum()),
            loop.rows * block,
            alpha=SETUP,
            hop_cycles=1,
            constant_cycles=DRAIN,
        ),
        known_by="the root",
    )
    return Program(
        topology=topology,
        flits=flits,
        modes=(mode,),
        memories=tuple(Memory(ports, own=True) for ports in used),
        depth=np.full((len(first), chunks), half + block),
        variant_of=variant_of,
    )


def _loop(
    select: IntArray, arrival: IntArray, root: IntArray, hops: IntArray, half: int, block: int
) -> Loop:
    """The rows: the rounds of the schedule."""
    rounds, _, ports = select.shape
    chunks = range(arrival.shape[1])
    duration = round_cycles(hops, np.full(rounds, block))
    starts = np.concatenate([[0], np.cumsum(duration)[:-1]])
    # The root reads its own message, all others what they have received.
    base = np.where(root, 0, half)[None, :]
    sends = [(select == ports + chunk).any(axis=2) for chunk in chunks]
    return Loop(
        order=Order.ROW,
        duration=duration,
        flits=1,
        drain=DRAIN,
        select=select,
        delayed=(),
        lanes=tuple((chunk,) for chunk in chunks),
        reads=tuple(
            Reads.single(chunk, np.where(sends[chunk], base, -1), block) for chunk in chunks
        ),
        writes=tuple(_writes(arrival[:, chunk], rounds, half, block) for chunk in chunks),
        departure=np.broadcast_to(starts[:, None], (rounds, ports)),
        stride=1,
    )


def _writes(arrival: IntArray, rounds: int, half: int, block: int) -> Writes:
    """What the memory of a chunk stores, given round, hops and in-port of its arrival."""
    here = np.arange(rounds)[:, None] == arrival[None, :, 0]
    hops, port = (np.where(here, arrival[None, :, k], 0) for k in (1, 2))
    return Writes(np.where(here, half, -1), np.where(here, block, 0), hops, port)


def _follow(schedule):
    """What crossbars do, and how chunks come.

    Returns
    -------
    rows : ndarray of int, shape (nodes, rounds, ports)
    came : dict of (int, int) to (int, int, int)
        Node and chunk to round, hops and in-port.
    hops : ndarray of int, shape (rounds,)
        The longest path of each round.
    """
    topology, root = schedule.topology, schedule.collective.root
    held = np.zeros((topology.nodes, schedule.chunks), bool)
    held[root] = True
    rows, came, longest = [], {}, []
    for number, transfers in enumerate(schedule.rounds()):
        chunks = _chunks(transfers, held)
        walk, hops = transfers.walk(topology), transfers.hops
        select = np.full((topology.nodes, topology.ports), IDLE, np.int16)
        entry = topology.ports + chunks
        for hop in range(hops.shape[1]):
            on = hops[:, hop] >= 0
            select[walk[on, hop], hops[on, hop]] = entry[on]
            entry = np.where(on, topology.opposite[hops[:, hop]], entry)
        rows.append(select)
        longest.append(int(transfers.lengths.max(initial=0)))
        ends = np.stack([walk[:, -1], chunks, transfers.lengths, entry], axis=1)
        for node, chunk, length, port in ends.tolist():
            if not held[node, chunk]:
                held[node, chunk] = True
                came[node, chunk] = number, length, port
    return np.stack(rows, axis=1), came, np.array(longest)


def _chunks(transfers, held):
    """The chunk that each transfer carries."""
    match transfers.payload:
        case Everything() | Grouped():
            carried = held[transfers.source]
            if isinstance(transfers.payload, Grouped):
                group, wanted = transfers.payload.group, transfers.payload.wanted
                carried = carried & (group[None, :] == wanted[:, None])
        case listed:
            carried = np.zeros((len(transfers), held.shape[1]), bool)
            number = np.repeat(np.arange(len(transfers)), np.diff(listed.indptr))
            carried[number, listed.ids] = True
    most = int(carried.sum(axis=1).max(initial=0))
    if most > 1:
        raise InputError(
            f"Root must be a node number where a message combines {most} chunks, not any"
        )
    return carried.argmax(axis=1)
