"""Timing: every latency of the hardware, in one place.

A row and a flit are presented by the sequencer in a *slot*, one a cycle. What follows from it:

====================================  =============================
cycle                                 what happens
====================================  =============================
slot                                  the sequencer's ROM shows the row
slot + `ADDRESS`                      memories are given addresses
slot + `SETTING`                      words are there, and settings in the select registers
slot + `LINK`                         the word is on the first link
slot + `LINK` + hops - 1              the word is at the in-port of its receiver, and is stored
====================================  =============================

An operator behind an in-port takes `COMBINE` cycles more. Skews are added. Cycles are counted like
the fabric's own counter: the edge that takes the start pulse is number 0, and something is there
in cycle c if it is there after edge c. The first slot is cycle `wait`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .values import Loop

__all__ = ["ADDRESS", "COMBINE", "LINK", "MEMORY_AGE", "SETTING", "SUM_AGE", "Timing"]

#: Cycles from a slot to the addresses that memories are given.
ADDRESS = 1

#: Cycles from a slot to the settings in the select registers, and to the words read.
SETTING = ADDRESS + 1

#: Cycles from a slot to the word on its first link.
LINK = SETTING + 1

#: Cycles that an operator behind an in-port takes.
COMBINE = 1

#: Cycles from the arrival of a word to its departure by way of a memory: it is written, read, sent.
MEMORY_AGE = 3

#: Cycles from the arrival of a word to the departure of the sum it went into, at the least.
SUM_AGE = COMBINE + 1

#: Cycles by which a write of the host may be late, for the first read comes as late.
EARLY_START = 1


@dataclass(frozen=True)
class Timing:
    """When what happens in a run.

    Parameters
    ----------
    loop : Loop
    write_delay : int
        Cycles by which a word that the host writes arrives later than it could.
    link_latency : int
        Cycles of a link; only 1 is built at present.
    """

    loop: Loop
    write_delay: int = 0
    link_latency: int = 1

    @property
    def wait(self) -> int:
        """Cycles to wait at the start, for what the host wrote last."""
        return max(self.write_delay - EARLY_START, 0)

    @property
    def cycles(self) -> int:
        """Clock edges from the start pulse to done."""
        return self.wait + self.loop.slots + self.loop.drain

    def arrival(self, step: int, port: int, hops: int, flit: int = 0) -> int:
        """The cycle in which a flit is at the in-port of its receiver.

        Parameters
        ----------
        step : int
            Of the schedule, from 0.
        port : int
            The out-port that the sender uses.
        hops : int
            Of its path.
        flit : int
            Of the message.
        """
        slot = int(self.loop.departure[step, port]) + flit * self.loop.stride
        return self.wait + slot + LINK + hops - 1

    def store_delay(self, hops: int, skew: int = 0) -> int:
        """Cycles from a slot to the write of its word after so many hops."""
        return LINK + hops - 1 + skew + (COMBINE if self.loop.combining else 0)

    def starts(self) -> np.ndarray:
        """The first slot of each row, for the first flit."""
        return np.concatenate([[0], np.cumsum(self.loop.duration)[:-1]])
