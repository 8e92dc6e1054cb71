"""The commands ``monitor``, ``run`` and ``load``, which use the fabric on a board.

They reach the fabric over the serial line and the bridge of the board.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..contract.options import add_options, parse_non_negative_int, parse_positive_int
from ..errors import InputError
from ..fabric.options import (
    TOPOLOGY,
    add_fabric_options,
    add_selection_arguments,
    add_tables_options,
)
from ..fpga.bridge import BAUD
from ..toolchain.values import unknown_name_error
from .arguments import FORCE, check_output
from .connect import BUILDS, connect, select_fabrics
from .output import print_json, print_line, print_report, progress_bar, raise_if_wrong
from .parser import Commands, add_command, changed_names

if TYPE_CHECKING:
    from ..rtl.fabric import Fabric
    from ..simulation.engines import Job

__all__ = ["add_baud", "add_commands"]

#: Help of TOPOLOGY for commands that accept a build in place of a selection.
TOPOLOGY_OR_BUILD = (
    f"{TOPOLOGY} TOPOLOGY and COLLECTIVE may be left out for a fabric that was built."
)

#: Attributes of the arguments that may be given for a fabric from a build.
BUILD_ARGUMENTS = (
    "board",
    "port",
    "build",
    "baud",
    "image",
    "data_seed",
    "jobs",
    "job",
    "data",
    "output",
    "force",
)

#: Default number of runs of ``monitor``.
DEFAULT_RUNS = 20


def add_commands(commands: Commands) -> None:
    """Add the commands ``monitor``, ``run`` and ``load`` and their arguments.

    `commands` has the parser of each command.
    """
    monitor = add_command(commands, "monitor", run_monitor)
    run = add_command(commands, "run", run_run)
    load = add_command(commands, "load", run_load)
    _add_port(load)
    load.add_argument(
        "image", metavar="IMAGE", help="Image to load, as torusfabric image writes it."
    )
    for parser in (monitor, run):
        add_selection_arguments(parser, several=True, topology_help=TOPOLOGY_OR_BUILD)
        add_fabric_options(parser)
        add_tables_options(parser)
        _add_port(parser)
        add_options(
            parser.add_argument_group("runs"),
            """
            --image FILE: Image that is loaded first, for a fabric with --tables ram. Default: none,
                and the board must hold the one with which the fabric was built.
            --data-seed N: Seed of the random words. Default: 1.
            """,
            data_seed=(parse_non_negative_int, 1),
        )
    text = f"""--jobs N: Number of runs, each with a random length, root and operator. Default:
        {DEFAULT_RUNS}.
    """
    add_options(monitor.add_argument_group("runs"), text, jobs=(parse_positive_int, DEFAULT_RUNS))
    add_options(
        run.add_argument_group("runs"),
        """
        --job CHOICES: Choices of a run that the fabric leaves open; may be repeated. Default: the
            usual lengths, roots and operators of each mode. Example:
            mode=NAME,length=L,root=NODE,operation=NAME.
        --data FILE: NumPy file of unsigned integers to send in place of random words, a row for
            each node (flits; for scatter, alltoall and reduce-scatter destinations, flits).
            Default: random words.
        -o --output FILE: with --data: NumPy file for the words that each node received.
        """,
        FORCE,
        job={"action": "append", "default": []},
    )


def _add_port(parser: ArgumentParser) -> None:
    """Add to `parser` the options for the board, its port and the folder of its build."""
    group = parser.add_argument_group("board")
    text = f"""
        --board NAME: Name of a board, as torusfabric boards lists them, or path of a .py file.
            Example: icebreaker.
        --port PORT: Serial port, sim for a simulated board, or the ports of several boards that run
            together as A,B. Default: the port of the board. Example: /dev/ttyUSB1.
        --build DIR: Folder in which the bitstream was built, where no fabric is selected. Default:
            the one in {BUILDS}/ whose fabric is on the board.
        """
    add_options(group, text)
    add_baud(group)


def add_baud(parser: Any) -> None:
    """Add the option for the speed of the serial line.

    Parameters
    ----------
    parser : ArgumentParser or argument group
        The parser, or the group of its options, to which ``--baud`` is added.
    """
    text = f"--baud N: Bits a second of the serial line. Default: {BAUD}.\n"
    add_options(parser, text, baud=(parse_positive_int, BAUD))


def _connect_board(arguments: Namespace) -> Any:
    """Return a connection to the fabric of the arguments, or to all boards of its system."""
    port, fabric = arguments.port, arguments.build
    selects = (getattr(arguments, name, None) for name in ("topology", "collective", "plan"))
    selected = any(given is not None for given in selects)
    if selected and fabric is not None:
        raise InputError(
            "--build and a selection of a fabric exclude each other; leave one of them out"
        )
    if not selected:
        for name in changed_names(arguments, *BUILD_ARGUMENTS):
            raise InputError(
                f"{name} describes a fabric, so it needs TOPOLOGY and COLLECTIVE, or --plan FILE"
            )
    if arguments.board:
        from ..fpga.board import find_board

        board = find_board(arguments.board)
        port = port or board.port
        if fabric is None and (BUILDS / board.name / "report.json").exists():
            fabric = BUILDS / board.name
    if port is None:
        raise InputError(
            "The serial port is missing; give --port, for example --port /dev/ttyUSB1 or --port "
            "sim, or --board"
        )
    if selected:
        fabric = select_fabrics(arguments)
    return connect(port, fabric, image=arguments.image, baud=arguments.baud)


def _find_number(what: str, text: str, names: Sequence[str], *others: Sequence[str]) -> int:
    """Return the index of an entry, such as a mode, that a user gives by index or by name.

    Parameters
    ----------
    what : str
        The noun for the entry, with which an error message begins.
    text : str
        The text of the user: an index, or a name that only one entry has.
    names : sequence of str
        The name of each entry.
    *others : sequence of str
        Other names of the entries, such as shorter ones; each sequence has one for each entry.
    """
    each = zip(map(str, range(len(names))), names, *others, strict=True)
    found = [int(known[0]) for known in each if text in known]
    if len(found) != 1:
        raise unknown_name_error(what, text, names)
    return found[0]


def _parse_job(fabric: "Fabric", text: str) -> "Job":
    """Return the job that a user gives as text, such as ``mode=allreduce,length=3``.

    The names of modes and operators are those of `fabric`. A job that `fabric` cannot run is an
    error.
    """
    from ..simulation.engines import Job
    from ..simulation.jobs import check_jobs
    from ..toolchain import values

    chosen = dict[str, str]()
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in Job._fields:
            raise unknown_name_error("Choice of a job", name, Job._fields)
        if name in chosen:
            raise InputError(f"Job {text} gives {name} more than once; give it once")
        chosen[name] = value
    program, numbers = fabric.program, dict[str, int]()
    if "mode" in chosen:
        names = [program.name_of(mode) for mode in program.modes]
        pairs = zip(names, program.modes, strict=True)
        whole = [f"{name}:{mode.schedule.algorithm}" for name, mode in pairs]
        numbers["mode"] = _find_number("Mode", chosen["mode"], whole, names)
    if "operation" in chosen:
        operators = program.modes[numbers.get("mode", 0)].operators
        names = [operator.name for operator in operators]
        numbers["operation"] = _find_number("Operation", chosen["operation"], names)
    for name in {"length", "root"} & set(chosen):
        numbers[name] = values.parse_non_negative_int(name.capitalize(), chosen[name])
    job = Job(**numbers)
    check_jobs(fabric, [job])
    return job


def _job_text(fabric: "Fabric", job: "Job") -> str:
    """Return the text of a job: ``allreduce by max, 3 flits``."""
    mode = fabric.program.modes[job.mode or 0]
    words = fabric.program.name_of(mode)
    if mode.operators:
        words += f" by {mode.operators[job.operation or 0]}"
    if job.root is not None:
        words += f", root {job.root}"
    length = fabric.program.length_of(job.length)
    return f"{words}, {length} flit{'s' * (length > 1)}"


def run_monitor(arguments: Namespace) -> None:
    """Run ``monitor``: run random jobs, each with new data, until one is wrong or all are done."""
    from ..planning import require_result_memory
    from ..simulation.jobs import random_jobs

    require_result_memory("--jobs", arguments.jobs)
    board, results = _connect_board(arguments), []
    jobs = random_jobs(board.fabric, arguments.jobs, seed=arguments.data_seed)
    for number, job in enumerate(jobs):
        report = board.run([job], seed=arguments.data_seed + number)
        results.append({"run": number, **job.inputs, **_count_facts(report)})
        if not arguments.json:
            print_line(
                f"run {number}: {_job_text(board.fabric, job)}: {report.cycles} cycles, predicted "
                f"{report.predicted_cycles}; {report.words_wrong} of {report.words_checked} words "
                "wrong"
            )
        if not report.passed:
            break
    if arguments.json:
        print_json({"runs": results, "passed": report.passed})
    raise_if_wrong(report)


def _count_facts(report: Any) -> dict[str, Any]:
    """Return the measured and predicted cycles, and the checked and the wrong words, by name.

    `report` is the report of one run or several on a board.
    """
    names = ("cycles", "predicted_cycles", "words_checked", "words_wrong")
    return {name: getattr(report, name) for name in names}


def run_load(arguments: Namespace) -> None:
    """Run ``load``: load an image onto a board, and print its modes."""
    from .loaded import print_image

    board = _connect_board(arguments)
    print_image(arguments, board.fabric.tables.image, {"port": board.name})


def run_run(arguments: Namespace) -> None:
    """Run ``run``: run jobs on random data, or one job on data of a file, and check the results."""
    if arguments.data is not None and arguments.output is None:
        raise InputError("--data needs --output FILE.npy, where the received words are written")
    if arguments.data:
        return _run_on_data(arguments)
    board = _connect_board(arguments)
    jobs = [_parse_job(board.fabric, text) for text in arguments.job]
    with progress_bar("running") as progress:
        report = board.run(jobs or None, seed=arguments.data_seed, progress=progress)
    runs = {
        f"run {number}": f"{job.collective}, {job.length} flits: {_run_result_text(job)}"
        for number, job in enumerate(report.jobs)
    }
    shown = {
        "topology": report.topology,
        "algorithm": report.algorithm,
        **runs,
        **_count_facts(report),
    }
    print_report(arguments, report.to_json() | {"port": board.name}, _with_spaces(shown))
    raise_if_wrong(report)
    return None


def _run_result_text(job: Any) -> str:
    """Return the result of a run: "31 cycles, predicted 31", and its error if it failed.

    `job` is the report of this run.
    """
    cycles = {*job.cycles} if isinstance(job.cycles, tuple) else {job.cycles}
    text = f"{'/'.join(map(str, sorted(cycles)))} cycles, predicted {job.predicted_cycles}"
    return f"{text}; failed: {fault}" if (fault := getattr(job, "fault", "")) else text


def _with_spaces(facts: dict[str, Any]) -> dict[str, Any]:
    """Return `facts` for people: each name has spaces in place of underscores."""
    return {name.replace("_", " "): value for name, value in facts.items()}


def _run_on_data(arguments: Namespace) -> None:
    """Run one job on the data of a file, write the received words, and check them."""
    import numpy as np

    from ..simulation.engines import Job
    from ..toolchain.destinations import require_uncompressed
    from ..toolchain.files import open_for_writing
    from ..toolchain.reading import read_array

    require_uncompressed("Array", arguments.output)
    check_output(arguments, arguments.output, b"\x93NUMPY")
    data = read_array(arguments.data, "Data")
    if len(arguments.job) > 1:
        raise InputError(f"--data is for one job, not {len(arguments.job)}; give --job once")
    board = _connect_board(arguments)
    if (width := board.fabric.width) > 64:
        raise InputError(f"--data needs a fabric whose flits have at most 64 bits, not {width}")
    job = _parse_job(board.fabric, arguments.job[0]) if arguments.job else Job()
    words, report = board.carry(data, job)
    with open_for_writing(arguments.output) as file:
        np.save(file, words.astype(np.min_scalar_type((1 << width) - 1)))
    result = {"output": arguments.output, **_count_facts(report)}
    print_report(arguments, result, _with_spaces(result))
    raise_if_wrong(report)
