"""Sphinx: the reference of commands, from the parsers that read them.

``<!-- commands -->`` in a page becomes a section for each command, by purpose.
"""

import argparse
import os
from collections.abc import Iterator

from sphinx.application import Sphinx

from torusfabric.cli import make_parser
from torusfabric.cli.purposes import PURPOSES

__all__ = ["command_reference", "setup"]

MARK = "<!-- commands -->\n"

#: Arguments that every command has, said once.
COMMON = {"-h", "--json", "--quiet", "--verbose"}


def command_reference(level: int = 2) -> str:
    """The text of all sections, whose headings begin at a level."""
    # Usage is folded at this width, whatever the terminal.
    os.environ["COLUMNS"] = "96"
    parsers = _parsers(make_parser())
    parts = []
    for purpose, names in PURPOSES.items():
        parts.append(f"{'#' * level} {purpose[:1].upper()}{purpose[1:]}\n")
        for name in names:
            parts += [f"({name}-command)=\n{'#' * (level + 1)} torusfabric {name}\n",
                      *_section(parsers[name])]  # fmt: skip
    return "\n".join(parts)


def _parsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of the commands, by name."""
    (found,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return dict(found.choices)


def _section(parser: argparse.ArgumentParser) -> Iterator[str]:
    """What a command does, how it is written, and its arguments."""
    yield f"{parser.description}\n"
    usage = parser.format_usage().removeprefix("usage: ")
    yield f"```text\n{usage}```\n"
    rows = [_row(action) for action in parser._actions if not COMMON & {*action.option_strings}]
    if rows:
        yield "| argument | |\n|---|---|\n" + "".join(rows)
    examples = (parser.epilog or "").removeprefix("examples:\n")
    if examples:
        lines = (line.removeprefix("  ") for line in examples.splitlines())
        yield "\n".join(["```sh", *lines, "```\n"])


def _row(action: argparse.Action) -> str:
    """An argument: how it is written, and what it means."""
    formatter = argparse.HelpFormatter("torusfabric", width=1000)
    name = formatter._format_action_invocation(action)
    text = formatter._expand_help(action) if action.help else ""
    if action.choices and not action.metavar and "{" not in name:
        text += f": {', '.join(map(str, action.choices))}"
    return f"| `{_cell(name)}` | {_cell(_plain(text))} |\n"


def _plain(text: str) -> str:
    """Words in which Markdown finds nothing."""
    return "".join(f"\\{char}" if char in "*_<>@`[]" else char for char in text)


def _cell(text: str) -> str:
    """A text that stays within its cell."""
    return text.replace("|", "\\|")


def read(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Put the sections into the page that asks for them."""
    if MARK in source[0]:
        source[0] = source[0].replace(MARK, command_reference())


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls."""
    # After the extension that runs what stands in pages: examples here are not run.
    app.connect("source-read", read, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
