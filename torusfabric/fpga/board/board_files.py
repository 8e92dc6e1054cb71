# amaranth: UnusedElaboratable=no
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
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from amaranth.hdl import Elaboratable, Module, Signal

from ...errors import InputError
from ...toolchain.extras import missing_package
from ...toolchain.values import no_such
from .catalogue import Board, Limit
from .plan import BoardTop
from .platforms import family_fault, up_to_date

__all__ = ["fault_of", "find_board", "folder", "load_boards"]

#: What a lamp may show.
LAMPS = ("running", "done")


class Wrong(NamedTuple):
    """A field of a board, and what is wrong with it."""

    field: str
    message: str


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


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _are_texts(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(map(_is_text, value))


def _is_resource(value: Any) -> bool:
    """Whether something is a name and a number, and perhaps the name of a part."""
    if not isinstance(value, (tuple, list)) or len(value) not in (2, 3):
        return False
    name, number, *part = value
    return _is_text(name) and type(number) is int and all(map(_is_text, part))


def _are_lamps(value: Any) -> bool:
    return isinstance(value, dict) and all(
        lamp in LAMPS and _is_resource(resource) for lamp, resource in value.items()
    )


def _are_transceivers(value: Any) -> bool:
    return isinstance(value, tuple) and all(
        isinstance(each, tuple) and len(each) == 2 and set(each) <= {0, 1} for each in value
    )


def _are_options(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and all(map(_is_text, value))
        and all(isinstance(option, str) for option in value.values())
    )


def _are_file_names(value: Any) -> bool:
    """Whether all are names of files in the folder of a build, beside its others."""
    return _are_texts(value) and all(
        PurePath(name).name == name and name not in (".", "..", "build", "report.json")
        for name in value
    )


#: What each field must be.
_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "title": (_is_text, "a text"),
    "platform": (callable, "a class of Amaranth's platforms"),
    "program": (lambda v: _are_texts(v) and bool(v), "a tuple of texts: a command"),
    "products": (lambda v: _are_file_names(v) and bool(v), "a tuple of file names, no paths"),
    "packer": (lambda v: _are_texts(v) and bool(v), "a tuple of names of tools"),
    "uart": (lambda v: _is_resource(v) and len(v) == 2, "the name and number of a resource"),
    "pins": (_is_text, "a text"),
    "port": (_is_text, "a text"),
    "lamps": (_are_lamps, f"a dictionary of {', '.join(LAMPS)} to resources"),
    "resources": (lambda v: isinstance(v, (tuple, list)), "a tuple of resources"),
    "transceivers": (_are_transceivers, "a tuple of pairs of 0 or 1"),
    "options": (_are_options, "a dictionary of texts"),
    "routers": (_are_texts, "a tuple of names of routers"),
    "placers": (_are_texts, "a tuple of names of placers"),
    "mhz": (lambda v: v is None or (isinstance(v, (int, float)) and v > 0), "a positive number"),
    "limit": (lambda v: v is None or isinstance(v, Limit), "a Limit"),
    "minutes": (lambda v: isinstance(v, (int, float)) and v > 0, "a positive number"),
}


def fault_of(name: Any, board: Any) -> Wrong | None:
    """What is wrong with an entry of a file of boards, or None."""
    if not _is_text(name):
        return Wrong("", f"Name of a board must be a text, not {name!r}")
    if not isinstance(board, Board):
        return Wrong("", f"Board {name} must be a Board, not {_short(board)}")
    for field, (is_right, what) in _FIELDS.items():
        value = getattr(board, field)
        if not is_right(value):
            return Wrong(
                field, f"Entry {field} of board {name} must be {what}, not {_short(value)}"
            )
    return None


def platform_fault(board: Board) -> Wrong | None:
    """What is wrong with a board's platform, or with what the board asks of it; or None."""
    try:
        what = "platform", f"Platform of board {board.name} must be one of Amaranth's with a clock"
        platform = up_to_date(board.platform())
        if message := family_fault(board.name, platform):
            return Wrong("platform", message)
        platform.default_clk_frequency  # noqa: B018 (fails without a clock)
        what = "resources", f"Resources of board {board.name} must be Amaranth's"
        platform.add_resources(board.resources)
        if fault := _pins_fault(board, platform):
            return fault
        what = "platform", f"Platform of board {board.name} must take its serial line and lamps"
        trial = BoardTop(_NoGateware(), board)
        board.make_platform().prepare(trial, "trial", emit_src=False, nextpnr_opts="")
    except Exception as error:
        return Wrong(what[0], f"{what[1]}, not fail: {reason_of(error)}")
    return None


def _pins_fault(board: Board, platform: Any) -> Wrong | None:
    """What is wrong with the resources of the serial line and of lamps, or None."""
    if message := _resource_fault("serial line", board.uart, platform, ("rx", "tx")):
        return Wrong("uart", message)
    for lamp, resource in board.lamps.items():
        if message := _resource_fault(f"lamp {lamp}", resource, platform):
            return Wrong("lamps", message)
    return None


def _resource_fault(
    use: str, resource: Sequence[Any], platform: Any, needed: Sequence[str] = ()
) -> str | None:
    """What is wrong with a resource, of which a part or those that are needed are used, or None."""
    from amaranth.build.res import ResourceError

    name, number, *part = resource
    try:
        found = platform.lookup(name, number)
    except ResourceError:
        return f"Resource of {use} must be one of the platform, not {name} {number}"
    parts = [each.name for each in found.ios if hasattr(each, "name")]
    known = f"one of {', '.join(parts)}" if parts else "left out"
    if needed:
        if not set(needed) <= set(parts):
            is_part = ", ".join(parts) or "none"
            return f"Parts of {use} must include {' and '.join(needed)}, not be {is_part}"
    elif part and part[0] not in parts:
        return f"Part of {use} must be {known}, not {part[0]}"
    elif parts and not part:
        return f"Part of {use} must be {known}, not left out"
    return None


class _NoGateware(Elaboratable):
    """What has the pins of the gateware, and nothing else."""

    def __init__(self) -> None:
        for name in ("rx", "tx", *LAMPS):
            setattr(self, name, Signal(name=name))

    def elaborate(self, platform: Any) -> Module:
        """Nothing."""
        return Module()


def reason_of(error: BaseException) -> str:
    """An error in a line."""
    said = str(error).strip().split("\n")[0]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _short(value: Any) -> str:
    """A value in a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}.."
