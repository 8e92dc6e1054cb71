"""The plan of streams: shapes of loaders and unloaders, and what the ROMs of nodes hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...topology import IntArray
from ..cascade import bit_count, select_code
from ..memories import address_width
from .commands import CommandShape
from .endpoint import AT_ONCE, StreamSettings, sectioned, unloaded
from .packets import (
    KEPT,
    NOWHERE,
    Packets,
    barrier_packets,
    packets_received,
    packets_sent,
)
from .ports import needs_commands, stream_ports
from .sections import Sections, sections_of
from .shapes import LoaderShape, RunFacts, UnloaderShape
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
        Of each mode.
    shapes : tuple of EndpointShape
        Of endpoints, with sections of each memory.
    keeps : tuple of bool
        Of each of these shapes, whether any node gets anything from itself.
    shape_of : tuple of int
        The shape of each node.
    loader : LoaderShape
    unloader : UnloaderShape
    settings : StreamSettings
        Of endpoints.
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
    loader: LoaderShape
    unloader: UnloaderShape
    settings: StreamSettings
    loads: Rows
    unloads: Rows
    commands: CommandShape | None

    @property
    def sections(self) -> Sections:
        """Of memories."""
        return self.loader.facts.sections


def plan_streams(build: FabricBuilder) -> StreamPlan:
    """Plan how nodes load and unload."""
    program, endpoints = build.program, build.placement.endpoints
    modes = range(len(program.modes))
    sent = tuple(packets_sent(program, mode) for mode in modes)
    received = tuple(packets_received(program, mode) for mode in modes)
    if program.barrier:
        first_own = next(number for number, memory in enumerate(program.memories) if memory.own)
        sent += (barrier_packets(program, first_own),)
        received += (barrier_packets(program, KEPT),)
    shapes = tuple(map(sectioned, endpoints.shapes))
    variants = [0] * build.nodes if program.by_offset else build.variant_of
    shape_of = tuple(int(endpoints.shape_of[variant]) for variant in variants)
    keeps = _keeps(received, shape_of, len(shapes))
    orders = [unloaded(shape, kept=k) for shape, k in zip(shapes, keeps, strict=True)]
    facts = _facts(build)
    loader, loads = _loaders(build, facts, sent, kept=any(keeps))
    unloader, unloads = _unloaders(build, facts, received, [orders[s] for s in shape_of])
    settings = StreamSettings(
        data_bits=loader.data_bits,
        most=program.flits,
        own=tuple(number for number, memory in enumerate(program.memories) if memory.own),
        late=unloader.late,
        code_bits=unloader.code_bits,
        address_bits=loader.address_bits,
        bank_bits=loader.bank_bits,
        sections=facts.sections,
    )
    commands = _commands(build, facts) if facts.commanded else None
    return StreamPlan(sent, received, shapes, keeps, shape_of, loader, unloader, settings, loads,
                      unloads, commands)  # fmt: skip


def _keeps(received: Sequence[Packets], shape_of: tuple[int, ...], shapes: int) -> tuple[bool, ...]:
    """Of each shape, whether any node gets anything from itself."""
    at = np.zeros(len(shape_of), bool)
    for packets in received:
        at |= (packets.memory == KEPT).any(axis=(1, 2)) & packets.there
    return tuple(bool(at[np.array(shape_of) == number].any()) for number in range(shapes))


def _facts(build: FabricBuilder) -> RunFacts:
    """What commands say of a run."""
    program, inputs = build.program, build.choices.inputs
    return RunFacts(
        commanded=needs_commands(program),
        mode_bits=(len(program.modes) + program.barrier - 1).bit_length(),
        root_bits=inputs.get("root", 0),
        position_bits=address_width(build.nodes),
        sections=sections_of(program),
    )


def _commands(build: FabricBuilder, facts: RunFacts) -> CommandShape:
    """What commands choose."""
    choices, barrier = build.choices, build.program.barrier
    operations = tuple(len(mode.operators) for mode in build.program.modes)
    return CommandShape(
        roots=choices.roots + (None,) * barrier,
        operations=operations + (0,) * barrier,
        barrier=barrier,
        most=build.program.flits,
        any_length=build.program.any_length,
        facts=facts,
        operation_bits=choices.inputs.get("operation", 0),
    )


def _address_bits(build: FabricBuilder) -> int:
    """Bits of the address of a memory, or of what a node gets from itself."""
    return max(build.address_bits, address_width(build.program.flits))


def _words(build: FabricBuilder, packets: Sequence[Packets]) -> WordShape:
    """How the words of packets are divided into chunks."""
    return WordShape(
        most=build.program.flits,
        chunks=tuple(each.chunks for each in packets),
        block=max(each.flits for each in packets),
        in_turn=packets[0].in_turn,
        pitch=tuple(each.pitch for each in packets),
    )


def _loaders(
    build: FabricBuilder, facts: RunFacts, sent: tuple[Packets, ...], *, kept: bool
) -> tuple[LoaderShape, Rows]:
    """The shape of loaders, and the rows of their ROMs."""
    program, words = build.program, _words(build, sent)
    ports = {port.name: port.width for port in stream_ports(program, build.width)}
    own = [number for number, memory in enumerate(program.memories) if memory.own]
    bank_of = np.zeros(len(program.memories) + 1, int)
    bank_of[own] = np.arange(len(own))
    bank_bits, dest_bits = (len(own) - 1).bit_length(), ports.get("s_axis_0_tdest", 0)
    values = [bank_of[each.memory] | each.base << bank_bits for each in sent]
    some = any(each.at_root or not each.there.all() for each in sent)
    shape = LoaderShape(
        width=build.width,
        data_bits=ports["s_axis_0_tdata"],
        words=words,
        facts=facts,
        packets=tuple(each.count for each in sent),
        named=tuple(each.named for each in sent),
        at_root=tuple(each.at_root for each in sent),
        any_length=program.any_length,
        some=some and program.any_length,
        dest_bits=dest_bits,
        bank_bits=bank_bits,
        base_bits=_base_bits(sent, [each.base for each in sent]),
        address_bits=_address_bits(build),
        kept=kept,
    )
    return shape, _rows(sent, values, chunk_bits=words.chunk_bits, packet_bits=dest_bits)


def _unloaders(
    build: FabricBuilder,
    facts: RunFacts,
    received: tuple[Packets, ...],
    orders: list[tuple[int, ...]],
) -> tuple[UnloaderShape, Rows]:
    """The shape of unloaders, and the rows of their ROMs.

    Parameters
    ----------
    build, facts, received
    orders : list of (tuple of int)
        Of each node, the memories among which it chooses.
    """
    words = _words(build, received)
    code_bits = max(bit_count(len(order)) for order in orders if order)
    packet_bits = (max(each.memory.shape[1] for each in received) - 1).bit_length()
    any_kept = any(KEPT in order for order in orders)
    bases = [
        # What is kept is read word by word, which is the same where chunks follow one another.
        np.where((each.memory == KEPT) | (each.memory == NOWHERE), 0, each.base)
        for each in received
    ]
    values = [
        _codes(each.memory, orders) << any_kept
        | base << (code_bits + any_kept)
        | ((each.memory == KEPT) if any_kept else 0)
        for each, base in zip(received, bases, strict=True)
    ]
    shape = UnloaderShape(
        words=words,
        facts=facts,
        packets=tuple(each.count for each in received),
        at_root=tuple(each.at_root for each in received),
        by_root=tuple(each.by_root for each in received),
        roots=tuple(each.root or 0 for each in received),
        any_length=build.program.any_length,
        id_bits=address_width(build.nodes),
        packet_bits=packet_bits,
        code_bits=code_bits,
        base_bits=_base_bits(received, bases),
        address_bits=_address_bits(build),
        kept=any_kept,
        late=max(map(len, orders)) > AT_ONCE,
    )
    return shape, _rows(received, values, chunk_bits=words.chunk_bits, packet_bits=packet_bits)


def _codes(memory: IntArray, orders: list[tuple[int, ...]]) -> IntArray:
    """The select bits of memories of nodes."""
    code = np.zeros_like(memory)
    for node, order in enumerate(orders):
        for index, number in enumerate(order):
            code[node][memory[node] == number] = select_code(len(order), index)
    return code


def _base_bits(packets: Sequence[Packets], bases: Sequence[IntArray]) -> int:
    """Bits of the address at which a chunk begins."""
    pairs = zip(packets, bases, strict=True)
    return max(int(base[:, :, : each.chunks].max()).bit_length() for each, base in pairs)


def _rows(
    packets: Sequence[Packets], values: Sequence[IntArray], *, chunk_bits: int, packet_bits: int
) -> Rows:
    """The rows of the ROM of each node: by mode, by packet, and then by chunk."""
    found = []
    for each, value in zip(packets, values, strict=True):
        chosen = value[:, :, : each.chunks]
        missing = [(1 << bits) - size for bits, size in
                   zip((packet_bits, chunk_bits), chosen.shape[1:], strict=True)]  # fmt: skip
        found.append(np.pad(chosen, [(0, 0), (0, missing[0]), (0, missing[1])]))
    joined = np.stack(found, axis=1)
    return tuple(tuple(map(int, row)) for row in joined.reshape(len(joined), -1).tolist())
