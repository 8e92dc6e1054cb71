"""Where the documentation explains an error: by the part of the package that found it."""

from collections.abc import Iterator
from types import TracebackType

from ..errors import MissingTool, TorusfabricError
from ..toolchain.processes import Interrupted

__all__ = ["FAMILIES", "PAGE", "page_of"]

#: The page of all errors, in the repository and, without its ending, on the site.
PAGE = "docs/reference/errors.md"

#: The section of that page, by the part of the package; the longest name that fits counts. What
#: is in none of them serves several: the part that called it counts.
FAMILIES = {
    "algorithms": "algorithm",
    "algorithms.foreign": "files-of-other-systems",
    "analysis": "faults-of-a-schedule",
    "cli": "command-line",
    "cli.board": "board",
    "cli.boards": "board",
    "cli.connect": "board",
    "cli.monitor": "board",
    "cli.prove": "proof",
    "cli.sweep": "sweep",
    "collective": "collective",
    "draw": "picture",
    "fpga.board": "board",
    "fpga.bridge": "board",
    "fpga.synthesis": "synthesis",
    "planning": "algorithm",
    "planning.foreign": "files-of-other-systems",
    "planning.limits": "too-large",
    "program": "fabric",
    "proof": "proof",
    "rtl": "fabric",
    "schedule": "schedule-file",
    "schedule.foreign": "files-of-other-systems",
    "simulation": "simulation",
    "sweep": "sweep",
    "toolchain.cache": "file",
    "toolchain.cache_size": "file",
    "toolchain.cxx": "tool",
    "toolchain.files": "file",
    "toolchain.folders": "file",
    "toolchain.tools": "tool",
    "topology": "topology",
    "verilog": "fabric",
}

#: The section of errors that are not ours, and of a tool that is missing, whoever needs it.
MACHINE, INTERRUPTED, TOOL = "machine", "interrupted", "tool"


def page_of(error: BaseException) -> str:
    """The place in the documentation that explains an error.

    Examples
    --------
    >>> import torusfabric as tf
    >>> try:
    ...     tf.parse_topology("4xx4")
    ... except tf.InputError as error:
    ...     page_of(error)
    'docs/reference/errors.md#topology'
    """
    return f"{PAGE}#{_family(error)}"


def _family(error: BaseException) -> str:
    """The section of the page."""
    if isinstance(error, Interrupted | KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, MissingTool):
        return TOOL
    if not isinstance(error, TorusfabricError):
        return MACHINE
    for module in _innermost_first(error.__traceback__):
        while module:
            if module in FAMILIES:
                return FAMILIES[module]
            module = module.rpartition(".")[0]
    return FAMILIES["cli"]


def _innermost_first(traceback: TracebackType | None) -> Iterator[str]:
    """The modules of the package through which an error came, below the name of the package."""
    package = __name__.partition(".")[0] + "."
    names = []
    while traceback:
        names.append(str(traceback.tb_frame.f_globals.get("__name__", "")))
        traceback = traceback.tb_next
    return (name.removeprefix(package) for name in reversed(names) if name.startswith(package))
