"""`Mode`: what a run chooses, one collective in one or several forms."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING, NamedTuple

from .timing import CyclePiece

if TYPE_CHECKING:
    from ..collective import Collective, Operator
    from ..schedule import Schedule
    from ..topology import Groups
    from .form import Form

__all__ = ["Mode", "Range"]


class Range(NamedTuple):
    """Lengths of messages, up to where the next one starts, and the form that serves for them."""

    start: int
    form: int


@dataclass(frozen=True, eq=False)
class Mode:
    """A collective that runs choose; its forms do the same, each for messages of some lengths.

    Parameters
    ----------
    forms : tuple of Form
        For the shortest messages first.
    first : int
        The number of the first form among those of all modes.
    ranges : tuple of Range
        Which form serves for which lengths, in the order of these; the first begins with one flit.
    roots : int
        Where a form has one for each root, their number; forms are then counted for one root.
    """

    forms: tuple[Form, ...]
    first: int = 0
    ranges: tuple[Range, ...] = (Range(1, 0),)
    roots: int = 0

    def form_of(self, length: int, root: int | None = None) -> int:
        """The number of the form that serves for messages of so many flits.

        Examples
        --------
        >>> import torusfabric as tf
        >>> program = tf.compile(tf.plan("3x3", "broadcast"), max_flits=8)
        >>> program.modes[0].form_of(5)
        0
        """
        form = self.ranges[bisect(self.starts, length) - 1].form
        return self.first + (form * self.roots + (root or 0) if self.roots else form)

    def at(self, form: int) -> Form:
        """A form by the number that ranges say."""
        return self.forms[form * (self.roots or 1)]

    @property
    def several(self) -> bool:
        """Whether there are several forms."""
        return len(self.ranges) > 1

    @property
    def starts(self) -> tuple[int, ...]:
        """The least flits of each range."""
        return tuple(each.start for each in self.ranges)

    @property
    def first_starts(self) -> dict[int, int]:
        """The least flits for which each form serves, by its number in the mode."""
        found: dict[int, int] = {}
        for start, form in self.ranges:
            found.setdefault(form, start)
        return found

    @property
    def numbered(self) -> tuple[Range, ...]:
        """The ranges by the numbers that forms have among those of all modes."""
        return tuple(Range(start, self.first + form) for start, form in self.ranges)

    @property
    def chunks(self) -> int:
        """What the chunks of all forms are a multiple of, each as often as a beat has flits."""
        return gcd(*(form.grain for form in self.forms))

    def pieces(self, most: int) -> Iterator[CyclePiece]:
        """The cycles of runs as a function of n, the flits of a message for each of `chunks`.

        Where a form has more chunks than these, it takes as many cycles for several n.

        Parameters
        ----------
        most : int
            Flits of the longest message.

        Examples
        --------
        >>> import torusfabric as tf
        >>> names = ("ring-exchange", "matching")
        >>> sums = [tf.plan("4", "allreduce", algorithm=name) for name in names]
        >>> mode = tf.compile([sums], max_flits=8).modes[0]
        >>> [tuple(each) for each in mode.ranges], mode.chunks
        ([(1, 0), (5, 1)], 4)
        >>> [tuple(piece) for piece in mode.pieces(8)]
        [(1, 8, 8), (2, 20, 0)]
        """
        if not self.longest.any_length:
            yield from self.longest.timing.pieces(self.longest.loop.flits)
            return
        chunks = self.chunks
        firsts = [(start - 1) // chunks + 1 for start in self.starts]
        ends = [*firsts[1:], -(-most // chunks) + 1]
        for (_, number), first, end in zip(self.ranges, firsts, ends, strict=True):
            form = self.at(number)
            yield from _between(form, first, end, form.grain // chunks)

    @property
    def longest(self) -> Form:
        """The form for the longest messages, which says what all have in common."""
        return self.at(self.ranges[-1].form)

    @property
    def schedule(self) -> Schedule:
        """What is done for the longest messages."""
        return self.longest.schedule

    @property
    def collective(self) -> Collective:
        """What all forms do."""
        return self.schedule.collective

    @property
    def algorithms(self) -> str:
        """The algorithm of each form in words."""
        return " or ".join(dict.fromkeys(form.schedule.algorithm for form in self.forms))

    @property
    def operators(self) -> tuple[Operator, ...]:
        """The operators among which a run chooses; none where nothing is combined."""
        return self.longest.operators

    @property
    def any_root(self) -> bool:
        """Whether the root is chosen at the start of a run."""
        return self.roots > 0 or self.longest.any_root

    @property
    def groups(self) -> Groups:
        """The groups of nodes that carry it out."""
        return self.longest.groups

    def operator_of(self, operation: int | None = None) -> Operator | None:
        """The operator that a run chooses by its number; see `Form.operator_of`."""
        return self.longest.operator_of(operation)


def _between(form: Form, first: int, end: int, factor: int) -> Iterator[CyclePiece]:
    """The cycles from n = first to the last n below an end, n the flits of so many blocks."""
    if end <= first:
        return
    last = (end - 2) // factor + 1
    pieces = [p for p in form.pieces((first - 1) // factor + 1) if p.first <= last]
    ends = [*(piece.first for piece in pieces[1:]), last + 1]
    for piece, stop in zip(pieces, ends, strict=True):
        if factor == 1:
            yield piece
            continue
        for block in range(piece.first, stop if piece.per_flit else piece.first + 1):
            start = max(first, (block - 1) * factor + 1)
            yield CyclePiece(start, piece.constant + piece.per_flit * block, 0)
