"""The values of all control points (`Rows`), and the nodes that share them (`NodeKinds`).

The core reads a program through these two classes. `Rows` numbers the rows of all forms
consecutively; a run executes the rows of one form::

    form 0: rows 0 .. starts[1] - 1    form 1: rows starts[1] .. starts[2] - 1    ...

Terms:

- A *control point* is a selector, an address or an enable of a node, with a value in each row.
- A *delay* of a control point is the number of cycles from the slot of a row (the cycle in which
  the sequencer presents it) to the cycle in which the point acts on the row. `Delays` has an entry
  for each form.
- A *variant* is one behaviour that the program has for a node.
- A *choice* is the variant that a node executes in a run, if the variant depends on the root of the
  run. A small table at the node maps the root to the choice. In other programs a node has a single
  choice.
- A *kind* of nodes are nodes that execute the same variant, in each row and for each choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from ...program import Program
from ...program.fields import IDLE, Action, Loop, Memory, Order, Sources
from ...topology import IntArray, require_cayley_graph
from ..arrays import NodeGroups

__all__ = ["Delays", "NodeKinds", "RowField", "Rows", "lengthen_delays"]

#: A number of cycles for each form.
Delays: TypeAlias = tuple[int, ...]


def lengthen_delays(delays: Delays, cycles: int) -> Delays:
    """Return delays, one for each form, that are all longer by some cycles."""
    return tuple(delay + cycles for delay in delays)


class RowField(NamedTuple):
    """The values of a control point (selector, address or enable) in the rows of all forms.

    A *variant* is one behaviour that the program has for a node: nodes with the same variant have
    the same values in all rows.

    Parameters
    ----------
    values : ndarray of int, shape (rows, variants)
        The value in each row at each used variant; -1 where it does not matter.
    delays : tuple of int
        For each form, the cycles from the slot of a row (in which the sequencer presents it) to the
        cycle in which the control point acts on the row.
    """

    values: IntArray
    delays: Delays

    @property
    def is_equal_at_all_nodes(self) -> bool:
        """True if in each row all known values (those that are not negative) are equal."""
        most = self.values.max(axis=1, keepdims=True)
        return bool(((self.values == most) | (self.values < 0)).all())


class Rows:
    """The rows of all forms of a program, numbered consecutively, and their values.

    A *variant* is one behaviour that the program has for a node, with a value at each control point
    in each row. Nodes with the same variant act alike.

    Attributes
    ----------
    loops : tuple of Loop
        The `Loop` of each form, which has its rows before they are joined to those of other forms.
    starts, stops : ndarray of int, shape (forms,)
        The first row of each form, and the row after its last.
    form_of_row : ndarray of int, shape (rows,)
        The form that each row belongs to.
    used : ndarray of int, shape (variants,)
        The variants of the program that at least one node executes. Values of control points have
        a column for each of them.
    memories : tuple of Memory
        The memories of a node.
    depth : ndarray of int, shape (variants, memories)
        Words of each memory at the nodes of each used variant.

    Examples
    --------
    The only form has two rows, which begin at row 0. Each of the four out-ports selects words.

    >>> import torusfabric as tf
    >>> rows = Rows(tf.compile(tf.plan("3x3", "allgather", algorithm="matching"), flits=4))
    >>> rows.n_rows, rows.starts.tolist(), rows.field(Action.SELECT, 3).values.shape
    (2, [0], (2, 1))
    """

    #: Low bits of an address that lie in a separate table, if tables are writable.
    low_bits = 0

    #: True if nodes subtract the delay of a stored word from its address; see `RoomShape`.
    stores_exactly = False

    def __init__(self, program: Program) -> None:
        self.program = program
        self.loops: tuple[Loop, ...] = tuple(form.loop for form in program.forms)
        counts = [loop.n_rows for loop in self.loops]
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
        """The words that out-ports, operators and memories of a node select; equal in all forms."""
        return self.loops[0].sources

    @property
    def ports(self) -> int:
        """Number of ports of a node."""
        return self.program.ports

    @property
    def run_setup(self) -> int:
        """Cycles from a start to the cycle in which the sequencer presents the first row."""
        return self.program.form.timing.run_setup

    @property
    def n_rows(self) -> int:
        """Number of rows of all forms together."""
        return int(self.stops[-1])

    @property
    def has_several_forms(self) -> bool:
        """True if there are several forms."""
        return len(self.loops) > 1

    def concatenate_forms(self, columns: Sequence[IntArray]) -> IntArray:
        """Return one array for the rows of all forms, given an array for the rows of each form.

        Parameters
        ----------
        columns : sequence of (ndarray of int)
            The array of each form, whose first axis has an entry for each row of the form.
        """
        return np.concatenate(columns).astype(int)

    @cached_property
    def blocks(self) -> IntArray:
        """Number of blocks that move in each row, one after another."""
        return self.concatenate_forms([loop.blocks for loop in self.loops])

    def by_flit(self) -> list[bool]:
        """Return for each form True if all rows are repeated for each flit."""
        return [loop.order is Order.FLIT for loop in self.loops]

    def pitch_of(self, memory: int) -> Delays:
        """Return the distance between the addresses of successive flits of a block, for each form.

        Parameters
        ----------
        memory : int
            The number of the memory that holds the block.
        """
        return tuple(
            loop.pitch_of(memory) if loop.order is Order.FLIT else 1 for loop in self.loops
        )

    def max_word_offset(self, pitch: Delays) -> int:
        """Return the largest distance of an address in a row from the first address of the row.

        Parameters
        ----------
        pitch : tuple of int
            For each form, the distance between the addresses of successive flits of a block.
        """
        return max(
            (loop.flits - 1) * step
            if loop.order is Order.FLIT
            else max(int(loop.blocks.max()) * loop.flits - 1, 0)
            for loop, step in zip(self.loops, pitch, strict=True)
        )

    def port_read_memories(self, memories: frozenset[int]) -> frozenset[int]:
        """Return the memories that the memory port reads: `memories` itself.

        `memories` are those in which a node receives words. A subclass may leave some of them out.
        """
        return memories

    def field(self, action: Action, number: int) -> RowField | None:
        """Return the values of a control point, or None if it does nothing in any form.

        A control point is a selector, an address or an enable of a node, with a value in each row.

        Parameters
        ----------
        action : Action
            The purpose of the control point, such as `Action.SELECT` for the selector of an
            out-port.
        number : int
            The number of the port, reader or memory to which the control point belongs.
        """
        key = action, number
        if key not in self._known:
            self._known[key] = self._join_point(action, number)
        return self._known[key]

    def _join_point(self, action: Action, number: int) -> RowField | None:
        """Return the values of a control point in the rows of all forms, one form after another.

        A control point is a selector, an address or an enable of a node. A form without the point
        has the value -1 in its rows. The result is None if no form has the point. `action` and
        `number` are those of `field`.
        """
        fields = [loop.field(action, number) for loop in self.loops]
        delay = next((field.delay for field in fields if field is not None), None)
        if delay is None:
            return None
        values, delays = [], []
        for loop, field in zip(self.loops, fields, strict=True):
            if field is None:
                values.append(np.full((loop.n_rows, len(self.used)), IDLE))
                delays.append(delay)
                continue
            columns = self.used if field.values.shape[1] > 1 else np.zeros_like(self.used)
            values.append(field.values[:, columns])
            delays.append(field.delay)
        return RowField(self.concatenate_forms(values), tuple(delays))


class NodeKinds:
    """The kinds of nodes of a core: sets of nodes that can share a module and its contents.

    A *variant* is one behaviour that the program has for a node. Nodes of a kind execute the same
    variant in each row. In a program with a root, a node can have several variants; it chooses one
    by the root of the run (its *choice*).

    Attributes
    ----------
    kind_of : ndarray of int, shape (nodes,)
        The kind of each node of the whole network.
    variants : ndarray of int, shape (kinds, rows, choices)
        The variant that a node executes, as an index into `Rows.used`.

    Examples
    --------
    In a broadcast from any root on 9 nodes, all nodes are of one kind, with a choice for each
    position relative to the root.

    >>> import torusfabric as tf
    >>> rows = Rows(tf.compile(tf.plan("3x3", "broadcast"), max_flits=4, root="any"))
    >>> kinds = NodeKinds(rows)
    >>> kinds.n_kinds, kinds.n_choices
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
            first[:, None, None], (len(first), rows.n_rows, 1)
        ).copy()
        if program.by_offset:
            chosen = np.searchsorted(rows.used, np.unique(program.variant_at))
            self.variants = np.where(
                by_offset[None, :, None], chosen[None, None, :], first[:, None, None]
            )

    @property
    def n_kinds(self) -> int:
        """Number of kinds: sets of nodes that behave alike in each row of the program."""
        return len(self.variants)

    @property
    def n_choices(self) -> int:
        """Number of behaviours that a node chooses from by the root; 1 without a choice."""
        return int(self.variants.shape[2])

    def outnumber_groups(self, kinds: IntArray) -> bool:
        """Return True if `kinds` have at least as many nodes as the core has groups of nodes.

        A kind is a set of nodes that behave alike. A group is a set of nodes with a common register
        for signals of the sequencer. If the result is True, a signal of the sequencer to the nodes
        of these kinds costs less than a table at each node.
        """
        nodes = len(self.kind_of)
        return int(np.isin(self.kind_of, kinds).sum()) >= NodeGroups(nodes).n_groups

    def values_at_kinds(self, values: IntArray, kinds: IntArray) -> IntArray:
        """Return values of the program at some kinds of nodes, shape (kinds, rows, choices).

        Nodes of a kind behave alike. A choice is one of the behaviours that a node selects by the
        root of the run.

        Parameters
        ----------
        values : ndarray of int, shape (rows, variants)
            The value in each row for each variant (behaviour of a node), as in `RowField`.
        kinds : ndarray of int
            The numbers of the kinds.
        """
        rows = np.arange(self.rows.n_rows)[None, :, None]
        found: IntArray = values[rows, self.variants[kinds]]
        return found

    def choice_by_root(self, nodes: IntArray) -> IntArray:
        """Return the choice of each node in `nodes`, for each root of a run: shape (nodes, roots).

        A choice is the number of one of the behaviours that a node selects by the root, from 0.
        """
        program = self._program
        groups = program.root_groups
        torus, roots = require_cayley_graph(groups.group_topology), np.arange(groups.group_size)
        position = np.repeat(groups.position_of_node[nodes], groups.group_size)
        offset = torus.subtract(position, np.tile(roots, len(nodes)))
        variant = program.variant_at[groups.members[0, offset]]
        found = np.searchsorted(np.unique(program.variant_at), variant)
        return np.asarray(found).reshape(len(nodes), groups.group_size)

    @cached_property
    def received_memories(self) -> tuple[frozenset[int], ...]:
        """For each kind of nodes, the numbers of the memories in which the nodes receive words.

        Nodes of a kind behave alike.
        """
        program = self._program
        ways = (way for form in program.forms for way in form.receive_map.map_chain)
        if program.by_offset or all(len(way.memory) == 1 for way in ways):
            return (self._find_received_memories(np.arange(program.topology.nodes)),) * self.n_kinds
        order = np.argsort(self.kind_of, kind="stable")
        counts = np.bincount(self.kind_of, minlength=self.n_kinds)
        return tuple(map(self._find_received_memories, np.split(order, np.cumsum(counts)[:-1])))

    @property
    def max_read_memories(self) -> int:
        """The largest number of memories with received words at a node."""
        known = zip(self.memory_depths, self.received_memories, strict=True)
        return max(int((depth[[*numbers]] > 0).sum()) for depth, numbers in known)

    def _find_received_memories(self, nodes: IntArray) -> frozenset[int]:
        """Return the memories in which at least one node in `nodes` receives words."""
        forms = self._program.forms
        found = (form.receive_map.memories_at(form.groups.map_row_of_node[nodes]) for form in forms)
        return self.rows.port_read_memories(frozenset[int]().union(*found))

    @cached_property
    def memory_depths(self) -> IntArray:
        """Number of words of each memory at each kind of nodes, shape (kinds, memories).

        Nodes of a kind behave alike.
        """
        depth = self.rows.depth
        # All rows of a form have the same variants, so the first row of each form serves.
        found: IntArray = depth[self.variants[:, self.rows.starts]].max(axis=(1, 2))
        return found
