"""Places: where the values of control points lie in hardware, decided by the values alone.

A value that is equal in all rows is a constant; one that is equal in all rows of a form is a
constant of the form; one that is equal at all nodes is a *column* of the sequencer, which exists
once; any other is in the table at the node. What nodes hold is the `or` of these, of which in each
form all but one are 0. What does not matter becomes whatever makes the place cheaper, and what is
equal is one.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ..program import Program
from ..program.fields import Loop, Point
from ..topology import BoolArray, IntArray

__all__ = ["Column", "ColumnSet", "Delays", "Location", "Loops", "RowTables", "Shown", "Table"]


class Loops:
    """The loops of a program, one a form; the rows of the second follow those of the first.

    Parameters
    ----------
    loops : sequence of Loop
        With the same variants, sources, readers and memories.

    Examples
    --------
    >>> import torusfabric as tf
    >>> program = tf.compile(tf.plan("3x3", "allgather", algorithm="matching"))
    >>> loops = Loops.of(program)
    >>> loops.rows, loops.spans
    (2, (slice(0, 2, None),))
    """

    def __init__(self, loops: Sequence[Loop]) -> None:
        self.loops = tuple(loops)
        self._values: dict[Point, IntArray] = {}

    @classmethod
    def of(cls, program: Program) -> Loops:
        """Those of a program."""
        return cls([form.loop for form in program.forms])

    @property
    def first(self) -> Loop:
        """The loop of the first form, for what all have in common."""
        return self.loops[0]

    @property
    def several(self) -> bool:
        """Whether there are several."""
        return len(self.loops) > 1

    @property
    def rows(self) -> int:
        """Rows of all together."""
        return sum(loop.rows for loop in self.loops)

    @property
    def variants(self) -> int:
        """Number of variants."""
        return self.first.variants

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first row of each loop."""
        counts = [loop.rows for loop in self.loops]
        return tuple((np.cumsum(counts) - counts).tolist())

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """The rows of each loop among all."""
        starts = zip(self.loops, self.starts, strict=True)
        return tuple(slice(start, start + loop.rows) for loop, start in starts)

    def values(self, point: Point) -> IntArray:
        """The values of a control point in the rows of all loops, shape (rows, variants)."""
        if point not in self._values:
            # Each variant asks for those of every reader again.
            self._values[point] = self.joined([loop.values(*point) for loop in self.loops])
        return self._values[point]

    def delays(self, point: Point, unused: int | None = None) -> tuple[int | None, ...]:
        """The delay of a control point in each loop; `unused` where it does nothing."""
        fields = [loop.field(*point) for loop in self.loops]
        return tuple(field.delay if field else unused for field in fields)

    def joined(self, columns: Sequence[IntArray]) -> IntArray:
        """Columns of all loops as one; the first axis is that of rows."""
        return columns[0] if len(columns) == 1 else np.concatenate(columns)


#: Cycles from a slot to what follows from it, in each form; None where nobody looks.
Delays: TypeAlias = tuple[int | None, ...]


class Shown(enum.Enum):
    """How the sequencer shows the value of a row."""

    #: As it is.
    VALUE = "value"
    #: As the first address of a burst, to which the word of the slot is added.
    ADDRESS = "address"
    #: While words of the row are under way; else as 0.
    STROBE = "strobe"
    #: As a strobe of which nothing is left when a round begins: what nodes do is looked up anew.
    WINDOW = "window"
    #: Whether the word of the slot is the last of its block, whatever the row.
    END = "end"


@dataclass(frozen=True, eq=False)
class Column:
    """A value that the sequencer gives to all nodes, row by row.

    Parameters
    ----------
    values : ndarray of int, shape (rows of all forms,)
    delays : Delays
        Cycles from a slot to the cycle, at the nodes, in which its value counts.
    pitches : tuple of (int or None)
        Of an address in each form: from that of a flit of a block to that of the next.
    """

    values: IntArray
    delays: Delays
    shown: Shown = Shown.VALUE
    pitches: Delays = ()

    @property
    def bits(self) -> int:
        """Bits of a value."""
        return max(int(self.values.max()).bit_length(), 1)

    def with_other(self, other: Column) -> Column | None:
        """One that serves for both, or None; values below 0 do not matter."""
        mine, others = self.values, other.values
        if self.shown is not other.shown or ((mine >= 0) & (others >= 0) & (mine != others)).any():
            return None
        delays, pitches = _both(self.delays, other.delays), _both(self.pitches, other.pitches)
        if delays is None or pitches is None:
            return None
        values = np.maximum(mine, others)
        return replace(self, values=values, delays=delays, pitches=pitches)


def _both(a: Delays, b: Delays) -> Delays | None:
    """What serves both, or None."""
    if any(x != y for x, y in zip(a, b, strict=True) if x is not None and y is not None):
        return None
    return tuple(y if x is None else x for x, y in zip(a, b, strict=True))


class ColumnSet:
    """The columns of one output of the sequencer; those that may always be equal are one.

    Examples
    --------
    >>> columns = ColumnSet()
    >>> wanted = ([4, -1], [3, 8], [-1, 8])
    >>> [columns.add(Column(np.array(values), (3,), Shown.ADDRESS)) for values in wanted]
    [0, 1, 0]
    >>> [column.values.tolist() for column in columns.all]
    [[4, 8], [3, 8]]
    """

    def __init__(self) -> None:
        self._known: list[Column] = []

    def add(self, column: Column) -> int:
        """The number of a column; its values below 0 do not matter."""
        for number, known in enumerate(self._known):
            both = known.with_other(column)
            if both:
                self._known[number] = both
                return number
        self._known.append(column)
        return len(self._known) - 1

    @property
    def all(self) -> tuple[Column, ...]:
        """The columns; what does not matter is as all else, or 0."""
        filled = ((known, max(_constant(known.values) or 0, 0)) for known in self._known)
        return tuple(
            replace(known, values=np.where(known.values < 0, value, known.values))
            for known, value in filled
        )


@dataclass(frozen=True)
class Location:
    """Where a value lies: it is the `or` of what there is.

    Parameters
    ----------
    width : int
        Bits.
    constants : tuple of int
        Of each form; 0 where it lies elsewhere.
    start : int or None
        The first of its bits in the table at the node.
    column : int or None
        Of the sequencer.
    shift : int or None
        Of a first address, how many zeros follow its bits, with no word count of the column ever
        beyond them; None where both have to be added.
    joins : bool
        Of a first address, whether in some forms the column gives whole ones, and the rest is 0.
    """

    width: int
    constants: tuple[int, ...]
    start: int | None = None
    column: int | None = None
    shift: int | None = None
    joins: bool = False

    @property
    def at_node(self) -> bool:
        """Whether anything of it lies at the node."""
        return self.start is not None or any(self.constants)

    @property
    def by_form(self) -> bool:
        """Whether it depends on the form."""
        return len(set(self.constants)) > 1


class Table:
    """The table at the nodes of a shape, which the sequencer steps through row by row.

    Parameters
    ----------
    members : int
        Variants of the shape.
    spans : sequence of slice
        The rows of each form.
    by_form : bool
        Whether nodes know the form, so that constants may depend on it.

    Attributes
    ----------
    width : int
        Bits of a row so far.

    Examples
    --------
    Of two nodes, what is equal everywhere takes no bits, and what is equal twice lies in one place.

    >>> table = Table(members=2, spans=[slice(0, 3)])
    >>> table.place(np.array([[3, -1, 3], [3, 3, 3]])).constants
    (3,)
    >>> at = table.place(np.array([[0, 1, 2], [2, 1, 0]]))
    >>> at.width, at.constants, at.start
    (2, (0,), 0)
    >>> table.width, table.rows(1)
    (2, (2, 1, 0))

    What is constant in a form, here the second, takes no rows of it.

    >>> table = Table(members=1, spans=[slice(0, 2), slice(2, 4)])
    >>> table.place(np.array([[0, 1, 2, 2]])).constants, table.rows(0), table.used
    ((0, 2), (0, 1, 0, 0), {0})
    """

    def __init__(self, members: int, spans: Sequence[slice], *, by_form: bool = True) -> None:
        self._members, self._spans, self._by_form = members, spans, by_form
        self.width = 0
        self._stored: list[tuple[Location, IntArray]] = []

    @property
    def used(self) -> set[int]:
        """The forms in whose rows anything is looked up."""
        return {
            form
            for form, span in enumerate(self._spans)
            if any(values[:, span].any() for _, values in self._stored)
        }

    def place(
        self,
        values: IntArray,
        *,
        column: int | None = None,
        given: Sequence[bool] = (),
        words: IntArray | None = None,
    ) -> Location:
        """Find a place for values.

        Parameters
        ----------
        values : ndarray of int, shape (members, rows)
            -1 where they do not matter.
        column : int, optional
            The number of that of the sequencer which gives them.
        given : sequence of bool
            In which forms it does, for all nodes that look have the same value, be it in other
            shapes. Where the value lies elsewhere, the column is 0 as early: nothing of the run
            before shows.
        words : ndarray of int, shape (rows,)
            Of first addresses, how many words follow from each.
        """
        shift, joins = None, False
        if column is not None:
            here = self.rows_of(given)
            if words is not None:
                looked = (values >= 0).any(axis=0)
                joins = bool((here & looked).any())
                shift = _free_bits(values[:, ~here], words[~here & looked].max(initial=1))
            values = np.where(here, np.minimum(values, 0), values)
        if shift:
            values = np.where(values > 0, values >> shift, values)
        at = self._at_node(values, given=column is not None)
        return replace(at, column=column, shift=shift, joins=joins)

    def rows_of(self, forms: Sequence[bool]) -> BoolArray:
        """Whether each row is one of some forms."""
        counts = [span.stop - span.start for span in self._spans]
        return np.repeat(np.asarray(forms), counts)

    def _at_node(self, values: IntArray, *, given: bool) -> Location:
        """A place at the nodes, which is none where all is given."""
        constants = [_constant(values[:, span]) for span in self._spans]
        width = max(int(values.max(initial=0)).bit_length(), 1)
        if None not in constants and self._by_form:
            return Location(width, tuple(max(c or 0, 0) for c in _agreed(constants)))
        known = tuple(max(c or 0, 0) if self._by_form else 0 for c in constants)
        here = np.maximum(values, 0)
        for constant, span in zip(known, self._spans, strict=True):
            if constant:
                here[:, span] = 0
        start = self._start(here, width) if here.any() or not given else None
        return Location(width, known, start)

    def _start(self, values: IntArray, width: int) -> int:
        """Where values lie in the rows of the table."""
        for other, stored in self._stored:
            if other.width == width and (stored == values).all():
                assert other.start is not None
                return other.start
        location = Location(width, (), self.width)
        self._stored.append((location, values))
        self.width += width
        return self.width - width

    def rows(self, member: int) -> tuple[int, ...]:
        """What the table of a member holds."""
        total = np.zeros(self._spans[-1].stop, object)
        for location, values in self._stored:
            assert location.start is not None
            total += values[member].astype(object) << location.start
        return tuple(map(int, total))


def _constant(values: IntArray) -> int | None:
    """The value that is the same in all rows of a form; -1 if none matters, None for several."""
    known = values[values >= 0]
    if not len(known):
        return -1
    return int(known[0]) if (known == known[0]).all() else None


def _free_bits(bases: IntArray, words: int) -> int | None:
    """How many bits count so many words, if these bits are 0 in all bases; else None."""
    bits = (int(words) - 1).bit_length()
    return None if (bases[bases > 0] & ((1 << bits) - 1)).any() else bits


def _agreed(constants: list[int | None]) -> list[int | None]:
    """Constants with those that do not matter made equal to one that does."""
    matters = next((c for c in constants if c is not None and c >= 0), 0)
    return [matters if c == -1 else c for c in constants]


class RowTables:
    """The tables at all nodes: the rows of forms in which there is anything to look up.

    Parameters
    ----------
    tables : sequence of (sequence of int, Table)
        That of each shape, and its variants.

    Attributes
    ----------
    contents : tuple of (tuple of int)
        Of each variant, the rows of its table; none where it has no bits.
    numbers : ndarray of int, shape (rows of all forms,)
        The row of the table; all forms that need none have one row of zeros, the last.
    forms : tuple of int
        The form of each row of the table, but for the row of zeros.

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.rtl.place import Loops
    >>> program = tf.compile(tf.plan("3x3", "allgather", algorithm="matching"))
    >>> table = Table(members=1, spans=[slice(0, 2)])
    >>> at = table.place(np.array([[5, 7]]))
    >>> rows = RowTables(Loops.of(program), [([0], table)])
    >>> rows.numbers.tolist(), rows.contents
    ([0, 1], ((5, 7),))
    """

    def __init__(self, loops: Loops, tables: Sequence[tuple[Sequence[int], Table]]) -> None:
        owner = np.repeat(np.arange(len(loops.loops)), [loop.rows for loop in loops.loops])
        kept = np.isin(owner, [*set().union(*(table.used for _, table in tables))])
        rows = np.flatnonzero(kept)
        self.numbers: IntArray = np.where(kept, np.cumsum(kept) - 1, len(rows))
        self.forms: tuple[int, ...] = tuple(owner[rows].tolist())
        of_variant: dict[int, tuple[int, ...]] = {}
        for members, table in tables:
            for member, variant in enumerate(members if table.width else ()):
                whole = table.rows(member)
                of_variant[variant] = (*(whole[row] for row in rows), *(0,) * (not kept.all()))
        self.contents = tuple(of_variant.get(variant, ()) for variant in range(loops.variants))
