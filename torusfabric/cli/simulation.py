"""The command ``simulate``: run a fabric cycle by cycle, and compare every word.

A *job* is the input of a run: mode, length, root and operator, as far as the fabric leaves them
open.
"""

from __future__ import annotations

from argparse import Namespace, _ActionsContainer
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..analysis.facts import bound_text, facts_text, forms_text, steps_text
from ..contract.options import add_options, parse_non_negative_int, parse_positive_int
from ..errors import InputError
from ..fabric.options import (
    RUN_OPTIONS,
    add_fabric_file_option,
    add_fabric_options,
    add_run_options,
    add_selection_arguments,
    add_tables_options,
    add_top_options,
)
from ..fabric.spec import FabricSpec
from ..planning import log_duration, require_result_memory
from .arguments import FORCE, TRACE, check_output, check_waves
from .output import print_report, progress_bar, raise_if_wrong
from .parser import Commands, add_command
from .tables import check_fabric_file, fabric_with_image

if TYPE_CHECKING:
    from ..contract.adapter import System
    from ..fabric.fabric import Fabric
    from ..program import Program
    from ..simulation.engines import Job

__all__ = ["add_commands"]

#: Default number of random runs.
RANDOM_JOBS = 20

#: Facts of the schedule that the JSON report of a simulation repeats.
SCHEDULE_FACTS = (
    "unit",
    "bound_where",
    "cut",
    "renumbered",
    "rates",
    "relays",
    "limit",
    "limit_flits",
    "why",
    "delta",
    "message_times",
    "tau",
    "stream",
    "tau_bound",
    "modes",
    "forms",
)
#: Facts that people see, in this order, unless they are unknown. `SINGLE_MODE_FACTS` lists those of
#: them that are left out for several collectives.
SHOWN_FACTS = ("topology", "collective", "operator", "algorithm", "forms", "why", "engine", "nodes",
         "width", "flits", "router_classes", "origins", "latency", "steps", "rounds", "bound",
         "cycle limit", "delta", "message times", "stream", "order of operands", "jobs", "dropped",
         "cycles", "predicted_cycles", "cost_formula", "constant", "roots", "words_checked",
         "words_wrong", "port_words", "direct_words", "stall", "throughput")  # fmt: skip
SINGLE_MODE_FACTS = ("operator", "router_classes", "latency", "constant", "roots", "throughput")


#: Attributes of the arguments that control the runs, not the fabric.
RUN_ARGUMENTS = (
    "data_seed",
    "repeat",
    "through_port",
    "jobs",
    "flits",
    *RUN_OPTIONS,
    "engine",
    "wave",
    "trace",
    "force",
)


def add_commands(commands: Commands) -> None:
    """Add the command ``simulate`` and its arguments; `commands` has the parser of each command."""
    simulate = add_command(commands, "simulate", run_simulate)
    add_selection_arguments(simulate, several=True)
    add_fabric_options(simulate)
    add_top_options(simulate, "host", "stream")
    add_tables_options(simulate)
    add_fabric_file_option(simulate)
    add_options(simulate, "--image FILE: with --fabric: image that is loaded and run.\n")
    _add_run_options(simulate.add_argument_group("runs"))
    add_options(
        simulate.add_argument_group("files"),
        """
        --wave --vcd FILE.vcd|.fst: File for the waves; a save file for GTKWave (.gtkw) is written
            beside it. Default: none is written.
        --trace FILE: File for a trace, one JSON line for each arrival of a word (compressed if its
            name ends in .gz). Default: none is written.
        """,
        FORCE,
    )


def _add_run_options(group: _ActionsContainer) -> None:
    """Add the arguments that control the runs to `group`, a group of options in the help."""
    add_options(
        group,
        """
        --data-seed N: Seed of the random payloads. Default: 1.
        --repeat K: Number of collectives that run one after another, with fresh data and without a
            reset. Default: 1.
        --through-port: Move all words through the host port. Default: 1,000 words of a run each
            way, while the others are put into the memories of nodes and taken from there.
        --jobs N: Number of random runs (words, length, root, operator) after the usual ones.
            Default: 20 where --max-flits or several operators leave a choice, and with --top
            stream; otherwise 0.
        --engine: Engine that runs the simulation. Default: auto, by the size of the work.
        """,
        data_seed=(parse_non_negative_int, 1),
        repeat=(parse_positive_int, 1),
        jobs=parse_non_negative_int,
        engine={"choices": ("auto", "amaranth", "compiled"), "default": "auto"},
    )
    add_run_options(group)


def run_simulate(arguments: Namespace) -> None:
    """Run ``simulate``; a wrong word or an unpredicted number of cycles is an error (status 2)."""
    check_fabric_file(arguments, *RUN_ARGUMENTS)
    spec = FabricSpec.of(vars(arguments))
    if spec.adapter:
        _run_system(spec.make().system, arguments)
        return
    if arguments.fabric:
        from ..fabric.images import read_fabric

        if read_fabric(arguments.fabric).room.streams:
            arguments.top = "stream"
    streams, latency = arguments.top == "stream", None
    (_check_stream_arguments if streams else _check_host_arguments)(arguments)
    if arguments.fabric:
        fabric, system, facts = fabric_with_image(arguments)
        if system:
            excluded = system.adapter.excluded["simulate"]
            for attribute, option in arguments.parser.changed_arguments(arguments):
                if attribute in excluded:
                    raise InputError(
                        f"{option} is not available for {system.adapter.title}; leave it out"
                    )
            _run_system(system, arguments)
            return
    else:
        made = spec.make(runs=arguments.repeat)
        fabric, facts, latency = made.fabric, made.facts, made.chosen[0].latency_steps
    report, engine, reason = _run_jobs(arguments, fabric)
    result = report.to_json() | {name: facts[name] for name in SCHEDULE_FACTS if name in facts}
    result |= {"engine_reason": reason, "build_seconds": round(engine.build_seconds, 3)}
    result |= {"wave": arguments.wave} | _order_facts(fabric.program)
    result |= {} if streams else {"latency": latency, "trace": arguments.trace}
    known = {} if streams else {"origins": report.origins, "costs": report.cycle_costs}
    print_report(arguments, result, _result_facts(result | known))
    raise_if_wrong(report)


def _run_system(system: System | None, arguments: Namespace) -> None:
    """Simulate a fabric with an adapter, such as a bus, and print the report.

    `system` is the fabric with its adapter, which has the simulator.
    """
    count = RANDOM_JOBS if arguments.jobs is None else arguments.jobs
    require_result_memory("--jobs", count)
    assert system is not None
    drive = system.adapter.import_part("drive")
    with progress_bar("simulating") as progress:
        report = drive.simulate(
            system, vars(arguments), jobs=count, seed=arguments.data_seed, progress=progress
        )
    orders = _order_facts(system.fabric.program)
    facts, words = system.facts() | orders, report.in_words() | system.facts_text()
    words |= _order_text(orders)
    print_report(arguments, report.to_json() | facts, words)
    raise_if_wrong(report)


def _order_facts(program: Program) -> dict[str, Any]:
    """Return the entry ``operand_orders`` of the report, or nothing if no order changes a sum.

    It has the trees of additions, their depth and the error bound for each mode with an operator
    that is not associative, at the longest messages.
    """
    modes = [
        {"mode": number} | orders.to_json()
        for number, mode in enumerate(program.modes)
        if not all(operator.associative for operator in mode.operators)
        # The model has no sums of a program in the form for loaded tables.
        if (orders := program.operand_orders(mode=number)).trees
    ]
    return {"operand_orders": modes} if modes else {}


def _order_text(result: dict[str, Any]) -> dict[str, str]:
    """Return the order of operands of a report for people, with the first tree of each mode."""
    found = []
    for orders in result.get("operand_orders", ()):
        bound = orders["error_bound"]
        error = f"; error at most {bound:.3g} of the sum of magnitudes" if bound else ""
        count = f"{orders['tree_count']} tree" + "s" * (orders["tree_count"] > 1)
        found.append(f"{count}, at most {orders['depth']} deep, as {orders['trees'][0]}{error}")
    return {"order of operands": "; ".join(found)} if found else {}


def _check_stream_arguments(arguments: Namespace) -> None:
    """Check the arguments for a fabric with streams, and the path of the waveform file."""
    if arguments.through_port:
        raise InputError(
            "--through-port is for --top host, because with --top stream all words go through "
            "ports; leave it out"
        )
    if arguments.trace is not None:
        raise InputError("--trace records host tops only; leave out --trace or --top stream")
    if arguments.wave:
        check_waves(arguments, arguments.wave)


def _check_host_arguments(arguments: Namespace) -> None:
    """Check the arguments for a fabric with a host port, and the paths of output files."""
    from ..simulation.engines import check_wave_file

    for name, option in RUN_OPTIONS.items():
        if getattr(arguments, name) is not None:
            raise InputError(
                f"{option.names[-1]} needs --top stream; give both, or leave {option.names[-1]} out"
            )
    check_wave_file(arguments.wave)
    if arguments.trace and arguments.root == "any":
        raise InputError(
            "--trace needs a root that is fixed, because paths depend on it; give --root NODE in "
            "place of --root any"
        )
    if arguments.trace and (arguments.fabric or arguments.tables == "ram"):
        raise InputError("--trace is not available for tables that are loaded; leave it out")
    if arguments.wave:
        check_waves(arguments, arguments.wave)
    if arguments.trace:
        check_output(arguments, arguments.trace, TRACE)


def _run_jobs(arguments: Namespace, fabric: Fabric) -> tuple[Any, Any, str]:
    """Run all jobs (choices of mode, length, root and operator) on a simulated fabric.

    The words go through streams or through the host port. With ``--trace``, the trace is written.

    Returns
    -------
    report : SimulationReport or StreamReport
        The result.
    engine : Engine
        The engine that simulated.
    reason : str
        Reason for the choice of the engine.
    """
    from ..simulation.engines import choose_engine
    from ..simulation.engines.choice import estimate_seconds
    from ..simulation.simulate import simulate

    jobs, repeat = _choose_jobs(arguments, fabric), arguments.repeat
    with progress_bar("building the engine"):
        engine, reason = choose_engine(
            fabric,
            arguments.engine,
            wave=arguments.wave,
            through_port=arguments.through_port,
            repeat=len(jobs) * repeat,
        )
    run: Callable[..., Any] = partial(simulate, repeat=repeat)
    if fabric.interface.drive:
        given = {name: getattr(arguments, name) or 0.0 for name in RUN_OPTIONS}
        run, jobs = partial(fabric.interface.drive.simulate, **given), jobs * repeat
    elif engine.name == "amaranth":
        log_duration("Simulating", estimate_seconds(fabric, repeat)[0])
    with progress_bar("simulating") as progress:
        report = run(fabric, jobs=jobs, seed=arguments.data_seed, engine=engine, progress=progress)
    if arguments.trace:
        from ..program.trace import write_trace

        with progress_bar("writing the trace"):
            write_trace(fabric.program, arguments.trace)
    return report, engine, reason


def _choose_jobs(arguments: Namespace, fabric: Fabric) -> tuple[Job, ...]:
    """Return the jobs to run; each is the choice of mode, length, root and operator for one run.

    These are the default jobs of each mode. Random jobs follow if a run can choose its length or
    its operator, or with ``--jobs``. For an existing fabric (``--fabric``) with ``--flits``, there
    is one job for each mode, with messages of this length.
    """
    from ..simulation.engines import longest_job
    from ..simulation.jobs import default_jobs, jobs_with_random

    program, draw = fabric.program, jobs_with_random
    no_choice = not program.any_length and len(program.operators) < 2
    if arguments.fabric and arguments.flits is not None:
        if arguments.jobs is not None:
            raise InputError(
                "--jobs and --flits exclude each other for an existing fabric, because --flits "
                "runs each mode once; leave one of them out"
            )
        each = (longest_job(fabric, mode) for mode in range(len(program.modes)))
        return tuple(job._replace(length=arguments.flits) for job in each)
    if fabric.interface.drive:
        draw = fabric.interface.drive.draw_jobs
    elif no_choice and arguments.jobs is None:
        return default_jobs(program)
    count = RANDOM_JOBS if arguments.jobs is None else arguments.jobs
    require_result_memory("--jobs", count)
    return draw(fabric, count, seed=arguments.data_seed)


def _time_text(result: dict[str, Any]) -> str:
    """Return the time of a simulation as text: "1.2 s to build, 0.3 s, 250 clocks".

    `result` is the report of the simulation, by the keys of its JSON.
    """
    built = f"{result['build_seconds']:.1f} s to build, " if result["build_seconds"] else ""
    return f"{built}{result['seconds']:.1f} s, {result['clocks']} clocks"


def _length_text(jobs: list[dict[str, Any]]) -> str:
    """Return the number of runs and their lengths: "12, of lengths from 1 to 16 flits".

    `jobs` has an entry of the report for each run.
    """
    lengths = [job["length"] for job in jobs]
    between = f", of lengths from {min(lengths)} to {max(lengths)} flits" if lengths else ""
    return f"{len(lengths)}{between}"


def _result_facts(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a simulation for people, as names and values to print.

    `result` is the report of the simulation, by the keys of its JSON, with further facts.
    """
    said, several = facts_text(result), "modes" in result
    said["engine"] = f"{result['engine']} ({result['engine_reason']})"
    said["jobs"] = _length_text(result["jobs"]) if result["jobs"] else None
    said["roots"] = " ".join(map(str, result.get("roots", ()))) or None
    dropped = result.get("dropped") or {}
    errors = (f"{count} for error {error}" for error, count in dropped.items())
    said["dropped"] = ", ".join(errors) or None
    constants = [cost.constant_cycles_text for cost in result.get("costs", ())]
    said["constant"] = constants[0] if constants else None
    said |= _order_text(result)
    if (rate := result.get("throughput")) is not None:
        most = result["throughput_bound"]
        said["throughput"] = f"{rate:g} words a cycle a node, at most {most:g}"
    if said["operator"] is None:
        said["latency"] = None
    names = (name for name in SHOWN_FACTS if not (several and name in SINGLE_MODE_FACTS))
    found = {name: value for name in names if (value := said.get(name)) is not None}
    shown = {name.replace("_", " "): value for name, value in found.items()}
    for number, mode in enumerate(result.get("modes", ())):
        shown[f"mode {number}"] = _mode_text(number, mode, result["jobs"])
        if constants:
            shown[f"mode {number} formula"] = result["mode_costs"][number]["cost_formula"]
            shown[f"mode {number} constant"] = constants[number]
    shown |= _rate_facts(result["rate"]) if result.get("rate") else {}
    speed = result.get("node_cycles_per_second")
    shown["time"] = _time_text(result) + (f", {speed:,} node cycles a second" if speed else "")
    return shown | {name: result[name] for name in ("wave", "trace") if result.get(name)}


def _mode_text(number: int, mode: dict[str, Any], jobs: list[dict[str, Any]]) -> str:
    """Return the result of all runs of mode `number` as text.

    The text names the schedule of the mode, the number of runs, and the number of wrong words.
    `mode` has the facts about the schedule, and `jobs` has an entry of the report for each run of
    all modes.
    """
    mine = [job for job in jobs if job["mode"] == number]
    wrong, checked = (sum(job[f"words_{what}"] for job in mine) for what in ("wrong", "checked"))
    forms = f", {forms_text(mode['forms'])}" if "forms" in mode else ""
    return (
        f"{mode['collective']} by {mode['algorithm']}, {steps_text(mode)} "
        f"({bound_text(mode)}){forms}: {len(mine)} runs, {wrong} of {checked} words wrong"
    )


def _rate_facts(rate: dict[str, Any]) -> dict[str, str]:
    """Return the rate of consecutive runs, and its bottleneck, as names and values to print.

    The rate is in words a cycle. `rate` is the entry ``rate`` of the report.
    """
    return {
        "sustained rate": f"{rate['words_per_cycle']:.3g} words ({rate['bytes_per_cycle']:.3g} "
        f"bytes) a cycle, received by all nodes; {100 * rate['share']:.0f} % of "
        f"{rate['words_per_cycle_limit']:.3g}, which ports and links allow in the long run",
        "limited by": f"{rate['limited_by']}: of {rate['cycles']} cycles for {rate['runs']} runs, "
        f"loading needs {rate['load_cycles']:.0f}, running {rate['run_cycles']:.0f}, unloading "
        f"{rate['unload_cycles']:.0f}",
    }
