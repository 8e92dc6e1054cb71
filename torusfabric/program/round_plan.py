"""The plan of rounds: what every node reads, passes on and stores, counted in blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..topology import IntArray
from .fields import Memory

if TYPE_CHECKING:
    from .address_map import AddressMap

__all__ = ["Added", "Bursts", "Receipts", "RoundPlan"]


class Bursts(NamedTuple):
    """Runs of blocks that nodes read, elementwise.

    Reader `place` of an injection port reads ``length`` blocks of a memory from a slot on, after so
    many others (`at`) of the round.
    """

    round: IntArray
    node: IntArray
    injection: IntArray
    place: IntArray
    at: IntArray
    memory: IntArray
    slot: IntArray
    length: IntArray


class Receipts(NamedTuple):
    """Messages that nodes store, elementwise.

    A memory stores ``length`` blocks from a slot on. They come over a path of so many cycles by an
    in-port, the source; or, numbered after these, from an injection port of the node itself.
    """

    round: IntArray
    node: IntArray
    memory: IntArray
    source: IntArray
    links: IntArray
    slot: IntArray
    length: IntArray


class Added(NamedTuple):
    """What operators behind in-ports add to words that pass.

    Parameters
    ----------
    operand : ndarray of int16, shape (rounds, nodes, ports)
        What is combined with what arrives at each in-port.
    late : list of int
        By how many cycles each reader reads later.
    stored : int
        By how many cycles words are stored later than links say.
    made : bool
        As of `Sources`.
    """

    operand: IntArray
    late: list[int]
    stored: int
    made: bool


class RoundPlan(NamedTuple):
    """What all nodes do.

    Parameters
    ----------
    select : ndarray of int16, shape (rounds, nodes, ports)
        What feeds each out-port: an in-port, or, numbered after those, an injection port. Where
        words are added as they pass, a number among all sources.
    links, blocks : ndarray of int, shape (rounds,)
        The cycles of the longest path, and the longest message of each round.
    depth : ndarray of int, shape (nodes, memories)
        Blocks in each memory: in those that store what arrives, and in those of what a node sends.
    memories : tuple of Memory
        Those that store what arrives.
    memory, slot : ndarray of int, shape (nodes, receive blocks)
        Where each node keeps each block that the host may ask for, in the host's order; the slot is
        -1 for none.
    streams : ndarray of int, shape (nodes, ports), or None
        As of a `Loop`.
    passes : bool
        Whether no block rests on its way, so that rounds pass flit by flit.
    rests : bool
        Whether every message of the schedule is a block that goes one hop: rounds need no pause.
    added : Added, optional
        Where sums are made on the way.
    receive_map : AddressMap, optional
        What says the same as memory and slot in less.
    """

    select: IntArray
    links: IntArray
    blocks: IntArray
    bursts: Bursts
    receipts: Receipts
    depth: IntArray
    memories: tuple[Memory, ...]
    memory: IntArray
    slot: IntArray
    streams: IntArray | None = None
    passes: bool = False
    rests: bool = False
    added: Added | None = None
    receive_map: AddressMap | None = None
