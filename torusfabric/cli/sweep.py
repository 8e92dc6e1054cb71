"""The command ``sweep``: plan, simulate and synthesize a grid of fabrics.

`torusfabric/sweep/grid.py` defines the grid and its results file.
"""

from argparse import Namespace
from functools import partial
from pathlib import Path

from ..contract.options import add_options, parse_positive_int
from ..errors import WorkFailed
from .output import print_report, progress_bar
from .parser import Commands, add_command

__all__ = ["add_commands"]

EPILOG = """\
examples:
  torusfabric sweep grid.toml -o grid.jsonl

plans = ["plan.json", "a.json,b.json", ..], or --plan, puts schedule files in place of the
lists from topologies to counts; without them grid.toml holds (all but topologies and
collectives may be left out):
  steps = ["plan", "cycles", "simulate", "synth"]  # default plan alone
  topologies = ["4x4", "6x8", "4x4x4"]
  collectives = ["allgather", "allgather,alltoall:necklace"]    # several make one fabric
  algorithms = ["best", "hamiltonian"]   # or all that know the collective: ["all"]
  ports = [2, 4]
  chunks = [1, 2]
  link_latencies = ["1", "0:1,1:4"]    # cycles of links
  traffic = ["a.csv", "b.csv"]           # messages of the collective pattern
  counts = ["counts.csv"]                # lengths, where messages may be unequal
  widths = [8, 32]                       # default 32
  flits = [2, 8]                         # default one for each chunk
  max_flits = [8, 64]                    # further ones, in which each run chooses up to so many
  targets = ["ecp5-25k", "ice40-hx8k"]   # synth must have them
  mappings = ["compact", "fast"]         # default compact
  pnr = true                             # default false
  seeds = 3                              # default 1
  faults = 2                             # broken links, drawn with each of the seeds
"""


def add_commands(commands: Commands) -> None:
    """Add the command ``sweep`` and its arguments; `commands` has the parser of each command."""
    parser = add_command(commands, "sweep", run_sweep)
    parser.epilog = EPILOG
    parser.add_argument(
        "file", metavar="FILE", help="Sweep file in TOML: steps, and the grid of fabrics."
    )
    add_options(
        parser,
        """
        --plan PLAN: Schedule file in place of topologies and collectives.
        -o --output RESULTS: File for the results, one JSON line each; steps that it holds are not
            done again. Default: FILE with the suffix .jsonl.
        --simulate: Fabrics that are simulated: all, none, or sample (the first of each collective
            and algorithm, and one in 8); of the others the cycles of the compiled program count.
            Default: all.
        """,
        simulate={"choices": ("all", "sample", "none"), "default": "all"},
    )
    where = parser.add_mutually_exclusive_group()
    text = """
        --jobs N: Number of processes. Default: 2.
        --scheduler ADDRESS: Address of a Dask scheduler whose workers are used. Example:
            tcp://host:8786.
        """
    add_options(where, text, jobs=(parse_positive_int, 2))


def run_sweep(arguments: Namespace) -> None:
    """Run ``sweep``: plan, simulate and synthesize each fabric of a grid, and print the outcome.

    Fabrics that are already in the file of results are left out.
    """
    from ..sweep.cluster import run_on_cluster
    from ..sweep.cores import check_job_count, run_on_cores
    from ..sweep.grid import SimulationChoice, grid_points, read_sweep
    from ..sweep.results import Results
    from ..sweep.work import compute_rows

    check_job_count(arguments.jobs)
    plans = [arguments.plan] if arguments.plan else []
    todo = grid_points(
        read_sweep(arguments.file, plans=plans), SimulationChoice(arguments.simulate)
    )
    path = arguments.output or Path(arguments.file).with_suffix(".jsonl")
    if arguments.scheduler:
        workers = partial(run_on_cluster, address=arguments.scheduler)
    else:
        workers = partial(run_on_cores, jobs=arguments.jobs)
    with Results(path) as results, progress_bar("sweeping") as progress:
        outcome = compute_rows(todo, results, workers, progress)
    facts = {"results": str(path)} | outcome
    print_report(arguments, facts, facts | {"failed": len(outcome["failed"])})
    if outcome["failed"]:
        first = outcome["failed"][0]
        raise WorkFailed(
            f"{len(outcome['failed'])} of {outcome['rows']} rows failed; first: {first}"
        )
