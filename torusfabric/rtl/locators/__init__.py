# amaranth: UnusedElaboratable=no
"""Locators: where a node stores a flit, for the host that asks by origin.

Nodes store what arrives in the order in which it arrives. A locator turns (node, origin, chunk,
flit) into a memory and an address, once for the whole fabric: no flit carries a header, and no node
translates anything. There is one for each form of address map; as these do, locators know nodes by
their positions in their group.
"""

from collections.abc import Callable

import numpy as np

from ...program import DirectMap, NodeMap, OffsetMap, Program, RouteMap
from ...program.timing import direct_write_delay
from .base import Locator
from .direct import ChunkLocator, DirectLocator
from .node import NodeLocator
from .offset import OffsetLocator
from .route import RouteLocator

__all__ = ["Locator", "locator_of", "write_locator_of"]


def locator_of(program: Program) -> Callable[[], Locator]:
    """How to make the locator of what nodes have received."""
    match program.mode.receive_map:
        case RouteMap():
            return lambda: RouteLocator(program)
        case NodeMap():
            return lambda: NodeLocator(program)
        case OffsetMap() as mapped:
            memory = np.where(mapped.base >= 0, mapped.memory, 0)
            return lambda: OffsetLocator(
                mapped.topology,
                memory,
                np.maximum(mapped.base, 0) // program.block_flits,
                flits=program.block_flits,
                memories=len(program.memories),
                ahead=mapped.ahead,
            )
        case _:
            return lambda: ChunkLocator(program)


def write_locator_of(program: Program) -> Callable[[], Locator] | None:
    """How to make the locator of what nodes send; None where the host's order is that of memory."""
    mapped = program.mode.send_map
    if isinstance(mapped, DirectMap):
        if mapped.by_chunk or not direct_write_delay(
            program.layout, program.flits, any_length=program.any_length
        ):
            return None
        return lambda: DirectLocator(program)
    assert isinstance(mapped, OffsetMap)
    own = [number for number, memory in enumerate(program.memories) if memory.own]
    return lambda: OffsetLocator(
        mapped.topology,
        np.maximum(mapped.memory - own[0], 0),
        mapped.base // program.block_flits,
        flits=program.block_flits,
        memories=len(own),
        ahead=mapped.ahead,
    )
