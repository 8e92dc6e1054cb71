"""What a periodic fabric is to do, cycle by cycle, given what its host does.

A log says what the host port was given and showed in every cycle. From what was given follow the
periods, the message that each node sends in each, and so every word and every count that should
have been shown: the executed program says what a period delivers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..program import Program
from ..rtl.fabric import Fabric

__all__ = ["HostCycle", "HostLog", "Period", "expected_periods", "received_words", "shown_words"]


class HostCycle(NamedTuple):
    """What the host port is given in a cycle."""

    run: bool = False
    write: bool = False
    node: int = 0
    address: int = 0
    word: int = 0


@dataclass
class HostLog:
    """What the host port was given, and what it showed in the same cycle."""

    given: list[HostCycle] = field(default_factory=list)
    words: list[int] = field(default_factory=list)
    period: list[int] = field(default_factory=list)
    busy: list[bool] = field(default_factory=list)
    done: list[bool] = field(default_factory=list)


class Period(NamedTuple):
    """A period: when it is counted, whether it is the last before a rest, and what nodes send."""

    counted: int
    last: bool
    messages: np.ndarray


def expected_periods(fabric: Fabric, given: list[HostCycle]) -> Iterator[Period]:
    """The periods that follow from what the host port is given.

    Parameters
    ----------
    fabric : Fabric
    given : list of HostCycle
        In every cycle from the reset on.
    """
    known = fabric.periods
    assert known is not None
    senders, cycle = _Senders(fabric, given), 0
    while cycle < len(given):
        if not given[cycle].run:
            cycle += 1
            continue
        # The edge that takes `run` ends this cycle.
        counted = cycle + 1 + known.first
        while counted <= len(given):
            last = not given[counted - known.run_lead].run
            yield Period(counted, last, senders.at(counted - known.commit_lead))
            if last:
                break
            counted += known.cycles
        cycle = counted


class _Senders:
    """What every node sends, and what the host has written since."""

    def __init__(self, fabric: Fabric, given: list[HostCycle]) -> None:
        shape = fabric.nodes, fabric.layout.send_words
        kind = np.uint64 if fabric.width <= 64 else object
        self._fabric, self._given, self._cycle = fabric, given, 0
        self._sent, self._written = np.zeros(shape, kind), np.zeros(shape, kind)
        self._committed = np.zeros(fabric.nodes, bool)

    def at(self, deadline: int) -> np.ndarray:
        """The messages of a period for which counts what the host did up to a cycle."""
        for at in self._given[self._cycle : deadline + 1]:
            if at.write and at.address >= self._fabric.layout.recv_base:
                self._committed[at.node] = True
            elif at.write:
                self._written[at.node, at.address - self._fabric.layout.send_base] = at.word
        self._cycle = max(self._cycle, deadline + 1)
        taken = self._committed.copy()
        self._sent[taken], self._written[taken] = self._written[taken], self._sent[taken]
        self._committed[:] = False
        sent: np.ndarray = self._sent.copy()
        return sent


def received_words(program: Program) -> np.ndarray:
    """Which words of the host a node receives from others: bool, shape (nodes, words)."""
    mode = program.mode
    part, chunk, _ = program.locate(np.arange(program.recv_words), program.flits)
    position = mode.groups.position[:, None]
    memory, base = mode.receive_map.locate(position, part[None, :], chunk[None, :])
    own = np.array([each.own for each in program.memories])
    shape = program.topology.nodes, program.recv_words
    received: np.ndarray = np.broadcast_to((base >= 0) & ~own[memory], shape)
    return received


def shown_words(fabric: Fabric, log: HostLog) -> Iterator[tuple[int, int, int, int]]:
    """What the host has read: the cycle in which it is shown, the node, which word, the word."""
    base, latency = fabric.layout.recv_base, fabric.read_latency
    for cycle, asked in enumerate(log.given[: len(log.given) - latency]):
        if not asked.write and asked.address >= base:
            shown = cycle + latency
            yield shown, asked.node, asked.address - base, log.words[shown]
