"""The commands that show a fabric at work: simulate, animate."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ..analysis.facts import in_words, schedule_facts
from ..errors import InputError, WorkFailed
from ..planning import announce, compile, require_jobs
from .arguments import natural, positive, real
from .command import Commands, add_command
from .fabric import add_fabric_options, add_flits_option, make_fabric
from .output import print_facts, print_json, progress_bar
from .periods import run_periodic
from .selection import add_selection
from .several import add_mode, choose_mode
from .stream_simulation import run_streams

if TYPE_CHECKING:
    from ..rtl import Fabric
    from ..simulation.engines import Job

__all__ = ["add_commands"]

#: Random jobs of a simulation, where there is a choice.
RANDOM_JOBS = 20


def add_commands(commands: Commands) -> None:
    """Add the commands to a parser."""
    simulate = add_command(
        commands,
        "simulate",
        run_simulate,
        "simulate a whole fabric, cycle by cycle, and compare every word",
        "torusfabric simulate 8x8 allgather --width 32 --flits 4",
    )
    add_selection(simulate, several=True)
    add_fabric_options(simulate, any_length=True)
    simulate.add_argument(
        "--top",
        choices=("host", "stream"),
        default="host",
        help="behind one memory-mapped port, or with a stream each way at each node (default host)",
    )
    simulate.add_argument(
        "--clocks",
        choices=("one", "per-node"),
        default="one",
        help="with --top stream, give the streams of each node a clock of their own, unrelated to "
        "all others (default one for all)",
    )
    simulate.add_argument(
        "--stall",
        metavar="P",
        type=real,
        help="with --top stream: how likely it is that a port rests in a cycle, 0 to 0.95 "
        "(default 0)",
    )
    simulate.add_argument(
        "--data-seed",
        metavar="N",
        type=natural,
        default=1,
        help="seed of the random payloads (default 1)",
    )
    simulate.add_argument(
        "--engine",
        choices=("auto", "amaranth", "compiled", "verilator"),
        default="auto",
        help="what runs it (default auto: by the size of the work)",
    )
    simulate.add_argument(
        "--repeat",
        metavar="K",
        type=positive,
        default=1,
        help="collectives to run one after another, with fresh data and no reset (default 1)",
    )
    simulate.add_argument(
        "--jobs",
        metavar="N",
        type=natural,
        help="runs of random length, root and operator after the usual ones, where --max-flits or "
        "several operators leave a choice, and always with --top stream (default 20)",
    )
    simulate.add_argument(
        "--wave",
        "--vcd",
        metavar="FILE.vcd|.fst",
        help="write the waves there, and a view of them for GTKWave beside them (.gtkw)",
    )
    simulate.add_argument(
        "--trace", metavar="FILE", help="write what arrives where and when there, as JSON lines"
    )
    _add_animate(commands)


def _add_animate(commands: Commands) -> None:
    """Add the command that writes a page."""
    animate = add_command(
        commands,
        "animate",
        run_animate,
        "write a page that plays a schedule step by step, for any browser",
        "torusfabric animate 6x6 allgather -o play.html",
    )
    add_selection(animate, several=True)
    add_mode(animate)
    add_flits_option(animate)
    animate.add_argument(
        "-o", "--output", metavar="FILE.html", required=True, help="the file to write"
    )


def run_animate(arguments: Namespace) -> None:
    """Write the page."""
    from ..draw.animate import animation, check_size
    from ..toolchain.files import writable, write_file

    writable(arguments.output)
    before = lambda topology, _: check_size(topology)
    schedule = choose_mode(arguments, flits=arguments.flits, before=before).schedule
    with progress_bar("checking") as progress:
        facts = schedule_facts(schedule, progress)
    with progress_bar("writing the page"):
        program = compile(schedule, flits=arguments.flits)
        text = animation(program)
    write_file(arguments.output, text)
    facts = {"file": arguments.output, "bytes": len(text.encode())} | facts
    if arguments.json:
        print_json(facts)
    else:
        print_facts(in_words(facts))


def run_simulate(arguments: Namespace) -> None:
    """Simulate; returns 2 if a word is wrong or the cycles are not those predicted."""
    if arguments.top == "stream":
        run_streams(arguments)
        return
    if arguments.stall is not None:
        raise InputError("--stall must come with --top stream, whose ports can rest")
    if arguments.periodic:
        run_periodic(arguments)
        return
    from ..simulation.engines import check_wave, choose_engine
    from ..simulation.engines.choice import estimate
    from ..simulation.simulate import simulate_runs
    from ..toolchain.files import writable

    check_wave(arguments.wave)
    if arguments.trace and arguments.root == "any":
        raise InputError("--trace must be left out for --root any, whose paths are not known ahead")
    for path in (arguments.wave, arguments.trace):
        if path:
            writable(path)
    made = make_fabric(arguments, any_root=True)
    fabric, facts = made.fabric, made.facts
    jobs = _jobs(arguments, fabric)
    with progress_bar("building the engine"):
        engine, reason = choose_engine(
            fabric, arguments.engine, wave=arguments.wave, repeat=len(jobs) * arguments.repeat
        )
    if engine.name == "amaranth":
        announce("Simulating", estimate(fabric, arguments.repeat)[0])
    with progress_bar("simulating") as progress:
        report = simulate_runs(
            fabric,
            seed=arguments.data_seed,
            jobs=jobs,
            repeat=arguments.repeat,
            engine=engine,
            progress=progress,
        )
    if arguments.trace:
        from ..program.trace import write_trace

        with progress_bar("writing the trace"):
            write_trace(fabric.program, arguments.trace)
    known = ("unit", "bound_where", "delta", "tau", "tau_bound", "modes")
    result = report.to_json() | {
        **{name: facts[name] for name in known if name in facts},
        "engine_reason": reason,
        "build_seconds": round(engine.build_seconds, 3),
        "latency": made.chosen[0].latency,
        "wave": arguments.wave,
        "trace": arguments.trace,
    }
    if arguments.json:
        print_json(result)
    else:
        _print_simulation(result | {"origins": report.origins})
    if report.first_wrong:
        raise WorkFailed(
            f"{report.words_wrong} of {report.words_checked} words are wrong; first: "
            f"{report.first_wrong}"
        )
    if not report.passed:
        raise WorkFailed(f"Cycles must be {report.predicted_cycles}, not {report.cycles}")


def _jobs(arguments: Namespace, fabric: Fabric) -> tuple[Job, ...]:
    """What to run: the usual, and of a choice of lengths or operators also what is drawn."""
    from ..simulation.jobs import default_jobs, random_jobs

    jobs = default_jobs(fabric)
    if not fabric.program.any_length and len(fabric.program.operators) < 2:
        if arguments.jobs is not None:
            raise InputError(
                "--jobs must be left out without --max-flits or several operators, which leave a "
                "choice"
            )
        return jobs
    count = RANDOM_JOBS if arguments.jobs is None else arguments.jobs
    require_jobs(count)
    return jobs + random_jobs(fabric, count, seed=arguments.data_seed)


def _print_simulation(result: dict[str, Any]) -> None:
    """Print what a simulation found."""
    if "modes" in result:
        _print_several(result)
        return
    names = (
        "topology",
        "collective",
        "operator",
        "algorithm",
        "engine",
        "nodes",
        "width",
        "flits",
        "router_classes",
        "origins",
        "latency",
        "rounds",
        "bound",
        "delta",
        "tau",
        "cycles",
        "predicted_cycles",
        "cost_formula",
        "roots",
        "words_checked",
        "words_wrong",
    )
    said = in_words(result)
    steps = result["unit"].partition(" of ")[0]
    shown = {}
    for name in names:
        name = steps if name == "rounds" else name
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
    shown["time"] = _time(result)
    shown |= {name: result[name] for name in ("wave", "trace") if result[name]}
    print_facts(shown)


def _print_several(result: dict[str, Any]) -> None:
    """Print what a simulation of several collectives found."""
    names = ("topology", "nodes", "width", "flits", "origins", "cycles", "predicted_cycles",
             "words_checked", "words_wrong")  # fmt: skip
    shown = {name.replace("_", " "): result[name] for name in names}
    for number, mode in enumerate(result["modes"]):
        jobs = [job for job in result["jobs"] if job["mode"] == number]
        wrong = sum(job["words_wrong"] for job in jobs)
        checked = sum(job["words_checked"] for job in jobs)
        shown[f"mode {number}"] = (
            f"{mode['collective']} by {mode['algorithm']}, {mode['rounds']} {mode['unit']} (lower "
            f"bound {mode['bound']}): {len(jobs)} runs, {wrong} of {checked} words wrong"
        )
    shown["engine"] = f"{result['engine']} ({result['engine_reason']})"
    shown["time"] = _time(result)
    shown |= {name: result[name] for name in ("wave", "trace") if result[name]}
    print_facts(shown)


def _time(result: dict[str, Any]) -> str:
    """How long it took."""
    built = f"{result['build_seconds']:.1f} s to build, " if result["build_seconds"] else ""
    return (
        f"{built}{result['seconds']:.1f} s, {result['clocks']} clocks, "
        f"{result['node_cycles_per_second']:,} node cycles a second"
    )
