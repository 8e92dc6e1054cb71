"""The modes of a fabric whose tables are loaded: the forms of each, by lengths, and by roots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ..topology import require_alike
from .loadable import Loadable
from .serving import ranges_of

if TYPE_CHECKING:
    from ..schedule import Schedule

__all__ = ["Entry", "LoadableMode", "entries_of"]


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
