"""The address map of a core as plain lists: the port or the memory address of each block.

The manifest of emitted Verilog contains it, for testbenches and software.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..program import AddressMap, Program
from ..schedule import Listed
from ..topology import IntArray
from .core.direct_port import is_direct

__all__ = ["core_address_map"]


def core_address_map(program: Program) -> dict[str, Any]:
    """Return the location of each block of a program at the ports or in the memories of each node.

    Block k of a message is chunk ``k % C`` of part ``k // C``, if a part has C chunks. A part is
    the data of one origin or of one destination, or one share of a sum, depending on the
    collective.

    Returns
    -------
    dict
        For a core with direct ports, ``arrivals[node][port][step - 1]`` is [origin, chunk] of the
        block that arrives there for the first time at the node, or null.

        For a core with memories, ``sent[node][k]`` is [`write_bank`, first `write_address`] of
        block k of the message that the node sends, and ``received[node][k]`` is [`read_bank`, first
        `read_address`] of block k of the message that it receives. Entries are null if there is no
        such block. If only the root receives and runs choose the root, each node is listed as if
        it were the root.
    """
    form, layout = program.form, program.layout
    if is_direct(program):
        names = [*map(program.blocks.block_entry, range(program.blocks.n_blocks)), None]
        arrivals = _first_arrivals(program).tolist()
        return {"arrivals": [[[names[k] for k in steps] for steps in node] for node in arrivals]}
    if program.any_root and program.schedule.collective.to_all:
        # Received words are in the upper half of each memory. The node adds the address of the half
        # itself, so block k is at address 0 of memory k for sent and for received words.
        chunks = range(program.schedule.chunks)
        every = [[[chunk, 0] for chunk in chunks]] * program.topology.nodes
        return {"sent": every, "received": every}
    own = next(number for number, memory in enumerate(program.memories) if memory.own)
    return {
        "sent": _list_addresses(program, form.send_map, layout.send_parts, own),
        "received": _list_addresses(program, form.receive_map, layout.recv_parts, 0),
    }


def _list_addresses(
    program: Program, mapped: AddressMap, parts: int, first: int
) -> list[list[list[int] | None]]:
    """Return the location of each block at each node: ``found[node][block]`` is [memory, address].

    The address is that of the first flit. An entry is None where a node has no such block. `mapped`
    maps parts 0 to `parts` - 1 of a message to locations, and memories are counted from memory
    `first`.
    """
    chunks = program.layout.part_chunks
    part, chunk = divmod(np.arange(parts * chunks), chunks)
    nodes = program.groups.map_row_of_node
    memory, base = mapped.locate(nodes[:, None], part, chunk)
    rows = np.stack([memory - first, base], axis=-1)
    return [[entry if entry[1] >= 0 else None for entry in row] for row in rows.tolist()]


def _first_arrivals(program: Program) -> IntArray:
    """Return the number of the block that arrives at each in-port in each step.

    The result has the shape (nodes, ports, steps). The entry is -1 if no block arrives, or if the
    node has the block already. If several ports get the same block in the same step, only the first
    has it.
    """
    topology, blocks, nodes = program.topology, program.blocks, np.arange(program.topology.nodes)
    steps = program.schedule.round_count
    arrivals = np.full((len(nodes), topology.ports, steps), -1)
    had = np.zeros((len(nodes), blocks.n_blocks), bool)
    had[blocks.initial_copies(np.arange(blocks.n_blocks))] = True
    for step, transfers in enumerate(program.schedule.rounds()):
        port = transfers.hops[:, 0]
        arrived = np.full((len(nodes), topology.ports), -1)
        there = topology.neighbours[transfers.source, port], topology.opposite[port]
        assert isinstance(transfers.payload, Listed), "of an oblivious schedule"
        arrived[there] = transfers.payload.ids
        for block, new in zip(arrived.T, arrivals[:, :, step].T, strict=True):
            fresh = (block >= 0) & ~had[nodes, block]
            new[fresh] = block[fresh]
            had[nodes[fresh], block[fresh]] = True
    return arrivals
