"""What commands print: tables for people, JSON for programs, progress on terminals."""

import contextlib
import json
import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

__all__ = ["print_facts", "print_json", "print_rendered", "print_table", "progress_bar"]


#: Columns of a table that goes to a file or another program.
WIDE = 240


def print_json(value):
    """Print one JSON object."""
    json.dump(value, sys.stdout, indent=2, default=_plain)
    print()


def _plain(value):
    """Numbers that JSON does not know, as numbers that it does."""
    if hasattr(value, "denominator") and hasattr(value, "numerator"):
        return int(value) if value.denominator == 1 else float(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def print_facts(facts):
    """Print names and values, one pair a line."""
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")


def print_rendered(renderable):
    """Print what rich can draw; lines are not folded where nobody looks at a terminal."""
    wide = not sys.stdout.isatty()
    Console(soft_wrap=wide, width=WIDE if wide else None).print(renderable)


def print_table(columns, rows):
    """Print a table."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(str, row))
    print_rendered(table)


@contextlib.contextmanager
def progress_bar(what):
    """Show progress on standard error while it is a terminal.

    Yields
    ------
    function of (done, total, what=None)
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=None)

        def advance(done, total, text=None):
            bar.update(task, completed=done, total=total, description=text or what)

        yield advance
