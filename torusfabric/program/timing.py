"""Timing: every latency of the hardware, in one place.

A row and a flit are presented by the sequencer in a *slot*, one a cycle. What follows from it:

====================================  =============================
cycle                                 what happens
====================================  =============================
slot                                  the sequencer's ROM shows the row
slot + 1                              the sequencer gives addresses; `DISTRIBUTION` follows
slot + `ADDRESS`                      memories are given addresses
slot + `SETTING`                      words are there, and settings in the select registers
slot + `LINK`                         the word is on the first link
slot + `SETTING` + cycles of links    the word is at the in-port of its receiver, and is stored
====================================  =============================

An operator behind an in-port takes `COMBINE` cycles more, and those of its own hardware. Skews are
added. The components that cause these latencies say them as well, and building asserts that both
are equal.

Cycles are counted like the fabric's own counter: the edge with which a run begins is number 0, and
something is there in cycle c if it is there after edge c. The first slot is cycle `run_setup`.

A run begins with the edge that takes its start pulse, unless words are on their way that the host
wrote just before: then as soon as they will be there in time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..topology import IntArray
from .fields import Action, Loop, Order

__all__ = ["ADDRESS", "COMBINE", "CyclePiece", "DISTRIBUTION", "LINK", "MEMORY_AGE",
           "MODE_SETUP", "PASS", "ROUND_SETUP", "RUN_SETUP", "SETTING", "Timing", "WRITE",
           "round_pause", "starts"]  # fmt: skip

#: Cycles from the sequencer, or the host port, to the nodes: a register for each group of nodes,
#: and one in every node.
DISTRIBUTION = 2

#: Cycles from a slot to the addresses that memories are given.
ADDRESS = 1 + DISTRIBUTION

#: Cycles from a slot to the settings in the select registers, and to the words read.
SETTING = ADDRESS + 1

#: Cycles from a slot to the word on its first link.
LINK = SETTING + 1

#: Cycles that an operator behind an in-port takes, besides those of its own hardware.
COMBINE = 1

#: Cycles of the write of a memory.
STORE = 1

#: Cycles from the arrival of a word to its departure by way of a memory: it is written, read, sent.
MEMORY_AGE = STORE + LINK - ADDRESS

#: Cycles of the register of an out-port: from the arrival of a word to its departure as it came,
#: and the first of those of any link.
PASS = LINK - SETTING

#: Cycles of a round beyond its hops and flits: the write of the last flit.
ROUND_SETUP = STORE

#: Clock edges of a write of the host: into the host port, on the way, and into the memory.
WRITE = 1 + DISTRIBUTION + STORE

#: Cycles in which a sequencer finds out what follows from the length of a run.
RUN_SETUP = 1

#: Cycles more in which it finds out what follows from the mode.
MODE_SETUP = 1


class CyclePiece(NamedTuple):
    """Cycles of a run with blocks of n flits, from some n on: ``constant + per_flit * n``."""

    first: int
    constant: int
    per_flit: int


class _LastWord(NamedTuple):
    """The word for whose write a run waits.

    It is written as many cycles after its slot as delay and links say; slots follow that are left.
    """

    delay: int
    links: int
    left: int

    @property
    def drain(self) -> int:
        """Cycles from the last slot until it is stored, or 0 if that is before: slots are whole."""
        return max(self.delay + self.links - self.left, 0)


@dataclass(frozen=True)
class Timing:
    """When what happens in a run.

    Parameters
    ----------
    flits : int
        Of a block in this run.
    run_setup : int
        Cycles in which the sequencer gets ready for a run.

    Examples
    --------
    A word that is read in slot 0 is on its first link in cycle 5, after one hop.

    >>> import torusfabric as tf
    >>> timing = tf.compile(tf.plan(tf.Torus(3, 3), "allgather", algorithm="matching")).timing
    >>> timing.run_setup, timing.arrival(step=0, port=0, cycles=1)
    (0, 5)
    """

    loop: Loop
    flits: int
    run_setup: int = 0

    @property
    def cycles(self) -> int:
        """Clock edges from the begin of a run to done."""
        return self.run_setup + self.loop.slots(self.flits) + self.drain

    @property
    def drain(self) -> int:
        """Cycles from the last slot to `done`: until the last word is stored.

        It does not depend on the flits of a run: of those of all runs it is the most.
        """
        return self._last.drain

    @cached_property
    def _last(self) -> _LastWord:
        """The word that is stored last."""
        loop = self.loop
        lengths = {1, loop.flits}
        if loop.order is Order.ROW and loop.least > 1:
            # From these on, rows grow with their words.
            grows_from = -(-(loop.least - loop.pause) // np.maximum(loop.blocks, 1))
            lengths |= set(np.clip(grows_from, 1, loop.flits).tolist())
        left = np.min([loop.left(flits) for flits in lengths], axis=0)
        words = []
        for field in loop.of(Action.WRITE):
            tap = loop.values(Action.TAP, field.point.number)
            links = np.where(field.values >= 0, tap, -1).max(axis=1)
            there = np.flatnonzero(links >= 0)
            if len(there):
                row = there[(links - left)[there].argmax()]
                words.append(_LastWord(field.delay, int(links[row]), int(left[row])))
        return max(words, key=lambda word: word.drain)

    @property
    def drained(self) -> dict[str, int]:
        """The purposes on which these cycles are spent.

        From the sequencer's ROM to what it sends, in the registers through which control reaches
        the nodes, for the hops and the write of the last word, and for operators, by which a sum is
        written later. What of this happens during slots that follow is counted with these: in a
        round all of it. Where the longest path of the last round has not its longest message, some
        are waited less.
        """
        last, drain = self._last, self.drain
        spent = {"hop": last.links, "write": STORE, "operators": last.delay - SETTING}
        left = last.left
        for name in ("operators", "write", "hop"):
            meanwhile = min(spent[name], left)
            spent[name] -= meanwhile
            left -= meanwhile
        return {
            "sequencer": ADDRESS - DISTRIBUTION,
            "distribution": DISTRIBUTION,
            **spent,
            "waits": drain - ADDRESS - sum(spent.values()),
        }

    def pieces(self, first: int) -> list[CyclePiece]:
        """The cycles of runs as a function of the flits of a block, from so many flits on.

        Examples
        --------
        Sums by the step take no less than three cycles for each of these two steps.

        >>> import torusfabric as tf
        >>> program = tf.compile(tf.plan("2x3", "reduce-scatter"), max_flits=8)
        >>> [tuple(piece) for piece in program.timing.pieces(1)]
        [(1, 15, 0), (3, 9, 2)]
        """
        loop, constant = self.loop, self.run_setup + self.drain
        if loop.padded:
            return [CyclePiece(first, self.cycles, 0)]
        if loop.order is Order.FLIT:
            return [CyclePiece(first, constant, loop.rows)]
        # Nothing moves in some rows, where steps wait for others.
        moving = loop.blocks > 0
        constant += int(np.maximum(loop.least, loop.pause[~moving]).sum())
        blocks, pause = loop.blocks[moving], loop.pause[moving]
        grows_from = -(-(loop.least - pause) // blocks)
        pieces = []
        for start in sorted({first, *np.maximum(grows_from, first).tolist()}):
            grows = grows_from <= start
            resting = int(pause[grows].sum()) + loop.least * int((~grows).sum())
            pieces.append(CyclePiece(start, constant + resting, int(blocks[grows].sum())))
        return pieces

    def arrival(self, step: int, port: int, cycles: int, *, node: int = 0) -> int:
        """The cycle in which the first flit of a message is at the in-port of its receiver.

        Parameters
        ----------
        step : int
            Of the schedule, from 0.
        port : int
            The out-port that the sender uses.
        cycles : int
            Of all links on the way.
        node : int
            The sender.
        """
        row = self.loop.departure[step, port]
        slot = starts(self.loop.duration(self.flits))[row] + self.loop.departure_skew[node, port]
        return self.run_setup + int(slot) + SETTING + cycles


def starts(duration: IntArray) -> IntArray:
    """The first slot of each row, given the cycles of each.

    Examples
    --------
    >>> import numpy as np
    >>> starts(np.array([3, 5, 2]))
    array([0, 3, 8])
    """
    return np.cumsum(duration) - duration


def round_pause(links: IntArray) -> IntArray:
    """Cycles of rounds, with longest paths of so many cycles, besides those of their messages."""
    return ROUND_SETUP + links
