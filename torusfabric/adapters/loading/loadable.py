"""Loadable forms: canonical programs, what a room has to have for them, and modes of them."""

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
        In the canonical form, see `rewriting.rewrite`.
    compiled : Program
        As it was compiled from the schedule.
    """

    program: Program
    compiled: Program

    @classmethod
    def from_program(cls, program: Program) -> Loadable:
        """Return a program of one form, and of any length, as a form that can be loaded.

        Raises
        ------
        InputError
            If it does what no row of a table can say.
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
        """Flits of a message that go to a chunk together, and lie in a row of memories."""
        return self.program.form.beat

    @property
    def least(self) -> int:
        """The least cycles of a row."""
        return self.program.loop.least

    @cached_property
    def stores(self) -> IntArray:
        """For each in-port, the cycles from a slot to the word that is stored; 0 for none."""
        return self.values(Action.TAP)

    @cached_property
    def lags(self) -> IntArray:
        """For each reader, the cycles by which it reads later."""
        return self.values(Action.LAG)

    @property
    def words(self) -> int:
        """Words of the memory of an in-port, the most that any node uses."""
        return int(self.program.depth[0, 0])

    @cached_property
    def streams(self) -> bool:
        """True if words of a row arrive while rows pass that follow without a pause."""
        loop = self.program.loop
        late = np.where(self.stores > 0, self.stores, IDLE).max(axis=(1, 2))
        return loop.order is Order.FLIT or bool((late >= loop.pause).any())

    @property
    def reads_late(self) -> bool:
        """True if all words are read a link later, while other rows pass."""
        return self.streams and bool(self.lags.max() > 0)

    @property
    def depth(self) -> int:
        """The most cycles by which anything is late."""
        return int(max(self.stores.max(), self.lags.max(), 1))

    @cached_property
    def _stages(self) -> IntArray:
        """The stages of sources of operators, and of out-ports behind them."""
        both = [self.values(action) for action in (Action.OPERAND, Action.SELECT)]
        return np.stack(both) // self.program.ports

    @property
    def later(self) -> bool:
        """True if anything is selected from a second register."""
        return bool(np.isin(self._stages, (Stage.LATER, Stage.LATER_RESULT)).any())

    @property
    def adds(self) -> bool:
        """True if words pass operators."""
        operands = self._stages[0]
        return bool(((operands >= 0) & (operands != Stage.IDENTITY)).any())

    @cached_property
    def store_addresses(self) -> IntArray:
        """For each row, the address of a word that is stored a cycle after its slot.

        It may be below 0. Words that come later lie as much higher, unless rows stream, or rows of
        memories are beats.
        """
        spreads = not self.streams and self.beat == 1
        write = self.values(Action.WRITE) - (self.stores - 1 if spreads else 0)
        least = -(1 << 40)
        found = np.where(self.stores > 0, write, least).max(axis=(1, 2))
        return np.where(found == least, 0, found)

    @cached_property
    def received(self) -> tuple[IntArray, IntArray]:
        """Memory and first address of each block that nodes receive; the address is -1 for none.

        Both have the shape (nodes, parts, chunks).
        """
        program = self.program
        groups, layout = program.form.groups, program.layout
        part, chunk = np.mgrid[: layout.recv_parts, : layout.part_chunks]
        position = groups.position[:, None, None]
        memory, first = program.form.receive_map.locate(position, part[None], chunk[None])
        return memory, np.where(groups.group[:, None, None] >= 0, first, IDLE)

    @property
    def one_node(self) -> bool:
        """True if the host finds anything at one node only."""
        return int((self.received[1] >= 0).any(axis=(1, 2)).sum()) < 2

    def block_rows(self, *, streams: bool) -> IntArray:
        """Return the rows of the table by which each node, or the host, finds received blocks."""
        there = self.received[1] >= 0
        if streams:
            found: IntArray = there.sum(axis=(1, 2))
            return found
        nodes, blocks = len(there), there[0].size
        return np.array([blocks if self.one_node else blocks << max((nodes - 1).bit_length(), 1)])

    @property
    def lacks(self) -> bool:
        """True if any node receives some packets of several, and not all."""
        there = self.received[1][..., 0] >= 0
        count: IntArray = there.sum(axis=1)
        return bool(((count > 0) & (count < there.shape[1])).any())

    def moved(self, root: int) -> Loadable:
        """Return the same with another root than node 0: nodes do what is done at their offset.

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
            # What is for a node is what was for the node at its offset.
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
        """Return addresses of what nodes send, moved to other destinations."""
        program = self.program
        groups, flits = program.form.groups, whole_beats(program.flits, self.beat)
        positions = cayley(groups.torus).add(np.arange(groups.size), root)
        # Chunks beyond the end of the last message begin behind it: nobody looks at them.
        part = np.clip(first // flits, 0, groups.size - 1)
        return np.where(first >= 0, first + (positions[part] - part) * flits, first)


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
        True if the root is chosen at the start of each run; forms are then those for node 0.

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
        """Return those of some forms that are the quickest for some lengths.

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
        """The schedules of its forms."""
        return [form.program.schedule for form in self.forms]

    @property
    def roots(self) -> int:
        """Number of roots that have forms of their own; 0 where the root is fixed."""
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
    """Return the entries of modes, one mode after the other."""
    return [Entry(k, *found) for k, mode in enumerate(modes) for found in mode.by_root]
