"""Crossbars: how out-ports, and operators, select from the words of a node.

Nodes whose crossbars have the same pattern are of one *family*: the module is given the words that
its multiplexers use, in the order of their source numbers, so that it does not matter which
in-ports these come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...program.fields import Action, Sources, Stage
from ...topology import IntArray
from .kinds import NodeKinds, Patterns
from .part import NEUTRAL_WORD, Choice, LocalWord, is_branched, plan_choice
from .places import BitPlacer, Columns
from .rows import RowField, Rows

__all__ = ["Crossbar", "Family", "SourceWords", "input_numbers", "local_word", "place_choice",
           "plan_crossbars", "used_sources", "used_words"]  # fmt: skip

#: The stages that are a register behind those of other stages.
BEHIND = {Stage.LATER: Stage.PORT, Stage.LATER_RESULT: Stage.RESULT}


class SourceWords:
    """The words that sources of a program stand for.

    Parameters
    ----------
    sources : Sources

    Examples
    --------
    >>> words = SourceWords(Sources(2, delayed=(1,), injections=((0,),)))
    >>> words.base(2), words.late(2)
    (1, True)
    """

    def __init__(self, sources: Sources) -> None:
        self._listed = sources.listed
        numbers = {source: number for number, source in enumerate(self._listed)}
        self._base = [numbers[BEHIND.get(stage, stage), number] for stage, number in self._listed]
        self.neutral = sources.identity

    def base(self, source: int) -> int:
        """Return the source whose word, now or a cycle ago, is that of a source."""
        return self._base[source]

    def late(self, source: int) -> bool:
        """Return True if a source is the word of the cycle before."""
        return self._base[source] != source

    def injection(self, source: int) -> int | None:
        """Return the number of the injection port of a source, or None if it is another word."""
        stage, number = self._listed[source]
        return number if stage is Stage.INJECTION else None

    def count_arriving(self, sources: Sequence[int]) -> int:
        """Return the number of sources that are words of in-ports."""
        return sum(self._listed[source][0] is Stage.PORT for source in sources)

    def order(self, source: int) -> tuple[bool, bool, int]:
        """Return a key by which sources are sorted: a word that arrives late in a cycle, then the
        word that changes nothing, come last in a multiplexer.
        """
        return source == self.neutral, self._listed[source][0] is Stage.MADE, source


class Family(NamedTuple):
    """Kinds of nodes that share a module.

    Parameters
    ----------
    kinds : ndarray of int
    sources : ndarray of int, shape (kinds, words)
        The words that the module is given at each kind, by their source numbers.
    arriving : int
        Number of these that come by in-ports; they are the first.
    """

    kinds: IntArray
    sources: IntArray
    arriving: int


class Crossbar(NamedTuple):
    """The multiplexers of the modules of a family.

    Parameters
    ----------
    choices : tuple of (Choice or None)
        One for each port; None where nothing is selected.
    """

    family: Family
    choices: tuple[Choice | None, ...]
    placer: BitPlacer


class _Selection(NamedTuple):
    """The sources that each multiplexer of a kind selects, in the order of its inputs."""

    used: tuple[int, ...]
    inputs: tuple[tuple[int, ...], ...]

    def signature(self, words: SourceWords) -> object:
        """Return the pattern of a crossbar, whichever words it is of."""
        return words.count_arriving(self.used), tuple(
            tuple(local_word(words, self.used, source) for source in inputs)
            for inputs in self.inputs
        )


def local_word(words: SourceWords, used: Sequence[int], source: int) -> LocalWord:
    """Return a source as a word of a module that is given some sources."""
    if source == words.neutral:
        return NEUTRAL_WORD
    return LocalWord(list(used).index(words.base(source)), words.late(source))


def used_words(words: SourceWords, sources: Sequence[int]) -> tuple[int, ...]:
    """Return the words that a module has to be given for some sources.

    Those of in-ports come first, then all in the order of first use.
    """
    found = dict.fromkeys(words.base(source) for source in sources if source != words.neutral)
    return tuple(sorted(found, key=lambda source: not words.count_arriving([source])))


def plan_crossbars(
    rows: Rows, kinds: NodeKinds, columns: Columns, action: Action, *, idles: bool, fast: bool
) -> list[Crossbar]:
    """Plan the crossbars of all kinds of nodes.

    Parameters
    ----------
    action : Action
        `SELECT` for out-ports, `OPERAND` for operators.
    idles : bool
        True if the word that changes nothing is 0.
    fast : bool
        True if all multiplexers have branches, whatever these cost.
    """
    words = SourceWords(rows.loops[0].sources)
    fields = [rows.field(action, port) for port in range(rows.program.ports)]
    patterns = Patterns.from_columns(
        [kinds.used(field.values) for field in fields if field is not None], kinds.count
    )
    selections = [_selection(words, kinds, fields, kind) for kind in patterns.first.tolist()]
    found = []
    for members in patterns.join([each.signature(words) for each in selections]):
        of_members = patterns.of_kind[members]
        first = selections[of_members[0]]
        counts = [len(inputs) for inputs in first.inputs]
        own = sum(source >= rows.program.ports for source in first.used)
        branched = [True] * len(counts) if fast else is_branched(counts, own)
        # All patterns of a crossbar have the same delays.
        placer = BitPlacer(columns, np.zeros(len(members), int), many=kinds.are_many(members))
        choices = tuple(
            None
            if field is None or not counts[port]
            else place_choice(
                placer,
                kinds.values(field.values, members),
                input_numbers(words, [each.inputs[port] for each in selections])[of_members],
                field,
                local=[local_word(words, first.used, source) for source in first.inputs[port]],
                idles=idles,
                branched=branched[port],
            )
            for port, field in enumerate(fields)
        )
        sources = np.array([selections[k].used for k in of_members.tolist()], int)
        family = Family(members, sources, words.count_arriving(first.used))
        found.append(Crossbar(family, choices, placer))
    return found


def input_numbers(words: SourceWords, inputs: Sequence[Sequence[int]]) -> IntArray:
    """Return the input of a multiplexer that each source is, shape (patterns, sources + 1).

    The last column is that of a source that does not matter, -1.
    """
    found = np.full((len(inputs), words.neutral + 2), -1)
    for pattern, sources in enumerate(inputs):
        found[pattern, [*sources]] = np.arange(len(sources))
    return found


def _selection(
    words: SourceWords, kinds: NodeKinds, fields: Sequence[RowField | None], kind: int
) -> _Selection:
    """Return the sources that the multiplexers of a kind select."""
    inputs = tuple(
        () if field is None else used_sources(words, kinds.values(field.values, np.array([kind])))
        for field in fields
    )
    return _Selection(used_words(words, [source for each in inputs for source in each]), inputs)


def used_sources(words: SourceWords, values: IntArray) -> tuple[int, ...]:
    """Return the sources among values, in the order in which a multiplexer has them."""
    found = np.unique(values[values >= 0]).tolist()
    return tuple(sorted(found, key=words.order))


def place_choice(
    placer: BitPlacer,
    values: IntArray,
    numbers: IntArray,
    field: RowField,
    *,
    local: Sequence[LocalWord],
    idles: bool,
    branched: bool = True,
) -> Choice:
    """Return a multiplexer, and where its select bits lie.

    Parameters
    ----------
    values : ndarray of int, shape (members, rows, choices)
        The source that passes, -1 where that does not matter.
    numbers : ndarray of int, shape (members, sources + 1)
        The input that each source is at each member.
    field : RowField
        Says when the select bits count, and whether all nodes agree on the source.
    local : sequence of LocalWord
        The inputs.
    """
    given, codes = plan_choice(local, idles=idles, branched=branched)
    index = numbers[np.arange(len(values))[:, None, None], values]
    bits = placer.code(index, codes, placer.each(field.delays), alike=field.agrees)
    return Choice(given, bits, branched)
