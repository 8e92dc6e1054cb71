"""Rounds of a dataflow in which ranks keep their sums and send copies.

A *rank* is a participant of a foreign schedule, called gpu in its files. A rank has one sum of each
chunk, at first its own contribution. An arriving word is added to the sum, or replaces it (see
`torusfabric.schedule.kept_sums`). A *word* is one chunk of a message. A rank sends as a word its
sum as it was before the round, or it forwards the last word that arrived by a link. The file tells
which contributions each word has. So the word can leave only while the sum of its sender has
exactly these contributions. Another word that would change this sum must wait, or arrive in the
same round. Two ranks that exchange their sums send in the same round.

Each round takes words in the order of their *urgency*, the length of the longest chain of steps
behind them. Once a word has arrived, other words may no longer be able to leave or to be added. A
word is taken together with all of these, or not at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...errors import InputError
from ...schedule import KeptSums, Transfers
from ...schedule.foreign.dataflow import Dataflow, Message
from ...schedule.kept_sums import sum_after
from ...topology import IntArray, Topology
from .links import FreeArcs

__all__ = ["KeptSumsScheduler"]

#: The place of a sum: a rank and the key of a chunk.
SumKey = tuple[int, int]

#: The most ranks of a sum that a message names.
MOST_LISTED_RANKS = 8


class _Word(NamedTuple):
    """A word to send: one chunk of a message from one rank to another.

    Words are sorted by these fields, so the most urgent word comes first.

    A rank is a participant of a foreign schedule, such as a GPU.

    Parameters
    ----------
    urgency : int
        Minus the rounds of the longest chain of steps that begins with the word.
    step : int
        The index of the step of the foreign schedule that sends the word.
    number : int
        The index of the chunk in its message.
    key, ranks : int
        The number that identifies the chunk, and the ranks whose contributions the word contains,
        as bits.
    sender, receiver : int
        The ranks at both ends.
    """

    urgency: int
    step: int
    number: int
    key: int
    ranks: int
    sender: int
    receiver: int

    @property
    def source_sum(self) -> SumKey:
        """The sum from which the word is copied, as (sending rank, key of the chunk)."""
        return self.sender, self.key

    @property
    def target_sum(self) -> SumKey:
        """The sum to which the word is added, as (receiving rank, key of the chunk)."""
        return self.receiver, self.key


class _SentWord(NamedTuple):
    """A word that is sent in a round, with the ports at its sender.

    `port` is the out-port by which it leaves. `passed` is the in-port at which it arrived before;
    -1 if it is a copy of the sender's own sum.
    """

    word: _Word
    port: int
    passed: int


@dataclass
class _RoundWords:
    """The words chosen for a round so far, and for each sum the words that arrive at it."""

    sent: dict[_Word, _SentWord] = field(default_factory=dict)
    arriving: dict[SumKey, list[_SentWord]] = field(default_factory=lambda: defaultdict(list))

    def add(self, sent: _SentWord) -> None:
        self.sent[sent.word] = sent
        self.arriving[sent.word.target_sum].append(sent)

    def remove(self, sent: _SentWord) -> None:
        del self.sent[sent.word]
        self.arriving[sent.word.target_sum].remove(sent)


class KeptSumsScheduler:
    """A scheduler of an all-reduce or reduce in which ranks keep their sums and send copies.

    A rank, a participant such as a GPU, has a sum for each chunk. The scheduler assigns the words
    of a foreign schedule (dataflow) to rounds, and follows the sums of all ranks.

    Parameters
    ----------
    nodes : ndarray of int, shape (ranks,)
        The node of each rank.
    urgency : sequence of int
        For each step, the number of rounds of the longest chain of steps that begins with it.
    """

    def __init__(
        self, dataflow: Dataflow, topology: Topology, nodes: IntArray, urgency: Sequence[int]
    ) -> None:
        self._dataflow, self._topology, self._nodes = dataflow, topology, nodes
        self._links = FreeArcs(dataflow, topology, nodes)
        self._sums: dict[SumKey, int] = {}
        self._came: dict[SumKey, dict[int, int]] = defaultdict(dict)
        self._waiting: dict[SumKey, set[_Word]] = defaultdict(set)
        self._coming: dict[SumKey, set[_Word]] = defaultdict(set)
        self._ready: set[_Word] = set()
        self._later: dict[int, set[SumKey]] = defaultdict(set)
        for step, message in enumerate(dataflow.messages):
            for number, (key, ranks) in enumerate(message.values if message else ()):
                assert message is not None
                ends = message.source, message.target
                word = _Word(-urgency[step], step, number, key, ranks, *ends)
                self._waiting[word.source_sum].add(word)
                self._coming[word.target_sum].add(word)

    def rounds(self) -> Iterator[Transfers]:
        """Yield the transfers of each round.

        Raises
        ------
        InputError
            If a rank (a participant, such as a GPU) sends to a rank whose node is no neighbour, or
            a step sends a sum that its rank can never have.
        """
        changed, number = set(self._waiting), 0
        while any(self._waiting.values()):
            for place in changed | self._later.pop(number, set()):
                # Enter the words that a rank can send from now on.
                for word in self._waiting[place]:
                    first = self._message_of_word(word).round
                    if first > number:
                        self._later[first].add(place)
                    elif self._source_port(word) is not None:
                        self._ready.add(word)
            taken = self._choose_words()
            if not taken.sent and not self._later:
                raise self._deadlock_error()
            yield self._round_transfers(taken)
            changed, number = self._apply_arrivals(taken), number + 1
        self._check_sums_complete()

    def _message_of_word(self, word: _Word) -> Message:
        """Return the message of the foreign schedule to which a word belongs."""
        message = self._dataflow.messages[word.step]
        assert message is not None
        return message

    def _contributions_to(self, place: SumKey) -> int:
        """Return the ranks that have contributed to a sum so far, as bits of an integer.

        `place` is the sum as (rank, key of the chunk). At first only the rank itself has
        contributed.
        """
        return self._sums.get(place, 1 << place[0])

    def _source_port(self, word: _Word) -> int | None:
        """Return the in-port from which the sender of a word can forward it, or -1 for its own sum.

        The in-port is the one at which this word arrived last. None means that the word cannot
        leave now, because the sender has neither this word nor this sum.
        """
        if self._contributions_to(word.source_sum) == word.ranks:
            return -1
        came = self._came[word.source_sum].items()
        return next((port for port, ranks in came if ranks == word.ranks), None)

    def _choose_words(self) -> _RoundWords:
        """Choose the words of a round, the most urgent first.

        A word, one chunk of a message, changes a sum when it arrives. Other words that could then
        no longer be copied from this sum, or be added to it, are chosen for the same round.
        """
        self._links.begin_round()
        taken = _RoundWords()
        for word in sorted(self._ready):
            if word not in taken.sent:
                self._take_with_dependents(word, taken)
        self._ready -= taken.sent.keys()
        return taken

    def _take_with_dependents(self, word: _Word, taken: _RoundWords) -> None:
        """Add a word to the round, with all words that could not move after its arrival.

        `taken` has the words of the round so far. If one of these words has no free arc or cannot
        leave now, none of them is added.
        """
        added, urgent = list[_SentWord](), [word]
        while urgent:
            word = urgent.pop()
            if word in taken.sent:
                continue
            # The word on an arc; None if its rank cannot send it, or no arc is free.
            passed = self._source_port(word) if word in self._ready else None
            path = [] if passed is None else self._links.take_paths(self._message_of_word(word), 1)
            sent = _SentWord(word, path[0][0], passed) if path and passed is not None else None
            if sent is None:
                break
            taken.add(sent)
            added.append(sent)
            behind = self._words_blocked_after(word.target_sum, taken)
            if behind is None:
                break
            urgent += behind
        else:
            return
        for sent in added:
            taken.remove(sent)
            self._links.taken.discard((sent.word.sender, sent.port))

    def _words_blocked_after(self, place: SumKey, taken: _RoundWords) -> list[_Word] | None:
        """Return the words that must move in this round, because they cannot move after it.

        The words of the round, in `taken`, change the sum `place` (rank, key). Afterwards, some
        words could no longer be copied from this sum, or be added to it. The result is None if a
        word of the round cannot be added to the sum itself.
        """
        held, arriving, before = (
            self._contributions_to(place),
            taken.arriving[place],
            self._came[place],
        )
        parts = sum_after(held, [sent.word.ranks for sent in arriving])
        if parts is None:
            return None
        after = parts.contributions
        came = before | {self._arrival_port(sent): sent.word.ranks for sent in arriving}

        def may_leave(ranks: int, total: int, passing: dict[int, int]) -> bool:
            """Return True if a rank can send a word, now or after further words have arrived.

            `ranks` has the contributions to the word, and `total` those to the sum of the rank, as
            bits. `passing` has, for each in-port, the contributions to the word that arrived there
            last.
            """
            return not total & ~ranks or ranks in passing.values()

        def may_arrive(ranks: int, total: int) -> bool:
            """Return True if a word can be added to a sum or replace it, now or later.

            It can be added if no rank contributes to both, and replaces a sum of which it has all
            contributions. `ranks` has the contributions to the word, and `total` those to the sum,
            as bits.
            """
            return not total & ranks or not total & ~ranks

        leaving = {
            word
            for word in self._waiting[place]
            if may_leave(word.ranks, held, before) and not may_leave(word.ranks, after, came)
        }
        coming = {
            word
            for word in self._coming[place]
            if may_arrive(word.ranks, held) and not may_arrive(word.ranks, after)
        }
        return sorted(word for word in leaving | coming if word not in taken.sent)

    def _arrival_port(self, sent: _SentWord) -> int:
        """Return the in-port by which the word `sent` arrives."""
        return int(self._topology.opposite[sent.port])

    def _round_transfers(self, taken: _RoundWords) -> Transfers:
        """Return the words `taken` for a round as transfers, sorted by node and port."""
        every = [
            (int(self._nodes[sent.word.sender]), *sent[1:], sent.word.key)
            for sent in taken.sent.values()
        ]
        source, port, passed, key = np.array(sorted(every), np.int64).reshape(-1, 4).T
        _, _, chunk = self._dataflow.buffers.split_key(key)
        return Transfers(source, port[:, None].astype(np.int16), KeptSums(chunk, passed))

    def _apply_arrivals(self, taken: _RoundWords) -> set[SumKey]:
        """Update the sums for the words in `taken`, which arrive, and return the changed sums."""
        for word in taken.sent:
            self._waiting[word.source_sum].discard(word)
            self._coming[word.target_sum].discard(word)
        changed = {place for place, arriving in taken.arriving.items() if arriving}
        for place in changed:
            arriving = taken.arriving[place]
            after = sum_after(self._contributions_to(place), [sent.word.ranks for sent in arriving])
            assert after is not None, "only words are taken that fit"
            self._sums[place] = after.contributions
            self._came[place] |= {self._arrival_port(sent): sent.word.ranks for sent in arriving}
        return changed

    def _deadlock_error(self) -> InputError:
        """Return the error for a schedule in which words wait for each other for ever.

        The message names the step that sends one of these words. Either its rank (a participant,
        such as a GPU) does not have the sum that it must send, or the word cannot be added to the
        sum of its receiver.
        """
        left = sorted(
            (word for words in self._waiting.values() for word in words),
            key=lambda word: (self._source_port(word) is not None, word.step, word.number),
        )
        word = left[0]
        where, name = (
            self._dataflow.graph.location_text(word.step),
            self._dataflow.buffers.describe_key(word.key),
        )
        if self._source_port(word) is None:
            return InputError(
                f"{where} must send the sum of {name} that gpu {word.sender} has, or what "
                f"came last by a link, not one of {_rank_names(word.ranks)}: in a fabric a gpu "
                "has one "
                f"sum of each chunk, here of {_rank_names(self._contributions_to(word.source_sum))}"
            )
        return InputError(
            f"{where} must add each contribution once, not {name} of {_rank_names(word.ranks)} "
            "to a sum "
            f"that gpu {word.receiver} has of "
            f"{_rank_names(self._contributions_to(word.target_sum))}, or that it "
            "has yet to send"
        )

    def _check_sums_complete(self) -> None:
        """Check that all sums that the collective delivers are complete."""
        buffers = self._dataflow.buffers
        root = buffers.collective.root
        for rank in range(buffers.ranks) if root is None else (root,):
            for chunk in range(buffers.chunks):
                key = buffers.block_key(0, 0, chunk)
                if self._contributions_to((rank, key)) != buffers.complete_mask:
                    raise InputError(
                        f"Gpu {rank} must end with the whole sum of "
                        f"{buffers.describe_key(key)}, not with "
                        f"that of {_rank_names(self._contributions_to((rank, key)))}"
                    )


def _rank_names(ranks: int) -> str:
    """Return the names of ranks, given as bits, for an error message: "gpus 0, 2" for 5."""
    found = [str(rank) for rank in range(ranks.bit_length()) if ranks >> rank & 1]
    more = len(found) - MOST_LISTED_RANKS
    names = ", ".join(found[:MOST_LISTED_RANKS]) + (f" and {more} more" if more > 0 else "")
    return f"gpu{'s' * (len(found) > 1)} {names}"
