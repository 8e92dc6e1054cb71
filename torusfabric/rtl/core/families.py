"""Families: kinds of nodes whose modules have the same structure.

A *use* says that a multiplexer of a kind of nodes passes a source. Modules are given the words that
they use: first those of in-ports, then others, each in the order of first use. So it does not
matter which words these are, and nodes with other in-ports share a module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...program.fields import Sources, Stage
from ...topology import IntArray
from .part import NEUTRAL_WORD, LocalWord
from .rows import NodeKinds

__all__ = ["Family", "Uses", "find_uses", "group_kinds", "pad_rows", "place_within"]

#: The stages that are a register behind those of other stages.
BEHIND = {Stage.LATER: Stage.PORT, Stage.LATER_RESULT: Stage.RESULT}

#: Codes of words: that which changes nothing, and from which number on those that a store injects.
NEUTRAL, INJECTED = -1, 1 << 20


class Family(NamedTuple):
    """Kinds of nodes that share a module.

    Parameters
    ----------
    kinds : ndarray of int
        The numbers of the kinds.
    sources : ndarray of int, shape (kinds, words)
        The words that the module is given at each kind, by their source numbers.
    arriving : int
        Number of these that come by in-ports; they are the first.
    """

    kinds: IntArray
    sources: IntArray
    arriving: int


def place_within(groups: IntArray) -> IntArray:
    """Return the place of each entry within its group; equal numbers are side by side.

    Examples
    --------
    >>> place_within(np.array([3, 3, 5, 7, 7, 7])).tolist()
    [0, 1, 0, 0, 1, 2]
    """
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    counts = np.diff(first, append=len(groups))
    found: IntArray = np.arange(len(groups)) - np.repeat(first, counts)
    return found


def pad_rows(rows: IntArray, values: IntArray, count: int) -> IntArray:
    """Return a table with some values in each row, one after another, then -1.

    Examples
    --------
    >>> pad_rows(np.array([0, 0, 2]), np.array([5, 6, 7]), 3).tolist()
    [[5, 6], [-1, -1], [7, -1]]
    """
    place = place_within(rows)
    table = np.full((count, int(place.max(initial=-1)) + 1), -1)
    table[rows, place] = values
    return table


def group_kinds(columns: Sequence[IntArray]) -> list[IntArray]:
    """Return the kinds that agree in all columns, group by group, each of shape (kinds, ..)."""
    whole = np.concatenate([each.reshape(len(each), -1) for each in columns], axis=1)
    _, first, group = np.unique(whole, axis=0, return_index=True, return_inverse=True)
    # Families are numbered in the order of their first kinds.
    number = np.argsort(np.argsort(first))[np.asarray(group).ravel()]
    ends: IntArray = np.cumsum(np.bincount(number))
    return [*np.split(np.argsort(number, kind="stable"), ends[:-1])]


class Uses:
    """The uses of all kinds, in the order of kinds, multiplexers and inputs.

    Parameters
    ----------
    kind, slot, source : ndarray of int, shape (uses,)
        The kind of nodes, the number of its multiplexer, and the source.
    injected : ndarray of int, shape (kinds, injections), optional
        For modules that have words of injection ports themselves, the place of each.

    Attributes
    ----------
    given : ndarray of int, shape (kinds, words)
        The words that the module of each kind is given, by their sources; then -1.
    arriving : ndarray of int, shape (kinds,)
        Number of these that come by in-ports.
    """

    def __init__(
        self,
        sources: Sources,
        count: int,
        kind: IntArray,
        slot: IntArray,
        source: IntArray,
        injected: IntArray | None = None,
    ) -> None:
        listed = sources.listed
        numbers = {each: number for number, each in enumerate(listed)}
        bases = np.array([numbers[BEHIND.get(stage, stage), number] for stage, number in listed])
        is_port = np.array([stage is Stage.PORT for stage, _ in listed])
        self._sources, self._known = len(listed), dict[int, tuple[IntArray, IntArray]]()
        self.kind, self.slot, self.source = kind, slot, source
        base = bases[source]
        self._codes = np.where(source == sources.identity, NEUTRAL, 0)
        if injected is not None:
            number = source - sources.first_injection
            mine = np.array([stage is Stage.INJECTION for stage, _ in listed])[source]
            self._codes[mine] = INJECTED + injected[kind[mine], number[mine]].astype(int)
        outer = self._codes == 0
        words, first, of_use = np.unique(
            kind[outer] * self._sources + base[outer], return_index=True, return_inverse=True
        )
        owner, word = np.divmod(words, self._sources)
        order = np.lexsort((first, ~is_port[word], owner))
        place = np.empty_like(order)
        place[order] = place_within(owner[order])
        self._codes[outer] = 2 * place[np.asarray(of_use).ravel()] + (base != source)[outer]
        self.given = pad_rows(owner[order], word[order], count)
        self.arriving = np.bincount(owner[is_port[word]], minlength=count)
        self.signature = np.concatenate(
            [
                self.arriving[:, None],
                pad_rows(kind, slot, count),
                pad_rows(kind, self._codes, count),
            ],
            axis=1,
        )

    def words(self, kind: int, slot: int) -> list[LocalWord]:
        """Return the inputs of a multiplexer of a kind."""
        low, high = np.searchsorted(self.kind, [kind, kind + 1])
        codes = self._codes[low:high][self.slot[low:high] == slot].tolist()
        return [
            NEUTRAL_WORD
            if code == NEUTRAL
            else LocalWord(code - INJECTED, injected=True)
            if code >= INJECTED
            else LocalWord(code // 2, bool(code % 2))
            for code in codes
        ]

    def inputs(self, slot: int, kinds: IntArray, values: IntArray) -> IntArray:
        """Return the input of a multiplexer that passes each source, -1 where it does not matter.

        Parameters
        ----------
        values : ndarray of int, shape (kinds, rows, choices)
        """
        if slot not in self._known:
            here = self.slot == slot
            place = place_within(self.kind[here])
            keys = self.kind[here] * self._sources + self.source[here]
            order = np.argsort(keys)
            self._known[slot] = keys[order], place[order]
        keys, place = self._known[slot]
        wanted = kinds[:, None, None] * self._sources + np.maximum(values, 0)
        found = place[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)]
        return np.where(values >= 0, found, -1)

    def family(self, kinds: IntArray) -> Family:
        """Return some kinds with the same signature as a family."""
        given = self.given[kinds]
        words = int((given[0] >= 0).sum())
        return Family(kinds, given[:, :words], int(self.arriving[kinds[0]]))


def find_uses(
    sources: Sources,
    kinds: NodeKinds,
    values: Iterable[tuple[int, IntArray]],
    injected: IntArray | None = None,
) -> Uses:
    """Find the uses of all kinds.

    Parameters
    ----------
    values : iterable of (int, ndarray of int), shape (rows, variants)
        For each multiplexer its number, and the source that passes, -1 where it does not matter.
    injected : ndarray of int, optional
        See `Uses`.
    """
    listed, count = sources.listed, len(sources.listed)
    # A word that arrives late in a cycle, then the word that changes nothing, come last.
    last = [
        (number == sources.identity, stage is Stage.MADE, number)
        for number, (stage, _) in enumerate(listed)
    ]
    order = np.array(sorted(range(count), key=last.__getitem__))
    rank = np.argsort(order)
    keys = [np.zeros(0, int)]
    for slot, of_rows in values:
        at = kinds.values(of_rows, np.arange(kinds.count))
        kind, row, choice = np.nonzero(at >= 0)
        found = np.unique(kind * count + rank[at[kind, row, choice]])
        kind, ranks = np.divmod(found, count)
        keys.append((kind * (1 << 20) + slot) * count + ranks)
    of_slot, ranks = np.divmod(np.sort(np.concatenate(keys)), count)
    kind, number = np.divmod(of_slot, 1 << 20)
    return Uses(sources, kinds.count, kind, number, order[ranks], injected)
