"""Families: kinds of nodes that share a module, since their modules have the same structure.

A *kind* of nodes are nodes with the same values at all control points, and a *source* a component
whose words a multiplexer can pass (see `torusfabric.program.fields.Sources`).

A *use* is a triple (kind of nodes, multiplexer, source): at nodes of the kind, the multiplexer
passes the source in some row. In the code a *slot* is the number of a multiplexer in its module:
that of an out-port, of an in-port with an operator, or of a memory.

The inputs of a module are the words that it uses: first the words of in-ports, then other words,
each group in the order of first use. The module thus refers to "its first word" rather than to
"in-port 2", and nodes that use different in-ports in the same way share a module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...program.fields import Sources, Stage
from ...topology import IntArray
from .node_module import IDENTITY_WORD, LocalWord
from .rows import NodeKinds

__all__ = ["ModuleFamily", "MultiplexerSources", "find_multiplexer_sources", "group_kinds",
           "pad_rows", "positions_in_groups"]  # fmt: skip

#: Stages that are a register behind another stage, each with the stage in front of the register.
STAGE_BEFORE_REGISTER = {Stage.DELAYED: Stage.PORT, Stage.DELAYED_RESULT: Stage.RESULT}

#: The code of the identity word, and the first code of the words that a store injects itself.
NEUTRAL, INJECTED = -1, 1 << 20


class ModuleFamily(NamedTuple):
    """Nodes that share a module, because their multiplexers have the same structure.

    A kind are nodes with equal values in all rows of the program.

    Parameters
    ----------
    kinds : ndarray of int, shape (kinds,)
        The numbers of the kinds.
    sources : ndarray of int, shape (kinds, words)
        For each kind, the numbers (in `Sources`) of the words that are connected to the inputs of
        the module.
    arriving : int
        The number of words at the first inputs that arrive by in-ports.
    """

    kinds: IntArray
    sources: IntArray
    arriving: int


def positions_in_groups(groups: IntArray) -> IntArray:
    """Return the position of each entry among the entries with the same number, from 0.

    Parameters
    ----------
    groups : ndarray of int, shape (entries,)
        The number of each entry, in increasing order.

    Examples
    --------
    The second entry with the number 3 has the position 1.

    >>> positions_in_groups(np.array([3, 3, 5, 7, 7, 7])).tolist()
    [0, 1, 0, 0, 1, 2]
    """
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    counts = np.diff(first, append=len(groups))
    found: IntArray = np.arange(len(groups)) - np.repeat(first, counts)
    return found


def pad_rows(rows: IntArray, values: IntArray, count: int) -> IntArray:
    """Return a two-dimensional array whose rows are filled with values, and then with -1.

    Parameters
    ----------
    rows : ndarray of int
        The row of each value, in increasing order.
    values : ndarray of int
        The values, as many as `rows` has entries.
    count : int
        Number of rows.

    Examples
    --------
    Row 0 gets the values 5 and 6, row 2 the value 7, and row 1 none.

    >>> pad_rows(np.array([0, 0, 2]), np.array([5, 6, 7]), 3).tolist()
    [[5, 6], [-1, -1], [7, -1]]
    """
    place = positions_in_groups(rows)
    table = np.full((count, int(place.max(initial=-1)) + 1), -1)
    table[rows, place] = values
    return table


def group_kinds(columns: Sequence[IntArray]) -> list[IntArray]:
    """Return sets of kinds that agree in all given properties, as an array of kinds for each set.

    Parameters
    ----------
    columns : sequence of (ndarray of int), shape (kinds, ..)
        The properties: entry k of each array belongs to kind k.
    """
    whole = np.concatenate([each.reshape(len(each), -1) for each in columns], axis=1)
    _, first, group = np.unique(whole, axis=0, return_index=True, return_inverse=True)
    # Families are numbered in the order of their first kinds.
    number = np.argsort(np.argsort(first))[np.asarray(group).ravel()]
    ends: IntArray = np.cumsum(np.bincount(number))
    return [*np.split(np.argsort(number, kind="stable"), ends[:-1])]


class MultiplexerSources:
    """The words that each multiplexer must be able to pass, at each kind of nodes.

    A *kind* are nodes with equal values in all rows of the program. A *use* is a triple (kind,
    multiplexer, source): nodes of the kind need, in some row, that the multiplexer passes the words
    of the source. The uses are sorted by kind, by multiplexer, and by the order of the inputs.

    Parameters
    ----------
    sources : Sources
        The numbered words that the multiplexers of a node can select.
    count : int
        Number of kinds.
    kind, slot, source : ndarray of int, shape (uses,)
        The kind of nodes, the number of the multiplexer, and the number of the source that it
        passes.
    injected : ndarray of int, shape (kinds, injections), optional
        Only for the module with the memories of a node, which makes the words for the injection
        ports (router inputs for words from memories): the position of each port's word among them.

    Attributes
    ----------
    given : ndarray of int, shape (kinds, words)
        The source numbers of the words at the inputs of the module, padded with -1.
    arriving : ndarray of int, shape (kinds,)
        Number of these words that arrive by in-ports.
    signature : ndarray of int, shape (kinds, ..)
        The structure of the module; kinds with equal signatures can share a module.
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
        listed = sources.by_number
        numbers = {each: number for number, each in enumerate(listed)}
        bases = np.array(
            [numbers[STAGE_BEFORE_REGISTER.get(stage, stage), number] for stage, number in listed]
        )
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
        place[order] = positions_in_groups(owner[order])
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

    def input_words(self, kind: int, slot: int) -> list[LocalWord]:
        """Return the word at each input of a multiplexer, in order, at nodes of one kind.

        `slot` is the number of the multiplexer. Nodes of a kind behave alike in each row.
        """
        low, high = np.searchsorted(self.kind, [kind, kind + 1])
        codes = self._codes[low:high][self.slot[low:high] == slot].tolist()
        return [
            IDENTITY_WORD
            if code == NEUTRAL
            else LocalWord(code - INJECTED, injected=True)
            if code >= INJECTED
            else LocalWord(code // 2, bool(code % 2))
            for code in codes
        ]

    def find_inputs(self, slot: int, kinds: IntArray, values: IntArray) -> IntArray:
        """Return the input that a multiplexer must pass in each row, given the source of the word.

        The result has the shape of `values`.

        Parameters
        ----------
        slot : int
            The number of the multiplexer.
        kinds : ndarray of int, shape (kinds,)
            The numbers of the kinds.
        values : ndarray of int, shape (kinds, rows, choices)
            The number of the source in each row, -1 where it does not matter; there the result is
            -1, too. Nodes of a kind behave alike, and a choice is one of the behaviours that a node
            selects by the root of the run.
        """
        if slot not in self._known:
            here = self.slot == slot
            place = positions_in_groups(self.kind[here])
            keys = self.kind[here] * self._sources + self.source[here]
            order = np.argsort(keys)
            self._known[slot] = keys[order], place[order]
        keys, place = self._known[slot]
        wanted = kinds[:, None, None] * self._sources + np.maximum(values, 0)
        found = place[np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)]
        return np.where(values >= 0, found, -1)

    def make_family(self, kinds: IntArray) -> ModuleFamily:
        """Return the family of `kinds`: the nodes of these kinds share a module.

        All of these kinds must have the same `signature`.
        """
        given = self.given[kinds]
        words = int((given[0] >= 0).sum())
        return ModuleFamily(kinds, given[:, :words], int(self.arriving[kinds[0]]))


def find_multiplexer_sources(
    sources: Sources,
    kinds: NodeKinds,
    values: Iterable[tuple[int, IntArray]],
    injected: IntArray | None = None,
) -> MultiplexerSources:
    """Return the words that each multiplexer must be able to pass, at each kind of nodes.

    Parameters
    ----------
    sources : Sources
        The numbered words that the multiplexers of a node can select.
    kinds : NodeKinds
        The kinds of nodes: the nodes of a kind have the same values in all rows.
    values : iterable of (int, ndarray of int), shape (rows, variants)
        The number of each multiplexer, and for each row and each behaviour of a node (variant) the
        source that it passes; -1 where the source does not matter.
    injected : ndarray of int, optional
        See `MultiplexerSources`.
    """
    listed, count = sources.by_number, len(sources.by_number)
    # The inputs of a multiplexer are ordered by source number, with two exceptions. The result of
    # an operator before its register comes late in the cycle: the last inputs pass the fewest LUTs.
    # The identity word is the very last, so that `plan_multiplexer` can leave it out.
    last = [
        (number == sources.identity, stage is Stage.EARLY_RESULT, number)
        for number, (stage, _) in enumerate(listed)
    ]
    order = np.array(sorted(range(count), key=last.__getitem__))
    rank = np.argsort(order)
    keys = [np.zeros(0, int)]
    for slot, of_rows in values:
        at = kinds.values_at_kinds(of_rows, np.arange(kinds.n_kinds))
        kind, row, choice = np.nonzero(at >= 0)
        found = np.unique(kind * count + rank[at[kind, row, choice]])
        kind, ranks = np.divmod(found, count)
        keys.append((kind * (1 << 20) + slot) * count + ranks)
    of_slot, ranks = np.divmod(np.sort(np.concatenate(keys)), count)
    kind, number = np.divmod(of_slot, 1 << 20)
    return MultiplexerSources(sources, kinds.n_kinds, kind, number, order[ranks], injected)
