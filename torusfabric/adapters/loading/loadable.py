"""Loadable forms: canonical programs, their needs of a room, and the modes that consist of them.

A *room* is the capacity of a loaded fabric. A program in *canonical form* has been rewritten so
that any large enough room can execute it (see `rewriting`). A *slot* is a cycle in which the
sequencer presents a row and a flit; a word is read, or stored, some cycles after its slot. A
*reader* is one of the read ports of a node's memories. A *control point* is one selector, address
or enable of a node, and an *action* is a kind of control points.

A `LoadableForm` is one schedule in canonical form. A `LoadableMode` has one or more of them, each
for a range of message lengths. A `StartEntry` is an entry: one form of a mode, for one root if runs
choose the root::

    LoadableMode   broadcast, any root of 4 nodes
      form 0       1 .. 9 flits     -> 4 entries, one for each root
      form 1       10 flits or more -> 4 entries
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...program.fields import IDLE, Action, Field, Order, Stage
from ...program.serving import choose_ranges
from ...rtl.flit_rows import round_up_to_beats
from ...topology import IntArray, check_supports_any_root, require_cayley_graph
from .rewriting import rewrite_program

if TYPE_CHECKING:
    from ...program import Program
    from ...schedule import Schedule

__all__ = ["StartEntry", "LoadableForm", "LoadableMode", "list_entries"]


@dataclass(frozen=True, eq=False)
class LoadableForm:
    """A schedule that loaded tables can hold, with properties that say how much space it needs.

    In *canonical form*, a program uses memories and multiplexers in a fixed way, so that every
    large enough loaded fabric can execute it.

    Parameters
    ----------
    program : Program
        The program in canonical form, see `rewriting.rewrite_program`.
    compiled : Program
        The same program before rewriting, as compiled from the schedule.
    """

    program: Program
    compiled: Program

    @classmethod
    def from_program(cls, program: Program) -> LoadableForm:
        """Rewrite a program so that loaded tables can hold it, and return it as a loadable form.

        Parameters
        ----------
        program : Program
            A program of one form, for messages of any length.

        Raises
        ------
        InputError
            If loaded tables cannot express the program.
        """
        return cls(rewrite_program(program), program)

    def action_values(self, action: Action) -> IntArray:
        """Return the value of each port's selector, address or enable in each row.

        `action` says which of these is meant, such as `Action.SELECT` for the selectors of
        out-ports. The shape is (rows, nodes, ports), because a loadable form uses one selector,
        address or enable of each kind for each port.
        """
        points = range(self.program.ports)
        return np.stack(
            [self.program.loop.point_values(action, number) for number in points], axis=-1
        )

    @property
    def n_rows(self) -> int:
        """Number of rows of the program, each of which needs a row of the loaded table `rows`."""
        return self.program.loop.n_rows

    @property
    def n_chunks(self) -> int:
        """Number of chunks of a message."""
        return self.program.schedule.chunks

    @property
    def beat(self) -> int:
        """Consecutive flits of a message that go to one chunk and lie in one row of a memory."""
        return self.program.form.beat

    @property
    def least_row_cycles(self) -> int:
        """The number of cycles that even the shortest row takes."""
        return self.program.loop.least

    @cached_property
    def store_delays(self) -> IntArray:
        """The delay of each stored word: cycles from its slot to its storing, 0 if none is stored.

        A slot is a cycle in which the sequencer presents a row and a flit number. The shape is
        (rows, nodes, ports), with a value for each in-port.
        """
        return self.action_values(Action.TAP)

    @cached_property
    def reader_lags(self) -> IntArray:
        """The delay of each read word: cycles from its slot to its read.

        A slot is a cycle in which the sequencer presents a row and a flit number. The shape is
        (rows, nodes, ports); each port has a reader, a read port of the node's memories.
        """
        return self.action_values(Action.LAG)

    @property
    def memory_words(self) -> int:
        """Number of words that the memory of an in-port must hold."""
        return int(self.program.depth[0, 0])

    @cached_property
    def has_overlapping_rows(self) -> bool:
        """True if words of a row may arrive while the sequencer executes later rows."""
        loop = self.program.loop
        late = np.where(self.store_delays > 0, self.store_delays, IDLE).max(axis=(1, 2))
        return loop.order is Order.FLIT or bool((late >= loop.pause).any())

    @property
    def has_late_reads(self) -> bool:
        """True if rows overlap, and some words are read one link latency after their slot.

        Rows overlap if words of a row may arrive while later rows are executed. A slot is a cycle
        in which the sequencer presents a row and a flit number.
        """
        return self.has_overlapping_rows and bool(self.reader_lags.max() > 0)

    @property
    def longest_delay(self) -> int:
        """Largest number of cycles from a row to the storing or reading of its word, at least 1."""
        return int(max(self.store_delays.max(), self.reader_lags.max(), 1))

    @cached_property
    def _source_stages(self) -> IntArray:
        """The part of a node (`Stage`) from which each operator and each out-port takes a word.

        The shape is (2, rows, nodes, ports); the first axis has index 0 for operators and 1 for
        out-ports.
        """
        both = [self.action_values(action) for action in (Action.OPERAND, Action.SELECT)]
        return np.stack(both) // self.program.ports

    @property
    def needs_second_registers(self) -> bool:
        """True if some out-port or operator selects a word one cycle later than it arrives.

        The word then comes from a second register behind the in-port or operator that provides it.
        """
        return bool(np.isin(self._source_stages, (Stage.DELAYED, Stage.DELAYED_RESULT)).any())

    @property
    def needs_operators(self) -> bool:
        """True if an operator combines words of two nodes, and does not only pass words on."""
        operands = self._source_stages[0]
        return bool(((operands >= 0) & (operands != Stage.IDENTITY)).any())

    @cached_property
    def store_addresses(self) -> IntArray:
        """The address in each row for words that are stored one cycle after their slot.

        A slot is a cycle in which the sequencer presents a row and a flit number. A word that is
        stored d cycles after its slot lies d - 1 addresses higher, because the word counter of the
        row has advanced by d - 1. With overlapping rows, or a beat above 1, the address does not
        depend on d. The result may be negative in a row in which d is 2 or more for every word.
        """
        spreads = not self.has_overlapping_rows and self.beat == 1
        write = self.action_values(Action.WRITE) - (self.store_delays - 1 if spreads else 0)
        least = -(1 << 40)
        found = np.where(self.store_delays > 0, write, least).max(axis=(1, 2))
        return np.where(found == least, 0, found)

    @cached_property
    def received_locations(self) -> tuple[IntArray, IntArray]:
        """Two arrays: the memory, and the first address, of each received block.

        Both have the shape (nodes, parts, chunks); a node receives one part from each origin. The
        address is -1 if a node receives no such block.
        """
        program = self.program
        groups, layout = program.form.groups, program.layout
        part, chunk = np.mgrid[: layout.recv_parts, : layout.part_chunks]
        row = groups.map_row_of_node[:, None, None]
        memory, first = program.form.receive_map.locate(row, part[None], chunk[None])
        return memory, np.where(groups.group_of_node[:, None, None] >= 0, first, IDLE)

    @property
    def has_one_receiver(self) -> bool:
        """True if at most one node receives blocks."""
        return int((self.received_locations[1] >= 0).any(axis=(1, 2)).sum()) < 2

    def block_rows(self, *, streams: bool) -> IntArray:
        """Return the number of rows that this form needs in the tables of received blocks.

        Such a table has the memory and the first address of each block that a node receives.

        Parameters
        ----------
        streams : bool
            True if each node has a table of its own; else one table serves the host port.

        Returns
        -------
        ndarray of int
            Number of rows in each table, shape (nodes,) with streams and (1,) otherwise.
        """
        there = self.received_locations[1] >= 0
        if streams:
            found: IntArray = there[..., 0].sum(axis=1) * there.shape[2]
            return found
        nodes, blocks = len(there), there[0].size
        return np.array(
            [blocks if self.has_one_receiver else blocks << max((nodes - 1).bit_length(), 1)]
        )

    @property
    def has_partial_receivers(self) -> bool:
        """True if some node receives packets, but not from every origin."""
        there = self.received_locations[1][..., 0] >= 0
        count: IntArray = there.sum(axis=1)
        return bool(((count > 0) & (count < there.shape[1])).any())

    def translate_root(self, root: int) -> LoadableForm:
        """Return the form translated from root 0 to another root.

        Node v then does the work of node v - root.

        Parameters
        ----------
        root : int
            Position of the new root within its group.

        Examples
        --------
        The root of a gather is the only node that receives.

        >>> import torusfabric as tf
        >>> form = LoadableForm.from_program(tf.compile(tf.plan("3", "gather"), max_flits=4))
        >>> for root in (0, 2):
        ...     memory, first = form.translate_root(root).received_locations
        ...     print(np.flatnonzero((first >= 0).any(axis=(1, 2))))
        [0]
        [2]
        """
        program = self.program
        form, layout = program.form, program.layout
        groups, loop = form.groups, form.loop
        fields = [
            Field(each.point, groups.translate_values(each.values.T, root).T, each.delay)
            for each in loop.fields
        ]
        offset = require_cayley_graph(groups.group_topology).subtract(
            np.arange(groups.group_size), root
        )
        memory, first = (
            table[offset] for table in (form.receive_map.memory, form.receive_map.base)
        )
        if layout.recv_parts > 1:
            memory, first = memory[:, offset], first[:, offset]
        if layout.send_parts > 1:
            # The part for destination v + root takes the place of that for destination v.
            own = program.ports
            first = np.where(memory == own, self._translate_send_addresses(first, root), first)
            reads = {each.point.number: each for each in fields if each.point.action is Action.READ}
            kept = [each for each in fields if each.point.action is not Action.READ]
            for each in [one for one in kept if one.point.action is Action.MEMORY]:
                read = reads[each.point.number]
                values = self._translate_send_addresses(read.values, root)
                kept.append(replace(read, values=np.where(each.values == own, values, read.values)))
            fields = kept
        moved = replace(
            form,
            loop=replace(loop, fields=tuple(fields)),
            receive_map=replace(form.receive_map, memory=memory, base=first),
        )
        return replace(self, program=replace(program, forms=(moved,)))

    def _translate_send_addresses(self, first: IntArray, root: int) -> IntArray:
        """Return the send-memory addresses in `first`, translated from root 0 to another root.

        The send memory has a part for each destination. An address in the part for the node at
        position v moves to the same place in the part for position v + root, where the sum is a
        translation of the torus. A negative address, which stands for none, stays.
        """
        program = self.program
        groups, flits = program.form.groups, round_up_to_beats(program.flits, self.beat)
        positions = require_cayley_graph(groups.group_topology).add(
            np.arange(groups.group_size), root
        )
        # A chunk past the end of the last message has an address outside all parts. It is never
        # read, so any part will do.
        part = np.clip(first // flits, 0, groups.group_size - 1)
        return np.where(first >= 0, first + (positions[part] - part) * flits, first)


class StartEntry(NamedTuple):
    """An entry of a loaded fabric: one form of a mode, for a least length and a root.

    Parameters
    ----------
    mode : int
        Number of the mode in the fabric, from 0.
    start : int
        Length in flits of the shortest message that the entry serves.
    root : int or None
        The root that the entry serves; None if runs do not choose the root.
    form : LoadableForm
        The form, already translated to the root.
    """

    mode: int
    start: int
    root: int | None
    form: LoadableForm


@dataclass(frozen=True, eq=False)
class LoadableMode:
    """A collective in one or more forms, each for a range of message lengths.

    Parameters
    ----------
    forms : tuple of LoadableForm
        The forms; the form for the shortest messages comes first.
    starts : tuple of int
        For each form, the length in flits of the shortest message that it serves.
    any_root : bool
        True if the root is chosen at the start of each run. The forms are then those for root 0.

    Examples
    --------
    Messages of 10 flits or more are broadcast in two chunks, shorter ones in one.

    >>> import torusfabric as tf
    >>> plans = [tf.plan("9", "broadcast", trees=trees) for trees in (1, 2)]
    >>> forms = [LoadableForm.from_program(tf.compile(plan, max_flits=64)) for plan in plans]
    >>> mode = LoadableMode.from_forms(forms)
    >>> mode.starts, [form.n_chunks for form in mode.forms]
    ((1, 10), [1, 2])
    """

    forms: tuple[LoadableForm, ...]
    starts: tuple[int, ...] = (1,)
    any_root: bool = False

    @classmethod
    def from_forms(cls, forms: Sequence[LoadableForm], *, any_root: bool = False) -> LoadableMode:
        """Return a mode of those forms that are the fastest ones for messages of some lengths.

        Other forms are left out. Each form gets one range of lengths. Why: every range has a
        comparator in hardware. So a form does not get a second range, in which it is faster again
        because its last chunks are full.

        Parameters
        ----------
        forms : sequence of LoadableForm
            Forms of one collective.
        any_root : bool
            True if the root is chosen at the start of each run.
        """
        if any_root:
            check_supports_any_root(forms[0].program.form.groups.group_topology)
        ranges = choose_ranges([form.program.form for form in forms], forms[0].program.flits)
        start = {form: start for start, form in ranges}
        order = sorted(start, key=start.__getitem__)
        starts = (1, *(start[form] for form in order[1:]))
        return cls(tuple(forms[form] for form in order), starts, any_root)

    @property
    def mode_of_longest_form(self) -> LoadableMode:
        """A mode with only the form for the longest messages, which then serves all lengths."""
        return LoadableMode(self.forms[-1:], any_root=self.any_root)

    @property
    def schedules(self) -> list[Schedule]:
        """The schedules of the forms, in the same order."""
        return [form.program.schedule for form in self.forms]

    @property
    def n_roots(self) -> int:
        """Number of roots from which a run chooses; 0 if the root is fixed or there is none."""
        return self.forms[0].program.form.groups.group_size if self.any_root else 0

    @cached_property
    def forms_by_root(self) -> list[tuple[int, int | None, LoadableForm]]:
        """The entries of the mode: each form once for each root that a run may choose.

        Each is (least length in flits, root, form translated to the root); the root is None if it
        is fixed. The entries come form by form, and within a form root by root.
        """
        roots: Sequence[int | None] = range(self.n_roots) if self.any_root else [None]
        return [
            (start, root, form.translate_root(root) if root else form)
            for start, form in zip(self.starts, self.forms, strict=True)
            for root in roots
        ]


def list_entries(modes: Sequence[LoadableMode]) -> list[StartEntry]:
    """Return the entries of all modes, mode by mode; mode k is the k-th of `modes`.

    An entry is one form of a mode, for one root if runs choose the root.
    """
    return [StartEntry(k, *found) for k, mode in enumerate(modes) for found in mode.forms_by_root]
