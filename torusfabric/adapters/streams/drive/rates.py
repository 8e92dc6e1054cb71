"""The rate at which runs follow one another, and its limit by ports, links and buffers.

A *port* is a stream of a node: one for packets into the fabric, one for packets out of it. To
*load* a message is to send it into the fabric, to *unload* a run to accept the received words. A
*buffer* is the space of a node for one message that it sends, or for the words that it receives in
one run. A word is one flit here.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..bench.packets import Packet
from .messages import RunPackets
from .traffic import beat_count

__all__ = ["SustainedRate", "sustained_rate"]


@dataclass(frozen=True)
class SustainedRate:
    """The rate of consecutive runs, measured from the end of the first run to the end of the last.

    A run ends when its last word has been received. Nodes load, run and unload at the same time,
    with two or three buffers on each side.

    Parameters
    ----------
    runs : int
        Number of runs that ended in the measured time.
    words : int
        Number of words that all nodes received in these runs.
    cycles : int
        Cycles of the measured time.
    least_cycles : float
        Fewest cycles that these runs can take: streams, links and buffers are then never idle
        without need, and streams stall as often as on average.
    load_cycles, unload_cycles : float
        Cycles that the node with the most words needs to load, or to unload, these runs: one beat
        in each cycle in which its port does not stall.
    run_cycles : float
        The sum over these runs of the cycles from start to done.
    buffers : int
        Number of messages to send, and of runs with received words, for which a node has memory.
    width : int
        Bits of a word.
    """

    runs: int
    words: int
    cycles: int
    least_cycles: float
    load_cycles: float
    run_cycles: float
    unload_cycles: float
    buffers: int
    width: int

    @property
    def limited_by(self) -> str:
        """The slowest part of a run: ``load`` its messages, ``run``, or ``unload`` its words."""
        parts = {"run": self.run_cycles, "load": self.load_cycles, "unload": self.unload_cycles}
        return max(parts, key=lambda name: parts[name])

    @property
    def words_per_cycle(self) -> float:
        """Words that all nodes together received in a cycle."""
        return self.words / self.cycles

    @property
    def words_per_cycle_limit(self) -> float:
        """Largest number of words that all nodes together can receive in a cycle, in the long run.

        A measurement of a few runs can show a higher rate, because it begins at the end of the
        first run. A part of the work for the second run is done before, and not measured.
        """
        return self.words / self.least_cycles

    @property
    def share(self) -> float:
        """The measured rate, divided by the largest possible rate in the long run."""
        return self.least_cycles / self.cycles

    def to_json(self) -> dict[str, Any]:
        """Return the rate as plain data."""
        found = asdict(self)
        del found["width"]
        for name in ("words_per_cycle", "words_per_cycle_limit"):
            value = getattr(self, name)
            found |= {name: value, name.replace("words", "bytes"): value * self.width / 8}
        found |= {"share": self.share, "limited_by": self.limited_by}
        return {k: round(v, 3) if isinstance(v, float) else v for k, v in found.items()}


def sustained_rate(
    exchanges: Sequence[RunPackets],
    run_cycles: Sequence[int],
    ends: Sequence[int],
    *,
    stall: float,
    buffers: int,
    width: int,
    beat: int = 1,
) -> SustainedRate | None:
    """Return the rate at which runs followed one another in a simulation; None for a single run.

    Parameters
    ----------
    exchanges : sequence of RunPackets
        The packets of each run.
    run_cycles : sequence of int
        The cycles of each run, from start to done.
    ends : sequence of int
        The cycle in which the last word of each run was received.
    stall : float
        The probability in each cycle that a port stalls.
    buffers : int
        Number of messages to send, and of runs with received words, for which a node has memory.
    width : int
        Bits of a word.
    beat : int
        Words that a port moves in one cycle.
    """
    if len(exchanges) < 2:
        return None
    sent, received = (
        np.array([_count_beats(of_run, beat) for of_run in of_end]) / (1 - stall)
        for of_end in zip(*exchanges, strict=True)
    )
    least = _earliest_ends(sent, run_cycles, received, buffers)
    return SustainedRate(
        runs=len(exchanges) - 1,
        words=sum(sum(_count_beats(exchange.received, 1)) for exchange in exchanges[1:]),
        cycles=ends[-1] - ends[0],
        least_cycles=least[-1] - least[0],
        load_cycles=float(sent[1:].sum(axis=0).max()),
        run_cycles=float(sum(run_cycles[1:])),
        unload_cycles=float(received[1:].sum(axis=0).max()),
        buffers=buffers,
        width=width,
    )


def _count_beats(packets: list[list[Packet]], beat: int) -> list[int]:
    """Return, for each node, the number of beats of its packets; a beat has up to `beat` words.

    `packets` has the packets of each node. A beat does not cross the end of a packet.
    """
    return [sum(beat_count(packet, beat) for packet in of_node) for of_node in packets]


def _earliest_ends(
    sent: np.ndarray, run_cycles: Sequence[int], received: np.ndarray, buffers: int
) -> list[float]:
    """Return, for each run, the earliest cycle in which its last word can be received.

    Let B be the number of buffers. A node has room for the message of run r as soon as run r - B is
    done. It has room for the received words of run r as soon as those of run r - B have been
    unloaded. A node without a message needs no room.

    Parameters
    ----------
    sent, received : ndarray of float, shape (runs, nodes)
        Cycles that the port of each node needs to load, and to unload, each run.
    run_cycles : sequence of int
        Cycles of each run, from start to done.
    buffers : int
        The number B of buffers of a node, for messages and for received words.

    Examples
    --------
    Where runs take longest, they follow one another without a pause.

    >>> one = np.ones((4, 3))
    >>> _earliest_ends(one, [5, 5, 5, 5], one, 2)
    [7.0, 12.0, 17.0, 22.0]

    With three buffers a long run begins before the words of the two runs before it are received.

    >>> [_earliest_ends(one, [1, 1, 20, 1], 6 * one, buffers) for buffers in (2, 3)]
    [[8.0, 14.0, 34.0, 40.0], [8.0, 14.0, 29.0, 35.0]]
    """
    nodes = range(sent.shape[1])
    loaded, unloaded = np.zeros(len(nodes)), np.zeros(len(nodes))
    held: list[list[float]] = [[0.0] * buffers for _ in nodes]
    brought: list[list[float]] = [[0.0] * buffers for _ in nodes]
    done, ends = 0.0, []
    for run, cycles in enumerate(run_cycles):
        senders, receivers = np.flatnonzero(sent[run]), np.flatnonzero(received[run])
        for node in senders:
            loaded[node] = max(loaded[node], held[node][-buffers]) + sent[run, node]
        room = (brought[node][-buffers] for node in receivers)
        done = max(done, *loaded[senders], *room) + cycles
        for node in senders:
            held[node].append(done)
        for node in receivers:
            unloaded[node] = max(unloaded[node], done) + received[run, node]
            brought[node].append(unloaded[node])
        ends.append(float(unloaded[receivers].max()))
    return ends
