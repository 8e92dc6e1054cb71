"""The simulation of a fabric that begins again by itself."""

from argparse import Namespace

from ..analysis.facts import in_words
from ..errors import InputError
from .arguments import check_waves
from .fabric import make_fabric
from .output import print_facts, print_json, progress_bar
from .simulated import raise_if_wrong, simulated

__all__ = ["run_periodic"]


def run_periodic(arguments: Namespace) -> None:
    """Simulate periods; returns 2 if a word or a cycle is wrong."""
    from ..simulation.engines import check_wave
    from ..simulation.periods import EPISODES, simulate_periods

    for name in ("trace", "jobs"):
        if getattr(arguments, name) is not None:
            raise InputError(f"--{name} must be left out for --periodic, which has periods")
    if arguments.engine not in ("auto", "amaranth"):
        raise InputError(f"--engine must be amaranth for --periodic, not {arguments.engine}")
    check_wave(arguments.wave)
    if arguments.wave:
        check_waves(arguments, arguments.wave)
    made = make_fabric(arguments, any_root=True)
    with progress_bar("simulating") as progress:
        report = simulate_periods(
            made.fabric,
            seed=arguments.data_seed,
            episodes=EPISODES * arguments.repeat,
            wave=arguments.wave,
            progress=progress,
        )
    result = simulated(report, made.facts)
    if arguments.json:
        print_json(result)
    else:
        shown = {name: value for name, value in in_words(result).items() if name not in HIDDEN}
        counted = f"{report.periods}, of {report.messages} different sets of messages"
        speed = f"{report.bytes_a_cycle:g} bytes a cycle, received by all nodes from others"
        print_facts(
            {
                NAMES.get(name, name.replace("_", " ")): value
                for name, value in shown.items()
                if value is not None
            }
            | {"periods": counted, "throughput": speed}
        )
    raise_if_wrong(report, "Period must be {} cycles")


#: What is shown under other names.
NAMES = {
    "cycles": "cycles a period",
    "first_cycles": "first result after",
}

#: What is shown in other words, or not at all.
HIDDEN = ("messages", "bytes_a_cycle", "passed", "unit", "bound_where", "tau_bound", "first_wrong")
