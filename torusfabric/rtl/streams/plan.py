"""The plan of streams: shapes of loaders and unloaders, and what the ROMs of nodes hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...program.mode import Range
from ...topology import IntArray
from ..memories import address_width
from ..multiplexer import bit_count, select_code
from .commands import CommandShape
from .endpoint import AT_ONCE, StreamEnds, sectioned, unloaded
from .packets import (
    KEPT,
    NOWHERE,
    Packets,
    barrier_packets,
    number_bits,
    packets_received,
    packets_sent,
)
from .ports import needs_commands, stream_ports
from .sections import sections_of
from .shapes import EndShape, LoaderShape, RowKey, RunFacts, UnloaderShape
from .words import WordShape

if TYPE_CHECKING:
    from ..endpoint_shape import EndpointShape
    from ..fabric_builder import FabricBuilder

__all__ = ["StreamPlan", "plan_streams"]

#: The rows of the ROM of each node.
Rows: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """How nodes load and unload.

    Parameters
    ----------
    sent, received : tuple of Packets
        Of each form.
    shapes : tuple of EndpointShape
        Of endpoints, with sections of each memory.
    keeps : tuple of bool
        Of each of these shapes, whether any node gets anything from itself.
    shape_of : tuple of int
        The shape of each node.
    ends : StreamEnds
        What all loaders have in common, and all unloaders.
    loads, unloads : tuple of (tuple of int)
        The rows of the ROMs of each node.
    commands : CommandShape or None
        What commands choose, if runs need any.
    """

    sent: tuple[Packets, ...]
    received: tuple[Packets, ...]
    shapes: tuple[EndpointShape, ...]
    keeps: tuple[bool, ...]
    shape_of: tuple[int, ...]
    ends: StreamEnds
    loads: Rows
    unloads: Rows
    commands: CommandShape | None


def plan_streams(build: FabricBuilder) -> StreamPlan:
    """Plan how nodes load and unload."""
    program, endpoints, beat = build.program, build.placement.endpoints, build.beat
    forms = range(len(program.forms))
    sent = tuple(packets_sent(program, form) for form in forms)
    received = tuple(packets_received(program, form) for form in forms)
    own = tuple(number for number, memory in enumerate(program.memories) if memory.own)
    if program.barrier:
        sent += (barrier_packets(program, own[0]),)
        received += (barrier_packets(program, KEPT),)
    sent, received = (tuple(p.by_beats(beat) for p in of_end) for of_end in (sent, received))
    shapes = tuple(map(sectioned, endpoints.shapes))
    variants = [0] * build.nodes if program.by_offset else build.variant_of
    shape_of = tuple(int(endpoints.shape_of[variant]) for variant in variants)
    keeps = _keeps(received, shape_of, len(shapes))
    orders = [unloaded(shape, kept=k) for shape, k in zip(shapes, keeps, strict=True)]
    facts = _facts(build, beat)
    loader, loads = _loaders(build, facts, beat, sent, own, kept=any(keeps))
    unloader, unloads = _unloaders(build, facts, beat, received, [orders[s] for s in shape_of])
    commands = _commands(build, facts) if facts.commanded else None
    ends = StreamEnds(loader, unloader, own)
    return StreamPlan(sent, received, shapes, keeps, shape_of, ends, loads, unloads, commands)


def _keeps(received: Sequence[Packets], shape_of: tuple[int, ...], shapes: int) -> tuple[bool, ...]:
    """Of each shape, whether any node gets anything from itself."""
    at = np.zeros(len(shape_of), bool)
    for packets in received:
        at |= (packets.memory == KEPT).any(axis=(1, 2)) & packets.there
    return tuple(bool(at[np.array(shape_of) == number].any()) for number in range(shapes))


def _facts(build: FabricBuilder, beat: int) -> RunFacts:
    """What commands say of a run."""
    program, inputs = build.program, build.choices.inputs
    return RunFacts(
        commanded=needs_commands(program),
        form_bits=(len(program.forms) + program.barrier - 1).bit_length(),
        root_bits=inputs.get("root", 0),
        position_bits=address_width(build.nodes),
        sections=sections_of(program, beat),
    )


def _commands(build: FabricBuilder, facts: RunFacts) -> CommandShape:
    """What commands choose."""
    choices, modes, barrier = build.choices, build.program.modes, build.program.barrier
    roots = tuple(mode.groups.size if mode.any_root else None for mode in modes)
    operations = tuple(len(mode.operators) for mode in modes)
    return CommandShape(
        roots=roots + (None,) * barrier,
        operations=operations + (0,) * barrier,
        barrier=barrier,
        most=build.program.flits,
        any_length=build.program.any_length,
        facts=facts,
        operation_bits=choices.inputs.get("operation", 0),
        served=tuple(mode.numbered for mode in modes)
        + ((Range(1, len(build.program.forms)),),) * barrier,
    )


def _common(
    build: FabricBuilder,
    facts: RunFacts,
    beat: int,
    packets: Sequence[Packets],
    bases: Sequence[IntArray],
) -> dict[str, Any]:
    """What the shape of loaders and that of unloaders have by the same names."""
    beats = -(-build.program.flits // beat)
    used = [base[:, :, : each.chunks] for each, base in zip(packets, bases, strict=True)]
    shifts = _shifts(used)
    chunk_bits = tuple((each.chunks - 1).bit_length() for each in packets)
    packet_bits = tuple((each.memory.shape[1] - 1).bit_length() for each in packets)
    return {
        "words": WordShape(
            most=beats,
            chunks=tuple(each.chunks for each in packets),
            block=max(each.flits for each in packets),
            in_turn=build.program.any_length,
            pitch=tuple(each.pitch for each in packets),
        ),
        "facts": facts,
        "packets": tuple(each.count for each in packets),
        "rows": RowKey(packet_bits, chunk_bits),
        "shifts": shifts,
        "at_root": tuple(each.at_root for each in packets),
        "base_bits": _bits(used, shifts),
        # Of a memory, or of what a node gets from itself.
        "address_bits": max(build.address_bits - (beat.bit_length() - 1), address_width(beats)),
        "width": beat * build.width,
        "data_bits": 8 * -(-beat * build.width // 8),
        "beat": beat,
        "most_flits": build.program.flits,
    }


def _bits(bases: Sequence[IntArray], shifts: Sequence[int]) -> int:
    """Bits of what rows say of bases."""
    return max(int(b.max() >> shift).bit_length() for b, shift in zip(bases, shifts, strict=True))


def _shifts(bases: Sequence[IntArray]) -> tuple[int, ...]:
    """Of each form, the lowest bits that are 0 in all its bases, as far as rows get shorter by it.

    Examples
    --------
    >>> _shifts([np.array([0, 16, 32]), np.array([0, 3]), np.array([0, 0])])
    (4, 0, 0)
    >>> _shifts([np.array([0, 16]), np.array([0, 31])])
    (0, 0)
    """
    zeros = [int(np.bitwise_or.reduce(base, axis=None)) for base in bases]
    most = [(bits & -bits).bit_length() - 1 if bits else 0 for bits in zeros]
    least = _bits(bases, most)
    return tuple(max(int(base.max()).bit_length() - least, 0) for base in bases)


def _loaders(
    build: FabricBuilder,
    facts: RunFacts,
    beat: int,
    sent: tuple[Packets, ...],
    own: tuple[int, ...],
    *,
    kept: bool,
) -> tuple[LoaderShape, Rows]:
    """The shape of loaders, and the rows of their ROMs."""
    ports = {port.name: port.width for port in stream_ports(build.program, build.width)}
    bank_of = np.zeros(len(build.program.memories) + 1, int)
    bank_of[list(own)] = np.arange(len(own))
    bank_bits = (len(own) - 1).bit_length()
    some = any(each.at_root or not each.there.all() for each in sent)
    shape = LoaderShape(
        **_common(build, facts, beat, sent, [each.base for each in sent]),
        packet_bits=ports.get("s_axis_0_tdest", 0),
        memory_bits=bank_bits,
        kept=kept,
        named=tuple(each.named for each in sent),
        some=some and build.program.any_length,
    )
    values = [
        bank_of[each.memory] | each.base >> shift << bank_bits
        for each, shift in zip(sent, shape.shifts, strict=True)
    ]
    return shape, _rows(shape, sent, values)


def _unloaders(
    build: FabricBuilder,
    facts: RunFacts,
    beat: int,
    received: tuple[Packets, ...],
    orders: list[tuple[int, ...]],
) -> tuple[UnloaderShape, Rows]:
    """The shape of unloaders, and the rows of their ROMs.

    Of each node, `orders` has the memories among which it chooses.
    """
    bases = [
        # What is kept is read word by word, which is the same where chunks follow one another.
        np.where((each.memory == KEPT) | (each.memory == NOWHERE), 0, each.base)
        for each in received
    ]
    shape = UnloaderShape(
        **_common(build, facts, beat, received, bases),
        packet_bits=(max(each.memory.shape[1] for each in received) - 1).bit_length(),
        memory_bits=max(bit_count(len(order)) for order in orders if order),
        kept=any(KEPT in order for order in orders),
        by_root=tuple(each.by_root for each in received),
        roots=tuple(each.root or 0 for each in received),
        id_bits=number_bits(build.program),
        late=max(map(len, orders)) > AT_ONCE,
        lacking=any(each.counts is not None and each.count > 1 for each in received),
    )
    kept, base_at = shape.kept_bits, shape.kept_bits + shape.memory_bits
    values = [
        (each.memory == KEPT) * kept
        | _codes(each.memory, orders) << kept
        | base >> shift << base_at
        for each, base, shift in zip(received, bases, shape.shifts, strict=True)
    ]
    return shape, _rows(shape, received, values)


def _codes(memory: IntArray, orders: list[tuple[int, ...]]) -> IntArray:
    """The select bits of memories of nodes."""
    code = np.zeros_like(memory)
    for node, order in enumerate(orders):
        for index, number in enumerate(order):
            code[node][memory[node] == number] = select_code(len(order), index)
    return code


def _rows(shape: EndShape, packets: Sequence[Packets], values: Sequence[IntArray]) -> Rows:
    """The rows of the ROM of each node: those of each form by packet, and then by chunk."""
    joined = np.zeros((len(values[0]), shape.rows.rows), int)
    for form, (each, value) in enumerate(zip(packets, values, strict=True)):
        chosen = value[:, :, : each.chunks]
        start, bits = shape.rows.starts[form], shape.rows.chunk_bits[form]
        packet, chunk = np.ogrid[: chosen.shape[1], : chosen.shape[2]]
        joined[:, (start + (packet << bits) + chunk).ravel()] = chosen.reshape(len(chosen), -1)
    return tuple(tuple(map(int, row)) for row in joined.tolist())
