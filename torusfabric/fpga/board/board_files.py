"""The boards: every file of the folder ``boards`` describes one or a few.

The folder lies at the root of the repository, where people look for it, and inside the package
once it is installed; files are loaded by their paths, so neither place has to be importable. A
path of a file of one's own is as good as a name. What is wrong in a file is one line that names the
file and the line.
"""

import ast
import importlib.machinery
import traceback
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...toolchain.extras import missing_package
from ...toolchain.hints import no_such
from .board_checks import Wrong, fault_of, platform_fault, reason_of
from .catalogue import Board

__all__ = ["find_board", "folder", "load_boards"]


def folder() -> Path:
    """The folder of the descriptions: in the package, or beside it in the repository."""
    package = Path(__file__).resolve().parents[2]
    installed = package / "boards"
    return installed if installed.is_dir() else package.parent / "boards"


def load_boards() -> dict[str, Board]:
    """All boards by name."""
    boards: dict[str, Board] = {}
    for path in sorted(folder().glob("*.py")):
        boards |= _load(path)
    return boards


def find_board(name: str) -> Board:
    """The board of a name, or of a file that describes a single one.

    Raises
    ------
    InputError
        If there is none, or its file is not as it must be.
    """
    if name.endswith(".py"):
        if not Path(name).is_file():
            raise InputError(f"File of boards must exist, not {name}")
        boards = _load(Path(name).resolve())
        if len(boards) == 1:
            return _checked(*boards.values())
        raise InputError(
            f"File of boards must describe one board, not {', '.join(boards) or 'none'}"
        )
    boards = load_boards()
    if name not in boards:
        raise no_such("Board", name, boards, more=", or a .py file")
    return _checked(boards[name])


def _checked(board: Board) -> Board:
    """A board that its platform can carry out."""
    if fault := platform_fault(board):
        raise _wrong(Path(board.file), board.name, fault)
    return board


def _load(path: Path) -> dict[str, Board]:
    """The boards of a file, by name."""
    found = getattr(_run(path), "BOARDS", None)
    if not isinstance(found, dict):
        raise InputError(f"File of boards must define a dictionary BOARDS, as {path} does not")
    for name, board in found.items():
        fault = fault_of(name, board)
        if fault is not None:
            raise _wrong(path, name, fault)
    return {name: replace(board, name=name, file=str(path)) for name, board in found.items()}


def _run(path: Path) -> types.ModuleType:
    """The module in a file."""
    loader = importlib.machinery.SourceFileLoader(f"torusfabric_board_{path.stem}", str(path))
    module = types.ModuleType(loader.name)
    try:
        loader.exec_module(module)
    except SyntaxError as error:
        line = error.lineno if error.filename == str(path) and error.lineno else 1
        raise _unreadable(path, line, error.msg) from None
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and missing_package(error):
            raise  # nothing is wrong with the file
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(path)]
        raise _unreadable(path, (lines or [1])[-1] or 1, reason_of(error)) from None
    return module


def _unreadable(path: Path, line: int, reason: str) -> InputError:
    return InputError(
        f"File of boards must be Python that runs, not fail: {reason} ({path}:{line})"
    )


def _wrong(path: Path, name: Any, fault: Wrong) -> InputError:
    return InputError(f"{fault.message} ({path}:{_line(path, name, fault)})")


def _line(path: Path, name: Any, fault: Wrong) -> int:
    """The line of a value in a file: of the keyword, else of the name of the board."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return 1
    keywords = [
        keyword.value.lineno
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg == fault.field
    ]
    entries = [
        key.lineno
        for entry in ast.walk(tree)
        if isinstance(entry, ast.Dict)
        for key in entry.keys
        if isinstance(key, ast.Constant) and key.value == name
    ]
    after = [line for line in keywords if entries and line >= entries[0]]
    return next(iter([*after, *keywords, *entries]), 1)
