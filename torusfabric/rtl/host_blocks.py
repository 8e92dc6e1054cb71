"""What an address of the host means: a node, and a flit of a block of a part."""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value

from .columns import Columns
from .delays import delayed
from .host_layout import HostLayout
from .memories import address_width
from .run_length import divided

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
    m: Module, layout: HostLayout, address: Value, parts: int
) -> tuple[Value, Value, Value]:
    """Part, chunk and flit within it of an address, after the cycles of a division by parts."""
    if not layout.in_turn:
        part, flit = _divide(m, layout, address, parts)
        return part, *_split(layout, flit)
    if layout.part_chunks < layout.chunks:
        chunk, flit = _in_turn(address, layout.chunks)
        part = divided(chunk, layout.part_chunks)
        return part, (chunk - part * layout.part_chunks)[: len(chunk)], flit
    part, flit = _divide(m, layout, address, parts)
    return part, *_in_turn(flit, layout.chunks)


def _split(layout: HostLayout, flit: Value) -> tuple[Value, Value]:
    """Chunk, and flit within it, of a flit of a message whose chunks follow one another."""
    size, chunks = layout.block_flits, layout.part_chunks
    if chunks == 1:
        return Const(0), flit
    if not size & (size - 1):
        shift = size.bit_length() - 1
        return flit[shift:], flit[:shift] if shift else Const(0)
    chunk: list[Value] = []
    rest = flit
    for k in reversed(range((chunks - 1).bit_length())):
        fits = rest >= size << k
        chunk.insert(0, fits)
        rest = Mux(fits, rest - (size << k), rest)[: len(flit)]
    return Cat(*chunk), rest[: address_width(size)]


def _divide(m: Module, layout: HostLayout, address: Value, parts: int) -> tuple[Value, Value]:
    """Part, and flit within it, of an address; one cycle for each bit of the part."""
    flits, stages = layout.part_flits, layout.division_stages(parts)
    if parts == 1:
        return Const(0), address
    if not stages:
        shift = flits.bit_length() - 1
        return address[shift:], address[:shift] if shift else Const(0)
    quotient: list[Value] = []
    rest = address
    for k in reversed(range(stages)):
        fits = rest >= flits << k
        quotient = [delayed(m, bit, 1) for bit in quotient]
        taken, remaining = Signal(reset_less=True), Signal(len(address), reset_less=True)
        m.d.sync += [taken.eq(fits), remaining.eq(Mux(fits, rest - (flits << k), rest))]
        quotient.insert(0, taken)
        rest = remaining
    return Cat(*quotient), rest


def _in_turn(flit: Value, chunks: int) -> tuple[Value, Value]:
    """Chunk, and flit within it, of a flit of a message whose flits go to its chunks in turn."""
    if chunks == 1:
        return Const(0), flit
    within = divided(flit, chunks)
    bits = (chunks - 1).bit_length()
    if chunks == 1 << bits:
        return flit[:bits], within
    return (flit - within * chunks)[:bits], within
