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
    """Symbolic values of the registers and memories of all instances, for several runs at once.

    Parameters
    ----------
    states : dict of str to ModuleState
        Module -> state of all of its instances.
    """

    states: dict[str, ModuleState]


def register_arrays(now: Snapshot) -> Iterator[IntArray]:
    """Yield the array of registers of each module that has registers, in the state `now`."""
    yield from (state.flops for state in now.states.values() if len(state.flops))


def with_register_arrays(now: Snapshot, given: Sequence[IntArray]) -> Snapshot:
    """Return state `now` with the registers replaced by the arrays in `given`.

    There is one array for each module with registers, in the order of `register_arrays`.
    """
    rest = iter(given)
    states = {
        module: ModuleState(next(rest), state.rams) if len(state.flops) else state
        for module, state in now.states.items()
    }
    return Snapshot(states)


def cover_both(a: Snapshot, b: Snapshot) -> Snapshot:
    """Return a state that covers `a` and `b`, with as few unknown registers as possible.

    State x covers state y if each register of x is unknown or equal to the same register of y. A
    register bit that is the same constant in `a` and `b` keeps this constant; all other register
    bits are unknown. Memories are those of `a`.
    """
    return with_register_arrays(
        a, [merge_bits(x, y) for x, y in zip(register_arrays(a), register_arrays(b), strict=True)]
    )


def with_symbols(now: Snapshot) -> Snapshot:
    """Return state `now` in which each unknown register bit is a symbol of its own.

    A symbol stands for one bit that may have any value. Why: a register that keeps an unknown value
    can then be distinguished from one that changes.
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
    """Return a state whose arrays are computed from the same arrays of several states.

    Parameters
    ----------
    registers, memories : function of ndarrays
        Return the registers of a module, or the words of a writable memory, given the arrays of
        each state.
    now, *others : Snapshot
        The states. ROMs are taken from `now`.
    """
    given = zip(*map(register_arrays, (now, *others)), strict=True)
    found = with_register_arrays(now, [registers(*values) for values in given])
    for module, state in found.states.items():
        rams = zip(state.rams, *(other.states[module].rams for other in others), strict=True)
        made = [memories(*words) if words[0].flags.writeable else words[0] for words in rams]
        found.states[module] = ModuleState(state.flops, made)
    return found


def copy_to_runs(rest: Snapshot, runs: int) -> Snapshot:
    """Return a state of `runs` runs, each with the registers of `rest`, a state of one run.

    The words in writable memories are unknown.
    """

    def unknown_words(words: IntArray) -> IntArray:
        return np.full((*words.shape[:2], words.shape[2] * runs), UNKNOWN, np.int32)

    return map_arrays(lambda values: np.repeat(values, runs, axis=-1), unknown_words, rest)


def repeat_runs(now: Snapshot, count: int) -> Snapshot:
    """Return state `now` with `count` copies of each run, next to one another.

    With count 2, runs 0 and 1 become runs 0, 0, 1, 1.
    """
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
    """Return state `now` without the words that have moved since the earlier state `before`.

    A register bit that has a symbol (a bit of a word) and differs from `before` becomes unknown. A
    memory bit that differs from `before` becomes unknown in any case. Registers keep constants.
    """
    return map_arrays(
        lambda new, old: np.where((new > 1) & (new != old), UNKNOWN, new),
        lambda new, old: np.where(new == old, new, UNKNOWN),
        now,
        before,
    )


def forget_moving_words(before: Snapshot, now: Snapshot) -> Snapshot:
    """Return state `now` in which register bits with moving words are unknown.

    A register bit becomes unknown if it differs from the earlier state `before`, and is a symbol (a
    bit of a word) in one of the two states. A register that changes from one constant to another
    keeps the new constant.
    """
    return with_register_arrays(
        now,
        [
            np.where((new != old) & ((new > 1) | (old > 1)), UNKNOWN, new)
            for old, new in zip(register_arrays(before), register_arrays(now), strict=True)
        ],
    )


def cover_runs(now: Snapshot, runs: int) -> Snapshot:
    """Return the state of a single run that covers all runs of `now`.

    A state covers a run if each of its registers is unknown or equal to the same register of the
    run. A register bit that is the same constant in all runs keeps this constant; all other
    register bits are unknown, even if they hold bits of words.

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
