"""States of a whole fabric, and what is known of several of them at once."""

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
    """The registers and memories of all instances.

    Parameters
    ----------
    states : dict of str to State
        By module.
    """

    states: dict[str, State]


def arrays(now: Snapshot) -> Iterator[IntArray]:
    """All registers, of modules that have any; runs, or instances and runs, are the last axis."""
    yield from (state.flops for state in now.states.values() if len(state.flops))


def with_arrays(now: Snapshot, given: Sequence[IntArray]) -> Snapshot:
    """A state with other registers."""
    rest = iter(given)
    states = {
        module: State(next(rest), state.rams) if len(state.flops) else state
        for module, state in now.states.items()
    }
    return Snapshot(states)


def with_either(a: Snapshot, b: Snapshot) -> Snapshot:
    """Return the state that is known if either is the case."""
    return with_arrays(a, [joined(x, y) for x, y in zip(arrays(a), arrays(b), strict=True)])


def with_numbers(now: Snapshot) -> Snapshot:
    """A state in which what is not known of the registers of modules stands for whatever it is."""
    states, count = {}, STANDS
    for module, state in now.states.items():
        numbers = word(count + np.arange(state.flops.size).reshape(state.flops.shape))
        flops = np.where(state.flops == UNKNOWN, numbers, state.flops).astype(np.int32)
        states[module] = State(flops, state.rams)
        count += flops.size
    return Snapshot(states)


def same(a: Snapshot, b: Snapshot) -> bool:
    """Return True if registers are the same."""
    return all((x == y).all() for x, y in zip(arrays(a), arrays(b), strict=True))


def forgetful(now: Snapshot) -> Snapshot:
    """A state with nothing known of memories that are written, in place."""
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
    """A state of which registers, and memories that are written, are made from those of some."""
    given = zip(*map(arrays, (now, *others)), strict=True)
    found = with_arrays(now, [registers(*values) for values in given])
    for module, state in found.states.items():
        rams = zip(state.rams, *(other.states[module].rams for other in others), strict=True)
        made = [memories(*words) if words[0].flags.writeable else words[0] for words in rams]
        found.states[module] = State(state.flops, made)
    return found


def spread(rest: Snapshot, runs: int) -> Snapshot:
    """A state of one run as that of many; nothing is known of memories."""

    def unknown(words: IntArray) -> IntArray:
        return np.full((*words.shape[:2], words.shape[2] * runs), UNKNOWN, np.int32)

    return changed_by(lambda values: np.repeat(values, runs, axis=-1), unknown, rest)


def repeated(now: Snapshot, count: int) -> Snapshot:
    """A state of some runs as that of so many copies of each, which follow one another."""
    repeat = partial(np.repeat, repeats=count, axis=-1)
    return changed_by(repeat, repeat, now)


def picked(which: BoolArray, now: Snapshot, before: Snapshot, runs: int) -> Snapshot:
    """Return the state now of some runs, and the state before of the others."""

    def pick(new: IntArray, old: IntArray) -> IntArray:
        shape = *new.shape[:-1], -1, runs
        return np.where(which, new.reshape(shape), old.reshape(shape)).reshape(new.shape)

    return changed_by(pick, pick, now, before)


def unchanged(now: Snapshot, before: Snapshot) -> Snapshot:
    """A state of which nothing is known but words that have been there before, and what is no word.

    Of memories only what has not changed is known.
    """
    return changed_by(
        lambda new, old: np.where((new > 1) & (new != old), UNKNOWN, new),
        lambda new, old: np.where(new == old, new, UNKNOWN),
        now,
        before,
    )


def without_moving_words(before: Snapshot, now: Snapshot) -> Snapshot:
    """Return a state with nothing known of registers whose words have changed."""
    return with_arrays(
        now,
        [
            np.where((new != old) & ((new > 1) | (old > 1)), UNKNOWN, new)
            for old, new in zip(arrays(before), arrays(now), strict=True)
        ],
    )


def of_all(now: Snapshot, runs: int) -> Snapshot:
    """Return the state of one run as far as it is that of any of many; words are unknown."""

    def known(values: IntArray) -> IntArray:
        by_run = values.reshape(*values.shape[:-1], -1, runs)
        first = by_run[..., :1]
        alike = (by_run == first).all(axis=-1, keepdims=True) & (first <= 1)
        found = np.where(alike, first, UNKNOWN)
        return found.reshape(*values.shape[:-1], -1)

    return with_arrays(now, [known(values) for values in arrays(now)])
