"""Simulation of a whole fabric with random data, every word compared."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..analysis.bounds import bound
from ..collective import expected_words, random_messages
from ..errors import InputError
from ..rtl.fabric import Fabric
from .engines import AmaranthEngine, Engine, EngineRun
from .report import SimulationReport, WrongWord
from .throughput import throughput, throughput_bound

__all__ = ["SimulationReport", "WrongWord", "simulate"]

#: How many roots are tried where any is possible.
FEW = 8


class Comparison(NamedTuple):
    """The words of runs compared with what the collective delivers."""

    words_checked: int
    words_wrong: int
    first_wrong: WrongWord | None


def simulate(
    fabric: Fabric,
    *,
    seed: int = 1,
    roots: Sequence[int] | None = None,
    repeat: int = 1,
    engine: Engine | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SimulationReport:
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
    SimulationReport

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
    >>> report.words_wrong, report.cycles == fabric.predicted_cycles
    (0, True)
    """
    chosen = "root" in fabric.netlist.inputs
    if roots is not None and not chosen:
        raise InputError("Roots must be left out for a fabric of one root, not given")
    tried = (
        tuple(_some_roots(fabric.program.groups.size) if roots is None else roots) if chosen else ()
    )
    each: tuple[int | None, ...] = (tried or (None,)) * repeat
    engine = engine or AmaranthEngine(fabric)
    batches = [
        random_messages(fabric.program.layout, fabric.flits, width=fabric.width, seed=seed + k)
        for k in range(len(each))
    ]
    began = time.perf_counter()
    runs = engine.run_many(batches, roots=tried * repeat or None, progress=progress)
    seconds = time.perf_counter() - began
    compared = _compare(fabric, zip(each, batches, runs, strict=True))
    return _report(
        fabric,
        runs,
        compared,
        engine=engine.name,
        roots=tried,
        repeat=repeat,
        seconds=round(seconds, 3),
    )


def _compare(
    fabric: Fabric, done: Iterable[tuple[int | None, np.ndarray, EngineRun]]
) -> Comparison:
    """Compare every word of runs: how many, how many are wrong, and the first of these.

    Parameters
    ----------
    fabric : Fabric
    done : iterable of (int or None, ndarray, EngineRun)
        Root, messages and outcome of each run.
    """
    program, checked, wrong = fabric.program, 0, 0
    first: WrongWord | None = None
    operator = program.operator if program.blocks.collective.reducing else None
    for root, messages, run in done:
        words, receives = expected_words(
            program.layout, messages, operator=operator, width=fabric.width, root=root
        )
        got = np.asarray(run.words, words.dtype)
        differing = np.argwhere((got != words) & receives[:, None])
        checked += int(receives.sum()) * words.shape[1]
        wrong += len(differing)
        if len(differing) and first is None:
            node, index = differing[0]
            values = int(words[node, index]), int(got[node, index])
            first = _wrong_word(fabric, int(node), int(index), values, root)
    return Comparison(checked, wrong, first)


def _report(
    fabric: Fabric, runs: Sequence[EngineRun], compared: Comparison, **others: Any
) -> SimulationReport:
    """The report of some runs."""
    program, schedule = fabric.program, fabric.program.schedule
    clocks = sum(run.clocks for run in runs)
    cycles = {count for run in runs for count in (run.cycles, run.edges)}
    return SimulationReport(
        topology=str(schedule.topology),
        collective=schedule.collective.name,
        operator=str(program.operator) if schedule.collective.reducing else None,
        algorithm=schedule.algorithm,
        switching=schedule.switching,
        nodes=fabric.nodes,
        width=fabric.width,
        flits=fabric.flits,
        router_classes=len(fabric.router_classes),
        origins=fabric.origins,
        rounds=schedule.round_count,
        bound=bound(schedule),
        cycles=cycles.pop() if len(cycles) == 1 else -1,
        predicted_cycles=fabric.predicted_cycles,
        cycle_cost=program.mode.cost,
        throughput=throughput(fabric, sum(run.edges for run in runs) / len(runs)),
        throughput_bound=throughput_bound(fabric),
        clocks=clocks,
        node_cycles_per_second=_speed(fabric, runs),
        **compared._asdict(),
        **others,
    )


def _speed(fabric: Fabric, runs: Sequence[EngineRun]) -> int:
    """Cycles of nodes that were simulated in a second of processor time, from start to done."""
    spent = sum(run.phases.run for run in runs)
    return round(int(fabric.nodes) * sum(run.edges for run in runs) / max(spent, 1e-9))


def _some_roots(nodes: int) -> list[int]:
    """All nodes if they are few, else a few that are spread over them."""
    return sorted({(nodes * k // FEW + k) % nodes for k in range(FEW)})


def _wrong_word(
    fabric: Fabric, node: int, index: int, values: tuple[int, int], root: int | None
) -> WrongWord:
    """Describe a wrong word by its index among the words that a node receives, and its values."""
    collective = fabric.program.schedule.collective
    if collective.reducing:
        return WrongWord(node, None, index, *values)
    part, flit = divmod(index, fabric.flits)
    only = collective.root if root is None else root
    return WrongWord(node, part if collective.from_each else only, flit, *values)
