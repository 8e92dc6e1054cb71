# amaranth: UnusedElaboratable=no
"""Loading of board descriptions: each file in the folder ``boards`` defines one or more boards.

The folder is at the root of the repository, where people look for it, and in the package once that
is installed. Files are loaded by path, so that neither folder has to be importable. Users can give
the path of a file of their own in place of a name. An error names the file and the line.
"""

import importlib.machinery
import re
import traceback
import types
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from amaranth.build import Resource, Subsignal
from amaranth.hdl import Elaboratable, Module, Signal

from ...errors import InputError
from ...toolchain.extras import missing_package_message
from ...toolchain.values import message_text, unknown_name_error
from .catalogue import Board
from .plan import BoardTop

__all__ = ["find_board", "boards_folder", "load_boards"]


def boards_folder() -> Path:
    """Return the folder with the files that describe boards.

    It lies in the package or, in the repository, next to the package.
    """
    package = Path(__file__).resolve().parents[2]
    installed = package / "boards"
    return installed if installed.is_dir() else package.parent / "boards"


def load_boards() -> dict[str, Board]:
    """Execute all files in `boards_folder`, and return the boards that they describe, by name."""
    boards: dict[str, Board] = {}
    for path in sorted(boards_folder().glob("*.py")):
        boards |= _boards_of_file(path)
    return boards


def find_board(name: str) -> Board:
    """Return a board, given its name or the path of a file that describes a single board.

    Raises
    ------
    InputError
        If no board has the name, or the description is invalid.
    """
    if name.endswith(".py"):
        if not Path(name).is_file():
            raise InputError(
                f"File of boards {name} does not exist; give a .py file that does, or a name that "
                "torusfabric boards lists"
            )
        boards = _boards_of_file(Path(name).resolve())
        if len(boards) == 1:
            return _check_board(*boards.values())
        raise InputError(
            f"File of boards must describe one board, not {', '.join(boards) or 'none'}"
        )
    boards = load_boards()
    if name not in boards:
        raise unknown_name_error("Board", name, boards, more=", or a .py file")
    return _check_board(boards[name])


def _check_board(board: Board) -> Board:
    """Return `board` after a check, or raise `InputError`.

    The check makes the inputs of the tools for an empty design with the board's pins. It fails, for
    example, if the platform lacks a pin that the description names.
    """
    try:
        platform = board.make_platform()
        platform.default_clk_frequency  # noqa: B018 (fails without a clock)
        _require_parts("serial line", platform.lookup(*board.uart), ["rx", "tx"])
        for lamp, (name, number, *part) in board.lamps.items():
            _require_parts(f"lamp {lamp}", platform.lookup(name, number), part)
        platform.prepare(
            BoardTop(_EmptyGateware(), board), "trial", emit_src=False, nextpnr_opts=""
        )
    except InputError as error:
        raise _board_error(Path(board.file), board.name, str(error)) from None
    except Exception as error:
        what = "must be one of Amaranth's with a clock and the resources of the board"
        message = f"Platform of board {board.name} {what}, not fail: {describe_error(error)}"
        raise _board_error(Path(board.file), board.name, message) from None
    return board


def _require_parts(use: str, resource: Resource, used: Sequence[str]) -> None:
    """Refuse a resource of Amaranth if a board's description selects the wrong subsignals.

    A subsignal is a named part of a resource, such as ``tx`` of a serial line. `used` are the names
    of the selected subsignals. The resource must have them. If a resource has subsignals, at least
    one must be selected. `use` is the purpose of the resource, for the message.
    """
    parts = [each.name for each in resource.ios if isinstance(each, Subsignal)]
    if not set(used) <= set(parts) or (parts and not used):
        known, given = " or ".join(parts), " and ".join(used)
        raise InputError(f"Parts of {use} must be {known or 'left out'}, not {given or 'left out'}")


def _boards_of_file(path: Path) -> dict[str, Board]:
    """Execute the file at `path`, a module of Python, and return its boards by name."""
    found = getattr(_run_file(path), "BOARDS", None)
    if not isinstance(found, dict):
        raise InputError(
            f"File of boards {path} must define a dictionary BOARDS, as boards/README.md says"
        )
    for name, board in found.items():
        if not isinstance(name, str) or not name:
            raise _board_error(path, name, f"Name of a board must be a text, not {name!r}")
        if not isinstance(board, Board):
            raise _board_error(
                path, name, f"Board {name} must be a Board, not {message_text(board)}"
            )
    return {name: replace(board, name=name, file=str(path)) for name, board in found.items()}


def _run_file(path: Path) -> types.ModuleType:
    """Execute the file at `path`, which describes boards, and return it as a module."""
    loader = importlib.machinery.SourceFileLoader(f"torusfabric_board_{path.stem}", str(path))
    module = types.ModuleType(loader.name)
    try:
        loader.exec_module(module)
    except SyntaxError as error:
        line = error.lineno if error.filename == str(path) and error.lineno else 1
        raise _unreadable_error(path, line, error.msg) from None
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and missing_package_message(error):
            raise  # a package is missing, which is no error of the file
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(path)]
        line = (lines or [1])[-1] or 1
        if isinstance(error, InputError):
            raise InputError(f"{error} ({path}:{line})") from None
        raise _unreadable_error(path, line, describe_error(error)) from None
    return module


def _unreadable_error(path: Path, line: int, reason: str) -> InputError:
    return InputError(f"File of boards cannot be run: {reason} ({path}:{line})")


def _board_error(path: Path, name: object, message: str) -> InputError:
    """Return an error with a message about the board `name` in the file `path`.

    The error gives the number of the first line that has the name as a key.
    """
    quoted = re.compile(rf"""["']?{re.escape(str(name))}["']? *:""")
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    line = next((number for number, text in enumerate(lines, 1) if quoted.search(text)), 1)
    return InputError(f"{message} ({path}:{line})")


class _EmptyGateware(Elaboratable):
    """An empty design with the pins of a bitstream (serial line and LEDs), for trial builds."""

    def __init__(self) -> None:
        for name in ("rx", "tx", "running", "done"):
            setattr(self, name, Signal(name=name))

    def elaborate(self, platform: Any) -> Module:
        """Return an empty module."""
        return Module()


def describe_error(error: BaseException) -> str:
    """Return the class and the first line of the exception `error` as one line of text."""
    said = str(error).strip().split("\n")[0]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
