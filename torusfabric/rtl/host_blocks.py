"""What an address of the host means: a node, and a flit of a block of a part."""

from __future__ import annotations

from amaranth.hdl import Module, Value

from .columns import Columns
from .delays import delayed
from .division import divide
from .host_layout import HostLayout

__all__ = ["host_block", "host_position"]


def host_position(m: Module, layout: HostLayout, node: Value, name: str) -> Value:
    """The position in its group of a node, one cycle later."""
    if layout.positions is None:
        return delayed(m, node, 1)
    table = Columns(node)
    position = table.read(layout.positions)
    table.build(m, f"positions{name}")
    return position


def host_block(
    m: Module, name: str, layout: HostLayout, address: Value, parts: int
) -> tuple[Value, Value, Value]:
    """Part, chunk and flit within it of an address, after `HostLayout.block_cycles`."""
    chunks, flits = layout.chunks, layout.flits
    if layout.in_turn and layout.part_chunks < chunks:
        within, block = divide(m, f"{name}_chunk", address, chunks, count=flits)
        part, chunk = divide(m, f"{name}_part", block, layout.part_chunks, count=chunks)
        return part, chunk, delayed(m, within, layout.part_cycles(parts))
    size = layout.part_flits
    part, flit = divide(m, f"{name}_part", address, size, count=parts * size)
    if layout.in_turn:
        within, chunk = divide(m, f"{name}_chunk", flit, chunks, count=flits)
    else:
        block = layout.block_flits
        chunk, within = divide(m, f"{name}_chunk", flit, block, count=layout.part_chunks * block)
    return delayed(m, part, layout.chunk_cycles), chunk, within
