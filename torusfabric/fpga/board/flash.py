"""Loading of a bitstream onto a board, and the steps for a user to take afterwards.

The users are the commands ``build`` and ``flash``. The platform's own programmer loads the
bitstream.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...errors import MissingTool, WorkFailed
from ...toolchain import tools
from ...toolchain.folders import hold_lock
from ...toolchain.quoting import shell_command
from .build import BuildResult
from .catalogue import Board

__all__ = ["LIST_PORTS", "Step", "flash", "flash_command", "led_meanings", "next_steps"]

#: Messages of programmers that find no board.
_BOARD_MISSING = re.compile(
    r"Can't find iCE FTDI|unable to open ftdi device|No DFU capable USB device|"
    r"no active bootloaders|no device found|device not found|LIBUSB_ERROR_NO_DEVICE",
    re.IGNORECASE,
)

#: Command that lists the serial ports of this machine.
LIST_PORTS = "python -m serial.tools.list_ports"

_LED_STATES = {"running": "during a run", "done": "after a run"}

_COLOURS = {"r": "red", "g": "green", "b": "blue"}


def flash_command(board: Board) -> str:
    """Return the command by which a user loads the bitstream, as text for a shell.

    It has to be typed in the folder of the bitstream.

    Parameters
    ----------
    board : Board
        Board that the bitstream is for.
    """
    return shell_command(board.program)


def flash(built: BuildResult, board: Board) -> None:
    """Load a bitstream onto a board.

    Parameters
    ----------
    built : BuildResult
        Result of the build, which has the bitstream.
    board : Board
        The board, which has the command of the programmer.

    Raises
    ------
    MissingTool
        If the programmer is not installed, or no board is attached.
    WorkFailed
        If the programmer fails for another reason, or the bitstream was replaced after the build.
    """
    program, *arguments = board.program
    where = f"the bitstream is {built.bitstream}"
    try:
        tools.require(program)
    except MissingTool as error:
        raise MissingTool(f"{error}; {where}") from None
    with hold_lock(built.folder):
        if hashlib.sha256(built.bitstream.read_bytes()).hexdigest() != built.report["sha256"]:
            raise WorkFailed(
                f"Bitstream {built.bitstream} was replaced by another build in the same folder; "
                "build it again, in a folder of its own"
            )
        try:
            tools.run(program, arguments, folder=built.folder, log="flash.log", what=board.name)
        except WorkFailed:
            log = built.folder / "flash.log"
            match = _BOARD_MISSING.search(log.read_text(encoding="utf-8", errors="replace"))
            if match is None:
                raise
            raise MissingTool(
                f"Board {board.name} was not found by {program} ({match[0]}): attach it, and "
                f"check that you may use its USB port; {where}"
            ) from None


class Step(NamedTuple):
    """A command for the user to type, and its purpose, in words."""

    command: str
    does: str


def led_meanings(board: Board) -> list[str]:
    """Return a text for each LED of a board: its name in the platform, and its meaning."""
    meanings: dict[str, list[str]] = {}
    for lamp, (name, number, *part) in board.lamps.items():
        colour = _COLOURS.get(part[0] if part else name.rpartition("_")[2], "")
        meanings.setdefault(f"{name} {number}", []).append(f"{colour} {_LED_STATES[lamp]}".strip())
    return [f"{lamp} {', '.join(shown)}" for lamp, shown in meanings.items()]


def next_steps(load: Sequence[Step], connection: str, report: Mapping[str, Any]) -> list[Step]:
    """Return the commands that a user can type after a build: to load the bitstream, to run, ..

    Parameters
    ----------
    load : sequence of Step
        Commands that load the bitstream; empty if it is loaded already.
    connection : str
        Options of ``torusfabric run`` that select the board.
    report : mapping
        Report of the build, which has the number of nodes and the width.
    """
    nodes, words = report["nodes"], report["modes"][0]["send_words"]
    most = 1 << report["width"]
    within = f" % {most}" if nodes * words > most else ""
    data = f"np.arange({nodes * words}).reshape({nodes}, {words}){within}"
    make = f"import numpy as np; np.save('data.npy', {data})"
    return [
        *load,
        Step(f"torusfabric run {connection}", "run it, and compare every word and the cycles"),
        Step(f"torusfabric monitor {connection}", "watch it run whatever is drawn"),
        Step(f'python -c "{make}"', "data: a row of words for each node"),
        Step(f"torusfabric run {connection} --data data.npy -o received.npy", "send it through"),
    ]
