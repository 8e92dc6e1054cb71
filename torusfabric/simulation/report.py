"""Reports of simulations.

`simulate` returns a `SimulationReport`. The adapters of fabrics whose nodes have streams of their
own (*node ports*) define other reports, which extend `SimulationSummary`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..analysis.bounds import bound
from ..analysis.volume import cycle_limit
from ..program import CycleCost, Program
from ..rtl.fabric import Fabric
from ..rtl.inventory import Origins
from ..toolchain.quoting import facts_table

if TYPE_CHECKING:
    from .comparison import Comparison, WrongWord
    from .engines.base import Job

__all__ = ["JobChoice", "JobReport", "SimulationReport", "SimulationSummary", "job_choices",
           "program_facts", "mean_throughput", "throughput_bound"]  # fmt: skip


def job_choices(program: Program, job: Job) -> dict[str, Any]:
    """Return the choices of a run as a dict with the keys of `JobChoice`: mode, length and so on.

    Where the job has None, the dict has the value that the run takes by default.
    """
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
    """Choices of one run of a fabric.

    Parameters
    ----------
    collective : str
        Name of the collective of the mode.
    length : int
        Flits per message.
    root : int or None
        Root, as a position within each group; None for a collective without a root.
    operation : int or None
        Number of the operator that combines words; None for a collective that combines none.
    """

    mode: int
    collective: str
    length: int
    root: int | None
    operation: int | None


@dataclass(frozen=True)
class JobReport(JobChoice):
    """Choices and result of one run.

    Parameters
    ----------
    cycles : int
        Measured clock edges from the start pulse to done; -1 if they differ from the cycle counter
        of the fabric.
    predicted_cycles : int
        Clock edges that the program predicts for the run.
    words_checked, words_wrong : int
        Words compared in the run, and how many of them differ.
    """

    cycles: int
    predicted_cycles: int
    words_checked: int
    words_wrong: int

    @classmethod
    def from_run(cls, fabric: Fabric, job: Job, cycles: int, found: Comparison) -> JobReport:
        """Return the report of a run.

        Parameters
        ----------
        job : Job
            Mode, length, root and operator of the run.
        cycles : int
            Measured clock edges, as in `JobReport`.
        found : Comparison
            Result of the comparison of the received words.
        """
        return cls(
            **job_choices(fabric.program, job),
            cycles=cycles,
            predicted_cycles=fabric.cycles_of(job.length, mode=job.mode),
            words_checked=found.words_checked,
            words_wrong=found.words_wrong,
        )


@dataclass(frozen=True)
class SimulationSummary:
    """The simulated fabric, the engine, and the totals over all runs.

    Parameters
    ----------
    topology, collective, algorithm : str
        Names; several collectives and algorithms are separated by commas.
    engine : str
        Name of the engine.
    operator : str or None
        Names of the operators, separated by commas; None without a reduction.
    switching : str
        ``store-and-forward`` or ``circuit``.
    nodes, width, flits : int
        Number of nodes, bits per word, and flits in the longest message.
    rounds, bound : int
        Rounds of the schedule, and the lower bound on rounds; summed over the modes.
    cycles, predicted_cycles : int
        Clock edges from the start pulse to done, measured and planned, summed over the runs. If all
        runs of a `SimulationReport` have the same mode, length, root and operator, both numbers are
        those of one run; `cycles` is then -1 if two runs took different numbers of edges.
    words_checked, words_wrong : int
        Words compared, and how many of them differ; summed over all runs.
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


def program_facts(program: Program) -> dict[str, Any]:
    """Return the entries of a report that follow from the program, without a simulation.

    The result is a dict whose keys are parameters of `SimulationSummary`: ``topology``,
    ``collective``, ``algorithm``, ``operator``, ``switching``, ``nodes``, ``flits``, ``rounds`` and
    ``bound``.
    """
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
class SimulationReport(SimulationSummary):
    """Report of a simulation; see `SimulationSummary` for the inherited entries.

    Parameters
    ----------
    router_classes : int
        Number of different router modules.
    origins : Origins
        The way in which the hardware knows which node sent a word (for example by the address of
        the word), and the cost of this way compared with a tag on each word.
    cycle_costs : tuple of CycleCost
        Breakdown of the planned cycles of a run with the longest messages, one entry for each mode.
    repeat : int
        Number of times that the list of jobs was run.
    throughput, throughput_bound : float or None
        Words that a node receives per cycle of a run, on average (`mean_throughput`), and the upper
        bound of this number (`throughput_bound`). None for several modes.
    roots : tuple of int
        Roots that were used, if the fabric leaves a choice of root.
    jobs : tuple of JobReport
        Report of each run, if the fabric leaves a choice of length or operator.
    port_words, direct_words : int
        Words written and read through the host port, and words copied directly into and out of the
        memories of the simulated nodes.
    first_wrong : WrongWord or None
        The first word that differs.
    clocks : int
        Simulated clock cycles, with those in which messages are written and results are read.
    node_cycles_per_second : int
        Nodes times clock edges from start to done, per second of processor time.
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
        """Return the report as an HTML table for notebooks."""
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
        """Return the report as a dict that JSON can hold."""
        plain = asdict(self)
        del plain["cycle_costs"]
        plain |= {"origins": self.origins.to_json(), "passed": self.passed}
        constants = ("alpha", "hop_cycles", "flit_cycles", "constant_cycles", "constant_parts")
        costs = [
            {"cost_formula": str(cost), **{name: getattr(cost, name) for name in constants}}
            for cost in self.cycle_costs
        ]
        return plain | (costs[0] if len(costs) == 1 else {"mode_costs": costs})


def mean_throughput(fabric: Fabric, cycles: int, flits: int) -> float:
    """Return the words that a node receives from other nodes per cycle of a run, on average.

    The average is over all nodes, including those that receive nothing. In a reduction each word of
    the result counts as one received word.

    Parameters
    ----------
    cycles : int
        Clock cycles of all runs together.
    flits : int
        Flits per message, added up over all runs.
    """
    layout, nodes = fabric.program.layout, int(fabric.nodes)
    collective, receivers = layout.blocks.collective, layout.receiving_nodes
    if collective.reducing:
        messages = len(receivers) * int(fabric.layout.recv_words) // int(fabric.layout.flits)
    elif collective.from_each:
        blocks = layout.blocks
        groups = blocks.groups
        messages = int((groups.sizes[groups.group_of_node[receivers]] - 1).sum())
        if collective.local:
            messages = len(blocks.required_copies(np.arange(blocks.n_blocks))[0]) // blocks.chunks
    else:
        own = layout.blocks.groups.position_of_node[receivers]
        messages = int((own != collective.root).sum())
    return round(messages * flits / (nodes * max(cycles, 1)), 4)


def throughput_bound(fabric: Fabric) -> float:
    """Return an upper bound of `mean_throughput` for any hardware, with the longest messages.

    The bound is the smaller of two numbers: the received words per node divided by `cycle_limit`,
    the cycles that no run can go below; and the number of ports at which the schedule's model lets
    a node receive at once.
    """
    schedule, flits = fabric.program.schedule, int(fabric.flits)
    cycles = cycle_limit(schedule.topology, schedule.collective, flits)
    return min(mean_throughput(fabric, cycles, flits), float(schedule.ports))
