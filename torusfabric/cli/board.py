"""The commands that make bitstreams for boards: boards, build, flash."""

import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..collective import Operator
from ..errors import InputError
from ..toolchain.notices import say
from .arguments import folder, positive
from .command import Commands, add_command
from .fabric import add_fabric_options, make_fabric
from .monitor import add_baud
from .output import Progress, print_facts, print_json, print_line, print_rendered, progress_bar
from .selection import add_selection

if TYPE_CHECKING:
    from ..fpga.board import Board, Built
    from ..rtl.fabric import Fabric

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Add the commands to a parser."""
    _add_boards(commands)
    _add_builds(commands)


def _add_boards(commands: Commands) -> None:
    """Add the command about boards."""
    boards = add_command(
        commands,
        "boards",
        run_boards,
        "list the boards, or find out what one holds",
        "torusfabric boards --measure icestick",
    )
    boards.add_argument(
        "--measure",
        metavar="NAME",
        help="build square all-gathers for this board (or .py file) until the largest that place "
        "and route fits is found, and print what to enter in the board's file; takes minutes, on "
        "a large device hours",
    )
    boards.add_argument(
        "--width",
        metavar="W",
        type=positive,
        default=8,
        help="bits of a flit to measure with (default 8)",
    )


def _add_builds(commands: Commands) -> None:
    """Add the commands that make bitstreams."""
    build = add_command(
        commands,
        "build",
        run_build,
        "make a bitstream that tests a fabric on a board",
        "torusfabric build --board icebreaker 2x2 allgather --width 8 -o out/",
    )
    flash = add_command(
        commands,
        "flash",
        run_flash,
        "make a bitstream and load it onto a board",
        "torusfabric flash --board ulx3s-25f 4x4 allgather --width 32",
    )
    for parser in (build, flash):
        _add_build(parser)
        parser.add_argument(
            "-o",
            "--output",
            metavar="DIR",
            type=folder,
            help="folder for the bitstream and report (default build/BOARD)",
        )
    flash.add_argument(
        "--dry-run", action="store_true", help="build, and print the command that would load it"
    )


def _add_build(parser: ArgumentParser) -> None:
    """Add what to build, and for which board."""
    add_selection(parser)
    add_fabric_options(parser)
    group = parser.add_argument_group("board")
    add = group.add_argument
    add("--board", metavar="NAME", required=True, help="see the boards command; or a .py file")
    add_baud(group)
    add(
        "--minutes",
        metavar="M",
        type=positive,
        help="how long the tools may work (default 15 for a small device, 60 for an ECP5)",
    )
    add(
        "--force",
        action="store_true",
        help="build even what was built before, or is larger than what is known to fit",
    )


def run_boards(arguments: Namespace) -> int:
    """List the boards, or measure one."""
    from ..fpga.board import load_boards

    if arguments.measure:
        return _measure(arguments)
    rows = [_described(name, board) for name, board in load_boards().items()]
    if arguments.json:
        print_json({"boards": rows})
    else:
        _print_boards(rows)
    return 0


def _described(name: str, board: "Board") -> dict[str, Any]:
    """What there is to know of a board."""
    return {
        "name": name,
        "title": board.title,
        "clock_mhz": board.make_platform().default_clk_frequency / 1e6,
        "largest": board.limit.to_json() if board.limit else None,
        "serial_line": board.pins,
        "programmer": board.program[0],
    }


def _print_boards(rows: list[dict[str, Any]]) -> None:
    """Print the list as a table, a line a board where nobody looks at a terminal."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("board", "MHz", "largest all-gather", "programmer", "", "serial line"):
        table.add_column(head, no_wrap=head in ("board", "MHz"))
    for row in rows:
        mhz, texts = f"{row['clock_mhz']:g}", (row["programmer"], row["title"], row["serial_line"])
        table.add_row(row["name"], mhz, _largest(row), *texts)
    print_rendered(table)


def _largest(row: dict[str, Any]) -> str:
    """The largest torus that fits, and how that is known, for the table."""
    limit = row["largest"]
    if limit is None:
        return "not known"
    how = "estimated"
    if limit["measured"]:
        how = "measured" if limit["measured"] == row["name"] else f"as {limit['measured']}"
    return f"{limit['side']}x{limit['side']}, {limit['width']} bits ({how})"


def _measure(arguments: Namespace) -> int:
    """Build for a board until the largest torus that fits is found."""
    from ..fpga.board import Limit, find_board, find_limit, try_board
    from ..toolchain.folders import work_folder

    board = find_board(arguments.measure)
    make_fabric = lambda side: _square_gather(side, arguments.width)
    start = board.limit.side if board.limit else 2
    report = lambda tried: print(
        f"{tried.side}x{tried.side}  {'fits' if tried.fits else 'no'}: {tried.why}",
        file=sys.stderr,
        flush=True,
    )
    with work_folder("boards") as folder:
        attempt = try_board(board, make_fabric, folder)
        side, attempts = find_limit(attempt, start=start, progress=report)
    limit = None
    if side is not None:
        algorithm = make_fabric(side).program.schedule.algorithm
        limit = Limit(side, board.name, algorithm=algorithm, width=arguments.width)
    if arguments.json:
        tried = [vars(one) for one in attempts]
        print_json({"board": board.name, "limit": limit and limit.to_json(), "tried": tried})
    else:
        print_line(
            f"limit={limit.entry()},"
            if limit
            else f"no square torus of {arguments.width} bits fits"
        )
    return 0


def _square_gather(side: int, width: int) -> Any:
    """The fabric of an all-gather on a square torus, by the default algorithm."""
    from ..planning import compile, plan
    from ..rtl import Fabric

    return Fabric(compile(plan(f"{side}x{side}", "allgather", check=False)), width=width)


def _build(arguments: Namespace) -> tuple["Built", "Board"]:
    """Build what was selected."""
    from ..fpga.board import build, find_board
    from ..toolchain.cache import Cache, RenewingCache

    board = find_board(arguments.board)
    if arguments.minutes:
        board = replace(board, minutes=arguments.minutes)
    if arguments.force:
        board = replace(board, limit=None)
    folder = Path(arguments.output or Path("build", board.name))
    _check_selection(arguments, board)
    made = make_fabric(arguments)
    with progress_bar("building") as bar:
        built = build(
            made.fabric,
            board,
            folder,
            baud=arguments.baud,
            cache=RenewingCache() if arguments.force else Cache(),
            command=made.command_line(arguments.command, board=board.name),
            progress=_announced(bar, board, made.fabric, folder),
        )
    return built, board


def _check_selection(arguments: Namespace, board: "Board") -> None:
    """Refuse what cannot fit onto a board before it is planned, which may take long."""
    from ..collective import parse_collective
    from ..fpga.board import check_selection
    from ..topology import parse_topology

    try:
        topology = parse_topology(arguments.topology)
        collective = parse_collective(arguments.collective, topology=topology)
    except (InputError, TypeError):
        return  # a schedule file, or what is told with more knowledge later
    check_selection(board, topology, collective, flits=arguments.flits, width=arguments.width)


def _announced(bar: Progress, board: "Board", fabric: "Fabric", folder: Path) -> Progress:
    """A progress bar; before it, a line says how long this takes, and if it waits for others."""
    from ..fpga.board import duration

    said: set[str] = set()

    def advance(done: int, total: int, text: str) -> None:
        minutes = duration(board, fabric) if not said else 0
        line = text
        if not text.startswith("waiting"):
            line = (
                f"building for {board.name}: some {minutes} min on a slow machine, at most "
                f"{board.minutes:g} (--minutes; logs: {folder / 'build'}, at the end)"
            )
        kind = line.partition(" ")[0]
        if kind not in said:
            say(line)
        said.add(kind)
        bar(done, total, text)

    return advance


def _facts(built: "Built") -> dict[str, Any]:
    """What to print of a build."""
    report = built.report
    used = [
        f"{kind} {count['used']} of {count['available']}"
        for kind, count in report["resources"].items()
    ]
    what = f"{report['topology']} {report['collective']}"
    if "operator" in report:
        operator = Operator(report["operator"], report["signed"])
        what += f" ({operator})"
    return {
        "board": report["title"],
        "fabric": f"{what} by {report['algorithm']}",
        "resources": ", ".join(used),
        "clock": f"{report['clock_mhz']:g} MHz; place and route reached {report['fmax_mhz']} MHz",
        "predicted cycles": report["predicted_cycles"],
        "serial line": f"{report['baud']} baud, {report['uart']}",
        "bitstream": built.bitstream,
        "sha256": report["sha256"],
        "built": "before, the same" if built.cached else "now",
    }


def run_build(arguments: Namespace) -> None:
    """Make a bitstream."""
    built, _ = _build(arguments)
    if arguments.json:
        print_json(built.report | {"folder": str(built.folder), "cached": built.cached})
    else:
        print_facts(_facts(built))


def run_flash(arguments: Namespace) -> None:
    """Make a bitstream and load it."""
    from ..fpga.board import flash, flash_command

    built, board = _build(arguments)
    command = f"cd {built.folder} && {flash_command(board)}"
    if not arguments.dry_run:
        flash(built, board)
    if arguments.json:
        result = {"command": command, "flashed": not arguments.dry_run, "folder": str(built.folder)}
        print_json(built.report | result)
    elif arguments.dry_run:
        print_line(command)
    else:
        print_facts(_facts(built) | {"loaded": command})
