"""All latencies of the hardware in one module, and the cycles of a run that follow from them.

The sequencer presents a row and a flit in each *slot*, one slot a cycle. Their effects follow at
fixed distances:

====================================  =============================
cycle                                 event
====================================  =============================
slot                                  the sequencer's ROM shows the row
slot + 1                              the sequencer outputs addresses; `DISTRIBUTION` follows
slot + `ADDRESS`                      memories receive addresses
slot + `SETTING`                      words are read, and select registers hold the settings
slot + `LINK`                         the word is on its first link
slot + `SETTING` + cycles of links    the word is at the in-port of its receiver, and is stored
====================================  =============================

An operator behind an in-port adds `COMBINE` cycles and those of its own hardware. Skews of a field
are added as well. The hardware components declare their latencies too, and building a fabric
asserts that they equal the constants here.

Cycles are counted like the `cycles` port of the fabric counts: the edge with which a run begins has
number 0, and cycle c follows edge c. The first slot is cycle `run_setup`.

In this module, the *loop* of a program is its rows (`torusfabric.program.fields.Loop`), and a
*skew* is a number of cycles by which an action comes later.

A run begins with the edge that takes the start pulse. The exception is a start right after writes
of the host: the run then begins as soon as these words will be in the memories in time.
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
           "round_pause_cycles", "row_start_slots"]  # fmt: skip

#: Cycles from the sequencer, or the host port, to the nodes: one register for each group of nodes
#: and one register in every node.
DISTRIBUTION = 2

#: Cycles from a slot to the addresses at the memories.
ADDRESS = 1 + DISTRIBUTION

#: Cycles from a slot to the settings in the select registers, and to the words that are read.
SETTING = ADDRESS + 1

#: Cycles from a slot to the word on its first link.
LINK = SETTING + 1

#: Cycles of an operator behind an in-port in addition to those of its own hardware.
COMBINE = 1

#: Cycles for writing a word into a memory.
STORE = 1

#: Cycles from the arrival of a word to its departure if it is written to a memory and read again.
MEMORY_AGE = STORE + LINK - ADDRESS

#: Cycles from the arrival of a word to its departure if it is passed on at once: the register of
#: the out-port, which is also the first cycle of every link.
PASS = LINK - SETTING

#: Cycles of a round beyond its hops and flits, for writing the last flit.
ROUND_SETUP = STORE

#: Clock edges of a write by the host: into the host port, to the node, and into the memory.
WRITE = 1 + DISTRIBUTION + STORE

#: Cycles in which the sequencer computes the counts that depend on the length of a run.
RUN_SETUP = 1

#: Additional cycles in which the sequencer looks up the mode of a run.
MODE_SETUP = 1


class CyclePiece(NamedTuple):
    """A piece of the function that gives the cycles of a run for blocks of n flits.

    From n = `first` up to the `first` of the next piece, a run takes ``constant + per_flit * n``
    cycles. With the pieces (1, 15, 0) and (3, 9, 2), it takes 15 cycles for n = 1 and n = 2, and
    ``9 + 2 * n`` cycles for larger blocks.
    """

    first: int
    constant: int
    per_flit: int


class _LastWord(NamedTuple):
    """The word that is stored last in a run; it decides in which cycle the run ends.

    A *slot* is a cycle in which the sequencer presents one row and one flit. Words move some cycles
    after their slot.

    Parameters
    ----------
    delay : int
        Cycles from the word's slot to its write, without links.
    links : int
        Cycles of the links that the word passes.
    left : int
        Number of slots of the run that follow the word's slot.
    """

    delay: int
    links: int
    left: int

    @property
    def drain_cycles(self) -> int:
        """Cycles from the last row that the sequencer presents to the write of the word.

        0 if the write comes earlier.
        """
        return max(self.delay + self.links - self.left, 0)


@dataclass(frozen=True)
class Timing:
    """The cycles of the events in a run.

    A *slot* is a cycle in which the sequencer presents one row and one flit. Words move some cycles
    after their slot.

    Parameters
    ----------
    loop : Loop
        Rows of the program.
    flits : int
        Flits of a block in this run.
    run_setup : int
        Cycles in which the sequencer prepares a run, before the first slot.

    Examples
    --------
    A word that is read in slot 0 is on its first link in cycle 5, after one hop.

    >>> import torusfabric as tf
    >>> timing = tf.compile(tf.plan(tf.Torus(3, 3), "allgather", algorithm="matching")).timing
    >>> timing.run_setup, timing.arrival_cycle(step=0, port=0, cycles=1)
    (0, 5)
    """

    loop: Loop
    flits: int
    run_setup: int = 0

    @property
    def cycles(self) -> int:
        """Clock edges from the beginning of a run to `done`."""
        return self.run_setup + self.loop.n_slots(self.flits) + self.drain_cycles

    @property
    def drain_cycles(self) -> int:
        """Cycles from the last slot to the end of a run.

        In the last slot the sequencer presents the last row and flit. In the last cycle of the run
        the last word is stored.

        `done` rises at the edge that ends this last cycle. The value is the maximum over all block
        lengths, so the distance from the last slot to `done` is the same for every length.
        """
        return self._last_word.drain_cycles

    def outlasts(self, delay: int) -> bool:
        """Return True if a signal can come after the run has stored its last word.

        The signal comes for every word, a fixed number of cycles after the *slot* of the word, the
        cycle in which the sequencer presents its row and flit.

        Parameters
        ----------
        delay : int
            Cycles from the slot of a word to the signal for it.

        Examples
        --------
        Some words of round 0 pass three links, and no word of round 1 passes more than two. The
        signal for words of three links follows those of round 1 too.

        >>> import torusfabric as tf
        >>> program = tf.compile(tf.plan("4x4", "broadcast", algorithm="max-flow"))
        >>> [program.timing.outlasts(SETTING + links) for links in (1, 2, 3)]
        [False, False, True]
        """
        return delay - int(self._slots_left.min()) > self.drain_cycles

    @cached_property
    def _slots_left(self) -> IntArray:
        """For each row, the slots (cycles of rows) of a run that follow the last word of the row.

        The value is the least one for all lengths of blocks.
        """
        loop = self.loop
        lengths = {1, loop.flits}
        if loop.order is Order.ROW and loop.least > 1:
            # The block lengths from which on each row exceeds its least number of cycles.
            grows_from = -(-(loop.least - loop.pause) // np.maximum(loop.blocks, 1))
            lengths |= set(np.clip(grows_from, 1, loop.flits).tolist())
        left: IntArray = np.min([loop.slots_after_words(flits) for flits in lengths], axis=0)
        return left

    @cached_property
    def _last_word(self) -> _LastWord:
        """The word whose write ends the run: it comes the most cycles after the last slot.

        All lengths of blocks are considered, so the word may be that of another length than
        `flits`.
        """
        loop, left = self.loop, self._slots_left
        words = []
        for field in loop.fields_of_action(Action.WRITE):
            tap = loop.point_values(Action.TAP, field.point.number)
            links = np.where(field.values >= 0, tap, -1).max(axis=1)
            there = np.flatnonzero(links >= 0)
            if len(there):
                row = there[(links - left)[there].argmax()]
                words.append(_LastWord(field.delay, int(links[row]), int(left[row])))
        return max(words, key=lambda word: word.drain_cycles)

    @property
    def drain_cycles_by_purpose(self) -> dict[str, int]:
        """The cycles after the last slot (`drain_cycles`), divided by purpose.

        - ``sequencer``: from the sequencer's ROM to its outputs,
        - ``distribution``: the registers between the sequencer and the nodes,
        - ``hop``: the links of the last word,
        - ``write``: the write of the last word,
        - ``operators``: the operators that the last word passes,
        - ``waits``: a correction, 0 or negative.

        The word that is stored last may have been sent before the last slot (a cycle in which the
        sequencer presents a row). Its cycles until the last slot are then not part of the drain,
        and are subtracted: first from ``operators``, then from ``write``, then from ``hop``. If
        they are more than all three, the rest is subtracted in ``waits``.
        """
        last, drain = self._last_word, self.drain_cycles
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

    def cycle_pieces(self, first: int) -> list[CyclePiece]:
        """Return the cycles of runs as a piecewise linear function of n, the flits of a block.

        Parameters
        ----------
        first : int
            Block length with which the first piece begins.

        Examples
        --------
        The two steps of this reduction take at least three cycles each. So a run takes 15 cycles
        for n = 1 and 2, and 9 + 2 n cycles from n = 3 on.

        >>> import torusfabric as tf
        >>> program = tf.compile(tf.plan("2x3", "reduce-scatter"), max_flits=8)
        >>> [tuple(piece) for piece in program.timing.cycle_pieces(1)]
        [(1, 15, 0), (3, 9, 2)]
        """
        loop, constant = self.loop, self.run_setup + self.drain_cycles
        if loop.padded:
            return [CyclePiece(first, self.cycles, 0)]
        if loop.order is Order.FLIT:
            return [CyclePiece(first, constant, loop.n_rows)]
        # Rows without blocks are pauses, in which a step waits for earlier steps.
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

    def arrival_cycle(self, step: int, port: int, cycles: int, *, node: int = 0) -> int:
        """Return the cycle in which the first flit of a message is at the in-port of its receiver.

        Parameters
        ----------
        step : int
            Step of the schedule, from 0.
        port : int
            Out-port of the sender.
        cycles : int
            Sum of the cycles of all links on the path.
        node : int
            Sender.
        """
        row = self.loop.departure[step, port]
        slot = (
            row_start_slots(self.loop.row_cycles(self.flits))[row]
            + self.loop.departure_skew[node, port]
        )
        return self.run_setup + int(slot) + SETTING + cycles


def row_start_slots(duration: IntArray) -> IntArray:
    """Return the number of the cycle in which each row begins, if rows follow without gaps.

    Parameters
    ----------
    duration : ndarray of int, shape (rows,)
        Cycles of each row.

    Examples
    --------
    >>> import numpy as np
    >>> row_start_slots(np.array([3, 5, 2]))
    array([0, 3, 8])
    """
    return np.cumsum(duration) - duration


def round_pause_cycles(links: IntArray) -> IntArray:
    """Return the cycles of each round beyond one for each flit of its longest message.

    In these cycles the last flit passes the links of the longest path, and is stored.

    Parameters
    ----------
    links : ndarray of int, shape (rounds,)
        Cycles of the links on the longest path of each round.
    """
    return ROUND_SETUP + links
