"""The simulation of a fabric behind a host port."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ..analysis.facts import bound_in_words, forms_in_words, in_words, steps_in_words
from ..errors import InputError
from ..planning import announce, require_results
from .arguments import TRACE, check_output, check_waves
from .fabric import make_fabric
from .output import print_facts, print_json, progress_bar, raise_if_wrong
from .simulated import simulated
from .tables import fabric_with_image, jobs_of_length

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..simulation.engines import Job

__all__ = ["run_host"]

#: Random jobs of a simulation, where there is a choice.
RANDOM_JOBS = 20


def run_host(arguments: Namespace) -> None:
    """Simulate runs; the status is 2 if a word is wrong or the cycles are not those predicted."""
    from ..simulation.engines import choose_engine
    from ..simulation.engines.choice import estimate
    from ..simulation.report import SimulationReport
    from ..simulation.simulate import simulate

    _check_files(arguments)
    if arguments.fabric:
        (fabric, facts), latency = fabric_with_image(arguments), None
    else:
        made = make_fabric(arguments, any_root=True)
        fabric, facts, latency = made.fabric, made.facts, made.chosen[0].latency
    jobs = _jobs(arguments, fabric)
    with progress_bar("building the engine"):
        engine, reason = choose_engine(
            fabric,
            arguments.engine,
            wave=arguments.wave,
            through_port=arguments.through_port,
            repeat=len(jobs) * arguments.repeat,
        )
    if engine.name == "amaranth":
        announce("Simulating", estimate(fabric, arguments.repeat)[0])
    with progress_bar("simulating") as progress:
        report = simulate(
            fabric,
            seed=arguments.data_seed,
            jobs=jobs,
            repeat=arguments.repeat,
            engine=engine,
            progress=progress,
        )
    assert isinstance(report, SimulationReport)
    if arguments.trace:
        from ..program.trace import write_trace

        with progress_bar("writing the trace"):
            write_trace(fabric.program, arguments.trace)
    result = simulated(
        report,
        facts,
        engine_reason=reason,
        build_seconds=round(engine.build_seconds, 3),
        latency=latency,
        wave=arguments.wave,
        trace=arguments.trace,
    )
    if arguments.json:
        print_json(result)
    else:
        constants = [cost.constant_in_words for cost in report.cycle_costs]
        print_facts(_shown(result | {"origins": report.origins, "constant": constants}))
    raise_if_wrong(report)


def _check_files(arguments: Namespace) -> None:
    """Refuse a wave or a trace that cannot be written."""
    from ..simulation.engines import check_wave

    check_wave(arguments.wave)
    if arguments.trace and arguments.root == "any":
        raise InputError("--trace must be left out for --root any, whose paths are not known ahead")
    if arguments.trace and (arguments.fabric or arguments.tables == "ram"):
        raise InputError("--trace must be left out for tables that are loaded")
    if arguments.wave:
        check_waves(arguments, arguments.wave)
    if arguments.trace:
        check_output(arguments, arguments.trace, TRACE)


def _jobs(arguments: Namespace, fabric: Fabric) -> tuple[Job, ...]:
    """What to run: the usual, and of a choice of lengths or operators also what is drawn."""
    from ..simulation.jobs import default_jobs, jobs_with_drawn

    no_choice = not fabric.program.any_length and len(fabric.program.operators) < 2
    if no_choice and arguments.jobs is None:
        return default_jobs(fabric.program)
    if arguments.fabric and arguments.flits:
        return jobs_of_length(fabric, arguments.flits)
    count = RANDOM_JOBS if arguments.jobs is None else arguments.jobs
    require_results("--jobs", count)
    return jobs_with_drawn(fabric, count, seed=arguments.data_seed)


#: What is shown of a simulation of one collective, in this order.
NAMES = (
    "topology",
    "collective",
    "operator",
    "algorithm",
    "forms",
    "why",
    "engine",
    "nodes",
    "width",
    "flits",
    "router_classes",
    "origins",
    "latency",
    "rounds",
    "bound",
    "limit",
    "delta",
    "tau",
    "cycles",
    "predicted_cycles",
    "cost_formula",
    "constant",
    "roots",
    "words_checked",
    "words_wrong",
    "port_words",
    "direct_words",
)


def _shown(result: dict[str, Any]) -> dict[str, Any]:
    """What a simulation found, for people."""
    shown = _of_several(result) if "modes" in result else _of_one(result)
    built = f"{result['build_seconds']:.1f} s to build, " if result["build_seconds"] else ""
    shown["time"] = (
        f"{built}{result['seconds']:.1f} s, {result['clocks']} clocks, "
        f"{result['node_cycles_per_second']:,} node cycles a second"
    )
    return shown | {name: result[name] for name in ("wave", "trace") if result[name]}


def _of_one(result: dict[str, Any]) -> dict[str, Any]:
    """What a simulation of one collective found."""
    said = in_words(result) | {"constant": result["constant"][0]}
    steps = result["unit"].partition(" of ")[0]
    shown = {}
    for name in NAMES:
        name = steps if name == "rounds" else name
        if name in said:
            shown[name.replace("_", " ")] = said[name]
    if shown["operator"] is None:
        del shown["operator"], shown["latency"]
    if result["jobs"]:
        lengths = [job["length"] for job in result["jobs"]]
        shown["jobs"] = f"{len(lengths)}, of lengths from {min(lengths)} to {max(lengths)} flits"
    roots = shown.pop("roots")
    if roots:
        shown["roots"] = " ".join(map(str, roots))
    shown["lower bound"] = shown.pop("bound")
    shown["engine"] += f" ({result['engine_reason']})"
    shown["throughput"] = (
        f"{result['throughput']:g} words a cycle a node, at most {result['throughput_bound']:g}"
    )
    return shown


def _forms(mode: dict[str, Any]) -> str:
    """The forms of a mode, if it has several, behind a comma."""
    return f", {forms_in_words(mode['forms'])}" if "forms" in mode else ""


def _of_several(result: dict[str, Any]) -> dict[str, Any]:
    """What a simulation of several collectives found."""
    names = ("topology", "nodes", "width", "flits", "origins", "cycles", "predicted_cycles",
             "words_checked", "words_wrong", "port_words", "direct_words")  # fmt: skip
    shown = {name.replace("_", " "): result[name] for name in names}
    for number, mode in enumerate(result["modes"]):
        jobs = [job for job in result["jobs"] if job["mode"] == number]
        wrong = sum(job["words_wrong"] for job in jobs)
        checked = sum(job["words_checked"] for job in jobs)
        shown[f"mode {number}"] = (
            f"{mode['collective']} by {mode['algorithm']}, {steps_in_words(mode)} "
            f"({bound_in_words(mode)}){_forms(mode)}: {len(jobs)} runs, "
            f"{wrong} of {checked} words wrong"
        )
        shown[f"mode {number} formula"] = result["mode_costs"][number]["cost_formula"]
        shown[f"mode {number} constant"] = result["constant"][number]
    shown["engine"] = f"{result['engine']} ({result['engine_reason']})"
    return shown
