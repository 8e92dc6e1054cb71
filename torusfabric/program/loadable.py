"""What forms do, written so that every node can be given it: for tables that are loaded.

Where tables are fixed, what nodes have in common is hardware. Here nothing is: each out-port and
each operator selects anew in each row, each injection port has one reader, each in-port one memory,
and what the node sends lies in one memory as the host writes it. A mode has forms by lengths, and
by roots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..topology import IntArray, cayley, require_alike
from .fields import Stage
from .serving import ranges_of

if TYPE_CHECKING:
    from ..schedule import Schedule
    from ..topology import Topology
    from .program import Program

__all__ = ["Entry", "Loadable", "LoadableMode", "entries_of", "operand_links", "stacked"]


@dataclass(frozen=True, eq=False)
class Loadable:
    """The rows of a form, node by node.

    Parameters
    ----------
    program : Program
        Of this form.
    pause, blocks : ndarray of int, shape (rows,)
        As of `Loop`, with a block a row at the most.
    streams : bool
        Whether words of a row arrive while others pass that follow without a pause.
    select, operand : ndarray of int, shape (rows, nodes, ports, 2)
        The stage and the number of each source; -1 where it does not matter.
    reads : ndarray of int, shape (rows, nodes, ports, 3)
        Of each injection port: memory, first address, and cycles by which it is read later; the
        memory behind those of in-ports is that of what the node sends.
    stores : ndarray of int, shape (rows, nodes, ports)
        Of what comes by each in-port, or the operator there makes of it: cycles from the slot at
        which a word may arrive, which are at least 1; else -1: it is not stored.
    at : ndarray of int, shape (rows,)
        The first address of what is stored, if it comes a cycle after the slot: it may be below 0.
        What comes later lies as much higher, unless rows stream.
    received : ndarray of int, shape (nodes, blocks, 2)
        Memory and first address of what the host reads, by part and chunk; -1 for nothing.
    words : int
        Of the memory of an in-port, the most that any node uses.
    """

    program: Program
    pause: IntArray
    blocks: IntArray
    streams: bool
    select: IntArray
    operand: IntArray
    reads: IntArray
    stores: IntArray
    at: IntArray
    received: IntArray
    words: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.pause)

    @property
    def chunks(self) -> int:
        """Of a message."""
        return self.program.schedule.chunks

    @property
    def one_node(self) -> bool:
        """Whether the host finds anything at one node only."""
        return int((self.received[..., 1] >= 0).any(axis=1).sum()) < 2

    def block_rows(self, *, streams: bool) -> IntArray:
        """Rows of the table by which each node finds what it has received, or of the host's one."""
        if streams:
            found: IntArray = (self.received[..., 1] >= 0).sum(axis=1)
            return found
        nodes, blocks = self.received.shape[:2]
        return np.array([blocks if self.one_node else blocks << max((nodes - 1).bit_length(), 1)])

    @property
    def lacks(self) -> bool:
        """Whether any node receives some packets of several, and not all."""
        parts = self.program.blocks.parts
        first = self.received[..., 1].reshape(len(self.received), parts, -1)[..., 0]
        count: IntArray = (first >= 0).sum(axis=1)
        return bool(((count > 0) & (count < parts)).any())

    @property
    def depth(self) -> int:
        """The most cycles by which anything is late."""
        return int(max(self.stores.max(), self.reads[..., 2].max(), 1))

    @property
    def later(self) -> bool:
        """Whether anything is selected from a second register."""
        stages = np.concatenate([self.select[..., 0].ravel(), self.operand[..., 0].ravel()])
        return bool(np.isin(stages, (Stage.LATER, Stage.LATER_RESULT)).any())

    @property
    def least(self) -> int:
        """The least cycles of a row."""
        return self.program.loop.least

    @property
    def reads_late(self) -> bool:
        """Whether all words are read as many cycles later as links have, while other rows pass."""
        return self.streams and bool(self.reads[..., 2].max() > 0)

    @property
    def adds(self) -> bool:
        """Whether words pass operators."""
        stages = self.operand[..., 0]
        return bool(((stages >= 0) & (stages != Stage.IDENTITY)).any())

    def moved(self, root: int) -> Loadable:
        """The same with another root than node 0: each node does what is done at its offset.

        Examples
        --------
        >>> import torusfabric as tf
        >>> from torusfabric.program.rewriting import loadable
        >>> form = loadable(tf.compile(tf.plan("3", "gather"), max_flits=4))
        >>> [int((form.moved(root).received[..., 1] >= 0).any(axis=1).argmax()) for root in (0, 2)]
        [0, 2]
        """
        program, layout, groups = self.program, self.program.layout, self.program.form.groups

        def by_row(values: IntArray) -> IntArray:
            found: IntArray = groups.moved(values.swapaxes(0, 1), root).swapaxes(0, 1)
            return found

        reads, received = by_row(self.reads), groups.moved(self.received, root, layout.recv_parts)
        positions = cayley(groups.torus).add(np.arange(groups.size), root)
        for of in (reads, received) if layout.send_parts > 1 else ():
            # What is for a node is what was for the node at its offset.
            own = of[..., 0] == program.ports
            # Chunks beyond the end of the last message begin behind it: nobody looks at them.
            part = np.minimum(of[..., 1] // program.flits, groups.size - 1)
            moved = of[..., 1] + (positions[np.where(own, part, 0)] - part) * program.flits
            of[..., 1] = np.where(own & (of[..., 1] >= 0), moved, of[..., 1])
        return replace(
            self, reads=reads, received=received, select=by_row(self.select),
            operand=by_row(self.operand), stores=by_row(self.stores),
        )  # fmt: skip


class Entry(NamedTuple):
    """What a start finds: a form of a mode, for messages of some length on, and for a root.

    Parameters
    ----------
    start : int
        The least flits.
    root : int or None
        None where it is not chosen.
    """

    mode: int
    start: int
    root: int | None
    form: Loadable


@dataclass(frozen=True, eq=False)
class LoadableMode:
    """A collective, in one form or several.

    Parameters
    ----------
    forms : tuple of Loadable
        For the shortest messages first.
    starts : tuple of int
        The least flits of each.
    any_root : bool
        Whether the root is chosen at the start of each run; forms are then those for node 0.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.program.rewriting import loadable
    >>> plans = [tf.plan("9", "broadcast", trees=trees) for trees in (1, 2)]
    >>> mode = LoadableMode.of([loadable(tf.compile(plan, max_flits=64)) for plan in plans])
    >>> mode.starts, [form.chunks for form in mode.forms]
    ((1, 10), [1, 2])
    """

    forms: tuple[Loadable, ...]
    starts: tuple[int, ...] = (1,)
    any_root: bool = False

    @classmethod
    def of(cls, forms: Sequence[Loadable], *, any_root: bool = False) -> LoadableMode:
        """Those of some forms that are the quickest for some lengths.

        Each has one range, though between others it may be quicker where chunks are full: all
        ranges are compared at a start.
        """
        if any_root:
            require_alike(forms[0].program.form.groups.torus)
        ranges = ranges_of([form.program.form for form in forms], forms[0].program.flits)
        start = {form: start for start, form in ranges}
        order = sorted(start, key=start.__getitem__)
        starts = (1, *(start[form] for form in order[1:]))
        return cls(tuple(forms[form] for form in order), starts, any_root)

    @property
    def longest(self) -> LoadableMode:
        """The form for the longest messages, for all."""
        return LoadableMode(self.forms[-1:], any_root=self.any_root)

    @property
    def schedules(self) -> list[Schedule]:
        """What its forms are made of."""
        return [form.program.schedule for form in self.forms]

    @property
    def roots(self) -> int:
        """How many roots have forms of their own; 0 where the root is fixed."""
        return self.forms[0].program.form.groups.size if self.any_root else 0

    @cached_property
    def by_root(self) -> list[tuple[int, int | None, Loadable]]:
        """The least flits and the root of each form."""
        roots: Sequence[int | None] = range(self.roots) if self.any_root else [None]
        return [
            (start, root, form.moved(root) if root else form)
            for start, form in zip(self.starts, self.forms, strict=True)
            for root in roots
        ]


def entries_of(modes: Sequence[LoadableMode]) -> list[Entry]:
    """What starts find, of one mode after the other."""
    return [Entry(k, *found) for k, mode in enumerate(modes) for found in mode.by_root]


def stacked(
    uses: Sequence[IntArray], taken: Sequence[tuple[int, IntArray]] = ()
) -> tuple[list[int], int]:
    """Where uses of tables begin, one after the other as low as there is room, and the rows needed.

    Parameters
    ----------
    uses : sequence of ndarray of int, shape (owners,)
        The rows that each takes of the table of each owner, side by side.
    taken : sequence of (int, ndarray)
        Others, with the first row.

    Examples
    --------
    Where the second owner asks for none, it does not matter what it has.

    >>> taken = [(0, np.array([2, 0])), (2, np.array([0, 5]))]
    >>> stacked([np.array([3, 0])], taken), stacked([np.array([1, 1])], taken)
    (([2], 7), ([7], 8))
    """
    found, starts = [*taken], []
    for rows in uses:
        at, most = 0, int(rows.max())
        for first, used in sorted(found, key=itemgetter(0)):
            if not ((used > 0) & (rows > 0)).any():
                continue
            if first - at >= most:
                break
            at = max(at, first + int(used.max()))
        starts.append(at)
        found.append((at, rows))
    return starts, max(first + int(used.max()) for first, used in found)


def operand_links(topology: Topology) -> int:
    """Cycles of links with which operators reckon: where these differ, they select early."""
    return topology.one_latency or 1
