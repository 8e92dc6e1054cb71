"""Snapshots: the symbolic state of a whole fabric, for several runs at once.

The last axis of every register array combines instances and runs: the runs of instance 0, then the
runs of instance 1, and so on. The functions here copy, compare and merge states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..topology import BoolArray, IntArray
from .gate_program import State
from .symbols import STANDS, UNKNOWN, joined, word

__all__ = ["Snapshot", "arrays", "changed_by", "forgetful", "of_all", "picked",
           "repeated", "same", "spread", "unchanged", "with_arrays", "with_either",
           "with_numbers", "without_moving_words"]  # fmt: skip


@dataclass(frozen=True)
class Snapshot:
    """Symbolic values of the registers and memories of all instances.

    Parameters
    ----------
    states : dict of str to State
        State of the instances of each module.
    """

    states: dict[str, State]


def arrays(now: Snapshot) -> Iterator[IntArray]:
    """Yield the registers of each module that has any."""
    yield from (state.flops for state in now.states.values() if len(state.flops))


def with_arrays(now: Snapshot, given: Sequence[IntArray]) -> Snapshot:
    """Return the state with other registers and the same memories."""
    rest = iter(given)
    states = {
        module: State(next(rest), state.rams) if len(state.flops) else state
        for module, state in now.states.items()
    }
    return Snapshot(states)


def with_either(a: Snapshot, b: Snapshot) -> Snapshot:
    """Return the state that covers a and b: shared constants stay known, all else is unknown."""
    return with_arrays(a, [joined(x, y) for x, y in zip(arrays(a), arrays(b), strict=True)])


def with_numbers(now: Snapshot) -> Snapshot:
    """Return the state with a symbol of its own for each unknown register.

    Why: a register that keeps an unknown value can then be distinguished from one that changes.
    """
    states, count = {}, STANDS
    for module, state in now.states.items():
        numbers = word(count + np.arange(state.flops.size).reshape(state.flops.shape))
        flops = np.where(state.flops == UNKNOWN, numbers, state.flops).astype(np.int32)
        states[module] = State(flops, state.rams)
        count += flops.size
    return Snapshot(states)


def same(a: Snapshot, b: Snapshot) -> bool:
    """Return True if all registers are equal."""
    return all((x == y).all() for x, y in zip(arrays(a), arrays(b), strict=True))


def forgetful(now: Snapshot) -> Snapshot:
    """Make the contents of writable memories unknown, in place; returns the state."""
    for state in now.states.values():
        for words in state.rams:
            if words.flags.writeable:
                words[...] = UNKNOWN
    return now


def changed_by(
    registers: Callable[..., IntArray],
    memories: Callable[..., IntArray],
    now: Snapshot,
    *others: Snapshot,
) -> Snapshot:
    """Return a state computed from several states, array by array.

    Parameters
    ----------
    registers, memories : function of ndarrays
        Compute the registers of a module, or the words of a writable memory, from those of each
        state.
    """
    given = zip(*map(arrays, (now, *others)), strict=True)
    found = with_arrays(now, [registers(*values) for values in given])
    for module, state in found.states.items():
        rams = zip(state.rams, *(other.states[module].rams for other in others), strict=True)
        made = [memories(*words) if words[0].flags.writeable else words[0] for words in rams]
        found.states[module] = State(state.flops, made)
    return found


def spread(rest: Snapshot, runs: int) -> Snapshot:
    """Return the state of one run copied to `runs` runs, with unknown memories."""

    def unknown(words: IntArray) -> IntArray:
        return np.full((*words.shape[:2], words.shape[2] * runs), UNKNOWN, np.int32)

    return changed_by(lambda values: np.repeat(values, runs, axis=-1), unknown, rest)


def repeated(now: Snapshot, count: int) -> Snapshot:
    """Return the state with each run copied `count` times; the copies are adjacent."""
    repeat = partial(np.repeat, repeats=count, axis=-1)
    return changed_by(repeat, repeat, now)


def picked(which: BoolArray, now: Snapshot, before: Snapshot, runs: int) -> Snapshot:
    """Return, for the runs in `which`, the state `now`, and for the others `before`."""

    def pick(new: IntArray, old: IntArray) -> IntArray:
        shape = *new.shape[:-1], -1, runs
        return np.where(which, new.reshape(shape), old.reshape(shape)).reshape(new.shape)

    return changed_by(pick, pick, now, before)


def unchanged(now: Snapshot, before: Snapshot) -> Snapshot:
    """Return `now` with unknown values for new words, and for all memory bits that have changed.

    Constants and words that were in the same register before stay known.
    """
    return changed_by(
        lambda new, old: np.where((new > 1) & (new != old), UNKNOWN, new),
        lambda new, old: np.where(new == old, new, UNKNOWN),
        now,
        before,
    )


def without_moving_words(before: Snapshot, now: Snapshot) -> Snapshot:
    """Return `now` with unknown values for registers whose words have changed."""
    return with_arrays(
        now,
        [
            np.where((new != old) & ((new > 1) | (old > 1)), UNKNOWN, new)
            for old, new in zip(arrays(before), arrays(now), strict=True)
        ],
    )


def of_all(now: Snapshot, runs: int) -> Snapshot:
    """Return a state of one run that covers all runs; words become unknown."""

    def known(values: IntArray) -> IntArray:
        by_run = values.reshape(*values.shape[:-1], -1, runs)
        first = by_run[..., :1]
        alike = (by_run == first).all(axis=-1, keepdims=True) & (first <= 1)
        found = np.where(alike, first, UNKNOWN)
        return found.reshape(*values.shape[:-1], -1)

    return with_arrays(now, [known(values) for values in arrays(now)])
