"""Snapshots: the symbolic state of a whole fabric, for several runs at once.

The last axis of every register array combines instances and runs: the runs of instance 0, then the
runs of instance 1, and so on. The functions here copy, compare and merge states.

A state *covers* another one if each of its registers is either unknown or equal to the register of
the other. All that symbolic execution proves about a state holds for the states that it covers.

A *symbol* stands for a bit of a word that may have any value. An *unknown* bit is 0 or 1,
independently of all others. *Constants* are the bits 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..topology import BoolArray, IntArray
from .gate_program import ModuleState
from .symbols import FIRST_REGISTER_WORD, UNKNOWN, merge_bits, word_bits

__all__ = ["Snapshot", "register_arrays", "map_arrays", "forget_memories", "cover_runs",
           "select_runs", "repeat_runs", "has_same_registers", "copy_to_runs", "forget_changes",
           "with_register_arrays", "cover_both", "with_symbols", "forget_moving_words"]  # fmt: skip


@dataclass(frozen=True)
class Snapshot:
    """Symbolic values of the registers and memories of all instances.

    Parameters
    ----------
    states : dict of str to ModuleState
        State of the instances of each module.
    """

    states: dict[str, ModuleState]


def register_arrays(now: Snapshot) -> Iterator[IntArray]:
    """Yield, for each module with registers, their array in the state `now`."""
    yield from (state.flops for state in now.states.values() if len(state.flops))


def with_register_arrays(now: Snapshot, given: Sequence[IntArray]) -> Snapshot:
    """Return state `now` with other registers; `given` is in the order of `register_arrays`."""
    rest = iter(given)
    states = {
        module: ModuleState(next(rest), state.rams) if len(state.flops) else state
        for module, state in now.states.items()
    }
    return Snapshot(states)


def cover_both(a: Snapshot, b: Snapshot) -> Snapshot:
    """Return the least state that covers a and b: constants that both share, all else unknown."""
    return with_register_arrays(
        a, [merge_bits(x, y) for x, y in zip(register_arrays(a), register_arrays(b), strict=True)]
    )


def with_symbols(now: Snapshot) -> Snapshot:
    """Return state `now` with a symbol of its own in place of each unknown register bit.

    Why: a register that keeps an unknown value can then be distinguished from one that changes.
    """
    states, count = {}, FIRST_REGISTER_WORD
    for module, state in now.states.items():
        numbers = word_bits(count + np.arange(state.flops.size).reshape(state.flops.shape))
        flops = np.where(state.flops == UNKNOWN, numbers, state.flops).astype(np.int32)
        states[module] = ModuleState(flops, state.rams)
        count += flops.size
    return Snapshot(states)


def has_same_registers(a: Snapshot, b: Snapshot) -> bool:
    """Return True if the states `a` and `b` are equal in all registers."""
    return all((x == y).all() for x, y in zip(register_arrays(a), register_arrays(b), strict=True))


def forget_memories(now: Snapshot) -> Snapshot:
    """Make the contents of writable memories unknown in `now`, in place; returns this state."""
    for state in now.states.values():
        for words in state.rams:
            if words.flags.writeable:
                words[...] = UNKNOWN
    return now


def map_arrays(
    registers: Callable[..., IntArray],
    memories: Callable[..., IntArray],
    now: Snapshot,
    *others: Snapshot,
) -> Snapshot:
    """Return a state that is computed from the state `now` and `others`, array by array.

    Parameters
    ----------
    registers, memories : function of ndarrays
        Compute the registers of a module, or the words of a writable memory, from those of each
        state.
    """
    given = zip(*map(register_arrays, (now, *others)), strict=True)
    found = with_register_arrays(now, [registers(*values) for values in given])
    for module, state in found.states.items():
        rams = zip(state.rams, *(other.states[module].rams for other in others), strict=True)
        made = [memories(*words) if words[0].flags.writeable else words[0] for words in rams]
        found.states[module] = ModuleState(state.flops, made)
    return found


def copy_to_runs(rest: Snapshot, runs: int) -> Snapshot:
    """Return `runs` copies of the state of one run, with unknown words in writable memories.

    `rest` is the state to copy.
    """

    def unknown_words(words: IntArray) -> IntArray:
        return np.full((*words.shape[:2], words.shape[2] * runs), UNKNOWN, np.int32)

    return map_arrays(lambda values: np.repeat(values, runs, axis=-1), unknown_words, rest)


def repeat_runs(now: Snapshot, count: int) -> Snapshot:
    """Return state `now` with `count` copies of each run; copies of one run are adjacent."""
    repeat = partial(np.repeat, repeats=count, axis=-1)
    return map_arrays(repeat, repeat, now)


def select_runs(which: BoolArray, now: Snapshot, before: Snapshot, runs: int) -> Snapshot:
    """Return a state in which some runs are those of `now`, and all others those of `before`.

    Parameters
    ----------
    which : ndarray of bool, shape (runs,)
        True for the runs to take from `now`.
    now, before : Snapshot
        States with the same runs.
    runs : int
        Number of runs in each of the two states.
    """

    def pick_values(new: IntArray, old: IntArray) -> IntArray:
        shape = *new.shape[:-1], -1, runs
        return np.where(which, new.reshape(shape), old.reshape(shape)).reshape(new.shape)

    return map_arrays(pick_values, pick_values, now, before)


def forget_changes(now: Snapshot, before: Snapshot) -> Snapshot:
    """Return `now` without the words that have moved since the earlier state `before`.

    A register that holds another word than before becomes unknown, and so does every memory bit
    that has changed. Constants in registers stay known.
    """
    return map_arrays(
        lambda new, old: np.where((new > 1) & (new != old), UNKNOWN, new),
        lambda new, old: np.where(new == old, new, UNKNOWN),
        now,
        before,
    )


def forget_moving_words(before: Snapshot, now: Snapshot) -> Snapshot:
    """Return `now` with unknown values in registers that held another word in `before`.

    Registers that change from one constant to another keep the new constant.
    """
    return with_register_arrays(
        now,
        [
            np.where((new != old) & ((new > 1) | (old > 1)), UNKNOWN, new)
            for old, new in zip(register_arrays(before), register_arrays(now), strict=True)
        ],
    )


def cover_runs(now: Snapshot, runs: int) -> Snapshot:
    """Return the state of a single run that covers all runs; words become unknown.

    Parameters
    ----------
    runs : int
        Number of runs in `now`.
    """

    def common_values(values: IntArray) -> IntArray:
        by_run = values.reshape(*values.shape[:-1], -1, runs)
        first = by_run[..., :1]
        alike = (by_run == first).all(axis=-1, keepdims=True) & (first <= 1)
        found = np.where(alike, first, UNKNOWN)
        return found.reshape(*values.shape[:-1], -1)

    return with_register_arrays(now, [common_values(values) for values in register_arrays(now)])
