"""Kinds of nodes: which nodes do the same, and the variants that each may carry out.

A program of any root whose fields depend on the root gives each node a *choice*: the number of the
variant that it carries out in a run, found in a small table by the root. Everywhere else a node has
one choice. Nodes of one kind have the same variants, row by row and choice by choice.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...program import Program
from ...topology import IntArray, cayley
from ..arrays import NodeGroups
from .rows import Rows

__all__ = ["NodeKinds"]


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
        alike = program.by_offset or all(form.receive_map.nodes_alike for form in program.forms)
        if alike:
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
        return frozenset[int]().union(*found)

    @cached_property
    def depth(self) -> IntArray:
        """The words of each memory at each kind, shape (kinds, memories)."""
        depth = self.rows.depth
        # Rows of a form have the same variants.
        found: IntArray = depth[self.variants[:, self.rows.starts]].max(axis=(1, 2))
        return found
