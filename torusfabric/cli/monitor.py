"""The commands that talk to a board on its serial line: monitor, run."""

import contextlib
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from ..errors import InputError, WorkFailed
from ..fpga.selftest import BAUD
from .arguments import add_force, check_output, natural, positive
from .command import Commands, add_command
from .output import print_facts, print_json, print_line, progress_bar

if TYPE_CHECKING:
    from ..fpga.selftest.client import BoardClient
    from ..fpga.selftest.facts import Facts

__all__ = ["add_baud", "add_commands"]


def add_commands(commands: Commands) -> None:
    """Add the commands to a parser."""
    monitor = add_command(commands, "monitor", run_monitor)
    run = add_command(commands, "run", run_run)
    for parser in (monitor, run):
        parser.add_argument("port", metavar="PORT", help="serial port of the board")
        add_baud(parser)
    monitor.add_argument(
        "-c",
        "--do",
        metavar="COMMAND",
        action="append",
        default=[],
        help="what to do, may be repeated: info, test [RUNS], status, write NODE ADDRESS WORD.., "
        "read NODE ADDRESS [COUNT], start [mode=NAME] [length=L] [root=NODE] [operation=NAME] "
        "(words in hexadecimal); by default it is asked for, or, away from a terminal, info and "
        "test",
    )
    run.add_argument(
        "data",
        metavar="DATA",
        help="numpy array of unsigned integers, a row for each node: what it sends (flits; for "
        "scatter, alltoall and reduce-scatter destinations, flits)",
    )
    run.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="array of what each node received"
    )
    add_force(run)
    _add_choices(run)


def _add_choices(parser: ArgumentParser) -> None:
    """Add what a run chooses on a board that leaves a choice."""
    add = parser.add_argument_group("choices, where the board leaves them").add_argument
    add(
        "--mode",
        metavar="NAME",
        help="which of several collectives: allreduce, allreduce:matching, or its number",
    )
    add("--length", metavar="L", type=positive, help="flits of a message (default those of DATA)")
    add("--root", metavar="NODE", type=natural, help="node that sends or receives (default 0)")
    add("--operation", metavar="NAME", help="add, max, .. or its number (default the first)")


def add_baud(parser: Any) -> None:
    """Add the option of the serial line."""
    parser.add_argument(
        "--baud",
        metavar="N",
        type=positive,
        default=BAUD,
        help=f"bits a second of the serial line (default {BAUD})",
    )


def _client(arguments: Namespace) -> "BoardClient":
    """The board at the other end of the serial line."""
    from ..fpga.selftest.client import BoardClient
    from ..fpga.selftest.serial_line import open_port

    return BoardClient(open_port(arguments.port, baud=arguments.baud))


def run_monitor(arguments: Namespace) -> int:
    """Do what is asked for on a board; returns 2 after a failed test."""
    client = _client(arguments)
    asked = arguments.do
    if not asked:
        if sys.stdin.isatty() and not arguments.json:
            return _ask(client)
        asked = ["info", "test"]
    return _do_all(client, asked, as_json=arguments.json)


def _do_all(client: "BoardClient", asked: list[str], *, as_json: bool) -> int:
    """Do some commands, and print each result as soon as it is there."""
    from ..fpga.selftest.monitor import perform

    results = []
    for text in asked:
        result, said = perform(client, text)
        results.append({"command": text, **result})
        if not as_json:
            print_line(said)
    if as_json:
        print_json({"results": results})
    return 2 if any(result.get("result") not in (None, "pass") for result in results) else 0


def _ask(client: "BoardClient") -> int:
    """Do what is typed, until there is no more."""
    from ..fpga.selftest.monitor import COMMANDS, perform

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 (its import makes lines editable)
    print(perform(client, "info")[1])
    print(f"commands: {COMMANDS}; quit")
    while True:
        try:
            text = input("torusfabric> ").strip()
        except EOFError:
            print()
            return 0
        if text in ("quit", "exit"):
            return 0
        try:
            if text:
                print(perform(client, text)[1])
        except (InputError, WorkFailed) as error:
            print(error)


def _job(arguments: Namespace, facts: "Facts", data: Any) -> dict[str, int]:
    """What the run chooses: as is asked for, and the length of the data."""
    from ..fpga.selftest.data import data_length
    from ..fpga.selftest.job_facts import asked_job, choices_in, job_facts

    names = ("mode", "length", "root", "operation")
    job = asked_job(facts, **{name: getattr(arguments, name) for name in names})
    if "length" in choices_in(facts) and "length" not in job:
        job["length"] = data_length(data, job_facts(facts, job))
    return job


def run_run(arguments: Namespace) -> None:
    """Send data through a board; returns 2 if what arrives is not what must."""
    import numpy as np

    from ..fpga.selftest.data import expected_data, send_data
    from ..fpga.selftest.job_facts import job_facts
    from ..toolchain.destinations import require_plain
    from ..toolchain.files import writing
    from ..toolchain.reading import read_array

    require_plain("Array", arguments.output)
    check_output(arguments, arguments.output, b"\x93NUMPY")
    data = read_array(arguments.data, "Data")
    client = _client(arguments)
    job = _job(arguments, client.facts, data)
    facts = job_facts(client.facts, job)
    messages = send_data(data, facts)
    with progress_bar("sending") as progress:
        words, cycles = client.run(messages, job, progress=progress)
    expected, receives = expected_data(messages, facts)
    with writing(arguments.output) as file:
        np.save(file, words)
    wrong = np.argwhere((words != expected) & receives[:, None])
    checked = int(receives.sum()) * expected.shape[1]
    result = facts["job"] | {
        "output": arguments.output,
        "nodes": len(words),
        "words": int(words.shape[1]),
        "cycles": cycles,
        "words_checked": checked,
        "words_wrong": len(wrong),
    }
    if arguments.json:
        print_json(facts | result)
    else:
        print_facts(result)
    if len(wrong):
        node, address = (int(x) for x in wrong[0])
        raise WorkFailed(
            f"{len(wrong)} of {checked} words are wrong; first: node {node} holds "
            f"{words[node, address]:#x} at {address}, not {expected[node, address]:#x}"
        )
