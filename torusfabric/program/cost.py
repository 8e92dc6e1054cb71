"""What the cycles of a run are made of."""

from dataclasses import dataclass

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
    constant_cycles : int
        Cycles once a run.

    Examples
    --------
    >>> print(CycleCost(rounds=4, hops=0, flits=12, constant_cycles=3))
    tau flits + constant = 1 * 12 + 3 = 15 cycles
    """

    rounds: int
    hops: int
    flits: int
    alpha: int = 0
    hop_cycles: int = 0
    flit_cycles: int = 1
    constant_cycles: int = 0

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
