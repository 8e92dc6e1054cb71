"""The plan of streams: shapes of loaders and unloaders, and what the ROMs of nodes hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...topology import IntArray
from ..crossbar import bit_count, select_code
from ..memories import address_width
from .endpoint import StreamSettings, doubled, unloaded
from .loader import LoaderShape
from .packets import KEPT, NOWHERE, Packets, packets_received, packets_sent
from .ports import stream_ports
from .unloader import UnloaderShape
from .words import WordShape

if TYPE_CHECKING:
    from ..blueprint import Blueprint
    from ..endpoint_shape import EndpointShape

__all__ = ["StreamPlan", "plan_streams"]


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """How nodes load and unload.

    Parameters
    ----------
    sent, received : Packets
    shapes : tuple of EndpointShape
        Of endpoints, with two halves of each memory.
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
    """

    sent: Packets
    received: Packets
    shapes: tuple[EndpointShape, ...]
    keeps: tuple[bool, ...]
    shape_of: tuple[int, ...]
    loader: LoaderShape
    unloader: UnloaderShape
    settings: StreamSettings
    loads: tuple[tuple[int, ...], ...]
    unloads: tuple[tuple[int, ...], ...]


def plan_streams(plan: Blueprint) -> StreamPlan:
    """Plan how nodes load and unload."""
    program, endpoints = plan.program, plan.control.endpoints
    sent, received = packets_sent(program, 0), packets_received(program, 0)
    shapes = tuple(map(doubled, endpoints.shapes))
    shape_of = tuple(int(endpoints.shape_of[variant]) for variant in plan.variant_of)
    keeps_at = (received.memory == KEPT).any(axis=(1, 2)) & received.there
    keeps = tuple(
        bool(keeps_at[[node for node, s in enumerate(shape_of) if s == number]].any())
        for number in range(len(shapes))
    )
    ports = {port.name: port.width for port in stream_ports(program, plan.width)}
    loads, bank_bits, load_base = _load_rows(plan, sent)
    orders = [unloaded(shape, kept=k) for shape, k in zip(shapes, keeps, strict=True)]
    code_bits = max(bit_count(len(order)) for order in orders if order)
    unloads, unload_base = _unload_rows(received, [orders[s] for s in shape_of], code_bits)
    address_bits = max(plan.address_bits, address_width(plan.program.flits))
    data_bits = ports["s_axis_0_tdata"]
    any_kept = any(keeps)
    loader = LoaderShape(
        width=plan.width,
        data_bits=data_bits,
        words=_words(plan, sent),
        packets=sent.count,
        any_length=program.any_length,
        dest_bits=ports.get("s_axis_0_tdest", 0),
        bank_bits=bank_bits,
        base_bits=load_base,
        address_bits=address_bits,
        kept=any_kept,
    )
    unloader = UnloaderShape(
        words=_words(plan, received),
        packets=received.count,
        any_length=program.any_length,
        first_id=received.first_id,
        id_bits=ports["m_axis_0_tid"],
        code_bits=code_bits,
        base_bits=unload_base,
        address_bits=address_bits,
        kept=any_kept,
    )
    settings = StreamSettings(data_bits, program.flits, code_bits, address_bits, bank_bits)
    return StreamPlan(
        sent, received, shapes, keeps, shape_of, loader, unloader, settings, loads, unloads
    )


def _words(plan: Blueprint, packets: Packets) -> WordShape:
    """How the words of packets are divided into chunks."""
    return WordShape(
        most=plan.program.flits,
        chunks=packets.chunks,
        block=packets.flits,
        in_turn=packets.in_turn,
        pitch=packets.pitch,
    )


def _rows(packets: Packets, values: IntArray) -> tuple[tuple[int, ...], ...]:
    """The rows of the ROM of each node: by packet, and then by chunk."""
    values = values[:, :, : packets.chunks]
    width = 1 << (packets.chunks - 1).bit_length()
    padded = np.pad(values, [(0, 0), (0, 0), (0, width - packets.chunks)])
    return tuple(tuple(map(int, row)) for row in padded.reshape(len(values), -1).tolist())


def _load_rows(plan: Blueprint, sent: Packets) -> tuple[tuple[tuple[int, ...], ...], int, int]:
    """Rows of loaders, and their bits: of the number of a memory, of the first address."""
    own = [number for number, memory in enumerate(plan.program.memories) if memory.own]
    bank_of = np.zeros(len(plan.program.memories) + 1, int)
    bank_of[own] = np.arange(len(own))
    bank_bits = (len(own) - 1).bit_length()
    base = sent.base[:, :, : sent.chunks]
    base_bits = int(base.max()).bit_length()
    rows = bank_of[sent.memory] | sent.base << bank_bits
    return _rows(sent, rows), bank_bits, base_bits


def _unload_rows(
    received: Packets, orders: list[tuple[int, ...]], code_bits: int
) -> tuple[tuple[tuple[int, ...], ...], int]:
    """Rows of unloaders, and their bits of the first address.

    Parameters
    ----------
    received : Packets
    orders : list of (tuple of int)
        Of each node, the memories among which it chooses.
    code_bits : int
    """
    kept = received.memory == KEPT
    any_kept = int((kept & received.there[:, None, None]).any())
    code = np.zeros_like(received.memory)
    for node, order in enumerate(orders):
        for index, number in enumerate(order):
            code[node][received.memory[node] == number] = select_code(len(order), index)
    # What is kept is read word by word, which is the same where chunks follow one another.
    base = np.where(kept | (received.memory == NOWHERE), 0, received.base)
    rows = code << any_kept | base << (code_bits + any_kept) | (kept if any_kept else 0)
    base_bits = int(base[:, :, : received.chunks].max()).bit_length()
    return _rows(received, rows), base_bits
