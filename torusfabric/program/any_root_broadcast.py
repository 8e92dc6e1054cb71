"""Programs of broadcasts whose root is chosen anew for every run.

Topologies are Cayley graphs, so a broadcast planned for node 0 serves any root: a node does what
the plan says for its offset from the root. A chunk arrives at a node once; from where and when
follows from the offset too. Each chunk has a memory of two halves, the lower for what the node
would send as the root, the upper for what it has received.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InputError
from ..schedule import Everything, Grouped
from ..topology import BoolArray, IntArray
from .address_map import DirectMap
from .circuits import set_up_circuits
from .fields import IDLE, Action, Loop, Memory, Order, Sources, fields_of, number_equal
from .mode import CycleCost, Mode, block_flits
from .program import Program
from .timing import ADDRESS, ROUND_SETUP, SETTING, round_pause, store_delay
from .write_delay import chunk_cycles

if TYPE_CHECKING:
    from ..schedule import Schedule, Transfers

__all__ = ["compile_broadcast"]


def compile_broadcast(schedule: Schedule, flits: int, *, any_length: bool = False) -> Program:
    """The program of a broadcast in rounds from any root.

    Parameters
    ----------
    schedule : Schedule
        Of a broadcast from node 0.
    flits : int
        Flits of a message.
    any_length : bool
        Whether messages may be shorter.

    Returns
    -------
    Program

    Raises
    ------
    InputError
        If a message combines chunks.

    Examples
    --------
    Each of nine nodes does what the plan says for its offset from the root.

    >>> import torusfabric as tf
    >>> schedule = tf.plan(tf.Torus(3, 3), "broadcast", algorithm="diagonal")
    >>> program = compile_broadcast(schedule, schedule.chunks)
    >>> program.any_root, len(program.variant_of)
    (True, 9)
    """
    topology, chunks = schedule.topology, schedule.chunks
    block = block_flits(schedule, flits)
    half = 1 << (block - 1).bit_length()
    select, arrival, hops = _follow(schedule)
    # A node does what its settings say, and stores what arrives when it arrives.
    flat = np.hstack([values.reshape(topology.nodes, -1) for values in (select, arrival)])
    variant_of, first = number_equal(map(bytes, flat))
    used = [tuple(np.unique(arrival[1:, chunk, 2]).tolist()) for chunk in range(chunks)]
    loop = _loop(select[first].transpose(1, 0, 2), arrival[first], first == 0, hops, half, block)
    layout = schedule.collective.layout(topology, chunks)
    mode = Mode(
        schedule=schedule,
        any_root=True,
        by_offset=True,
        loop=loop,
        send_map=DirectMap(0, chunks, block, by_chunk=True),
        receive_map=DirectMap(0, chunks, block, by_chunk=True, base=half),
        write_delay=chunk_cycles(layout, flits, any_length=any_length),
        moving=CycleCost(
            loop.rows,
            int(hops.sum()),
            loop.rows * block,
            alpha=ROUND_SETUP,
            hop_cycles=1,
        ),
        any_length=any_length,
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
    chunk = np.arange(arrival.shape[1])
    sends = (select[..., None] == ports + chunk).any(axis=2)
    # The root reads its own message, all others what they have received.
    base = np.where(root, 0, half)[:, None]
    here = np.arange(rounds)[:, None, None] == arrival[..., 0]
    _, hops_of, port = np.where(here[..., None], arrival, IDLE).transpose(3, 0, 1, 2)
    return Loop(
        order=Order.ROW,
        flits=block,
        pause=round_pause(hops),
        blocks=np.ones(rounds, int),
        sources=Sources(ports, injections=tuple((int(k),) for k in chunk)),
        fields=(
            *fields_of(Action.SELECT, select, SETTING),
            *fields_of(Action.MEMORY, np.where(sends, chunk, IDLE), ADDRESS),
            *fields_of(Action.READ, np.where(sends, base, IDLE), ADDRESS),
            *fields_of(Action.WRITE, np.where(here, half, IDLE), store_delay()),
            *fields_of(Action.SOURCE, port, store_delay()),
            *fields_of(Action.TAP, hops_of, store_delay()),
        ),
        departure=np.broadcast_to(np.arange(rounds)[:, None], (rounds, ports)),
    )


class _Followed(NamedTuple):
    """What nodes do, by their offset from the root.

    Parameters
    ----------
    select : ndarray of int16, shape (nodes, rounds, ports)
        What feeds each out-port.
    arrival : ndarray of int, shape (nodes, chunks, 3)
        Round, hops and in-port by which each chunk arrives; -1 at the root.
    hops : ndarray of int, shape (rounds,)
        The longest path of each round.
    """

    select: IntArray
    arrival: IntArray
    hops: IntArray


def _follow(schedule: Schedule) -> _Followed:
    """What crossbars do, and how chunks arrive."""
    topology = schedule.topology
    held = np.zeros((topology.nodes, schedule.chunks), bool)
    held[schedule.collective.root] = True
    arrival = np.full((*held.shape, 3), -1)
    select, longest = [], []
    for number, transfers in enumerate(schedule.rounds()):
        chunks = _chunks(transfers, held)
        circuits = set_up_circuits(topology, transfers, chunks)
        select.append(circuits.select)
        longest.append(int(transfers.lengths.max(initial=0)))
        ends = circuits.destination, chunks, transfers.lengths, circuits.in_port
        for node, chunk, hops, port in zip(*(column.tolist() for column in ends), strict=True):
            if not held[node, chunk]:
                held[node, chunk] = True
                arrival[node, chunk] = number, hops, port
    return _Followed(np.stack(select, axis=1), arrival, np.array(longest))


def _chunks(transfers: Transfers, held: BoolArray) -> IntArray:
    """The chunk that each transfer carries.

    Raises
    ------
    InputError
        If one carries several.
    """
    match transfers.payload:
        case Everything():
            carried = held[transfers.source]
        case Grouped(group=group, wanted=wanted):
            carried = held[transfers.source] & (group[None, :] == wanted[:, None])
        case listed:
            carried = np.zeros((len(transfers), held.shape[1]), bool)
            number = np.repeat(np.arange(len(transfers)), np.diff(listed.indptr))
            carried[number, listed.ids] = True
    most = int(carried.sum(axis=1).max(initial=0))
    if most > 1:
        raise InputError(
            f"Root must be a node number where a message combines {most} chunks, not any"
        )
    chunk: IntArray = carried.argmax(axis=1)
    return chunk
