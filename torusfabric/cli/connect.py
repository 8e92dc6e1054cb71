"""`connect`: a connection to a fabric on a board, or to a simulated one.

The host side of the connection must know which fabric the board carries. The fabric is selected
like that of ``torusfabric build``, or read from the folder of a build.
"""

import shlex
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..fabric.spec import FabricSpec
from ..fpga.bridge import BAUD
from ..toolchain.extras import name_missing_extra
from ..toolchain.files import AnyPath
from ..toolchain.public import public
from ..toolchain.reading import parse_json, read_bytes
from ..toolchain.values import is_iterable, require_path, require_type

if TYPE_CHECKING:
    from ..contract.adapter import System
    from ..fabric.images import Image
    from ..fpga.bridge.bus_access import BusAccess
    from ..rtl.fabric import Fabric

__all__ = ["BUILDS", "connect", "select_fabrics"]

#: Folder that holds a folder for each build.
BUILDS = Path("build")

#: Flits of the longest message, if the user gives no length.
FLITS = 16

#: Name of the simulated port; a colon and a selection may follow.
SIMULATED = "sim"


@public
def connect(
    port: str | Sequence[str],
    fabric: "Fabric | System | Sequence[Fabric] | AnyPath | None" = None,
    *,
    image: "Image | AnyPath | None" = None,
    baud: int = BAUD,
) -> Any:
    """Connect to the fabric on a board, or to a fabric that is spread over several boards.

    Each board has a *bridge* between its serial line and its fabric.

    Parameters
    ----------
    port : str or sequence of str
        The serial port of the board. For several boards, all ports in the order of the boards, as a
        sequence or separated by commas. ``"sim"`` simulates the bridge and `fabric` instead.
        ``"sim:SELECTION"`` simulates the fabric of a selection, which is written as for
        ``torusfabric build``; by default messages have up to 16 flits.
    fabric : Fabric, System, sequence of Fabric or path, optional
        The fabric on the board; or the system that is spread over the boards, or the fabrics on
        all boards; or the folder of a build. By default the folder in ``build`` whose fabric has
        the digest that the board reports.
    image : Image or path, optional
        For a fabric with loaded tables: the image to load first. By default the image that the
        fabric was built with must be loaded already.
    baud : int
        Bits a second of the serial line.

    Returns
    -------
    ConnectedBoard or ConnectedBoards
        The open connection.

    Raises
    ------
    InputError
        If a port cannot be opened, the fabric does not exist, or another image is loaded.
    WorkFailed
        If the board does not answer, or carries another fabric.
    MissingTool
        If an extra of the package that brings the serial port or the simulation is not installed.

    Examples
    --------
    >>> import torusfabric as tf
    >>> board = tf.connect("sim:2x2 allreduce")
    >>> board.run([tf.Job(length=3)]).passed
    True
    """
    with name_missing_extra():
        return _connect_boards(port, fabric, image, baud)


def _connect_boards(
    port: str | Sequence[str],
    fabric: "Fabric | System | Sequence[Fabric] | AnyPath | None",
    image: "Image | AnyPath | None",
    baud: int,
) -> Any:
    """Connect as `connect` does; an error about a missing package does not name the extra.

    `connect` adds the name of the extra. The parameters are those of `connect`: `port` names one
    serial port or several, `image` is the image to load, and `baud` is the speed of the serial
    lines in bits a second.
    """
    from ..fpga.bridge.board import ConnectedBoard
    from ..fpga.bridge.bus_access import BusAccess, open_port
    from ..rtl.fabric import Fabric

    each = [port] if isinstance(port, str) or not is_iterable(port) else [*port]
    whole = ",".join(require_type("Port", one, str, "text, such as /dev/ttyUSB1") for one in each)
    name, colon, selection = whole.partition(":")
    simulated, accesses = name == SIMULATED, list[BusAccess]()
    if simulated and colon:
        if fabric is not None:
            raise InputError(
                f"Port {port} names a fabric already; leave the fabric out, or give the port sim"
            )
        found: Fabric | Sequence[Any] | None = select_fabrics(
            _parse_build_arguments(_split_words(selection))
        )
    else:
        found = _user_fabrics(fabric)
    if not simulated:
        accesses = [BusAccess(open_port(each, baud=baud)) for each in whole.split(",")]
        found = found or _fabric_by_digest(accesses[0])
    if found is None:
        raise InputError(
            f"Port {port} has no fabric to simulate; name one, for example sim:4x4 allgather"
        )
    if isinstance(found, Fabric):
        if simulated:
            from ..fpga.bridge.simulated import SimulatedPort

            accesses = [BusAccess(SimulatedPort(found))]
        if len(accesses) != 1:
            raise InputError(
                f"This fabric lies on one board, so it takes one port, not {len(accesses)}"
            )
        board = ConnectedBoard(found, accesses[0])
        _ensure_image(board, image)
        return board
    bridge = found[0].system.adapter.import_part("bridge")
    if simulated:
        accesses = [BusAccess(each) for each in bridge.simulated_ports(found)]
    boards = bridge.connect(found, accesses)
    _ensure_image(boards, image)
    return boards


def _user_fabrics(
    fabric: "Fabric | System | Sequence[Fabric] | AnyPath | None",
) -> "Fabric | Sequence[Any] | None":
    """Return the fabric, or the fabrics of all boards, that the user gave; None without one."""
    from ..contract.adapter import System
    from ..rtl.fabric import Fabric

    if isinstance(fabric, System):
        fabrics: Sequence[Any] = fabric.adapter.import_part("bridge").link_fabrics(fabric)
        return fabrics
    if fabric is None or isinstance(fabric, Fabric):
        return fabric
    if isinstance(fabric, Sequence) and not isinstance(fabric, str):
        how = "a fabric, all blocks of one, or a folder in which it was built"
        for each in fabric:
            require_type("Fabric", getattr(each, "system", None), System, how)
        return fabric
    return _fabric_of_build(Path(require_path("Fabric", fabric)))


def _ensure_image(board: Any, image: "Image | AnyPath | None") -> None:
    """Load an image onto a board; without one, check that the board holds the image of the build.

    Parameters
    ----------
    board : ConnectedBoard or ConnectedBoards
        The open connection.
    image : Image or path, optional
        The image to load.
    """
    from ..fabric.images import Image, read_image

    fabric, found = board.fabric, board.loaded
    if image is not None:
        if fabric.tables is None:
            raise InputError(
                "The tables of this fabric are fixed (rom), so it takes no image; build it with "
                "tables ram"
            )
        if not isinstance(image, Image):
            image = read_image(image, fabric.tables.room, fabric.width)
        board.load(image)
    elif found is not None and found != int(fabric.program.digest[:8], 16):
        raise InputError(
            f"{board.name} holds the image {found:08x}, not that with which its fabric was built; "
            "give this image (--image FILE)"
        )


def _split_words(text: str) -> list[str]:
    """Split the text of a command line into words."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError(
            f"Selection must be words as on a command line, not {text!r} ({error})"
        ) from None


def _parse_build_arguments(words: list[str]) -> Namespace:
    """Parse the words of a selection as arguments of ``torusfabric build``."""
    from . import make_parser

    board = [] if any(word.split("=")[0] == "--board" for word in words) else ["--board", SIMULATED]
    return make_parser(complete=False).parse_args(["build", *board, *words])


def select_fabrics(arguments: Namespace, *, built: bool = False) -> "Fabric | Sequence[Any]":
    """Return the fabric that arguments select, or the fabrics of all boards that run together.

    Parameters
    ----------
    arguments : Namespace
        Arguments of ``build`` or ``run``. If they have neither ``--flits`` nor ``--max-flits``,
        messages have up to `FLITS` flits.
    built : bool
        True if the arguments come from the report of a build. Then a fabric that is one of several
        on several boards is run together with all others.
    """
    if arguments.flits is None and arguments.max_flits is None:
        arguments.max_flits = FLITS
    made = FabricSpec.of(vars(arguments)).make()
    found: Fabric | Sequence[Any] = made.fabric
    if made.system:
        bridge = made.system.adapter.import_part("bridge")
        found = bridge.choose_fabrics(made.system, vars(arguments), built=built)
    return found


def _fabric_of_build(folder: Path) -> "Fabric | Sequence[Any]":
    """Return the fabric that was built in a folder, or all fabrics that run together with it."""
    report = _read_report(folder)
    if report is None:
        raise InputError(
            f"Folder {folder} holds no build, for it has no report.json; make one by torusfabric "
            f"build -o {folder}"
        )
    return select_fabrics(_parse_build_arguments(_split_words(report["command"])[2:]), built=True)


def _read_report(folder: Path) -> dict[str, Any] | None:
    """Return the report of the build in a folder; None if there is no valid report."""
    try:
        report = parse_json(read_bytes(folder / "report.json", "Report"))
    except ValueError:
        return None
    named = isinstance(report, dict) and isinstance(report.get("command"), str)
    return report if named else None


def _fabric_by_digest(access: "BusAccess") -> "Fabric | Sequence[Any]":
    """Return the fabric on a board, found among the builds in the folder `BUILDS` by its digest.

    The digest is read from the board, and compared with the report of each build. `access` reaches
    the bus of the fabric through the serial line. An `InputError` is raised if no build has this
    digest. If the fabric is one of several that run together, all of them are returned.
    """
    from ..fpga.bridge.board import read_digest

    digest = read_digest(access)
    for path in sorted(BUILDS.glob("*/report.json")):
        report = _read_report(path.parent)
        if report and report.get("digest") == f"{digest:08x}":
            return _fabric_of_build(path.parent)
    raise InputError(
        f"{access.name} holds the fabric {digest:08x}, which is not among the builds in "
        f"{BUILDS}/; name its folder by --build, or give TOPOLOGY and COLLECTIVE"
    )
