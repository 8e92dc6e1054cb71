"""What the cycles of a run are made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["CycleCost"]


@dataclass(frozen=True)
class CycleCost:
    """What the cycles of a run are made of: the papers' cost formula with the hardware's constants.

    Parameters
    ----------
    rounds : int
        Rounds, or steps.
    hops : int
        The sum over the rounds of their longest path; 0 where the formula has no such term.
    flits : int
        The sum over the rounds of their longest message.
    alpha, hop_cycles, flit_cycles : int
        Cycles to start a round, for a hop, and for a flit.
    constant_parts : mapping of str to int
        Cycles once a run, by what they are spent on: ``start`` (the sequencer gets ready, or waits
        for the last word of the host), then as in `Drain`, and ``waits``: the cycles that rows
        take besides the rounds, in which sums wait for their last words; less than 0 where fewer
        steps are waited than the schedule allows for.

    Examples
    --------
    >>> cost = CycleCost(4, 0, 12, constant_parts={"sequencer": 1, "distribution": 2})
    >>> print(cost)
    tau flits + constant = 1 * 12 + 3 = 15 cycles
    >>> print(cost.constant_in_words)
    3 cycles: sequencer 1, distribution 2
    """

    rounds: int
    hops: int
    flits: int
    alpha: int = 0
    hop_cycles: int = 0
    flit_cycles: int = 1
    constant_parts: Mapping[str, int] = field(default_factory=dict)

    @property
    def constant_cycles(self) -> int:
        """Cycles once a run."""
        return sum(self.constant_parts.values())

    @property
    def constant_in_words(self) -> str:
        """The cycles once a run, and what they are spent on."""
        parts = ", ".join(
            f"{name} {cycles}" for name, cycles in self.constant_parts.items() if cycles
        )
        return f"{self.constant_cycles} cycles{': ' * bool(parts)}{parts}"

    @property
    def cycles(self) -> int:
        """The sum."""
        return (
            self.alpha * self.rounds
            + self.hop_cycles * self.hops
            + self.flit_cycles * self.flits
            + self.constant_cycles
        )

    def __str__(self) -> str:
        terms = [
            ("alpha", "rounds", self.alpha, self.rounds),
            ("delta", "hops", self.hop_cycles, self.hops),
            ("tau", "flits", self.flit_cycles, self.flits),
        ]
        terms = [term for term in terms if term[2]]
        names = [f"{name} {of}" for name, of, _, _ in terms]
        values = [f"{value} * {count}" for _, _, value, count in terms]
        if self.constant_cycles:
            names.append("constant")
            values.append(str(self.constant_cycles))
        return f"{' + '.join(names)} = {' + '.join(values)} = {self.cycles} cycles"
