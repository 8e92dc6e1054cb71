"""Loadable forms: canonical programs, their needs of a room, and the modes that consist of them.

A `Loadable` is one schedule in canonical form. A `LoadableMode` has one or more of them, each for a
range of message lengths. An `Entry` is a row in the table of starts: one form of a mode, for one
root if roots are chosen at the start of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...program.fields import IDLE, Action, Field, Order, Stage
from ...program.serving import ranges_of
from ...rtl.flit_rows import whole_beats
from ...topology import IntArray, cayley, require_alike
from .rewriting import rewrite

if TYPE_CHECKING:
    from ...program import Program
    from ...schedule import Schedule

__all__ = ["Entry", "Loadable", "LoadableMode", "entries_of"]


@dataclass(frozen=True, eq=False)
class Loadable:
    """A form that can be loaded.

    Parameters
    ----------
    program : Program
        The program in canonical form, see `rewriting.rewrite`.
    compiled : Program
        The same program before rewriting, as compiled from the schedule.
    """

    program: Program
    compiled: Program

    @classmethod
    def from_program(cls, program: Program) -> Loadable:
        """Return the loadable form of a program.

        Parameters
        ----------
        program : Program
            A program of one form, for messages of any length.

        Raises
        ------
        InputError
            If the program has no canonical form.
        """
        return cls(rewrite(program), program)

    def values(self, action: Action) -> IntArray:
        """Return the values of all control points of an action, shape (rows, nodes, ports)."""
        points = range(self.program.ports)
        return np.stack([self.program.loop.values(action, number) for number in points], axis=-1)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.program.loop.rows

    @property
    def chunks(self) -> int:
        """Chunks of a message."""
        return self.program.schedule.chunks

    @property
    def beat(self) -> int:
        """Consecutive flits of a message that go to one chunk and lie in one row of a memory."""
        return self.program.form.beat

    @property
    def least(self) -> int:
        """The least cycles of a row."""
        return self.program.loop.least

    @cached_property
    def stores(self) -> IntArray:
        """Cycles from a slot to the storing of its word, 0 for none; shape (rows, nodes, ports)."""
        return self.values(Action.TAP)

    @cached_property
    def lags(self) -> IntArray:
        """Cycles by which each reader reads after its slot, shape (rows, nodes, ports)."""
        return self.values(Action.LAG)

    @property
    def words(self) -> int:
        """Words of the memory of an in-port."""
        return int(self.program.depth[0, 0])

    @cached_property
    def streams(self) -> bool:
        """True if words of a row may arrive while later rows are executed."""
        loop = self.program.loop
        late = np.where(self.stores > 0, self.stores, IDLE).max(axis=(1, 2))
        return loop.order is Order.FLIT or bool((late >= loop.pause).any())

    @property
    def reads_late(self) -> bool:
        """True if all words are read with the delay of a link, during later rows."""
        return self.streams and bool(self.lags.max() > 0)

    @property
    def depth(self) -> int:
        """Largest delay in cycles of any stored or read word, at least 1."""
        return int(max(self.stores.max(), self.lags.max(), 1))

    @cached_property
    def _stages(self) -> IntArray:
        """The `Stage` of each selected source: index 0 for operators, 1 for out-ports."""
        both = [self.values(action) for action in (Action.OPERAND, Action.SELECT)]
        return np.stack(both) // self.program.ports

    @property
    def later(self) -> bool:
        """True if any word is selected from a second register."""
        return bool(np.isin(self._stages, (Stage.LATER, Stage.LATER_RESULT)).any())

    @property
    def adds(self) -> bool:
        """True if an operator combines any words."""
        operands = self._stages[0]
        return bool(((operands >= 0) & (operands != Stage.IDENTITY)).any())

    @cached_property
    def store_addresses(self) -> IntArray:
        """For each row, the address of a word that is stored one cycle after its slot.

        The address may be negative. A word that is stored d cycles after its slot lies d - 1
        addresses higher, except if rows stream or the beat is above 1.
        """
        spreads = not self.streams and self.beat == 1
        write = self.values(Action.WRITE) - (self.stores - 1 if spreads else 0)
        least = -(1 << 40)
        found = np.where(self.stores > 0, write, least).max(axis=(1, 2))
        return np.where(found == least, 0, found)

    @cached_property
    def received(self) -> tuple[IntArray, IntArray]:
        """Memory and first address of each received block, both of shape (nodes, parts, chunks).

        The address is -1 if a node receives no such block.
        """
        program = self.program
        groups, layout = program.form.groups, program.layout
        part, chunk = np.mgrid[: layout.recv_parts, : layout.part_chunks]
        position = groups.position[:, None, None]
        memory, first = program.form.receive_map.locate(position, part[None], chunk[None])
        return memory, np.where(groups.group[:, None, None] >= 0, first, IDLE)

    @property
    def one_node(self) -> bool:
        """True if at most one node receives blocks."""
        return int((self.received[1] >= 0).any(axis=(1, 2)).sum()) < 2

    def block_rows(self, *, streams: bool) -> IntArray:
        """Return the rows that this form needs in the tables of received blocks.

        Parameters
        ----------
        streams : bool
            True if each node has a table of its own; else one table serves the host port.

        Returns
        -------
        ndarray of int
            Number of rows, shape (nodes,) with streams and (1,) otherwise.
        """
        there = self.received[1] >= 0
        if streams:
            found: IntArray = there.sum(axis=(1, 2))
            return found
        nodes, blocks = len(there), there[0].size
        return np.array([blocks if self.one_node else blocks << max((nodes - 1).bit_length(), 1)])

    @property
    def lacks(self) -> bool:
        """True if a node receives packets from some of the origins only."""
        there = self.received[1][..., 0] >= 0
        count: IntArray = there.sum(axis=1)
        return bool(((count > 0) & (count < there.shape[1])).any())

    def moved(self, root: int) -> Loadable:
        """Return the form translated from root 0 to another root.

        Node v then does the work of node v - root.

        Parameters
        ----------
        root : int
            Position of the new root within its group.

        Examples
        --------
        >>> import torusfabric as tf
        >>> form = Loadable.from_program(tf.compile(tf.plan("3", "gather"), max_flits=4))
        >>> [int((form.moved(root).received[1] >= 0).any(axis=(1, 2)).argmax()) for root in (0, 2)]
        [0, 2]
        """
        program = self.program
        form, layout = program.form, program.layout
        groups, loop = form.groups, form.loop
        fields = [
            Field(each.point, groups.moved(each.values.T, root).T, each.delay)
            for each in loop.fields
        ]
        offset = cayley(groups.torus).subtract(np.arange(groups.size), root)
        memory, first = (
            table[offset] for table in (form.receive_map.memory, form.receive_map.base)
        )
        if layout.recv_parts > 1:
            memory, first = memory[:, offset], first[:, offset]
        if layout.send_parts > 1:
            # The part for destination v + root takes the place of that for destination v.
            own = program.ports
            first = np.where(memory == own, self._moved_own(first, root), first)
            reads = {each.point.number: each for each in fields if each.point.action is Action.READ}
            kept = [each for each in fields if each.point.action is not Action.READ]
            for each in [one for one in kept if one.point.action is Action.MEMORY]:
                read = reads[each.point.number]
                values = self._moved_own(read.values, root)
                kept.append(replace(read, values=np.where(each.values == own, values, read.values)))
            fields = kept
        moved = replace(
            form,
            loop=replace(loop, fields=tuple(fields)),
            receive_map=replace(form.receive_map, memory=memory, base=first),
        )
        return replace(self, program=replace(program, forms=(moved,)))

    def _moved_own(self, first: IntArray, root: int) -> IntArray:
        """Return addresses in the send memory, moved from part v to part v + root."""
        program = self.program
        groups, flits = program.form.groups, whole_beats(program.flits, self.beat)
        positions = cayley(groups.torus).add(np.arange(groups.size), root)
        # A chunk past the end of the last message has an address outside all parts. It is never
        # read, so any part will do.
        part = np.clip(first // flits, 0, groups.size - 1)
        return np.where(first >= 0, first + (positions[part] - part) * flits, first)


class Entry(NamedTuple):
    """A row of the table of starts: one form of a mode, for a least length and a root.

    Parameters
    ----------
    mode : int
        Position of the mode in the fabric, from 0.
    start : int
        Length in flits of the shortest message that the form serves.
    root : int or None
        The root that the form serves; None if runs do not choose the root.
    form : Loadable
        The form, already translated to the root.
    """

    mode: int
    start: int
    root: int | None
    form: Loadable


@dataclass(frozen=True, eq=False)
class LoadableMode:
    """A collective in one or more forms, each for a range of message lengths.

    Parameters
    ----------
    forms : tuple of Loadable
        The forms, that for the shortest messages first.
    starts : tuple of int
        For each form, the length in flits of the shortest message that it serves.
    any_root : bool
        True if the root is chosen at the start of each run. The forms are then those for root 0.

    Examples
    --------
    >>> import torusfabric as tf
    >>> plans = [tf.plan("9", "broadcast", trees=trees) for trees in (1, 2)]
    >>> forms = [Loadable.from_program(tf.compile(plan, max_flits=64)) for plan in plans]
    >>> mode = LoadableMode.of(forms)
    >>> mode.starts, [form.chunks for form in mode.forms]
    ((1, 10), [1, 2])
    """

    forms: tuple[Loadable, ...]
    starts: tuple[int, ...] = (1,)
    any_root: bool = False

    @classmethod
    def of(cls, forms: Sequence[Loadable], *, any_root: bool = False) -> LoadableMode:
        """Return the mode of those forms that are the fastest for some lengths.

        Each form gets one range of lengths. Why: every range has a comparator in hardware, so a
        form does not get a second range in which its chunks happen to be full.

        Parameters
        ----------
        forms : sequence of Loadable
            Forms of one collective.
        any_root : bool
            True if the root is chosen at the start of each run.
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
        """A mode with only the form for the longest messages, which then serves all lengths."""
        return LoadableMode(self.forms[-1:], any_root=self.any_root)

    @property
    def schedules(self) -> list[Schedule]:
        """The schedule of each form."""
        return [form.program.schedule for form in self.forms]

    @property
    def roots(self) -> int:
        """Number of roots that have forms of their own; 0 where the root is fixed."""
        return self.forms[0].program.form.groups.size if self.any_root else 0

    @cached_property
    def by_root(self) -> list[tuple[int, int | None, Loadable]]:
        """Least length in flits, root and form of each entry of the mode."""
        roots: Sequence[int | None] = range(self.roots) if self.any_root else [None]
        return [
            (start, root, form.moved(root) if root else form)
            for start, form in zip(self.starts, self.forms, strict=True)
            for root in roots
        ]


def entries_of(modes: Sequence[LoadableMode]) -> list[Entry]:
    """Return the entries of modes, mode by mode."""
    return [Entry(k, *found) for k, mode in enumerate(modes) for found in mode.by_root]
