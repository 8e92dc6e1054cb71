"""Forecast of a sample sort: the keys that each element receives, and the cycles of each phase.

The keys are sorted in NumPy in the same way as the elements do it. The cycles follow from the
cycles of the runs of the fabric, and from the pipeline of the elements.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from support.system import System

from torusfabric.adapters.streams.sections import choose_sections

from .element import Sizes, log2
from .sorter import STAGE_CYCLES

__all__ = ["Phase", "Shares", "divide_keys", "forecast_phases"]


class Shares(NamedTuple):
    """The division of the keys.

    Parameters
    ----------
    counts : ndarray of int, shape (nodes, nodes)
        The keys that each element (row) sends to each element (column).
    """

    counts: np.ndarray

    @property
    def totals(self) -> np.ndarray:
        """The keys that each element receives."""
        return self.counts.sum(axis=0)

    def packet_lengths(self, sizes: Sizes) -> list[int]:
        """Return the length of the packets of each all-to-all."""
        rest = int(self.counts.max()) - sizes.packet * np.arange(sizes.rounds)
        return np.clip(rest, 1, sizes.packet).tolist()


class Phase(NamedTuple):
    """A phase of the job: its name, and the cycles in which it begins and ends.

    Parameters
    ----------
    name : str
        The name.
    kind : str
        "sort" (work of an element), "send", "run" (of the fabric) or "receive".
    start, end : int
        The first cycle, and the cycle after the last.
    """

    name: str
    kind: str
    start: int
    end: int


def divide_keys(keys: np.ndarray, sizes: Sizes) -> Shares:
    """Return the division of keys, shape (nodes, keys of an element), that the elements find."""
    nodes, shape = sizes.nodes, tuple(sizes.sides)
    if sizes.deal:
        keys = keys.reshape(nodes, nodes, -1).swapaxes(0, 1).reshape(nodes, -1)
    words = np.sort(keys, axis=1).astype(np.uint64) << np.uint64(sizes.tag_bits)
    words |= np.arange(nodes, dtype=np.uint64)[:, None]
    step = sizes.keys // sizes.samples
    samples = words[:, step // 2 :: step]
    for axis in sizes.axes:
        groups = np.moveaxis(samples.reshape(*shape, -1), axis, -2)
        group = np.sort(groups.reshape(*groups.shape[:-2], -1), axis=-1)
        step = shape[axis]
        thinned = np.expand_dims(group[..., step // 2 :: step], -2)
        samples = np.moveaxis(np.broadcast_to(thinned, groups.shape), -2, axis).reshape(nodes, -1)
    splitters = group.reshape(-1, group.shape[-1])[0]
    splitters = splitters[len(splitters) // nodes - 1 :: len(splitters) // nodes][: nodes - 1]
    ends = np.array([np.searchsorted(splitters, row) for row in words])
    return Shares(np.array([np.bincount(row, minlength=nodes) for row in ends]))


class _Clock:
    """The current cycle of the job, and the phases until then."""

    def __init__(self, system: System, sizes: Sizes) -> None:
        self.now, self.phases = 0, list[Phase]()
        self.nodes, self.program = sizes.nodes, system.program
        self._run_delay, self._unload_delay = system.begin_cycles - 1, system.arrive_cycles
        self._buffer_delay = system.begin_cycles - 2 - self._unload_delay
        sections = choose_sections(system.program)
        self._buffers = 2 if sections.has_two_sections else 3

    def add(self, name: str, kind: str, cycles: int) -> None:
        """Add a phase that begins now."""
        self.phases.append(Phase(name, kind, self.now, self.now + cycles))
        self.now += cycles

    def add_run(self, name: str, mode: int, length: int, packets: int = 1) -> None:
        """Add sending of packets and a run, up to the cycle of the first word that arrives."""
        self.add(name, "send", packets * length + self._run_delay)
        self.add(name, "run", self.program.cycles(length, mode=mode) + self._unload_delay)

    def add_runs(self, name: str, mode: int, lengths: list[int]) -> list[int]:
        """Add all-to-alls that follow one another; return the first cycle of each reception."""
        loaded, ran, unloaded = [self.now], [0] * self._buffers, [0] * self._buffers
        for length in lengths:
            words, buffer = self.nodes * length, -self._buffers
            # Loading may begin when the run of the message that had the buffer is about to end.
            loaded.append(max(loaded[-1], ran[buffer] - 3) + words)
            has_room = unloaded[buffer] + self._buffer_delay
            start = max(loaded[-1] + self._run_delay, ran[-1], has_room)
            ran.append(start + self.program.cycles(length, mode=mode))
            received = max(ran[-1] + self._unload_delay, unloaded[-1])
            unloaded.append(received + words)
            spans = {"send": (loaded[-1] - words, loaded[-1]), "run": (start, ran[-1]),
                     "receive": (received, unloaded[-1])}  # fmt: skip
            self.phases += [Phase(f"{name}: {kind}", kind, *span) for kind, span in spans.items()]
        self.now = unloaded[-1]
        ends = unloaded[self._buffers :]
        return [end - self.nodes * length for end, length in zip(ends, lengths, strict=True)]


def forecast_phases(system: System, sizes: Sizes, shares: Shares) -> list[Phase]:
    """Return the phases of a job, of which the last ends with the job.

    A single cycle is between most phases.
    """
    clock, nodes, keys = _Clock(system, sizes), sizes.nodes, sizes.keys
    stages, modes = log2(sizes.capacity), range(len(sizes.axes) + 2)
    clock.now += 1
    if sizes.deal:
        clock.now += nodes + 2
        every = keys // nodes
        clock.add_run("deal", modes[-1], every, nodes)
        first = clock.now
        last = _last_cycle(first + np.arange(keys), first + keys + 1, stages)
        clock.add("local sort", "sort", last + 1 - first)
    else:
        clock.now += 1
        clock.add("local sort", "sort", _sorting(keys, 1, stages))
    for mode, axis in zip(modes, sizes.axes, strict=False):
        clock.now += 3
        name, words = f"samples along axis {axis}", sizes.sides[axis] * sizes.samples
        clock.add_run(name, mode, sizes.samples)
        clock.add(name, "sort", _sorting(words, sizes.samples, stages))
    clock.now += 2
    clock.add("partition", "sort", keys + nodes + 1)
    clock.add_run("largest part", modes[-2], 1)
    clock.now += 4
    lengths = shares.packet_lengths(sizes)
    received = clock.add_runs("exchange", modes[-1], lengths)
    ends = [_last_cycle(arrivals, clock.now + 1, stages) for arrivals in
            _arrivals(shares.counts, received, lengths, sizes)]  # fmt: skip
    clock.add("final sort", "sort", max(ends) + 4 - clock.now)
    return clock.phases


def _sorting(words: int, run: int, stages: int) -> int:
    """Return the cycles from the first word into a sorter to the last word out, without pauses.

    A stage that merges waits for the first word of its second run: all stages, for `words` - `run`
    words.
    """
    return STAGE_CYCLES * stages + 2 * words - run


def _arrivals(
    counts: np.ndarray, received: list[int], lengths: list[int], sizes: Sizes
) -> list[np.ndarray]:
    """Return for each element the cycles in which keys arrive."""
    found = []
    for column in counts.T:
        cycles = list[np.ndarray]()
        for number, (first, length) in enumerate(zip(received, lengths, strict=True)):
            keys = np.clip(column - number * sizes.packet, 0, length)
            there = np.arange(length) < keys[:, None]
            cycles.append(first + np.flatnonzero(there))
        found.append(np.concatenate(cycles))
    return found


def _last_cycle(cycles: np.ndarray, ended: int, stages: int) -> int:
    """Return the cycle in which the last word leaves the sorter.

    Parameters
    ----------
    cycles : ndarray of int
        The cycles in which words enter.
    ended : int
        The cycle from which on the sorter knows that no more words enter.
    stages : int
        Number of stages.
    """
    if not len(cycles):
        return ended
    known = ended
    for stage in range(stages):
        run, index, passes = 1 << stage, np.arange(len(cycles)), len(cycles) <= 1 << stage
        pairs, ready = index >> stage + 1, cycles + STAGE_CYCLES
        if passes:
            # Words that were there before wait until the stage lets words pass.
            ready = np.maximum(ready, known + 1)
        else:
            # A pair begins with the first word of its second run, or when none can follow.
            second = (pairs * 2 + 1) * run
            there = second < len(cycles)
            begins = np.where(there, ready[np.minimum(second, len(cycles) - 1)], ended + 1)
            # The last word of a pair leaves after all have arrived; others need not have arrived.
            last = np.append(pairs[1:] != pairs[:-1], True)
            ready = np.where(last, np.maximum(ready, begins), begins)
        # One word leaves in a cycle.
        cycles = np.maximum.accumulate(ready - index) + index
        ended = max(ended, int(cycles[-1]) + 1)
    return int(cycles[-1])
