"""Output of all commands: tables for people, JSON for programs, notices and errors.

A command's result as text or JSON is its *facts*. Facts go to standard output. If the command
writes a file to standard output, facts go to standard error instead.
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
from ..toolchain.files import as_input_error
from ..toolchain.notices import LOGGER
from ..toolchain.progress import Progress, progress_bar
from ..toolchain.quoting import escape_unprintable
from ..toolchain.values import plain_json
from .failures import Failure

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table


__all__ = ["JSON_VERSION", "Progress", "facts_on_standard_error", "flush_output", "print_notices",
           "print_error", "print_facts", "print_json", "print_line", "print_rendered",
           "print_report", "print_table", "printable_text", "progress_bar",
           "raise_if_wrong"]  # fmt: skip

#: Version of the JSON objects. It is incremented if a key is removed or changes its meaning; a new
#: key does not count.
JSON_VERSION = 1

#: Characters in a line of a table that goes to a file or another program.
WIDE = 320

#: Least width of a terminal, in characters, on which words of a table may be folded. On a narrower
#: one the cells of each row are printed one below another if a word does not fit.
NARROW = 80

#: Most characters of an error message; a longer message loses its middle.
LONGEST_ERROR = 1000

_facts_to_stderr: ContextVar[bool] = ContextVar("_apart", default=False)


def printable_text(text: str) -> str:
    r"""Return a text with escape sequences for control characters, except newlines and tabs.

    Why: the name of a file may contain control characters, which would act on the terminal.

    Examples
    --------
    >>> print(printable_text("a\x1b[31mb"))
    a\x1b[31mb
    """
    return escape_unprintable(text, keep="\n\t")


def print_line(text: str = "") -> None:
    """Print a line of the result of a command, and flush the stream.

    The stream is standard output, or standard error within `facts_on_standard_error`. By default
    the line is empty.
    """
    with _facts_stream() as stream:
        print(printable_text(text), file=stream, flush=True)


@contextlib.contextmanager
def facts_on_standard_error(*, apart: bool) -> Iterator[None]:
    """Context manager: with `apart`, results of the command go to standard error in its body.

    Why: the command then writes a file to standard output.
    """
    token = _facts_to_stderr.set(apart)
    try:
        yield
    finally:
        _facts_to_stderr.reset(token)


@contextlib.contextmanager
def _facts_stream() -> Iterator[TextIO]:
    """Context manager: yield the stream to which results of the command are printed.

    The stream is standard output, and an `InputError` is raised if it cannot be written; or it is
    standard error, within `facts_on_standard_error`. Errors of standard error are ignored, because
    the main result is then the file on standard output.
    """
    if _facts_to_stderr.get():
        with contextlib.suppress(OSError, ValueError):
            yield sys.stderr
            sys.stderr.flush()
        return
    with as_input_error(STANDARD_OUTPUT):
        yield sys.stdout


def flush_output() -> None:
    """Flush standard output; raise an `InputError` if it cannot be written."""
    with as_input_error(STANDARD_OUTPUT):
        sys.stdout.flush()


def print_json(value: Mapping[str, Any]) -> None:
    """Print the JSON object `value`, with the key ``version`` in front."""
    text = json.dumps({"version": JSON_VERSION, **value}, indent=2, default=plain_json)
    with _facts_stream() as stream:
        print(text, file=stream)


@contextlib.contextmanager
def print_notices() -> Iterator[None]:
    """Context manager: in its body, notices of the package go to standard error, one line each."""
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
    """Print an error to standard error: as one line, or with ``--json`` as a JSON object in a line.

    The page of the documentation about the error is part of the object; with ``--verbose`` it is a
    second line.

    Parameters
    ----------
    error : Failure
        The error that ended the command.
    words : sequence of str
        The command line.
    """
    if "--json" in words:
        message = json.dumps({"version": JSON_VERSION, "error": error._asdict()})
    else:
        message = f"torusfabric: {_one_line_message(error.message)}"
        if "--verbose" in words:
            message += f"\n  see {error.page}"
    with contextlib.suppress(OSError, ValueError):  # the exit status still says that it failed
        print(message, file=sys.stderr, flush=True)


def _one_line_message(message: str) -> str:
    """Return an error message as one printable line of at most about `LONGEST_ERROR` characters."""
    if len(message) > LONGEST_ERROR:
        message = f"{message[: LONGEST_ERROR * 3 // 4]} .. {message[-LONGEST_ERROR // 4 :]}"
    return printable_text(message).replace("\n", r"\n").replace("\t", r"\t")


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print results of a command for people: a name and its value in each line."""
    width = max(map(len, facts))
    with _facts_stream() as stream:
        for name, value in facts.items():
            print(f"{name:<{width}}  {printable_text(str(value))}", file=stream)


def print_report(arguments: Namespace, facts: Mapping[str, Any], shown: Mapping[str, Any]) -> None:
    """Print `facts` as a JSON object if ``--json`` is given, else `shown` for people."""
    if arguments.json:
        print_json(facts)
    else:
        print_facts(shown)


def raise_if_wrong(report: Any) -> None:
    """Raise an error if a report of runs has wrong words, failed runs or unpredicted cycles."""
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
    raise WorkFailed(
        f"The runs took {report.cycles} cycles in place of the predicted {report.predicted_cycles}"
    )


def print_rendered(renderable: "RenderableType") -> None:
    """Print `renderable`, a table or another object of the package rich.

    Lines are folded on terminals only.
    """
    from rich.console import (  # here, since few commands print so and its import takes long
        Console,
        Group,
    )
    from rich.table import Table

    class _Console(Console):
        """A console that raises the error of a closed standard output, for `main` to handle."""

        def on_broken_pipe(self) -> None:
            """Raise the error again; rich would exit."""
            raise BrokenPipeError

    with _facts_stream() as stream:
        wide = not stream.isatty()
        console = _Console(
            file=stream, soft_wrap=wide, width=WIDE if wide else None, markup=False, emoji=False
        )
        for part in renderable.renderables if isinstance(renderable, Group) else [renderable]:
            if isinstance(part, Table) and console.width < min(NARROW, _least_width(console, part)):
                # The terminal is too narrow for the table: print the cells one below another.
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
    """Return the number of characters in a line of `table` if no word is cut.

    `console` has the options of the output.
    """
    measured = table.__rich_measure__(console, console.options)
    return int(measured.minimum)


def print_table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table of results for people.

    Parameters
    ----------
    columns : sequence of str
        Heads of the columns.
    rows : iterable of (iterable of object)
        Cells of each row, printed as text.
    """
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(printable_text(str(cell)) for cell in row))
    print_rendered(table)
