# amaranth: UnusedElaboratable=no
"""What is wrong with a board that somebody describes, as far as it can be known without a build."""

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from amaranth.hdl import Elaboratable, Module, Signal

from .catalogue import Board, Limit
from .plan import BoardTop
from .platforms import family_fault, up_to_date

__all__ = ["Wrong", "fault_of", "platform_fault", "reason_of"]

#: What a lamp may show.
LAMPS = ("running", "done")


class Wrong(NamedTuple):
    """A field of a board, and what is wrong with it."""

    field: str
    message: str


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
