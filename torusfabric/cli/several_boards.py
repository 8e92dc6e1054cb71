"""Fabrics on several boards, or a block of one: the options that say so, and what is done then."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..analysis.facts import in_words
from ..errors import InputError
from ..planning import require_results
from ..topology import parse_topology
from .arguments import add_options, natural, positive, real
from .output import print_report, progress_bar, raise_if_wrong

if TYPE_CHECKING:
    from ..adapters.boards.hardware import Block, BoardSystem
    from ..adapters.boards.pairs import PairLinks
    from ..fpga.board import Board
    from ..topology import Topology
    from ..topology.boards import Boards
    from .fabric import Made

__all__ = ["add_block_options", "add_boards_options", "clocked", "drawn_boards", "make_block",
           "make_boards", "make_linked", "run_boards", "write_boards"]  # fmt: skip

#: The least latency of a cut arc that is ever enough.
LEAST = 8

#: Runs of a simulation, unless it is said how many.
JOBS = 20

#: What has no meaning on several boards, with what it must be.
ALONE: dict[str, object] = {
    "top": "host", "bus": None, "clocks": "one", "flow": None,
    "templates": False, "through_port": False, "wave": None, "trace": None,
    "stall": None, "faults": None, "engine": "auto", "repeat": 1, "tables": "rom", "fabric": None,
}  # fmt: skip


def add_boards_options(parser: ArgumentParser) -> None:
    """Add the arguments that cut a fabric into boards."""
    group = parser.add_argument_group("several boards")
    add_options(
        group,
        """
        --boards AxB: cut the torus into so many equal blocks along each axis, each on a board with
            a clock of its own: 2x1 (default one chip); --link-latency must cover the cut arcs, or
            is left out, and they take the least
        --ppm P: with --boards: by how much each oscillator may be off, in millionths (default 100)
        --retries N: with --boards: how often a run is repeated of which a link lost something
            (default 1)
        --start-timeout CYCLES: with --boards: how long a start waits for those of all other boards,
            before it ends with error 11; 0 for ever (default 268435456)
        --phy: with --boards: what carries words to other boards, which takes cycles: a wire for
            each bit, differential pairs, or transceivers (default parallel)
        """,
        ppm=real,
        retries=natural,
        start_timeout=natural,
        phy={"choices": ("parallel", "lvds", "serdes")},
    )


def drawn_boards(arguments: Namespace, topology: Topology) -> Boards | None:
    """The boards that are drawn, if any."""
    from ..topology.boards import Boards

    return None if arguments.boards is None else Boards.parse(arguments.boards, topology)


def make_boards(arguments: Namespace, *, waves: bool = False) -> tuple[Made, BoardSystem]:
    """The fabric, and how it lies on boards, of which perhaps waves are asked for.

    Without a latency of links, arcs that are cut take as many cycles as they must, others one.

    Raises
    ------
    InputError
        If there are no such boards, or something has no meaning on them.
    """
    from ..adapters.boards.hardware import BoardSystem, plan_links
    from ..adapters.boards.hardware.link_plan import PHYS, START_TIMEOUT
    from ..topology.boards import Boards
    from .fabric import make_fabric  # here, since drawing needs no hardware
    from .several import links_alike

    for name, usual in ALONE.items():
        if getattr(arguments, name, usual) != usual and not (waves and name == "wave"):
            raise InputError(f"--{name.replace('_', '-')} must be left out with --boards")
    arguments = links_alike(arguments)
    ppm = 100.0 if arguments.ppm is None else arguments.ppm
    retries = 1 if arguments.retries is None else arguments.retries
    phy = PHYS[arguments.phy or "parallel"]
    wait = START_TIMEOUT if arguments.start_timeout is None else arguments.start_timeout
    if arguments.link_latency is not None or arguments.plan is not None:
        made = make_fabric(arguments, any_root=True)
        boards = Boards.parse(arguments.boards, made.fabric.program.topology)
        return made, BoardSystem(made.fabric, boards, ppm, retries, phy, wait)
    boards, latency = Boards.parse(arguments.boards, parse_topology(arguments.topology)), LEAST
    while True:
        each = enumerate(latency if count > 1 else 1 for count in boards.counts)
        cut = ",".join(f"{axis}:{cycles}" for axis, cycles in each)
        made = make_fabric(Namespace(**vars(arguments) | {"link_latency": cut}), any_root=True)
        found = Boards.parse(arguments.boards, made.fabric.program.topology)
        least = plan_links(made.fabric, found, ppm=ppm, retries=retries, phy=phy).least_latency
        if least <= latency:
            return made, BoardSystem(made.fabric, found, ppm, retries, phy, wait)
        # Longer links make longer runs, in which clocks drift further apart.
        latency = least


def _facts(system: BoardSystem) -> dict[str, Any]:
    """What is said of the boards."""
    plan = system.plan
    return {
        "boards": str(system.boards),
        "link_latency": system.boards.torus.latency_text,
        "link_ports": plan.links,
        "buffer_words": {str(each): plan.depth(each) for each in plan.latencies},
        "ppm": system.ppm,
        "drift_words": round(plan.drift, 3),
        "retries": system.retries,
        "start_timeout": system.start_timeout,
        "attempt_overhead": plan.overhead,
    }


def _shown(facts: dict[str, Any]) -> dict[str, Any]:
    """Facts of the boards for people."""
    depths = ", ".join(f"{depth} of {each} cycles" for each, depth in facts["buffer_words"].items())
    return {
        "boards": f"{facts['boards']}, of {facts['link_ports']} link ports each",
        "link latency": facts["link_latency"],
        "elastic buffers": f"{depths}; clocks within {facts['ppm']:g} ppm drift apart by "
        f"{facts['drift_words']:g} words at most",
        "overhead": f"{facts['attempt_overhead']} cycles an attempt, of up to "
        f"{facts['retries'] + 1}",
    }


def write_boards(arguments: Namespace) -> None:
    """Write the Verilog of each kind of board, a bench of all and the manifest."""
    from ..adapters.boards.files import write_boards as write

    made, system = make_boards(arguments)
    command = made.command_line("verilog")
    with progress_bar("writing Verilog"):
        design = write(
            system, arguments.output, command=command, force=arguments.force, ram=arguments.ram
        )
    of_boards = _facts(system)
    facts = {
        "folder": arguments.output,
        "files": design.file_names,
        "modules": len(design.modules),
        "lines": design.text.count("\n"),
        "predicted_cycles": system.plan.cycles(made.fabric.predicted_cycles),
    }
    shown = in_words(facts | made.facts) | {"files": " ".join(facts["files"])} | _shown(of_boards)
    print_report(arguments, facts | of_boards | made.facts, shown)


def run_boards(arguments: Namespace) -> None:
    """Simulate all boards, each with a clock of its own.

    The status is 2 if a word of a run that reports success is wrong, or cycles are not as forecast.
    """
    from ..adapters.boards.drive import simulate_boards

    count = JOBS if arguments.jobs is None else arguments.jobs
    require_results("--jobs", count)
    _, system = make_boards(arguments)
    with progress_bar("simulating") as progress:
        report = simulate_boards(
            system,
            jobs=count,
            seed=arguments.data_seed,
            link_errors=arguments.link_errors or 0.0,
            progress=progress,
        )
    of_boards = _facts(system)
    clean = sum(not run.failed for run in report.jobs)
    shown = {
        "topology": report.topology,
        "collective": report.collective,
        **_shown(of_boards),
        "runs": f"{len(report.jobs)}: {clean} with success, {report.failed} that said they failed, "
        f"{report.retries} attempts more than runs",
        "link words changed": report.link_words_changed,
        "cycles": f"{report.cycles} in all, {report.predicted_cycles} predicted",
        "words checked": report.words_checked,
        "words wrong": report.words_wrong,
        "time": f"{report.seconds:.1f} s",
    }
    print_report(arguments, report.to_json() | of_boards, shown)
    raise_if_wrong(report)


def add_block_options(parser: ArgumentParser) -> None:
    """Add the arguments that choose a block of a fabric that is cut into boards."""
    add_boards_options(parser)
    add_options(
        parser,
        """
        --block A,B: with --boards: the block, by its coordinates among all, that is alone on the
            board, with its link ports looped back, or with --phy lvds or serdes on pairs of pins
        --lanes N: with --phy lvds or serdes: pairs for data to each other board (default as many as
            it takes)
        """,
        lanes={"dest": "pairs", "type": positive},
    )


def make_block(arguments: Namespace, platform: Any = None) -> Made:
    """The fabric that arguments select, or the block of it.

    Parameters
    ----------
    platform : Platform, optional
        Of the board, to whose pins link ports may lead.

    Raises
    ------
    InputError
        If there are boards and no block, or the other way round, or there is no such block.
    """
    from ..adapters.boards.hardware.block import Block
    from .fabric import make_fabric  # here, since drawing needs no hardware

    if (arguments.boards is None) != (arguments.block is None):
        raise InputError(
            f"--boards and --block must come together for {arguments.command}, as 2x2 and 0,1: "
            "there is one block on a board"
        )
    if arguments.boards is None:
        return make_fabric(arguments, any_root=True)
    made, system = make_boards(arguments)
    number = system.boards.block(arguments.block)
    links = _on_pairs(arguments, system, number, platform)
    return made._replace(fabric=Block(system, number, links=links))


def _on_pairs(
    arguments: Namespace, system: BoardSystem, number: int, platform: Any
) -> PairLinks | None:
    """The links of a block on pairs of wires, where that is asked for."""
    if arguments.phy is None:
        return None
    if arguments.phy == "parallel":
        raise InputError(
            "--phy must be lvds or serdes, or left out for link ports that are looped back, for a "
            "block"
        )
    if platform is None:
        raise InputError(
            "--block must be left out with --phy to run boards: those that are linked run together"
        )
    from ..adapters.boards.pairs import pair_links

    return pair_links(system, number, platform, arguments.pairs)


def make_linked(arguments: Namespace) -> list[Block]:
    """The blocks of all boards that arguments select, to be run together.

    Raises
    ------
    InputError
        If there are no such boards, or they do not carry the links.
    """
    from ..adapters.boards.bridge.linked import linked_blocks
    from ..adapters.boards.pairs import LAYERS

    if getattr(arguments, "image", None) is not None:
        raise InputError("--image must be left out for several boards, whose tables are fixed")
    platform, (_, system) = None, make_boards(arguments)
    if arguments.phy in LAYERS:
        from ..fpga.board import find_board

        if arguments.board in (None, "sim"):
            raise InputError(f"--board must come with --phy {arguments.phy}: it has the pairs")
        platform = clocked(arguments, find_board(arguments.board)).make_platform()
    return linked_blocks(system, platform, arguments.pairs)


def clocked(arguments: Namespace, board: Board) -> Board:
    """A board whose fabric has the clock that its links need."""
    if arguments.phy != "serdes":
        return board
    from ..adapters.boards.pairs.serdes import FABRIC_MHZ

    return replace(board, mhz=FABRIC_MHZ)
