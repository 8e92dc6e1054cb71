"""The command about the boards that there are: boards."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ..toolchain.notices import say
from .arguments import add_options, positive
from .output import print_json, print_line, print_rendered
from .parser import Commands, add_command

if TYPE_CHECKING:
    from ..fpga.board import Board

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Add the command to a parser."""
    boards = add_command(commands, "boards", run_boards)
    add_options(
        boards,
        """
        --measure NAME: build square all-gathers for this board (or .py file) until the largest that
            place and route fits is found, and print what to enter in the board's file; takes
            minutes, on a large device hours
        --width W: bits of a flit to measure with (default 8)
        """,
        width=(positive, 8),
    )


def run_boards(arguments: Namespace) -> None:
    """List the boards, or measure one."""
    from ..fpga.board import load_boards

    if arguments.measure:
        _measure(arguments)
        return
    rows = [_described(name, board) for name, board in load_boards().items()]
    if arguments.json:
        print_json({"boards": rows})
    else:
        _print_boards(rows)


def _described(name: str, board: "Board") -> dict[str, Any]:
    """What there is to know of a board."""
    from ..fpga.board import lamp_meanings

    return {
        "name": name,
        "title": board.title,
        "clock_mhz": board.make_platform().default_clk_frequency / 1e6,
        "largest": board.limit.to_json() if board.limit else None,
        "serial_line": board.pins,
        "port": board.port,
        "lamps": lamp_meanings(board),
        "programmer": board.program[0],
    }


def _print_boards(rows: list[dict[str, Any]]) -> None:
    """Print the list as a table, a line a board where nobody looks at a terminal."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    heads = ("board", "MHz", "largest all-gather", "programmer", "", "serial line", "port on Linux",
             "lamps lit")  # fmt: skip
    for head in heads:
        table.add_column(head, no_wrap=head in ("board", "MHz"))
    for row in rows:
        mhz, lamps = f"{row['clock_mhz']:g}", "; ".join(row["lamps"]) or "none"
        largest, limit = "not known", row["largest"]
        if limit:
            measured = "measured" if limit["measured"] == row["name"] else f"as {limit['measured']}"
            how = measured if limit["measured"] else "estimated"
            largest = f"{limit['side']}x{limit['side']}, {limit['width']} bits ({how})"
        texts = (row["programmer"], row["title"], row["serial_line"], row["port"], lamps)
        table.add_row(row["name"], mhz, largest, *texts)
    print_rendered(table)


def _measure(arguments: Namespace) -> None:
    """Build for a board until the largest torus that fits is found."""
    from ..fpga.board import Limit, find_board, find_limit, try_board
    from ..planning import compile, plan
    from ..rtl import Fabric
    from ..toolchain.folders import work_folder

    board, width = find_board(arguments.measure), arguments.width
    gather = lambda side: compile(plan(f"{side}x{side}", "allgather", check=False))
    make_fabric = lambda side: Fabric(gather(side), width=width)
    start = board.limit.side if board.limit else 2
    report = lambda tried: say(
        f"{tried.side}x{tried.side}  {'fits' if tried.fits else 'no'}: {tried.why}"
    )
    with work_folder("boards") as folder:
        attempt = try_board(board, make_fabric, folder)
        side, attempts = find_limit(attempt, start=start, progress=report)
    limit = None
    if side is not None:
        limit = Limit(side, board.name, algorithm=gather(side).schedule.algorithm, width=width)
    if arguments.json:
        tried = [vars(one) for one in attempts]
        print_json({"board": board.name, "limit": limit and limit.to_json(), "tried": tried})
    else:
        none = f"no square torus of {width} bits fits"
        print_line(f"limit={limit.entry()}," if limit else none)
