"""What the user of a core has to know: which block arrives, or lies, where; plain lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..program import DirectMap, RouteMap
from ..schedule import Listed, Transfers
from ..topology import IntArray

if TYPE_CHECKING:
    from ..program import Program
    from ..program.address_map import AddressMap

__all__ = ["core_places"]


def core_places(program: Program) -> dict[str, Any]:
    """Where the blocks of a core arrive, or lie.

    Parameters
    ----------
    program : Program

    Returns
    -------
    dict
        Of an oblivious program, ``arrivals[node][port][step - 1]`` is [origin, chunk], or null
        where it is nothing new: a block has one place at a node, where it arrives first. Of others,
        ``places[node][k]`` is [memory, first address] of the k-th block of the node's receive
        memory as a host would see it (by origin, then chunk), or null where it receives none;
        ``sent`` likewise says where what a node sends belongs, as [`write_bank`, first
        `write_address`], if that is not in order.
    """
    if isinstance(program.mode.receive_map, RouteMap):
        blocks = program.blocks
        names = [blocks.name(block) for block in range(blocks.count)] + [None]
        arrivals = _first_arrivals(program)
        return {
            "arrivals": [[[names[k] for k in row] for row in node] for node in arrivals.tolist()]
        }
    layout = program.layout
    found: dict[str, Any] = {
        "places": _listed(program, program.mode.receive_map, layout.recv_parts, 0)
    }
    if program.any_root:
        # The upper half of each memory, which a node addresses by itself.
        chunks = range(program.schedule.chunks)
        return {"places": [[[chunk, 0] for chunk in chunks]] * program.topology.nodes}
    if not isinstance(program.mode.send_map, DirectMap):
        own = next(number for number, memory in enumerate(program.memories) if memory.own)
        found["sent"] = _listed(program, program.mode.send_map, layout.send_parts, own)
    return found


def _listed(
    program: Program, mapped: AddressMap, parts: int, first: int
) -> list[list[list[int] | None]]:
    """Memory and first address of each block of each node, null for none."""
    chunks = program.layout.part_chunks
    part, chunk = divmod(np.arange(parts * chunks), chunks)
    nodes = np.arange(program.topology.nodes)
    memory, base = mapped.locate(nodes[:, None], part[None, :], chunk[None, :])
    memory, base = np.broadcast_arrays(memory, base)
    shape = (len(nodes), len(part))
    rows = np.stack([np.broadcast_to(memory - first, shape), np.broadcast_to(base, shape)], axis=-1)
    return [[place if place[1] >= 0 else None for place in row] for row in rows.tolist()]


def _first_arrivals(program: Program) -> IntArray:
    """What is new at each in-port in each step, shape (nodes, ports, steps).

    A block number; -1 where nothing arrives, or what the node has already, be it that it comes in
    by another port in the same step.
    """
    topology, blocks, nodes = program.topology, program.blocks, np.arange(program.topology.nodes)
    steps = program.schedule.round_count
    arrivals = np.full((len(nodes), topology.ports, steps), -1)
    had = np.zeros((len(nodes), blocks.count), bool)
    had[blocks.origin(np.arange(blocks.count)), np.arange(blocks.count)] = True
    for step, transfers in enumerate(program.schedule.rounds()):
        port = transfers.hops[:, 0]
        arrived = np.full((len(nodes), topology.ports), -1)
        there = topology.neighbours[transfers.source, port], topology.opposite[port]
        arrived[there] = _ids(transfers)
        for block, new in zip(arrived.T, arrivals[:, :, step].T, strict=True):
            fresh = (block >= 0) & ~had[nodes, block]
            new[fresh] = block[fresh]
            had[nodes[fresh], block[fresh]] = True
    return arrivals


def _ids(transfers: Transfers) -> IntArray:
    """The block of each transfer of an oblivious schedule."""
    assert isinstance(transfers.payload, Listed)
    return transfers.payload.ids
