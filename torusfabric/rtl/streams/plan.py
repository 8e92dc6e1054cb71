"""The plan of streams: shapes of loaders and unloaders, and what the ROMs of nodes hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from ...program.mode import Range
from ...topology import IntArray
from ..memories import address_width
from ..multiplexer import bit_count, select_code
from .commands import CommandShape
from .endpoint import AT_ONCE, sectioned, unloaded
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

__all__ = ["EndPlan", "StreamPlan", "plan_streams"]

Shape = TypeVar("Shape", bound=EndShape)


@dataclass(frozen=True, eq=False)
class EndPlan(Generic[Shape]):
    """What loaders do, or unloaders.

    Parameters
    ----------
    shape : LoaderShape or UnloaderShape
        What all of them have in common.
    packets : tuple of Packets
        What passes in each form.
    rows : tuple of (tuple of int)
        Those of the ROM of each node.
    """

    shape: Shape
    packets: tuple[Packets, ...]
    rows: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """How nodes load and unload.

    Parameters
    ----------
    shapes : tuple of EndpointShape
        Of endpoints, with sections of each memory.
    keeps : tuple of bool
        Of each of these shapes, whether any node gets anything from itself.
    shape_of : ndarray of int, shape (nodes,)
    own : tuple of int
        The numbers of the memories of what is sent.
    commands : CommandShape or None
        What commands choose, if runs need any.
    """

    shapes: tuple[EndpointShape, ...]
    keeps: tuple[bool, ...]
    shape_of: IntArray
    own: tuple[int, ...]
    loaders: EndPlan[LoaderShape]
    unloaders: EndPlan[UnloaderShape]
    commands: CommandShape | None


def plan_streams(build: FabricBuilder) -> StreamPlan:
    """Plan how nodes load and unload."""
    program, endpoints = build.program, build.placement.endpoints
    forms = range(len(program.forms))
    sent = [packets_sent(program, form) for form in forms]
    received = [packets_received(program, form) for form in forms]
    own = tuple(number for number, memory in enumerate(program.memories) if memory.own)
    if program.barrier:
        sent.append(barrier_packets(program, own[0]))
        received.append(barrier_packets(program, KEPT))
    sent, received = ([p.by_beats(build.beat) for p in of_end] for of_end in (sent, received))
    shapes = tuple(map(sectioned, endpoints.shapes))
    shape_of = np.array(endpoints.shape_of)[0 if program.by_offset else build.variant_of]
    shape_of = np.broadcast_to(shape_of, build.nodes)
    # Whether each node gets anything from itself.
    kept = [(each.memory == KEPT).any(axis=(1, 2)) & each.there for each in received]
    keeps = tuple(np.isin(range(len(shapes)), shape_of[np.any(kept, axis=0)]).tolist())
    orders = [unloaded(shape, kept=k) for shape, k in zip(shapes, keeps, strict=True)]
    facts = RunFacts(
        commanded=needs_commands(program),
        form_bits=(len(program.forms) + program.barrier - 1).bit_length(),
        root_bits=build.choices.inputs.get("root", 0),
        position_bits=address_width(build.nodes),
        sections=sections_of(program, build.beat),
    )
    return StreamPlan(
        shapes,
        keeps,
        shape_of,
        own,
        _loaders(build, facts, sent, own, kept=any(keeps)),
        _unloaders(build, facts, received, [orders[number] for number in shape_of.tolist()]),
        _commands(build, facts) if facts.commanded else None,
    )


def _commands(build: FabricBuilder, facts: RunFacts) -> CommandShape:
    """What commands choose."""
    choices, modes, barrier = build.choices, build.program.modes, build.program.barrier
    roots = tuple(mode.groups.size if mode.any_root else None for mode in modes)
    operations = tuple(len(mode.operators) for mode in modes)
    served = tuple(mode.numbered for mode in modes)
    return CommandShape(
        roots=roots + (None,) * barrier,
        operations=operations + (0,) * barrier,
        barrier=barrier,
        most=build.program.flits,
        any_length=build.program.any_length,
        facts=facts,
        operation_bits=choices.inputs.get("operation", 0),
        served=served + ((Range(1, len(build.program.forms)),),) * barrier,
    )


def _loaders(
    build: FabricBuilder,
    facts: RunFacts,
    sent: Sequence[Packets],
    own: tuple[int, ...],
    *,
    kept: bool,
) -> EndPlan[LoaderShape]:
    """What loaders do."""
    ports = {port.name: port.width for port in stream_ports(build.program, build.width)}
    bank_of = np.zeros(len(build.program.memories) + 1, int)
    bank_of[list(own)] = np.arange(len(own))
    some = any(each.at_root or not each.there.all() for each in sent)
    return _planned(
        LoaderShape, build, facts, sent,
        bases=[each.base for each in sent],
        below=[bank_of[each.memory] for each in sent],
        packet_bits=ports.get("s_axis_0_tdest", 0),
        memory_bits=(len(own) - 1).bit_length(),
        kept=kept,
        named=tuple(each.named for each in sent),
        some=some and build.program.any_length,
    )  # fmt: skip


def _unloaders(
    build: FabricBuilder,
    facts: RunFacts,
    received: Sequence[Packets],
    orders: list[tuple[int, ...]],
) -> EndPlan[UnloaderShape]:
    """What unloaders do; of each node, `orders` has the memories among which it chooses."""
    kept = any(KEPT in order for order in orders)
    return _planned(
        UnloaderShape, build, facts, received,
        # What is kept is read word by word, which is the same where chunks follow one another.
        bases=[np.where(np.isin(each.memory, (KEPT, NOWHERE)), 0, each.base) for each in received],
        below=[(each.memory == KEPT) * kept | _codes(each.memory, orders) << kept
               for each in received],
        packet_bits=(max(each.memory.shape[1] for each in received) - 1).bit_length(),
        memory_bits=max(bit_count(len(order)) for order in orders if order),
        kept=kept,
        by_root=tuple(each.by_root for each in received),
        roots=tuple(each.root or 0 for each in received),
        id_bits=number_bits(build.program),
        late=max(map(len, orders)) > AT_ONCE,
        lacking=any(each.counts is not None and each.count > 1 for each in received),
    )  # fmt: skip


def _planned(
    make: Callable[..., Shape],
    build: FabricBuilder,
    facts: RunFacts,
    packets: Sequence[Packets],
    bases: Sequence[IntArray],
    below: Sequence[IntArray],
    **own: Any,
) -> EndPlan[Shape]:
    """What ends do: rows of their ROMs say in the lowest bits what is `below`, and then bases.

    Rows are those of each form by packet, and then by chunk.
    """
    beats = -(-build.program.flits // build.beat)
    used = [base[:, :, : each.chunks] for each, base in zip(packets, bases, strict=True)]
    shifts = _shifts(used)
    key = RowKey(
        tuple((base.shape[1] - 1).bit_length() for base in used),
        tuple((base.shape[2] - 1).bit_length() for base in used),
    )
    shape = make(
        words=WordShape(
            most=beats,
            chunks=tuple(each.chunks for each in packets),
            block=max(each.flits for each in packets),
            in_turn=build.program.any_length,
            pitch=tuple(each.pitch for each in packets),
        ),
        facts=facts,
        packets=tuple(each.count for each in packets),
        rows=key,
        shifts=shifts,
        at_root=tuple(each.at_root for each in packets),
        base_bits=_bits(used, shifts),
        # Of a memory, or of what a node gets from itself.
        address_bits=max(build.address_bits - (build.beat.bit_length() - 1), address_width(beats)),
        width=build.word,
        data_bits=8 * -(-build.word // 8),
        beat=build.beat,
        most_flits=build.program.flits,
        **own,
    )
    joined = np.zeros((build.nodes, key.rows), int)
    for form, (base, low) in enumerate(zip(used, below, strict=True)):
        packet, chunk = np.ogrid[: base.shape[1], : base.shape[2]]
        rows = key.starts[form] + (packet << key.chunk_bits[form]) + chunk
        above = base >> shifts[form] << shape.row_bits - shape.base_bits
        joined[:, rows] = low[:, :, : base.shape[2]] | above
    return EndPlan(shape, tuple(packets), tuple(map(tuple, joined.tolist())))


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


def _codes(memory: IntArray, orders: list[tuple[int, ...]]) -> IntArray:
    """The select bits of memories of nodes."""
    code = np.zeros_like(memory)
    for node, order in enumerate(orders):
        for index, number in enumerate(order):
            code[node][memory[node] == number] = select_code(len(order), index)
    return code
