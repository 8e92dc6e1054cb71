"""Comparison of the words that a simulated fabric has sent with the expected words."""

from collections.abc import Sequence
from itertools import groupby, islice, zip_longest

from ....simulation.comparison import Comparison
from ..ports import STATUS_WORDS
from .beats import STATUS_SINK, StreamLog
from .messages import RunPackets

__all__ = ["StreamComparison"]


class StreamComparison:
    """The comparison of all received words of a simulation, run by run.

    Received words are assigned to runs by their order alone: a node must receive the packets of run
    0, then those of run 1, and so on.

    Attributes
    ----------
    missing : int
        Number of expected words that never arrived.
    ends : list of int
        For each run, the cycle in which the last of its words was accepted at any node.
    """

    def __init__(self, exchanges: Sequence[RunPackets], log: StreamLog) -> None:
        self._checked = [0] * len(exchanges)
        self._wrong: list[list[str]] = [[] for _ in exchanges]
        self.missing, self.ends = 0, [0] * len(exchanges)
        for node in range(len(exchanges[0].received)):
            coming = iter(log.arrivals.get(f"m_axis_{node}", ()))
            for run, exchange in enumerate(exchanges):
                for packet in exchange.received[node]:
                    count = len(packet.words)
                    came_of = zip_longest(packet.words, islice(coming, count))
                    for k, (word, got) in enumerate(came_of):
                        known = got.word if got and word is None else word or 0
                        right = known, k == count - 1, packet.number
                        self._checked[run] += word is not None
                        self.missing += got is None
                        self.ends[run] = max(self.ends[run], got.cycle if got else 0)
                        if got is None or got[:3] != right:
                            where = f"word {k} of node {packet.number} at node {node} in run {run}"
                            came = "missing" if got is None else _beat_text(got)
                            self._wrong[run].append(f"{where} is {came}, not {_beat_text(right)}")
            for extra in coming:
                text = f"node {node} must receive no more words, not {_beat_text(extra)}"
                self._wrong[-1].append(text)

    @property
    def run_comparisons(self) -> list[Comparison]:
        """For each run: number of compared words, number of wrong ones, and first difference."""
        return [
            Comparison(checked, len(wrong), wrong[0] if wrong else None)
            for checked, wrong in zip(self._checked, self._wrong, strict=True)
        ]

    def compare_statuses(
        self, log: StreamLog, errors: Sequence[int], cycles: Sequence[int]
    ) -> None:
        """Compare the status of each run (tag, error and cycles), if the fabric sends statuses.

        A difference counts as a wrong word of the run.

        `log` has the received statuses. `errors` and `cycles` have the expected error number, and
        the expected cycles, of each run.
        """
        words = [arrival.word for arrival in log.arrivals.get(STATUS_SINK, ())]
        for run, (error, count) in enumerate(zip(errors, cycles, strict=True)):
            got, right = words[len(STATUS_WORDS) * run :][: len(STATUS_WORDS)], [run, error, count]
            if words and got != right:
                self._wrong[run].append(f"status of run {run} is {got}, not {right}")

    def compare_errors(self, log: StreamLog, errors: Sequence[int]) -> None:
        """Compare the changes of the output `error` with those that the runs must cause.

        The first difference counts as a wrong word of run 0.

        `log` has the changes, and `errors` the expected error number of each run.
        """
        shown = [error for error, _ in groupby([0, *errors])][1:]
        for place, (got, right) in enumerate(zip_longest(log.errors, shown)):
            if got != right:
                self._wrong[0].append(f"error {place} that is shown is {got}, not {right}")
                return


def _beat_text(beat: tuple[int, ...]) -> str:
    """Return a beat as text for a message, such as ``0x1f of 3, the last``.

    This is the word 0x1f, the last word of a packet from node 3.
    """
    word, last, number, *_ = beat
    return f"{word:#x} of {number}" + ", the last" * bool(last)
