"""The result of a self-test, as the board sends it."""

import re
from dataclasses import dataclass

from .facts import Facts
from .job_facts import describe_job, job_facts
from .jobs import CHOICES

__all__ = ["Verdict"]


@dataclass(frozen=True)
class Verdict:
    """The result of the last test of a board.

    Parameters
    ----------
    result : str
        ``pass``; ``fail``: a word is wrong; ``late``: the fabric was not done when predicted.
    run : int
        Number of the run.
    cycles, predicted : int
    node, address, expected, got : int or None
        The first wrong word, and where it lies.
    mode, length, root, operation : int or None
        What the run chose, where the board leaves a choice.
    """

    result: str
    run: int
    cycles: int
    predicted: int
    node: int | None = None
    address: int | None = None
    expected: int | None = None
    got: int | None = None
    mode: int | None = None
    length: int | None = None
    root: int | None = None
    operation: int | None = None

    @classmethod
    def parse(cls, line: str) -> "Verdict | None":
        """The verdict in a line of the board, or None if it is none."""
        match = re.match(r"(pass|fail|late)((?: \w+=[0-9a-f]+)+)$", line)
        if match is None:
            return None
        pairs = (pair.split("=") for pair in match[2].split())
        try:
            return cls(match[1], **{name: int(value, 16) for name, value in pairs})
        except TypeError:
            return None

    @property
    def passed(self) -> bool:
        """Whether all words were right, and in time."""
        return self.result == "pass"

    @property
    def job(self) -> dict[str, int]:
        """What the run chose, by name."""
        chosen = {name: getattr(self, name) for name in CHOICES}
        return {name: value for name, value in chosen.items() if value is not None}

    def describe(self, facts: Facts) -> str:
        """The verdict as one line for people.

        Parameters
        ----------
        facts : dict
            What the board says it is.
        """
        facts = job_facts(facts, self.job)
        job = describe_job(facts)
        run = f"run {self.run} ({job})" if job else f"run {self.run}"
        if self.passed:
            return f"{run}: pass, {self.cycles} cycles as predicted"
        if self.address is None or self.got is None or self.expected is None:
            return f"{run}: {self.cycles} cycles, not {self.predicted}"
        origin, flit = divmod(self.address - facts["recv_base"], facts["stride"])
        of = f" of node {origin}" if facts["recv_words"] > facts["flits"] else ""
        what = f"as sum {flit}" if "operator" in facts else f"for flit {flit}{of}"
        return (
            f"{run}: node {self.node} holds {self.got:#x} {what} "
            f"(address {self.address}), not {self.expected:#x}"
        )
