"""What commands print: tables for people, JSON for programs, progress on terminals."""

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich import progress as rich_progress
from rich.console import Console, RenderableType
from rich.table import Table

__all__ = ["Progress", "print_facts", "print_json", "print_rendered", "print_table", "progress_bar"]


#: Shows how much is done of how much, and perhaps of what.
Progress = Callable[..., None]

#: Columns of a table that goes to a file or another program.
WIDE = 240


def print_json(value: object) -> None:
    """Print one JSON object."""
    json.dump(value, sys.stdout, indent=2, default=_plain)
    print()


def _plain(value: Any) -> Any:
    """Numbers that JSON does not know, as numbers that it does."""
    if hasattr(value, "denominator") and hasattr(value, "numerator"):
        return int(value) if value.denominator == 1 else float(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print names and values, one pair a line."""
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")


def print_rendered(renderable: RenderableType) -> None:
    """Print what rich can draw; lines are not folded where nobody looks at a terminal."""
    wide = not sys.stdout.isatty()
    Console(soft_wrap=wide, width=WIDE if wide else None).print(renderable)


def print_table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(str, row))
    print_rendered(table)


@contextlib.contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """Show progress on standard error while it is a terminal.

    Yields
    ------
    function of (done, total, what=None)
    """
    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.TextColumn("{task.percentage:>3.0f}%"),
        rich_progress.TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with rich_progress.Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=None)

        def advance(done: float, total: float, text: str | None = None) -> None:
            bar.update(task, completed=done, total=total, description=text or what)

        yield advance
