"""The reports of simulations."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analysis.bounds import bound
from ..analysis.volume import limit
from ..program import CycleCost, Program
from ..rtl.fabric import Fabric
from ..rtl.inventory import Origins
from ..toolchain.quoting import facts_table

if TYPE_CHECKING:
    from .comparison import Comparison, WrongWord
    from .engines.base import Job

__all__ = [
    "JobChoice",
    "JobReport",
    "SimulationReport",
    "Subject",
    "choice_of",
    "facts_of",
    "throughput",
    "throughput_bound",
]


def choice_of(program: Program, job: Job) -> dict[str, Any]:
    """Return the entries of a report about the choices of a run."""
    number = job.mode or 0
    mode = program.modes[number]
    collective = mode.schedule.collective
    return {
        "mode": number,
        "collective": program.name_of(mode),
        "length": program.length_of(job.length),
        "root": collective.root if job.root is None else job.root,
        "operation": (job.operation or 0) if mode.operators else None,
    }


@dataclass(frozen=True)
class JobChoice:
    """The choices of a run, where a fabric leaves any.

    Parameters
    ----------
    length : int
        Flits of a message.
    operation : int or None
        The number of the operator that combines words.
    """

    mode: int
    collective: str
    length: int
    root: int | None
    operation: int | None


@dataclass(frozen=True)
class JobReport(JobChoice):
    """The result of one run of a fabric that leaves a choice."""

    cycles: int
    predicted_cycles: int
    words_checked: int
    words_wrong: int

    @classmethod
    def of(cls, fabric: Fabric, job: Job, cycles: int, found: Comparison) -> JobReport:
        """Return the report of a run, given its cycles and the comparison of its words."""
        return cls(
            **choice_of(fabric.program, job),
            cycles=cycles,
            predicted_cycles=fabric.cycles_of(job.length, mode=job.mode),
            words_checked=found.words_checked,
            words_wrong=found.words_wrong,
        )


@dataclass(frozen=True)
class Subject:
    """The subject of a simulation, its engine, and its result.

    Parameters
    ----------
    operator : str or None
        How a reduction combines words; of several operators, their names.
    switching : str
        Whether the rounds are steps of one hop, or hold circuits.
    rounds, bound : int
        Rounds of the schedule, and a number that no schedule goes below; of several collectives,
        their sums.
    cycles, predicted_cycles : int
        Clock edges from the start pulse to done: measured and planned; of several runs, their sums.
    words_checked, words_wrong : int
        Of all runs.
    seconds : float
        Wall time.
    """

    topology: str
    collective: str
    algorithm: str
    engine: str
    operator: str | None
    switching: str
    nodes: int
    width: int
    flits: int
    rounds: int
    bound: int
    cycles: int
    predicted_cycles: int
    words_checked: int
    words_wrong: int
    seconds: float


def facts_of(program: Program) -> dict[str, Any]:
    """Return the entries of a `Subject` that are known before a run, but for the width."""
    schedules = [mode.schedule for mode in program.modes]
    return {
        "topology": str(program.topology),
        "collective": ",".join(map(program.name_of, program.modes)),
        "algorithm": ",".join(schedule.algorithm for schedule in schedules),
        "operator": ", ".join(map(str, program.operators)) or None,
        "switching": ",".join(dict.fromkeys(schedule.switching for schedule in schedules)),
        "nodes": program.topology.nodes,
        "flits": program.flits,
        "rounds": sum(schedule.round_count for schedule in schedules),
        "bound": sum(map(bound, schedules)),
    }


@dataclass(frozen=True)
class SimulationReport(Subject):
    """The reports of simulations.

    Parameters
    ----------
    origins : Origins
        How origins are known, and what that costs.
    cycle_costs : tuple of CycleCost
        What the planned cycles of a run of the longest messages are made of, for each collective.
    roots : tuple of int
        The roots that were tried, where the fabric lets it be chosen.
    jobs : tuple of JobReport
        Each run, where the fabric lets the length or the operator be chosen.
    repeat : int
        Collectives run one after another (for each root).
    throughput, throughput_bound : float or None
        Words that a node receives in a cycle of a run, and could receive at most; None of several
        collectives.
    port_words, direct_words : int
        Words that were written and read through the host port, and words that were put into the
        memories of nodes and taken from there.
    clocks : int
        Clock cycles simulated, loading and reading included.
    node_cycles_per_second : int
        From start to done.
    """

    router_classes: int
    origins: Origins
    cycle_costs: tuple[CycleCost, ...]
    repeat: int
    throughput: float | None
    throughput_bound: float | None
    roots: tuple[int, ...]
    jobs: tuple[JobReport, ...]
    port_words: int
    direct_words: int
    first_wrong: WrongWord | None
    clocks: int
    node_cycles_per_second: int

    @property
    def passed(self) -> bool:
        """True if all words are right and the cycles are those predicted."""
        exact = all(job.cycles == job.predicted_cycles for job in self.jobs)
        return not self.words_wrong and self.cycles == self.predicted_cycles and exact

    def _repr_html_(self) -> str:
        """Return the HTML for a notebook."""
        return facts_table(
            f"{self.topology} {self.collective}, {self.algorithm}: "
            f"{'passed' if self.passed else 'failed'}",
            {
                "engine": self.engine,
                "words wrong": f"{self.words_wrong} of {self.words_checked:,}",
                **({"first wrong": self.first_wrong} if self.first_wrong else {}),
                "cycles": f"{self.cycles}, predicted {self.predicted_cycles}",
                "rounds": f"{self.rounds}, lower bound {self.bound}",
                "runs": len(self.jobs) or self.repeat,
                "seconds": self.seconds,
            },
        )

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        plain = asdict(self)
        del plain["cycle_costs"]
        plain |= {"origins": self.origins.to_json(), "passed": self.passed}
        constants = ("alpha", "hop_cycles", "flit_cycles", "constant_cycles", "constant_parts")
        costs = [
            {"cost_formula": str(cost), **{name: getattr(cost, name) for name in constants}}
            for cost in self.cycle_costs
        ]
        return plain | (costs[0] if len(costs) == 1 else {"mode_costs": costs})


def throughput(fabric: Fabric, cycles: int, flits: int) -> float:
    """Words from elsewhere that a node receives in a cycle, over all nodes and so many cycles.

    Of a reduction, the results.

    Parameters
    ----------
    cycles, flits : int
        Those of the runs, and of the messages of each, added up.
    """
    layout, nodes = fabric.program.layout, int(fabric.nodes)
    collective, receivers = layout.blocks.collective, layout.receivers
    if collective.reducing:
        messages = len(receivers) * int(fabric.layout.recv_words) // int(fabric.layout.flits)
    elif collective.from_each:
        blocks = layout.blocks
        messages = len(receivers) * (blocks.nodes - 1)
        if collective.local:
            messages = len(blocks.final(np.arange(blocks.count))[0]) // blocks.chunks
    else:
        own = layout.blocks.groups.position[receivers]
        messages = int((own != collective.root).sum())
    return round(messages * flits / (nodes * max(cycles, 1)), 4)


def throughput_bound(fabric: Fabric) -> float:
    """The most that any hardware could reach, in the fewest cycles that messages take (`limit`).

    A node receives no more words in a cycle than the ports at which the model lets it receive.
    """
    schedule, flits = fabric.program.schedule, int(fabric.flits)
    cycles = limit(schedule.topology, schedule.collective, flits)
    return min(throughput(fabric, cycles, flits), float(schedule.ports))
