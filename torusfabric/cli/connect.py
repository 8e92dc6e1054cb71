"""Connecting to a board: which fabric it carries is selected as for a build, or was built."""

import shlex
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..fabric.spec import FabricSpec
from ..fpga.bridge import BAUD
from ..toolchain.extras import extras_named
from ..toolchain.files import AnyPath
from ..toolchain.public import public
from ..toolchain.reading import parse_json, read_bytes
from ..toolchain.values import is_several, of_type, path_of

if TYPE_CHECKING:
    from ..contract.adapter import System
    from ..fabric.images import Image
    from ..fpga.bridge.bus_access import BusAccess
    from ..rtl.fabric import Fabric

__all__ = ["BUILDS", "connect", "select_engine"]

#: Where builds go.
BUILDS = Path("build")

#: The most flits of a message where nothing is said.
FLITS = 16

#: The port that is simulated, and what parts it from a selection.
SIMULATED = "sim"


@public
def connect(
    port: str | Sequence[str],
    fabric: "Fabric | System | Sequence[Fabric] | AnyPath | None" = None,
    *,
    image: "Image | AnyPath | None" = None,
    baud: int = BAUD,
) -> Any:
    """Connect to a fabric behind its bridge, or to all of a system, behind all of theirs.

    Parameters
    ----------
    port : str or sequence of str
        The serial port of a board; of a system, those of all boards in their order, separated by
        commas where they are one text. ``sim:SELECTION`` simulates the bridge and the fabric behind
        it instead, which is selected as for `torusfabric build`, by default with messages of up to
        16 flits; ``sim`` simulates the fabric that is given.
    fabric : Fabric, System, sequence of Fabric or path, optional
        The fabric on the board, the system of which one is on each board, or all of these, or the
        folder in which one was built.
        By default a folder within ``build`` with the fabric that the board says it is.
    image : Image or path, optional
        Of a fabric whose tables are loaded: what is loaded first. By default what it is built with
        must be there.
    baud : int
        Bits a second of the serial line.

    Returns
    -------
    ConnectedBoard or ConnectedBoards

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
        return _connect(port, fabric, image, baud)


def _connect(
    port: str | Sequence[str],
    fabric: "Fabric | System | Sequence[Fabric] | AnyPath | None",
    image: "Image | AnyPath | None",
    baud: int,
) -> Any:
    """Connect to the fabric, or to all of a system, behind some ports."""
    from ..fpga.bridge.board import ConnectedBoard
    from ..fpga.bridge.bus_access import BusAccess, open_port
    from ..rtl.fabric import Fabric

    each = [port] if isinstance(port, str) or not is_several(port) else [*port]
    whole = ",".join(of_type("Port", one, str, "text, such as /dev/ttyUSB1") for one in each)
    name, colon, selection = whole.partition(":")
    simulated, accesses = name == SIMULATED, list[BusAccess]()
    if simulated and colon:
        if fabric is not None:
            raise InputError(f"Fabric must be left out for {port}, not given again")
        found: Fabric | Sequence[Any] | None = select_engine(_arguments(_words(selection)))
    else:
        found = _given(fabric)
    if not simulated:
        accesses = [BusAccess(open_port(each, baud=baud)) for each in whole.split(",")]
        found = found or _found(accesses[0])
    if found is None:
        raise InputError(f"Port must be sim:SELECTION where no fabric is given, not {port}")
    if isinstance(found, Fabric):
        if simulated:
            from ..fpga.bridge.simulated import SimulatedPort

            accesses = [BusAccess(SimulatedPort(found))]
        if len(accesses) != 1:
            raise InputError(f"Port must be one for a fabric on one board, not {len(accesses)}")
        board = ConnectedBoard(found, accesses[0])
        _hold(board, image)
        return board
    bridge = found[0].system.adapter.part("bridge")
    if simulated:
        accesses = [BusAccess(each) for each in bridge.simulated_ports(found)]
    boards = bridge.connect(found, accesses)
    _hold(boards, image)
    return boards


def _given(
    fabric: "Fabric | System | Sequence[Fabric] | AnyPath | None",
) -> "Fabric | Sequence[Any] | None":
    """Return the fabric on a board, or those on all; None if that is not said."""
    from ..contract.adapter import System
    from ..rtl.fabric import Fabric

    if isinstance(fabric, System):
        fabrics: Sequence[Any] = fabric.adapter.part("bridge").link_fabrics(fabric)
        return fabrics
    if fabric is None or isinstance(fabric, Fabric):
        return fabric
    if isinstance(fabric, Sequence) and not isinstance(fabric, str):
        how = "a fabric, all blocks of one, or a folder in which it was built"
        for each in fabric:
            of_type("Fabric", getattr(each, "system", None), System, how)
        return fabric
    return _built(Path(path_of("Fabric", fabric)))


def _hold(board: Any, image: "Image | AnyPath | None") -> None:
    """See to it that what is wanted is loaded."""
    from ..fabric.images import Image, read_image

    fabric, found = board.fabric, board.loaded
    if image is not None:
        if fabric.tables is None:
            raise InputError("Tables must be ram for an image, not rom")
        if not isinstance(image, Image):
            image = read_image(image, fabric.tables.room, fabric.width)
        board.load(image)
    elif found is not None and found != int(fabric.program.digest[:8], 16):
        raise InputError(
            f"Image on {board.name} ({found:08x}) must be given, or be what the fabric is "
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


def _arguments(words: list[str]) -> Namespace:
    """The words of a command line that select a fabric."""
    from . import make_parser

    board = [] if any(word.split("=")[0] == "--board" for word in words) else ["--board", SIMULATED]
    return make_parser(complete=False).parse_args(["build", *board, *words])


def select_engine(arguments: Namespace, *, built: bool = False) -> "Fabric | Sequence[Any]":
    """Return the fabric that arguments select, or all fabrics that are run together.

    Where the arguments say nothing of lengths, these are left open.
    """
    if arguments.flits is None and arguments.max_flits is None:
        arguments.max_flits = FLITS
    made = FabricSpec.of(vars(arguments)).make()
    found: Fabric | Sequence[Any] = made.fabric
    if made.system:
        bridge = made.system.adapter.part("bridge")
        found = bridge.choose_fabrics(made.system, vars(arguments), built=built)
    return found


def _built(folder: Path) -> "Fabric | Sequence[Any]":
    """Return the fabric that was built in a folder, or all with which it runs."""
    report = _report(folder)
    if report is None:
        raise InputError(f"Folder must be that of a build, with its report.json, not {folder}")
    return select_engine(_arguments(_words(report["command"])[2:]), built=True)


def _report(folder: Path) -> dict[str, Any] | None:
    """The report of a build; None where there is none."""
    try:
        report = parse_json(read_bytes(folder / "report.json", "Report"))
    except ValueError:
        return None
    named = isinstance(report, dict) and isinstance(report.get("command"), str)
    return report if named else None


def _found(access: "BusAccess") -> "Fabric | Sequence[Any]":
    """The fabric of the build whose digest a board has."""
    from ..fpga.bridge.board import digest_on

    digest = digest_on(access)
    for path in sorted(BUILDS.glob("*/report.json")):
        report = _report(path.parent)
        if report and report.get("digest") == f"{digest:08x}":
            return _built(path.parent)
    raise InputError(
        f"Fabric on {access.name} ({digest:08x}) must be one of {BUILDS}/, or be given"
    )
