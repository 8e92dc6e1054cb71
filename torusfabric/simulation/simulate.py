"""Simulation of a whole fabric with random data, every word compared."""

import time
from dataclasses import asdict, dataclass

import numpy as np

from ..analysis.bounds import bound
from ..collective import expected_words, random_messages
from ..errors import InputError
from ..program import CycleCost, RootedProgram
from ..rtl.origins import Origins
from .engines import AmaranthEngine
from .throughput import throughput, throughput_bound

__all__ = ["Fault", "Report", "simulate"]


@dataclass(frozen=True)
class Fault:
    """A word that is not what it should be; the origin is None for what comes from all nodes."""

    node: int
    origin: int | None
    flit: int
    expected: int
    got: int

    def __str__(self):
        if self.origin is None:
            return (
                f"node {self.node} holds {self.got:#x} as sum {self.flit}, not {self.expected:#x}"
            )
        return (
            f"node {self.node} holds {self.got:#x} for flit {self.flit} of node {self.origin}, "
            f"not {self.expected:#x}"
        )


@dataclass(frozen=True)
class Report:
    """What a simulation found.

    Parameters
    ----------
    topology, collective, algorithm, engine : str
    operator : str or None
        How a reduction combines words.
    switching : str
        Tells whether the rounds are steps of one hop.
    origins : Origins
        How origins are known, and what that costs.
    rounds, bound : int
        Rounds of the schedule, and the fewest that any schedule could have.
    cycles, predicted_cycles : int
        Clock edges from the start pulse to done: measured and planned.
    cycle_cost : CycleCost
        What the planned cycles are made of.
    roots : tuple of int
        The root of each run, where the fabric lets it be chosen.
    repeat : int
        Collectives run one after another (for each root).
    throughput, throughput_bound : float
        Words that a node receives in a cycle of a run, and could receive at most.
    words_checked, words_wrong : int
        Of all runs.
    first_wrong : Fault or None
    seconds : float
    clocks : int
        Clock cycles simulated, loading and reading included.
    node_cycles_per_second : int
        From start to done.
    """

    topology: str
    collective: str
    operator: str | None
    algorithm: str
    engine: str
    switching: str
    nodes: int
    width: int
    flits: int
    router_classes: int
    origins: Origins
    rounds: int
    bound: int
    cycles: int
    predicted_cycles: int
    cycle_cost: CycleCost
    repeat: int
    throughput: float
    throughput_bound: float
    roots: tuple[int, ...]
    words_checked: int
    words_wrong: int
    first_wrong: Fault | None
    seconds: float
    clocks: int
    node_cycles_per_second: int

    @property
    def passed(self):
        """Whether all words are right and the cycles are those predicted."""
        return not self.words_wrong and self.cycles == self.predicted_cycles

    def to_json(self):
        """The report as plain data."""
        plain = asdict(self)
        cost = plain.pop("cycle_cost")
        constants = ("alpha", "hop_cycles", "flit_cycles", "constant_cycles")
        return plain | {
            "origins": self.origins.to_json(),
            "passed": self.passed,
            "cost_formula": str(self.cycle_cost),
            **{name: cost[name] for name in constants},
        }


def simulate(fabric, *, seed=1, roots=None, repeat=1, engine=None, progress=None):
    """Run a fabric through its host port, and compare every word at every node.

    Parameters
    ----------
    fabric : Fabric
    seed : int
        Of the random payloads.
    roots : sequence of int, optional
        One run for each of these roots, one after another without a reset; for a fabric that lets
        the root be chosen. By default a few, spread over the nodes. Other fabrics run once.
    repeat : int
        How often to do so, each time with fresh data and without a reset.
    engine : Engine, optional
        By default Amaranth's simulator.
    progress : function of (done, total), optional

    Returns
    -------
    Report

    Raises
    ------
    InputError
        If there are roots, and the root of the fabric is fixed.
    WorkFailed
        If the fabric does not come to an end.

    Examples
    --------
    >>> import torusfabric as tf
    >>> fabric = tf.Fabric(tf.compile(tf.plan("3x3", "allreduce"), flits=9), width=16)
    >>> report = tf.simulate(fabric)
    >>> report.words_wrong, report.cycles == fabric.cycles
    (0, True)
    """
    chosen = isinstance(fabric.program, RootedProgram)
    if roots is not None and not chosen:
        raise InputError("Roots must be left out for a fabric of one root, not given")
    roots = tuple(some_roots(fabric.nodes) if roots is None else roots) if chosen else ()
    engine = engine or AmaranthEngine(fabric)
    batches = [
        random_messages(
            fabric.program.layout, fabric.layout.block_flits, width=fabric.width, seed=seed + k
        )
        for k in range((len(roots) or 1) * repeat)
    ]
    began = time.perf_counter()
    runs = engine.run_many(
        batches, **({"roots": roots * repeat} if roots else {}), progress=progress
    )
    seconds = time.perf_counter() - began
    compared = _compare(fabric, zip((roots or (None,)) * repeat, batches, runs, strict=True))
    return _report(
        fabric,
        runs,
        compared,
        engine=engine.name,
        roots=roots,
        repeat=repeat,
        seconds=round(seconds, 3),
    )


def _compare(fabric, done):
    """Compare every word of runs: how many, how many are wrong, and the first of these.

    Parameters
    ----------
    fabric : Fabric
    done : iterable of (int or None, ndarray, Run)
        Root, messages and outcome of each run.
    """
    program, checked, wrong, first = fabric.program, 0, 0, None
    operator = program.operator if program.blocks.collective.reducing else None
    for root, messages, run in done:
        words, receives = expected_words(
            program.layout, messages, operator=operator, width=fabric.width, root=root
        )
        got = np.asarray(run.words, words.dtype)
        places = np.argwhere((got != words) & receives[:, None])
        checked += int(receives.sum()) * words.shape[1]
        wrong += len(places)
        if len(places) and first is None:
            node, place = places[0]
            first = _fault(fabric, words, got, node, place, root)
    return {"words_checked": checked, "words_wrong": wrong, "first_wrong": first}


def _report(fabric, runs, compared, **others):
    """The report of some runs."""
    program, schedule = fabric.program, fabric.program.schedule
    clocks = sum(run.clocks for run in runs)
    cycles = {count for run in runs for count in (run.cycles, run.edges)}
    return Report(
        topology=str(schedule.topology),
        collective=schedule.collective.kind,
        operator=str(program.operator) if schedule.collective.reducing else None,
        algorithm=schedule.algorithm,
        switching=schedule.switching,
        nodes=fabric.nodes,
        width=fabric.width,
        flits=fabric.flits,
        router_classes=len(program.class_sizes),
        origins=fabric.origins,
        rounds=schedule.round_count,
        bound=bound(schedule),
        cycles=cycles.pop() if len(cycles) == 1 else -1,
        predicted_cycles=fabric.cycles,
        cycle_cost=program.cycle_cost(fabric.flits),
        throughput=throughput(fabric, sum(run.edges for run in runs) / len(runs)),
        throughput_bound=throughput_bound(fabric),
        clocks=clocks,
        node_cycles_per_second=_speed(fabric, runs),
        **compared,
        **others,
    )


def _speed(fabric, runs):
    """Cycles of nodes that were simulated in a second of processor time, from start to done."""
    spent = sum(run.phases.run for run in runs)
    return round(fabric.nodes * sum(run.edges for run in runs) / max(spent, 1e-9))


def some_roots(nodes):
    """All nodes if they are few, else a few that are spread over them."""
    return sorted({(nodes * k // FEW + k) % nodes for k in range(FEW)})


#: How many roots are tried where any is possible.
FEW = 8


def _fault(fabric, words, got, node, place, root):
    """Describe a wrong word."""
    values = int(words[node, place]), int(got[node, place])
    if fabric.program.blocks.collective.reducing:
        return Fault(int(node), None, int(place), *values)
    block, flit = divmod(int(place), fabric.layout.block_flits)
    blocks = fabric.program.blocks
    number = fabric.program.layout.received_block(np.array([node]), np.array([block]))
    flit += int(blocks.chunk(number)[0]) * fabric.layout.block_flits
    origin = int(blocks.origin(number)[0]) if root is None else root
    return Fault(int(node), origin, flit, *values)
