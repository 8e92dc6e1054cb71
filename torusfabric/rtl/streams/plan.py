"""The plan of streams: shapes of loaders and unloaders, and what the ROMs of nodes hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from amaranth.lib.data import StructLayout

from ...program.mode import Range
from ...topology import IntArray
from ..memories import address_width
from ..multiplexer import bit_count, select_code
from ..run_choices import RunChoices
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

__all__ = ["EndPlan", "StreamPlan", "plan_streams"]

Shape = TypeVar("Shape", bound=EndShape)


class EndPlan(NamedTuple):
    """What passes at loaders, or unloaders, in each form; and the rows of the ROM of each node."""

    packets: tuple[Packets, ...]
    rows: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """How nodes load and unload.

    Parameters
    ----------
    endpoints : list of (EndpointShape, bool, ndarray of int)
        The shapes of endpoints, with sections of each memory; whether any gets anything from
        itself; and which nodes they are.
    ends : StreamEnds
        What all loaders have in common, and all unloaders.
    by_verb : dict of str to EndPlan
        What is different, of those that ``load`` and ``unload``.
    commands : CommandShape or None
        What commands choose, if runs need any.
    """

    endpoints: list[tuple[EndpointShape, bool, IntArray]]
    ends: StreamEnds
    by_verb: Mapping[str, EndPlan]
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
    shape_of = np.array(endpoints.shape_of)[0 if program.by_offset else build.variant_of]
    shape_of = np.broadcast_to(shape_of, build.nodes)
    # Whether each node gets anything from itself.
    keeps = [(each.memory == KEPT).any(axis=(1, 2)) & each.there for each in received]
    shapes: list[tuple[EndpointShape, bool, IntArray]] = []
    orders: list[tuple[int, ...]] = []
    for number, shape in enumerate(map(sectioned, endpoints.shapes)):
        here = shape_of == number
        kept = bool((np.any(keeps, axis=0) & here).any())
        shapes.append((shape, kept, np.flatnonzero(here)))
        orders.append(unloaded(shape, kept=kept))
    facts = RunFacts(
        commanded=needs_commands(program),
        form_bits=(len(program.forms) + program.barrier - 1).bit_length(),
        root_bits=build.choices.inputs.get("root", 0),
        position_bits=address_width(build.nodes),
        sections=sections_of(program, build.beat),
    )
    loader, loads = _loaders(build, facts, sent, own, kept=any(kept for _, kept, _ in shapes))
    of_nodes = [orders[number] for number in shape_of.tolist()]
    unloader, unloads = _unloaders(build, facts, received, of_nodes)
    return StreamPlan(
        shapes,
        StreamEnds(loader, unloader, own),
        {"load": loads, "unload": unloads},
        _commands(build, facts) if facts.commanded else None,
    )


def _commands(build: FabricBuilder, facts: RunFacts) -> CommandShape:
    """What commands choose."""
    program, choices = build.program, RunChoices.of(build.program)
    if program.barrier:
        choices = replace(
            choices,
            roots=(*choices.roots, None),
            combining=(*choices.combining, False),
            served=(*choices.served, (Range(1, len(program.forms)),)),
        )
    return CommandShape(choices, facts, program.flits, program.barrier)


def _loaders(
    build: FabricBuilder,
    facts: RunFacts,
    sent: Sequence[Packets],
    own: tuple[int, ...],
    *,
    kept: bool,
) -> tuple[LoaderShape, EndPlan]:
    """What loaders do."""
    listed = stream_ports(build.program, build.width).items()
    ports = {name: port.width for name, port in listed}
    bank_of = np.zeros(len(build.program.memories) + 1, int)
    bank_of[list(own)] = np.arange(len(own))
    some = any(each.at_root or not each.there.all() for each in sent)
    return _planned(
        LoaderShape, build, facts, sent,
        bases=[each.base for each in sent],
        below=[bank_of[each.memory] for each in sent],
        said={"memory": (len(own) - 1).bit_length()},
        by_position="s_axis_0_tdest" in ports or any(each.at_root for each in sent),
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
) -> tuple[UnloaderShape, EndPlan]:
    """What unloaders do; of each node, `orders` has the memories among which it chooses."""
    kept = any(KEPT in order for order in orders)
    code_bits = max(bit_count(len(order)) for order in orders if order)
    return _planned(
        UnloaderShape, build, facts, received,
        # What is kept is read word by word, which is the same where chunks follow one another.
        bases=[np.where(np.isin(each.memory, (KEPT, NOWHERE)), 0, each.base) for each in received],
        below=[(each.memory == KEPT) * kept | _codes(each.memory, orders) << kept
               for each in received],
        said={"kept": int(kept), "code": code_bits},
        by_position=any(each.at_root for each in received),
        packet_bits=(max(each.memory.shape[1] for each in received) - 1).bit_length(),
        memory_bits=code_bits,
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
    said: Mapping[str, int],
    **own: Any,
) -> tuple[Shape, EndPlan]:
    """What ends do: rows of their ROMs say what is `below`, in fields of so many bits, then bases.

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
        row=StructLayout({**said, "base": _bits(used, shifts)}),
        # Of a memory, or of what a node gets from itself.
        address_bits=max(build.address_bits - (build.beat.bit_length() - 1), address_width(beats)),
        width=build.word,
        beat=build.beat,
        most_flits=build.program.flits,
        **own,
    )
    joined = np.zeros((build.nodes, key.rows), int)
    for form, (base, low) in enumerate(zip(used, below, strict=True)):
        packet, chunk = np.ogrid[: base.shape[1], : base.shape[2]]
        rows = key.starts[form] + (packet << key.chunk_bits[form]) + chunk
        above = base >> shifts[form] << shape.row["base"].offset
        joined[:, rows] = low[:, :, : base.shape[2]] | above
    return shape, EndPlan(tuple(packets), tuple(map(tuple, joined.tolist())))


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
