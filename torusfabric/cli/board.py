"""The commands ``boards``, ``build`` and ``flash``: list boards, make bitstreams, load them."""

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..contract.options import add_options, parse_positive_int
from ..errors import InputError
from ..fabric.options import add_fabric_options, add_selection_arguments, add_tables_options
from ..fabric.spec import FabricSpec
from ..fpga.bridge import BAUD
from ..toolchain.notices import send_notice
from ..toolchain.quoting import shell_command
from .arguments import command_line, folder_argument
from .connect import BUILDS
from .monitor import add_baud
from .output import Progress, print_facts, print_json, print_line, print_rendered, progress_bar
from .parser import Commands, add_command

if TYPE_CHECKING:
    from ..fpga.board import Board, BuildResult, Step
    from ..rtl.fabric import Fabric

__all__ = ["add_commands"]


def add_commands(commands: Commands) -> None:
    """Add the commands ``boards``, ``build`` and ``flash`` and their arguments.

    `commands` has the parser of each command.
    """
    boards = add_command(commands, "boards", run_boards)
    add_options(
        boards,
        """
        --measure NAME: Find the largest square all-gather that place and route fits on this board
            (or .py file), and print the entries for the board's file. Takes minutes, on a large
            device hours.
        --width W: with --measure: bits of a flit. Default: 8.
        """,
        width=parse_positive_int,
    )
    build = add_command(commands, "build", run_build)
    flash = add_command(commands, "flash", run_build)
    for parser in (build, flash):
        add_selection_arguments(parser, several=True)
        add_fabric_options(parser)
        add_tables_options(parser)
        group = parser.add_argument_group("board")
        text = """
            --board NAME: Name of a board, as torusfabric boards lists them, or path of a .py
                file. Example: icebreaker.
            """
        add_options(group, text, board={"required": True})
        add_baud(group)
        text = """
            --minutes M: Longest time of the tools in minutes. Default: 15 for a small device, 60
                for an ECP5.
            --force: Build again what was built before, or is larger than what is known to fit, and
                replace files in the folder that others wrote or changed.
            """
        add_options(group, text, minutes=parse_positive_int)
        text = "-o --output DIR: Folder for the bitstream and the report. Default: build/BOARD.\n"
        add_options(parser, text, output=folder_argument)
    add_options(
        flash,
        """
        --dry-run: Build, and print the command that would load the bitstream, without loading
            it.
        """,
    )


class _BoardBuild(NamedTuple):
    """A bitstream, its board, and commands to use it.

    Parameters
    ----------
    built : BuildResult
        The bitstream and its report.
    board : Board
        The board for which the bitstream was built.
    flash : str
        The command ``torusfabric flash`` that loads the bitstream.
    connection : str
        Options of ``torusfabric run`` that reach the board. Empty if the fabric is one of several
        on several boards, which run only together.
    """

    built: "BuildResult"
    board: "Board"
    flash: str
    connection: str

    @property
    def load_command(self) -> str:
        """The command of the board's programmer that loads the bitstream."""
        from ..fpga.board import flash_command

        return f"{shell_command(['cd', str(self.built.folder)])} && {flash_command(self.board)}"

    def next_steps(self, *, flashed: bool) -> list["Step"]:
        """Return the commands that the user may run next, each with its purpose.

        Parameters
        ----------
        flashed : bool
            True if the board already has the bitstream. If False, the first command loads it.
        """
        from ..fpga.board import Step, next_steps

        load = [] if flashed else [Step(self.flash, f"load it ({self.load_command})")]
        if not self.connection:
            words = ["torusfabric", "run", "--build", str(self.built.folder), "--port"]
            does = "run it with all others, by the ports of all in their order"
            return [*load, Step(f"{shell_command(words)} A,B", does)]
        return next_steps(load, self.connection, self.built.report)


def _build_bitstream(arguments: Namespace) -> _BoardBuild:
    """Build the bitstream of the selected fabric."""
    from ..fpga.board import build, find_board
    from ..toolchain.cache import Cache, RenewingCache

    board, spec = find_board(arguments.board), FabricSpec.of(vars(arguments))
    bridge = spec.adapter.import_part("bridge") if spec.adapter else None
    board = bridge.fit_board(board, vars(arguments)) if bridge else board
    if arguments.minutes:
        board = replace(board, minutes=arguments.minutes)
    if arguments.force:
        board = replace(board, limit=None)
    folder = Path(arguments.output or BUILDS / board.name)
    if not spec.adapter:  # with an adapter, perhaps only a part of the fabric is on the board
        _check_selection(spec, board)
    made = spec.make()
    if bridge:
        fabric = bridge.place_fabric(made.system, vars(arguments), board.make_platform())
        made = made._replace(fabric=fabric)
    with progress_bar("building") as bar:
        built = build(
            made.fabric,
            board,
            folder,
            baud=arguments.baud,
            cache=RenewingCache() if arguments.force else Cache(),
            command=command_line(arguments, made),
            progress=_announce_duration(bar, board, made.fabric, folder),
            force=arguments.force,
        )
    flash = command_line(arguments, made, command="flash", output=arguments.output)
    # The folder names the fabric, so the options of the connection need no selection.
    words = ["--board", arguments.board]
    words += [] if arguments.baud == BAUD else ["--baud", str(arguments.baud)]
    words += ["--build", arguments.output] if arguments.output else []
    return _BoardBuild(built, board, flash, shell_command(words) if made.fabric.runs_alone else "")


def _check_selection(spec: FabricSpec, board: "Board") -> None:
    """Raise an error if the fabric of `spec` cannot fit onto the board.

    Why: planning may take long, and this check comes before it.
    """
    from ..collective import parse_collective, split_name, split_names
    from ..fpga.board import check_selection
    from ..program.program import require_width
    from ..topology import parse_topology, with_rates

    flits, width = spec.max_flits or spec.flits, require_width(spec.width, ())
    try:
        topology = parse_topology(spec.topology)
        topology = topology if spec.rate is None else with_rates(topology, spec.rate)
        names = [split_name(name).collective for name in split_names(spec.collective)]
        collectives = [parse_collective(name, topology=topology) for name in names]
    except (InputError, TypeError, AttributeError):
        return  # a schedule file, or an error that planning reports with more detail
    for collective in collectives:
        check_selection(board, topology, collective, flits=flits, width=width)


def _announce_duration(bar: Progress, board: "Board", fabric: "Fabric", folder: Path) -> Progress:
    """Wrap a progress bar so that a notice is printed at the first progress of a build.

    The notice says how long the build of `fabric` for `board` takes, and where its logs will be,
    below `folder`, the folder of the build. Or it says that the build waits for another one. The
    result is called like `bar`, with the work done, all work, and a text.
    """
    from ..fpga.board import build_minutes

    said: set[str] = set()

    def advance(done: int, total: int, text: str) -> None:
        minutes = build_minutes(board, fabric) if not said else 0
        line = text
        if not text.startswith("waiting"):
            line = (
                f"building for {board.name}: some {minutes} min on a slow machine, at most "
                f"{board.minutes:g} (--minutes; logs: {folder / 'build'}, at the end)"
            )
        kind = line.partition(" ")[0]
        if kind not in said:
            send_notice(line)
        said.add(kind)
        bar(done, total, text)

    return advance


def _build_facts(built: "BuildResult") -> dict[str, Any]:
    """Return the names and values about the build `built` that ``build`` prints for people."""
    report = built.report
    used = [f"{k} {n['used']} of {n['available']}" for k, n in report["resources"].items()]
    modes = [f"{mode['collective']} by {mode['algorithm']}" for mode in report["modes"]]
    return {
        "board": report["title"],
        "fabric": f"{report['topology']} {', '.join(modes)}",
        "resources": ", ".join(used),
        "clock": f"{report['clock_mhz']:g} MHz; place and route reached {report['fmax_mhz']} MHz",
        "predicted cycles": report["predicted_cycles"],
        "serial line": f"{report['baud']} baud, {report['uart']}",
        "bitstream": built.bitstream,
        "sha256": report["sha256"],
        "built": "before, the same" if built.cached else "now",
    }


def _print_next_steps(made: _BoardBuild, *, flashed: bool) -> None:
    """Print the next commands after the build `made`, and the meanings of the board's LEDs.

    With `flashed`, the board has the bitstream already, and no command loads it.
    """
    from ..fpga.board import LIST_PORTS, led_meanings

    meanings = led_meanings(made.board)
    print_line()
    print_line("next:")
    for command, does in made.next_steps(flashed=flashed):
        print_line(f"  # {does}")
        print_line(f"  {command}")
    print_line(f"LEDs: {'; '.join(meanings) or 'none'}")
    print_line(
        f"port: {made.board.port} on Linux, if nothing else is attached; {LIST_PORTS} lists all"
    )


def run_build(arguments: Namespace) -> None:
    """Run ``build`` or ``flash``: make a bitstream, and for ``flash`` load it."""
    from ..fpga.board import flash, led_meanings

    made, loads = _build_bitstream(arguments), arguments.command == "flash"
    flashed = loads and not arguments.dry_run
    if flashed:
        flash(made.built, made.board)
    if arguments.json:
        result = made.built.report | {
            "folder": str(made.built.folder),
            "cached": made.built.cached,
            "port": made.board.port,
            "lamps": led_meanings(made.board),
            "next": [step._asdict() for step in made.next_steps(flashed=flashed)],
        }
        print_json(result | ({"command": made.load_command, "flashed": flashed} if loads else {}))
    elif loads and not flashed:
        print_line(made.load_command)
    else:
        print_facts(_build_facts(made.built) | ({"loaded": made.load_command} if loads else {}))
        _print_next_steps(made, flashed=flashed)


def run_boards(arguments: Namespace) -> None:
    """Run ``boards``: list the boards, or find the largest torus that fits onto one."""
    from ..fpga.board import load_boards

    if arguments.measure:
        _measure_limit(arguments)
        return
    rows = [_board_facts(name, board) for name, board in load_boards().items()]
    if arguments.json:
        print_json({"boards": rows})
    else:
        _print_boards(rows)


def _board_facts(name: str, board: "Board") -> dict[str, Any]:
    """Return the names and values about a board that ``boards --json`` prints.

    `name` is the name by which the user selects the board.
    """
    from ..fpga.board import led_meanings

    return {
        "name": name,
        "title": board.title,
        "clock_mhz": board.make_platform().default_clk_frequency / 1e6,
        "largest": vars(board.limit) if board.limit else None,
        "serial_line": board.pins,
        "port": board.port,
        "lamps": led_meanings(board),
        "programmer": board.program[0],
    }


def _print_boards(rows: list[dict[str, Any]]) -> None:
    """Print the boards as a table; one line for each board if the output is no terminal.

    `rows` has the facts of each board, as ``boards --json`` prints them.
    """
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    heads = ("board", "MHz", "largest all-gather", "programmer", "", "serial line", "port on Linux",
             "LEDs")  # fmt: skip
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


def _measure_limit(arguments: Namespace) -> None:
    """Build all-gathers for a board until the largest square torus that fits is found."""
    from ..fabric.fabric import Fabric
    from ..fpga.board import Limit, find_board, find_limit, make_attempt
    from ..planning import compile, plan
    from ..toolchain.folders import work_folder

    board, width = find_board(arguments.measure), arguments.width or 8
    gather = lambda side: compile(plan(f"{side}x{side}", "allgather", check=False))
    make_fabric = lambda side: Fabric(gather(side), width=width)
    start = board.limit.side if board.limit else 2
    report = lambda tried: send_notice(
        f"{tried.side}x{tried.side}  {'fits' if tried.fits else 'no'}: {tried.why}"
    )
    with work_folder("boards") as folder:
        attempt = make_attempt(board, make_fabric, folder)
        side, attempts = find_limit(attempt, start=start, progress=report)
    limit = None
    if side is not None:
        limit = Limit(side, board.name, algorithm=gather(side).schedule.algorithm, width=width)
    if arguments.json:
        tried = [vars(one) for one in attempts]
        print_json({"board": board.name, "limit": limit and vars(limit), "tried": tried})
    else:
        none = f"no square torus of {width} bits fits"
        print_line(f"limit={limit.source_text()}," if limit else none)
