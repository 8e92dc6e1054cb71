"""Moves: the actions of all nodes in each row, counted in blocks; and the program made of them.

A *planner* turns a schedule into moves. For each row and each variant of nodes, moves state

- the source that feeds each out-port and each operator,
- the *memory slot* that each reader reads, where a memory slot is the space of one block (not a
  cycle, as a slot of the sequencer in `timing`),
- the source that each memory stores, and the slot that it stores it in.

A *point* (control point) is a component that rows control: an out-port, an operator behind an
in-port, a reader or a memory. A *variant* is a set of nodes that act alike.

`compile` chooses the planner by the class of the schedule. `make_program` turns moves into a
program: fields with their delays, the depths of memories, and the form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .address_map import AddressMap
from .fields import (
    ACTIONS,
    IDLE,
    Action,
    Field,
    Loop,
    Memory,
    NodeComponent,
    Point,
    number_by_value,
)
from .mode import CycleCost, Form, block_flits
from .program import Program
from .timing import ADDRESS, SETTING

if TYPE_CHECKING:
    from ..collective import Operator
    from ..schedule import Schedule
    from ..topology import IntArray, Topology

__all__ = ["Moves", "Points", "CompileRequest", "group_equal_nodes", "make_program",
           "slot_addresses"]  # fmt: skip


@dataclass(frozen=True, eq=False)
class CompileRequest:
    """A schedule to compile, with the properties that its program must have.

    Parameters
    ----------
    schedule : Schedule
        Schedule of at least one step.
    flits : int
        Flits of a message; with `any_length`, flits of the longest message.
    operators : tuple of Operator
        Operators of a reduction.
    any_length : bool
        True if each run chooses the length of its messages.
    beat : int
        Flits that a stream or host port moves in one cycle. With `any_length`, beat b of a message
        goes to chunk b mod C, where C is the number of chunks.
    short : bool
        True to prefer the moves that are faster for short messages, if the planner has a choice.
    fixed : bool
        True if the tables of the hardware are fixed. If they can be loaded, sums leave nodes from a
        register, one cycle later, and every round ends with a pause.
    any_root : bool
        True if each run chooses its root. The schedule is that for node 0.

    Examples
    --------
    >>> import torusfabric as tf
    >>> CompileRequest(tf.plan("4x4", "broadcast", chunks=2), flits=3).block_flits
    2
    """

    schedule: Schedule
    flits: int
    operators: tuple[Operator, ...] = ()
    any_length: bool = False
    beat: int = 1
    short: bool = False
    fixed: bool = True
    any_root: bool = False

    @cached_property
    def block_flits(self) -> int:
        """Flits of a block; the last block of a message may be partly padding."""
        return block_flits(self.schedule, self.flits, self.beat)

    @property
    def topology(self) -> Topology:
        """The network of the schedule, on which the program runs."""
        return self.schedule.topology

    @property
    def latency(self) -> int:
        """Cycles of the slowest operator's own hardware."""
        return max(operator.latency for operator in self.operators)

    @property
    def has_half_memories(self) -> bool:
        """True for a broadcast from any root, which has a memory of two halves for each chunk.

        The lower half is for the block that a node would send as the root, the upper half for the
        block that it receives.
        """
        collective = self.schedule.collective
        return self.any_root and collective.single_origin and collective.to_all

    @property
    def words_per_slot(self) -> int:
        """Number of words of a memory slot, the space of one block.

        It is the flits of a block. In a memory of two halves it is rounded up to a power of two, so
        that the highest bit of an address selects the half.
        """
        return (
            1 << (self.block_flits - 1).bit_length() if self.has_half_memories else self.block_flits
        )


class Points(NamedTuple):
    """The values of all components of one kind, such as all out-ports, in each row and variant.

    A component that rows control is called a *point*, and a set of nodes that act alike a
    *variant*.

    Parameters
    ----------
    values : dict of Action to ndarray of int
        The values of each action, of shape (rows, variants, points) or a shape that broadcasts to
        it. `Action.READ` and `Action.WRITE` have memory slots as values in place of addresses.
        Where the memory slot is `IDLE`, the values of the other actions do not matter.
    late : int or array of int
        Cycles by which all points, or each of them, act later than in the earliest possible cycle.
    """

    values: dict[Action, IntArray]
    late: int | Sequence[int] | IntArray = 0

    @classmethod
    def from_readers(
        cls, memory: IntArray, slot: IntArray, late: int | Sequence[int] | IntArray = 0
    ) -> Points:
        """Return the values of readers, the components that read memories.

        A *memory slot* is the space of one block.

        Parameters
        ----------
        memory, slot : ndarray of int, shape (rows, variants, readers)
            Memory and memory slot that each reader reads; other shapes are broadcast.
        late : int or array of int, shape (readers,)
            Cycles by which the readers act later than in the earliest possible cycle.
        """
        return cls({Action.MEMORY: memory, Action.READ: slot}, late)

    @classmethod
    def from_memories(
        cls, slot: IntArray, source: IntArray, links: IntArray, late: int | IntArray = 0
    ) -> Points:
        """Return the values of memories, for the words that they store.

        A *memory slot* is the space of one block.

        Parameters
        ----------
        slot : ndarray of int, shape (rows, variants, memories)
            Memory slot that each memory stores in; other shapes are broadcast.
        source, links : ndarray of int, shape (rows, variants, memories)
            Source of the words that each memory stores, and the cycles that these words have spent
            on links.
        late : int or array of int, shape (memories,)
            Cycles by which the memories act later than in the earliest possible cycle.
        """
        return cls({Action.WRITE: slot, Action.SOURCE: source, Action.TAP: links}, late)


@dataclass(frozen=True, eq=False, kw_only=True)
class Moves:
    """The actions of all nodes in each row, counted in blocks, as a planner returns them.

    A *variant* is a set of nodes that act alike, and a *slot* the space of one block in a memory.

    Parameters
    ----------
    loop : Loop
        Rows whose fields are still empty; `make_program` makes the fields from `points`.
    points : sequence of Points
        Values of all components in each row, one entry for each kind of component.
    memories : tuple of Memory
        Memories of a node.
    depth : ndarray of int, shape (variants, memories)
        Slots of each memory.
    variant_of : ndarray of int, shape (nodes,)
        Variant of each node.
    send_map, receive_map : AddressMap
        Addresses of the blocks that a node sends, and of those that it has received.
    known_by : str
        A text for people: the fact by which a receiver knows the origin of a word.
    cost : CycleCost, optional
        Cycles of a run without those that it takes once. By default, a round takes one cycle for
        each flit of a block.
    """

    loop: Loop
    points: Sequence[Points]
    memories: tuple[Memory, ...]
    depth: IntArray
    variant_of: IntArray
    send_map: AddressMap
    receive_map: AddressMap
    known_by: str
    cost: CycleCost | None = None


def slot_addresses(slot: IntArray, block: int) -> IntArray:
    """Return the first address of each memory slot in `slot`; `IDLE` (-1) stays `IDLE`.

    A memory slot is the space of one block, `block` words: slot k begins at address ``k * block``.
    """
    return np.where(slot >= 0, slot * block, IDLE)


def group_equal_nodes(
    points: Sequence[Points], depth: IntArray
) -> tuple[list[Points], IntArray, IntArray]:
    """Join nodes with equal actions and equal memories to variants.

    Parameters
    ----------
    points : sequence of Points
        Values of all components in each row, for each node.
    depth : ndarray of int, shape (nodes, memories)
        Slots (spaces of one block) of each memory.

    Returns
    -------
    points : list of Points
        The same values for each variant in place of each node.
    depth : ndarray of int, shape (variants, memories)
        Slots of each memory.
    variant_of : ndarray of int, shape (nodes,)
        Variant of each node.
    """
    done = np.concatenate([v for each in points for v in each.values.values()], axis=2)
    alike = zip(map(bytes, done.transpose(1, 0, 2)), map(bytes, depth), strict=True)
    variant_of, first = number_by_value(alike)
    joined = [
        each._replace(values={action: v[:, first] for action, v in each.values.items()})
        for each in points
    ]
    return joined, depth[first], variant_of


def make_program(request: CompileRequest, moves: Moves) -> Program:
    """Return the program of one form that performs moves.

    Its components have the values and delays that follow from the moves. If runs choose the root,
    the moves are planned for root 0, and a node acts like the node at its offset from the root. Any
    node can be at any offset, so every node gets the largest depth of each memory.

    Parameters
    ----------
    request : CompileRequest
        Schedule, with the properties that its program must have.
    moves : Moves
        Moves that a planner made for the request.
    """
    schedule, loop, words = request.schedule, moves.loop, request.words_per_slot
    fields: list[Field] = []
    for values, late in moves.points:
        shape = np.broadcast_shapes(
            (loop.n_rows, len(moves.depth), 1), *(each.shape for each in values.values())
        )
        (holder,) = {ACTIONS[action].holder for action in values}
        delay = (ADDRESS if holder is NodeComponent.READER else SETTING) + np.broadcast_to(
            late, shape[2:]
        )
        acts = next((values[action] >= 0 for action in values if ACTIONS[action].acts), None)
        for action, given in values.items():
            known = np.broadcast_to(given, shape)
            if action is Action.READ:
                known = slot_addresses(known, words)
            elif action is Action.WRITE:
                # In memories with a pitch, flits of different blocks alternate.
                known = slot_addresses(known, 1 if loop.pitch_of(0) > 1 else words)
            elif acts is not None:
                known = np.where(acts, known, IDLE)
            elif ACTIONS[action].selects:
                known = known.astype(np.int16)
            fields += [
                Field(Point(action, number), known[..., number], late)
                for number, late in enumerate(delay.tolist())
            ]
    # The last slot of a memory has no room beyond its block.
    depth = np.where(moves.depth > 0, moves.depth * words - (words - request.block_flits), 0)
    if request.any_root:
        depth = np.broadcast_to(depth.max(axis=0), depth.shape)
    rounds = schedule.round_count
    form = Form(
        schedule=schedule,
        operators=request.operators,
        loop=replace(
            loop,
            fields=tuple(fields),
            departure_skew=np.broadcast_to(loop.departure_skew, request.topology.neighbours.shape),
        ),
        send_map=moves.send_map,
        receive_map=moves.receive_map,
        moving=moves.cost or CycleCost(rounds, 0, rounds * request.block_flits),
        any_length=request.any_length,
        beat=request.beat,
        any_root=request.any_root,
        known_by=moves.known_by,
    )
    return Program(
        topology=request.topology,
        flits=request.flits,
        forms=(form,),
        memories=moves.memories,
        depth=depth,
        variant_of=moves.variant_of,
    )
