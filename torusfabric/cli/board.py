"""The commands of boards: boards, build, flash, monitor, run."""

import os
import sys
from pathlib import Path

from ..errors import InputError, WorkFailed
from ..selftest import BAUD
from .fabric import add_fabric_options, make_fabric
from .output import print_facts, print_json, print_table, progress_bar
from .planning import _add
from .selection import add_selection, command_line, positive

__all__ = ["add_commands"]


def add_commands(commands):
    """Add the commands to a parser."""
    _add(commands, "boards", run_boards, "list the boards", "torusfabric boards")
    build = _add(
        commands,
        "build",
        run_build,
        "make a bitstream that tests a fabric on a board",
        "torusfabric build --board icebreaker 2x2 allgather --width 8 -o out/",
    )
    flash = _add(
        commands,
        "flash",
        run_flash,
        "make a bitstream and load it onto a board",
        "torusfabric flash --board ulx3s-25f 4x4 allgather --width 32",
    )
    for parser in (build, flash):
        _add_build(parser)
    build.add_argument(
        "-o", "--output", metavar="DIR", required=True, help="folder for the bitstream and report"
    )
    flash.add_argument(
        "-o", "--output", metavar="DIR", help="folder for the bitstream (default build/BOARD)"
    )
    flash.add_argument(
        "--dry-run", action="store_true", help="print the command that would load it"
    )
    monitor = _add(
        commands,
        "monitor",
        run_monitor,
        "talk to a board",
        "torusfabric monitor /dev/ttyUSB1 -c 'write 3 0 a5' -c start -c 'read 0 8 4'",
    )
    run = _add(
        commands,
        "run",
        run_run,
        "send data through the fabric on a board",
        "torusfabric run /dev/ttyUSB1 data.npy -o gathered.npy",
    )
    for parser in (monitor, run):
        parser.add_argument("port", metavar="PORT", help="serial port of the board")
        _add_baud(parser)
    monitor.add_argument(
        "-c",
        "--do",
        metavar="COMMAND",
        action="append",
        default=[],
        help="what to do, may be repeated: info, test [RUNS], status, write NODE PLACE WORD.., "
        "read NODE PLACE [COUNT], start (words in hexadecimal); by default it is asked for, or, "
        "away from a terminal, info and test",
    )
    run.add_argument(
        "data", metavar="DATA", help="numpy array of unsigned integers, (nodes, flits)"
    )
    run.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="array of what each node received"
    )


def _add_baud(parser):
    parser.add_argument(
        "--baud",
        metavar="N",
        type=positive,
        default=BAUD,
        help=f"bits a second of the serial line (default {BAUD})",
    )


def _add_build(parser):
    add_selection(parser)
    add_fabric_options(parser)
    group = parser.add_argument_group("board")
    add = group.add_argument
    add("--board", metavar="NAME", required=True, help="see the boards command; or a .py file")
    _add_baud(group)
    add("--force", action="store_true", help="build even what was built before")


def run_boards(arguments):
    """List the boards."""
    from ..board import load_boards

    rows = [
        {
            "name": name,
            "title": board.title,
            "clock_mhz": board.make_platform().default_clk_frequency / 1e6,
            "serial_line": board.pins,
            "programmer": board.program[0],
        }
        for name, board in load_boards().items()
    ]
    if arguments.json:
        print_json({"boards": rows})
    else:
        print_table(
            ("board", "", "MHz", "serial line", "programmer"),
            [[format(v, "g") if isinstance(v, float) else v for v in row.values()] for row in rows],
        )


def _build(arguments, folder):
    """Build what was selected."""
    from ..board import build, find_board

    board = find_board(arguments.board)
    fabric, _ = make_fabric(arguments)
    settings = {"board": board.name, "width": fabric.width, "flits": fabric.flits}
    command = command_line(arguments, fabric.program.schedule, **settings)
    built = build(
        fabric,
        board,
        folder or Path("build", board.name),
        baud=arguments.baud,
        force=arguments.force,
        command=command,
    )
    return built, board


def _facts(built):
    """What to print of a build."""
    report = built.report
    used = [
        f"{kind} {count['used']} of {count['available']}"
        for kind, count in report["resources"].items()
    ]
    return {
        "board": report["title"],
        "fabric": f"{report['topology']} {report['collective']} by {report['algorithm']}",
        "resources": ", ".join(used),
        "clock": f"{report['clock_mhz']:g} MHz, {report['fmax_mhz']} MHz would do",
        "predicted cycles": report["predicted_cycles"],
        "serial line": f"{report['baud']} baud, {report['uart']}",
        "bitstream": built.bitstream,
        "sha256": report["sha256"],
        "built": "before, the same" if built.cached else "now",
    }


def run_build(arguments):
    """Make a bitstream."""
    built, _ = _build(arguments, arguments.output)
    if arguments.json:
        print_json(built.report | {"folder": str(built.folder), "cached": built.cached})
    else:
        print_facts(_facts(built))


def run_flash(arguments):
    """Make a bitstream and load it."""
    from ..board import flash, flash_command

    built, board = _build(arguments, arguments.output)
    command = f"cd {built.folder} && {flash_command(board)}"
    if not arguments.dry_run:
        flash(built, board)
    if arguments.json:
        result = {"command": command, "flashed": not arguments.dry_run, "folder": str(built.folder)}
        print_json(built.report | result)
    elif arguments.dry_run:
        print(command)
    else:
        print_facts(_facts(built) | {"loaded": command})


def _console(arguments):
    from ..selftest.protocol import Console, open_port

    return Console(open_port(arguments.port, baud=arguments.baud))


def run_monitor(arguments):
    """Do what is asked for on a board; returns 2 after a failed test."""
    console = _console(arguments)
    asked = arguments.do or (None if sys.stdin.isatty() else ["info", "test"])
    if asked is not None:
        results = [_do(console, text) for text in asked]
        if arguments.json:
            pairs = zip(asked, results, strict=True)
            print_json({"results": [{"command": c, **result} for c, (result, _) in pairs]})
        else:
            for _, text in results:
                print(text)
        return 2 if any(result.get("result") not in (None, "pass") for result, _ in results) else 0
    print(_do(console, "info")[1])
    while True:
        try:
            text = input("torusfabric> ").strip()
        except EOFError:
            return 0
        if text in ("quit", "exit"):
            return 0
        try:
            if text:
                print(_do(console, text)[1])
        except (InputError, WorkFailed) as error:
            print(error)


def _do(console, text):
    """One command of the monitor: its result as data, and for people."""
    word, *rest = text.split()
    try:
        numbers = [
            int(number, 16 if k > 1 and word == "write" else 0) for k, number in enumerate(rest)
        ]
    except ValueError:
        raise InputError(f"Numbers of a command must be whole numbers, not {text!r}") from None
    facts, (least, most) = console.facts, _COUNTS.get(word, (0, -1))
    if word not in _COUNTS or not least <= len(numbers) <= most:
        raise InputError(
            "Command must be info, test [RUNS], status, start, read NODE PLACE [COUNT] or write "
            f"NODE PLACE WORD.., not {text!r}"
        )
    if word == "info":
        width = max(map(len, facts))
        return facts, "\n".join(f"{name:<{width}}  {value}" for name, value in facts.items())
    if word in ("test", "status"):
        verdict = console.test(*numbers) if word == "test" else console.status()
        return vars(verdict), verdict.describe(facts)
    if word == "start":
        cycles = console.start()
        return {"cycles": cycles}, f"done in {cycles} cycles"
    node, place, *others = numbers
    if not 0 <= node < facts["nodes"] or place < 0:
        raise InputError(f"Node must be from 0 to {facts['nodes'] - 1}, not {node}")
    if word == "write":
        console.write(node, place, others)
        return {"written": len(others)}, f"wrote {len(others)} words"
    words = console.read(node, place, *others)
    return {"words": words}, " ".join(f"{w:0{-(-facts['width'] // 4)}x}" for w in words)


#: How many numbers the commands of the monitor take.
_COUNTS = {
    "info": (0, 0),
    "test": (0, 1),
    "status": (0, 0),
    "start": (0, 0),
    "read": (2, 3),
    "write": (3, 1 << 20),
}


def run_run(arguments):
    """Send data through a board; returns 2 if what arrives is not what the collective owes."""
    import numpy as np

    from ..selftest.protocol import fitting, owed
    from ..verilog import writable

    writable(arguments.output)
    try:
        data = np.load(arguments.data)
    except (OSError, ValueError, EOFError) as error:
        reason = getattr(error, "strerror", None) or "not an array"
        raise InputError(
            f"Data must be a readable .npy file, not {arguments.data} ({reason})"
        ) from None
    console = _console(arguments)
    messages = fitting(data, console.facts)
    with progress_bar("sending") as progress:
        words, cycles = console.run(messages, progress=progress)
    nodes, expected = owed(messages, console.facts)
    part = Path(f"{arguments.output}.part")
    with open(part, "wb") as file:
        np.save(file, words)
    os.replace(part, arguments.output)
    wrong = np.argwhere(words[nodes] != expected)
    result = {
        "output": arguments.output,
        "nodes": len(words),
        "words": int(words.shape[1]),
        "cycles": cycles,
        "words_checked": int(expected.size),
        "words_wrong": len(wrong),
    }
    if arguments.json:
        print_json(console.facts | result)
    else:
        print_facts(result)
    if len(wrong):
        node, place = (int(x) for x in wrong[0])
        raise WorkFailed(
            f"{len(wrong)} of {expected.size} words are wrong; first: node {nodes[node]} holds "
            f"{words[nodes[node], place]:#x} at {place}, not {expected[node, place]:#x}"
        )
