"""The result of a self-test, as the board sends it."""

import re
from dataclasses import dataclass

from .facts import Facts

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
    """

    result: str
    run: int
    cycles: int
    predicted: int
    node: int | None = None
    address: int | None = None
    expected: int | None = None
    got: int | None = None

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

    def describe(self, facts: Facts) -> str:
        """The verdict as one line for people.

        Parameters
        ----------
        facts : dict
            What the board says it is.
        """
        if self.passed:
            return f"run {self.run}: pass, {self.cycles} cycles as predicted"
        if self.address is None or self.got is None or self.expected is None:
            return f"run {self.run}: {self.cycles} cycles, not {self.predicted}"
        origin, flit = divmod(self.address - facts["recv_base"], facts["flits"])
        of = f" of node {origin}" if facts["recv_words"] > facts["flits"] else ""
        what = f"as sum {flit}" if "operator" in facts else f"for flit {flit}{of}"
        return (
            f"run {self.run}: node {self.node} holds {self.got:#x} {what} "
            f"(address {self.address}), not {self.expected:#x}"
        )
