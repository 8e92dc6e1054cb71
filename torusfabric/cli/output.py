"""What commands print: tables for people, JSON for programs, progress.

Facts go to standard output, or to standard error while a file is written to standard output.
"""

import contextlib
import json
import logging
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO

from ..errors import WorkFailed
from ..toolchain.destinations import STANDARD_OUTPUT
from ..toolchain.files import reporting
from ..toolchain.notices import LOGGER
from ..toolchain.progress import Progress, progress_bar
from ..toolchain.quoting import visible
from ..toolchain.values import plain_json
from .streams import Failure

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table


__all__ = ["JSON_VERSION", "Progress", "facts_on_standard_error", "flush", "notices_shown",
           "print_error", "print_facts", "print_json", "print_line", "print_rendered",
           "print_report", "print_table", "printable", "progress_bar",
           "raise_if_wrong"]  # fmt: skip

#: The version of the JSON objects. It grows when a key goes or means something else; new keys
#: may come at any time.
JSON_VERSION = 1

#: Columns of a table that goes to a file or another program.
WIDE = 320

#: Columns of a terminal from which on words in tables are folded rather than rows.
NARROW = 80

#: Characters of an error; of a longer one, the middle is left out.
LONGEST_ERROR = 1000

_apart: ContextVar[bool] = ContextVar("_apart", default=False)


def printable(text: str) -> str:
    r"""A text in which all but lines and tabs can be seen: names of files may hold anything.

    Examples
    --------
    >>> print(printable("a\x1b[31mb"))
    a\x1b[31mb
    """
    return visible(text, keep="\n\t")


def print_line(text: str = "") -> None:
    """Print a line, at once."""
    with _writing() as stream:
        print(printable(text), file=stream, flush=True)


@contextlib.contextmanager
def facts_on_standard_error(*, apart: bool) -> Iterator[None]:
    """Print facts to standard error for a while, if they must be apart from standard output."""
    token = _apart.set(apart)
    try:
        yield
    finally:
        _apart.reset(token)


@contextlib.contextmanager
def _writing() -> Iterator[TextIO]:
    """Where facts go; what cannot be written is an error of ours.

    Beside a file on standard output facts are no result: standard error may be full.
    """
    if _apart.get():
        with contextlib.suppress(OSError, ValueError):
            yield sys.stderr
            sys.stderr.flush()
        return
    with reporting(STANDARD_OUTPUT):
        yield sys.stdout


def flush() -> None:
    """Write what standard output still holds."""
    with reporting(STANDARD_OUTPUT):
        sys.stdout.flush()


def print_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object, with the version of its form."""
    text = json.dumps({"version": JSON_VERSION, **value}, indent=2, default=plain_json)
    with _writing() as stream:
        print(text, file=stream)


@contextlib.contextmanager
def notices_shown() -> Iterator[None]:
    """Show notices on standard error during the body, a line each."""
    handler, level = logging.StreamHandler(), LOGGER.level
    handler.setFormatter(logging.Formatter("torusfabric: %(message)s"))
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)


def print_error(error: Failure, words: Sequence[str]) -> None:
    """Print an error to standard error: a line, or an object in a line, as the words ask for.

    Where the documentation explains it is in the object, and in a second line if they ask for all
    there is to say.
    """
    if "--json" in words:
        message = json.dumps({"version": JSON_VERSION, "error": error._asdict()})
    else:
        message = f"torusfabric: {_in_one_line(error.message)}"
        if "--verbose" in words:
            message += f"\n  see {error.page}"
    with contextlib.suppress(OSError, ValueError):  # if it cannot be said, the status says it
        print(message, file=sys.stderr, flush=True)


def _in_one_line(message: str) -> str:
    """An error as a line that can be read; what it repeats may be of any length."""
    if len(message) > LONGEST_ERROR:
        message = f"{message[: LONGEST_ERROR * 3 // 4]} .. {message[-LONGEST_ERROR // 4 :]}"
    return printable(message).replace("\n", r"\n").replace("\t", r"\t")


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, one pair a line."""
    width = max(map(len, facts))
    with _writing() as stream:
        for name, value in facts.items():
            print(f"{name:<{width}}  {printable(str(value))}", file=stream)


def print_report(arguments: Namespace, facts: Mapping[str, Any], shown: Mapping[str, Any]) -> None:
    """Print facts as a JSON object, or what is shown of them to people, as arguments say."""
    if arguments.json:
        print_json(facts)
    else:
        print_facts(shown)


def raise_if_wrong(report: Any) -> None:
    """Raise an error if a word is wrong, or the cycles are not those predicted."""
    if report.passed:
        return
    if report.first_wrong:
        raise WorkFailed(
            f"{report.words_wrong} of {report.words_checked} words are wrong; first: "
            f"{report.first_wrong}"
        )
    if faults := [
        getattr(run, "fault", "") for run in report.jobs if getattr(run, "failed", False)
    ]:
        raise WorkFailed(f"{len(faults)} of {len(report.jobs)} runs failed; first: {faults[0]}")
    raise WorkFailed(f"Cycles must be {report.predicted_cycles}, not {report.cycles}")


def print_rendered(renderable: "RenderableType") -> None:
    """Print what rich can draw; lines are not folded where nobody looks at a terminal."""
    from rich.console import (  # here, since few commands print so and its import takes long
        Console,
        Group,
    )
    from rich.table import Table

    class _Console(Console):
        """A console that leaves a reader who has gone to the command line."""

        def on_broken_pipe(self) -> None:
            """Pass the error on."""
            raise BrokenPipeError

    with _writing() as stream:
        wide = not stream.isatty()
        console = _Console(
            file=stream, soft_wrap=wide, width=WIDE if wide else None, markup=False, emoji=False
        )
        for part in renderable.renderables if isinstance(renderable, Group) else [renderable]:
            if isinstance(part, Table) and console.width < min(NARROW, _least_width(console, part)):
                # Print the rows of a table one below another, for a terminal that is narrow.
                if part.title:
                    print(part.title, file=stream)
                heads = [" ".join(str(column.header).split()) for column in part.columns]
                for row in zip(*(column.cells for column in part.columns), strict=True):
                    for head, cell in zip(heads, row, strict=True):
                        print(f"{head}: {cell}" if head else cell, file=stream)
                    print(file=stream)
                if part.caption:
                    print(part.caption, file=stream)
            else:
                console.print(part)


def _least_width(console: "Console", table: "Table") -> int:
    """The columns that a table needs if no word is cut."""
    measured = table.__rich_measure__(console, console.options)
    return int(measured.minimum)


def print_table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(printable(str(cell)) for cell in row))
    print_rendered(table)
