"""The simulation of a fabric whose nodes have streams."""

from argparse import Namespace
from typing import Any

from ..analysis.facts import in_words
from ..errors import InputError
from .arguments import check_waves
from .fabric import make_fabric
from .output import print_facts, print_json, progress_bar
from .simulated import raise_if_wrong, simulated
from .tables import fabric_with_image, jobs_of_length

__all__ = ["run_streams"]

#: Random runs where nothing else is asked for.
RUNS = 20


def run_streams(arguments: Namespace) -> None:
    """Simulate packets; returns 2 if a word or a cycle is wrong."""
    from ..simulation.streams import check_faults, check_stall, simulate_streams, stream_jobs
    from ..simulation.streams.choice import choose_stream_engine

    if arguments.trace is not None:
        raise InputError("--trace must be left out for --top stream")
    stall = arguments.stall or 0.0
    check_stall(stall)
    faults = arguments.faults or 0.0
    check_faults(faults)
    if arguments.wave:
        check_waves(arguments, arguments.wave)
    if arguments.fabric:
        fabric, facts = fabric_with_image(arguments)
    else:
        made = make_fabric(arguments, any_root=True)
        fabric, facts = made.fabric, made.facts
    count = RUNS if arguments.jobs is None else arguments.jobs
    jobs = (
        jobs_of_length(fabric, arguments.flits)
        if arguments.fabric and arguments.flits
        else stream_jobs(fabric, count, seed=arguments.data_seed)
    ) * arguments.repeat
    with progress_bar("building the engine"):
        engine, reason = choose_stream_engine(
            fabric,
            arguments.engine,
            wave=arguments.wave,
            runs=len(jobs),
        )
    with progress_bar("simulating") as progress:
        report = simulate_streams(
            fabric,
            jobs=jobs,
            stall=stall,
            faults=faults,
            seed=arguments.data_seed,
            engine=engine,
            progress=progress,
        )
    result = simulated(
        report,
        facts,
        engine_reason=reason,
        build_seconds=round(engine.build_seconds, 3),
        wave=arguments.wave,
    )
    if arguments.json:
        print_json(result)
    else:
        print_facts(_shown(result))
    raise_if_wrong(report)


def _shown(result: dict[str, Any]) -> dict[str, Any]:
    """What a simulation found, for people."""
    shown = {
        name.replace("_", " "): result[name]
        for name in ("topology", "collective", "operator", "algorithm", "nodes", "width", "flits")
        if result[name] is not None
    }
    if "modes" not in result:
        words = in_words(result)
        steps = result["unit"].partition(" of ")[0]
        shown |= {steps: words[steps], "lower bound": words["bound"], "limit": words["limit"]}
    lengths = [job["length"] for job in result["jobs"]]
    between = f", of lengths from {min(lengths)} to {max(lengths)} flits" if lengths else ""
    shown["runs"] = f"{len(lengths)}{between}"
    if result["dropped"]:
        errors = (f"{count} for error {error}" for error, count in result["dropped"].items())
        shown["dropped"] = ", ".join(errors)
    for name in ("cycles", "predicted_cycles", "words_checked", "words_wrong", "stall"):
        shown[name.replace("_", " ")] = result[name]
    shown |= _rate(result["rate"]) if result["rate"] else {}
    shown["engine"] = f"{result['engine']} ({result['engine_reason']})"
    built = f"{result['build_seconds']:.1f} s to build, " if result["build_seconds"] else ""
    shown["time"] = f"{built}{result['seconds']:.1f} s, {result['clocks']} clocks"
    return shown | ({"wave": result["wave"]} if result["wave"] else {})


def _rate(rate: dict[str, Any]) -> dict[str, str]:
    """How fast runs followed one another, for people."""
    return {
        "sustained rate": f"{rate['words_per_cycle']:.3g} words ({rate['bytes_per_cycle']:.3g} "
        f"bytes) a cycle, received by all nodes; {100 * rate['share']:.0f} % of "
        f"{rate['words_per_cycle_limit']:.3g}, which ports and links allow",
        "limited by": f"{rate['limited_by']}: of {rate['cycles']} cycles for {rate['runs']} runs, "
        f"loading needs {rate['load_cycles']:.0f}, running {rate['run_cycles']:.0f}, unloading "
        f"{rate['unload_cycles']:.0f}",
    }
