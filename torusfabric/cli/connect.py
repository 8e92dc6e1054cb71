"""Connecting to a board: which fabric it carries is selected as for a build, or was built."""

import json
import shlex
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..fpga.bridge import BAUD
from ..toolchain.extras import extras_named
from ..toolchain.files import AnyPath

if TYPE_CHECKING:
    from ..fpga.bridge.board import ConnectedBoard
    from ..fpga.bridge.bus_access import BusAccess
    from ..rtl.fabric import Fabric
    from ..rtl.loaded.image import Image

__all__ = ["BUILDS", "connect", "select_engine"]

#: Where builds go.
BUILDS = Path("build")

#: The most flits of a message where nothing is said.
FLITS = 16

#: The port that is simulated, and what parts it from a selection.
SIMULATED = "sim"


def connect(
    port: str,
    fabric: "Fabric | AnyPath | None" = None,
    *,
    image: "Image | AnyPath | None" = None,
    baud: int = BAUD,
) -> "ConnectedBoard":
    """Connect to a fabric behind its bridge.

    Parameters
    ----------
    port : str
        The serial port of a board. ``sim:SELECTION`` simulates the bridge and the fabric behind it
        instead, which is selected as for `torusfabric build`, by default with messages of up to 16
        flits; ``sim`` simulates the fabric that is given.
    fabric : Fabric or path, optional
        What is on the board, or the folder in which it was built. By default a folder within
        ``build`` with the fabric that the board says it is.
    image : Image or path, optional
        Of a fabric whose tables are loaded: what is loaded first. By default what it is built with
        must be there.
    baud : int
        Bits a second of the serial line.

    Raises
    ------
    InputError
        If the port cannot be opened, or there is no such fabric, or something else is loaded.
    WorkFailed
        If the board does not answer, or has another fabric.
    MissingTool
        If the extra with what is needed is not installed.

    Examples
    --------
    >>> import torusfabric as tf
    >>> board = tf.connect("sim:2x2 allreduce")
    >>> board.run([tf.Job(length=3)]).passed
    True
    """
    with extras_named():
        board = _connect(port, fabric, baud)
        _hold(board, image)
        return board


def _connect(port: str, fabric: "Fabric | AnyPath | None", baud: int) -> "ConnectedBoard":
    from ..fpga.bridge.board import ConnectedBoard, digest_on
    from ..fpga.bridge.bus_access import BusAccess
    from ..rtl.fabric import Fabric

    name, colon, selection = str(port).partition(":")
    simulated = name == SIMULATED
    if simulated and colon:
        if fabric is not None:
            raise InputError(f"Fabric must be left out for {port}, not given again")
        fabric = _selected(_words(selection))
    elif fabric is not None and not isinstance(fabric, Fabric):
        fabric = _built(Path(fabric))
    if simulated:
        from ..fpga.bridge.simulated_port import SimulatedPort

        if fabric is None:
            raise InputError(f"Port must be sim:SELECTION where no fabric is given, not {port}")
        return ConnectedBoard(fabric, BusAccess(SimulatedPort(fabric)))
    from ..fpga.bridge.serial_port import open_port

    access = BusAccess(open_port(port, baud=baud))
    return ConnectedBoard(fabric or _found(digest_on(access), access), access)


def _hold(board: "ConnectedBoard", image: "Image | AnyPath | None") -> None:
    """See to it that what is wanted is loaded."""
    from ..rtl.loaded.image import Image, read_image

    fabric, found = board.fabric, board.loaded
    if image is not None:
        if fabric.frame is None:
            raise InputError("Tables must be ram for an image, not rom")
        if not isinstance(image, Image):
            image = read_image(image, fabric.frame, fabric.width)
        board.load(image)
    elif found is not None and found != int(fabric.program.digest[:8], 16):
        raise InputError(
            f"Image on {board.access.name} ({found:08x}) must be given, or be what the fabric is "
            "built with"
        )


def _words(text: str) -> list[str]:
    """A command line's words."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(
            f"Selection must be words as on a command line, not {text!r} ({error})"
        ) from None


def _selected(words: list[str]) -> "Fabric":
    """The fabric that the words of a command line select."""
    from . import make_parser

    words = ["build", "--board", SIMULATED, *words]
    return select_engine(make_parser(complete=False).parse_args(words))


def select_engine(arguments: Namespace) -> "Fabric":
    """The fabric that arguments select; where they say nothing of lengths, they are left open."""
    from .several_boards import make_block

    if arguments.flits is None and arguments.max_flits is None:
        arguments.max_flits = FLITS
    fabric: Fabric = make_block(arguments).fabric
    return fabric


def _built(folder: Path) -> "Fabric":
    """The fabric that was built in a folder."""
    return _selected(_words(str(_report(folder)["command"]))[2:])


def _report(folder: Path) -> dict[str, Any]:
    """The report of a build."""
    try:
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        report = None
    if not isinstance(report, dict) or not isinstance(report.get("command"), str):
        raise InputError(f"Folder must be that of a build, with its report.json, not {folder}")
    return report


def _found(digest: int, access: "BusAccess") -> "Fabric":
    """The fabric of the build whose digest a board has."""
    for path in sorted(BUILDS.glob("*/report.json")):
        report = _report(path.parent)
        if report.get("digest") == f"{digest:08x}":
            return _built(path.parent)
    raise InputError(
        f"Fabric on {access.name} ({digest:08x}) must be one of {BUILDS}/, or be given"
    )
