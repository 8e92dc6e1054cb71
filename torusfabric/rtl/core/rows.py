"""The fields of all forms of a program, with their rows one after another.

A run carries out the rows of one form. A *delay* is a tuple with an entry for each form: the cycles
from the slot of a row to the cycle in which a control point acts on it.

Nodes of one *kind* have the same variants, row by row and choice by choice. A program of any root
whose fields depend on the root gives each node a *choice*: the number of the variant that it
carries out in a run, found in a small table by the root. Everywhere else a node has one choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from ...program import Program
from ...program.fields import IDLE, Action, Loop, Memory, Order, Sources
from ...topology import IntArray, cayley
from ..arrays import NodeGroups

__all__ = ["Delays", "NodeKinds", "RowField", "Rows", "later"]

#: Cycles for each form.
Delays: TypeAlias = tuple[int, ...]


def later(delays: Delays, cycles: int) -> Delays:
    """Return delays that are some cycles longer."""
    return tuple(delay + cycles for delay in delays)


class RowField(NamedTuple):
    """The values of a control point in all forms.

    Parameters
    ----------
    values : ndarray of int, shape (rows, variants)
    delays : tuple of int
        For each form, the cycles from the slot of a row to the point.
    """

    values: IntArray
    delays: Delays

    @property
    def agrees(self) -> bool:
        """True if all variants with a known value have the same, row by row."""
        most = self.values.max(axis=1, keepdims=True)
        return bool(((self.values == most) | (self.values < 0)).all())


class Rows:
    """The rows of all forms.

    Attributes
    ----------
    loops : tuple of Loop
        One for each form.
    starts, stops : ndarray of int, shape (forms,)
        The first row of each form, and the row after its last.
    used : ndarray of int
        The variants that any node carries out; values have a column for each.
    memories : tuple of Memory
    depth : ndarray of int, shape (variants, memories)
        Words of each memory.

    Examples
    --------
    >>> import torusfabric as tf
    >>> rows = Rows(tf.compile(tf.plan("3x3", "allgather", algorithm="matching"), flits=4))
    >>> rows.count, rows.starts.tolist(), rows.numbers(Action.SELECT)
    (2, [0], [0, 1, 2, 3])
    """

    #: Low bits of addresses that lie in a table of their own, if tables are loaded.
    low_bits = 0

    #: True if nodes subtract the cycles by which words are stored later from addresses.
    stores_exactly = False

    def __init__(self, program: Program) -> None:
        self.program = program
        self.loops: tuple[Loop, ...] = tuple(form.loop for form in program.forms)
        counts = [loop.rows for loop in self.loops]
        self.stops: IntArray = np.cumsum(counts)
        self.starts: IntArray = self.stops - counts
        self.form_of_row: IntArray = np.repeat(np.arange(len(counts)), counts)
        known = [program.variant_of] + ([program.variant_at] if program.by_offset else [])
        self.used: IntArray = np.unique(np.concatenate(known))
        self._known: dict[tuple[Action, int], RowField | None] = {}
        self.memories: tuple[Memory, ...] = program.memories
        self.depth: IntArray = program.depth[self.used]

    @property
    def sources(self) -> Sources:
        """The sources of all forms."""
        return self.loops[0].sources

    @property
    def ports(self) -> int:
        """Ports of a node."""
        return self.program.ports

    @property
    def run_setup(self) -> int:
        """Cycles from a start to the first slot."""
        return self.program.form.timing.run_setup

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.stops[-1])

    @property
    def several(self) -> bool:
        """True if there are several forms."""
        return len(self.loops) > 1

    def join(self, columns: Sequence[IntArray]) -> IntArray:
        """Return values by row, given those of each form."""
        return np.concatenate(columns).astype(int)

    @cached_property
    def blocks(self) -> IntArray:
        """Blocks of each row."""
        return self.join([loop.blocks for loop in self.loops])

    def by_flit(self) -> list[bool]:
        """Return True for each form that passes all rows for each flit."""
        return [loop.order is Order.FLIT for loop in self.loops]

    def pitch(self, memory: int) -> Delays:
        """Return the distance of the addresses of two flits in a memory, for each form."""
        return tuple(
            loop.pitch_of(memory) if loop.order is Order.FLIT else 1 for loop in self.loops
        )

    def most_word(self, pitch: Delays) -> int:
        """Return the largest distance of an address from the first one of its row."""
        return max(
            (loop.flits - 1) * step
            if loop.order is Order.FLIT
            else max(int(loop.blocks.max()) * loop.flits - 1, 0)
            for loop, step in zip(self.loops, pitch, strict=True)
        )

    def shown(self, memories: frozenset[int]) -> frozenset[int]:
        """Return the memories that the memory port reads, given those of received words."""
        return memories

    def numbers(self, action: Action) -> list[int]:
        """Return the numbers of the control points of an action."""
        return sorted({field.point.number for loop in self.loops for field in loop.of(action)})

    def field(self, action: Action, number: int) -> RowField | None:
        """Return the values of a control point, or None if it does nothing in any form."""
        key = action, number
        if key not in self._known:
            self._known[key] = self._joined(action, number)
        return self._known[key]

    def _joined(self, action: Action, number: int) -> RowField | None:
        """Return the values of a control point in all forms."""
        fields = [loop.field(action, number) for loop in self.loops]
        delay = next((field.delay for field in fields if field is not None), None)
        if delay is None:
            return None
        values, delays = [], []
        for loop, field in zip(self.loops, fields, strict=True):
            if field is None:
                values.append(np.full((loop.rows, len(self.used)), IDLE))
                delays.append(delay)
                continue
            columns = self.used if field.values.shape[1] > 1 else np.zeros_like(self.used)
            values.append(field.values[:, columns])
            delays.append(field.delay)
        return RowField(self.join(values), tuple(delays))


class NodeKinds:
    """The kinds of nodes of a core.

    Attributes
    ----------
    kind_of : ndarray of int, shape (nodes,)
        The kind of each node of the whole network.
    variants : ndarray of int, shape (kinds, rows, choices)
        Indices among the used variants of `Rows`.

    Examples
    --------
    >>> import torusfabric as tf
    >>> rows = Rows(tf.compile(tf.plan("3x3", "broadcast"), max_flits=4, root="any"))
    >>> kinds = NodeKinds(rows)
    >>> kinds.count, kinds.choices
    (1, 9)
    """

    def __init__(self, rows: Rows) -> None:
        self.rows, program = rows, rows.program
        self._program: Program = program
        by_offset = np.array([form.by_offset for form in program.forms])[rows.form_of_row]
        fixed = np.searchsorted(rows.used, program.variant_of)
        if by_offset.all():
            fixed = np.zeros_like(fixed)
        first, self.kind_of = np.unique(fixed, return_inverse=True)
        self.variants: IntArray = np.broadcast_to(
            first[:, None, None], (len(first), rows.count, 1)
        ).copy()
        if program.by_offset:
            chosen = np.searchsorted(rows.used, np.unique(program.variant_at))
            self.variants = np.where(
                by_offset[None, :, None], chosen[None, None, :], first[:, None, None]
            )

    @property
    def count(self) -> int:
        """Number of kinds."""
        return len(self.variants)

    @property
    def choices(self) -> int:
        """Number of choices of a node."""
        return int(self.variants.shape[2])

    def are_many(self, kinds: IntArray) -> bool:
        """Return True if some kinds have at least as many nodes as there are groups of nodes."""
        nodes = len(self.kind_of)
        return int(np.isin(self.kind_of, kinds).sum()) >= NodeGroups(nodes).count

    def values(self, values: IntArray, kinds: IntArray) -> IntArray:
        """Return values at some kinds, shape (kinds, rows, choices), given them by variant."""
        rows = np.arange(self.rows.count)[None, :, None]
        found: IntArray = values[rows, self.variants[kinds]]
        return found

    def choice_by_root(self, nodes: IntArray) -> IntArray:
        """Return the choice of each of some nodes for each root, shape (nodes, roots)."""
        program = self._program
        groups = program.root_groups
        torus, roots = cayley(groups.torus), np.arange(groups.size)
        position = np.repeat(groups.position[nodes], groups.size)
        offset = torus.subtract(position, np.tile(roots, len(nodes)))
        variant = program.variant_at[groups.members[0, offset]]
        found = np.searchsorted(np.unique(program.variant_at), variant)
        return np.asarray(found).reshape(len(nodes), groups.size)

    @cached_property
    def received(self) -> tuple[frozenset[int], ...]:
        """The memories of received words, for each kind."""
        program = self._program
        ways = (way for form in program.forms for way in form.receive_map.ways)
        if program.by_offset or all(len(way.memory) == 1 for way in ways):
            return (self._received(np.arange(program.topology.nodes)),) * self.count
        order = np.argsort(self.kind_of, kind="stable")
        counts = np.bincount(self.kind_of, minlength=self.count)
        return tuple(map(self._received, np.split(order, np.cumsum(counts)[:-1])))

    @property
    def most_shown(self) -> int:
        """The most memories of received words that a node has."""
        known = zip(self.depth, self.received, strict=True)
        return max(int((depth[[*numbers]] > 0).sum()) for depth, numbers in known)

    def _received(self, nodes: IntArray) -> frozenset[int]:
        """Return the memories of received words at any of some nodes."""
        forms = self._program.forms
        found = (form.receive_map.memories(form.groups.position[nodes]) for form in forms)
        return self.rows.shown(frozenset[int]().union(*found))

    @cached_property
    def depth(self) -> IntArray:
        """The words of each memory at each kind, shape (kinds, memories)."""
        depth = self.rows.depth
        # Rows of a form have the same variants.
        found: IntArray = depth[self.variants[:, self.rows.starts]].max(axis=(1, 2))
        return found
