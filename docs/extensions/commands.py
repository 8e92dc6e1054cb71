"""Sphinx: the reference of commands, made from the parsers that read command lines.

``<!-- commands -->`` in a page becomes a table of all commands for each purpose. On the page
``reference/commands/NAME.md``, ``<!-- command: NAME -->`` becomes the usage, the examples and the
options of one command, group by group as in its help.
"""

import argparse
import os
import re
from collections.abc import Iterator, Sequence

from sphinx.application import Sphinx

from torusfabric.cli import make_parser
from torusfabric.cli import parser as parsing
from torusfabric.cli.purposes import GROUPS, PURPOSES

__all__ = ["command_list", "command_section", "parsers", "setup"]

LIST = "<!-- commands -->\n"
ONE = re.compile(r"<!-- command: (\w+) -->\n")

#: Path of a page of these documents in a help text.
PAGE = re.compile(r"docs/([\w/-]+)\.md(#[\w-]+)?")

#: An option within a text.
OPTION = re.compile(r"(?<![`\w-])--[a-z][\w-]*")

#: Options that every command has. The page of all commands describes them.
COMMON = {"-h", "--json", "--quiet", "--verbose"}


def command_list() -> str:
    """Return a section for each purpose: a table of commands with their summaries.

    Each name has the anchor ``NAME-command`` and leads to the page of the command.
    """
    parts = []
    for purpose, commands in PURPOSES.items():
        parts.append(f"### {_capital(purpose)}\n\n| command | purpose |\n|---|---|\n")
        for name, command in commands.items():
            link = f"[`{name}`](commands/{name}.md){{#{name}-command}}"
            parts.append(f"| {link} | {_cell(_plain(command.text))} |\n")
        parts.append("\n")
    return "".join(parts)


def command_section(name: str) -> str:
    """Return the usage, examples, arguments and options of a command."""
    parser = parsers()[name]
    own = [action for action in parser._actions if not COMMON & {*action.option_strings}]
    later = [action for action in parser._hidden_options() if action in own]
    first = [action for action in own if action not in later]
    options = [action for action in first if action.option_strings]
    return "\n".join([
        f"```text\n{_usage(parser, own)}\n```\n",
        _examples(parser),
        *_table("Arguments", "", name, [action for action in first if action not in options]),
        *_table("Options" if not later else "Options that most people need", "", name, options),
        *(part for word in dict.fromkeys(map(parsing._group_word, later))
          for part in _table(_title(word), _capital(GROUPS.get(word, "")), name,
                             [each for each in later if parsing._group_word(each) == word])),
    ])  # fmt: skip


def parsers() -> dict[str, parsing.CommandParser]:
    """Return the parsers of all commands, by name."""
    (found,) = (a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(found.choices)


def _title(word: str) -> str:
    """Return the title of the table of a group of options, by the word of the group."""
    return "Further options" if word == "options" else f"Options: {word}"


def _usage(parser: argparse.ArgumentParser, actions: Sequence[argparse.Action]) -> str:
    """Return the command line with its required arguments; `[OPTION ..]` for all others."""
    needed = [a for a in actions if a.option_strings and a.required]
    names = [a for a in actions if not a.option_strings]
    # A fixed width, so that the output does not depend on the terminal.
    os.environ["COLUMNS"] = "1000"
    formatter = argparse.HelpFormatter(parser.prog)
    formatter.add_usage(None, [*needed, *names], parser._mutually_exclusive_groups, "")
    usage = formatter.format_help().strip()
    rest = usage.removeprefix(parser.prog)
    return f"{parser.prog} [OPTION ..]{rest}"


def _examples(parser: argparse.ArgumentParser) -> str:
    """Return the examples of the help as a block that is not run."""
    lines = (parser.epilog or "").removeprefix("examples:\n").splitlines()
    return "\n".join(["```sh", *(line.strip() for line in lines), "```\n"])


def _table(
    title: str, text: str, command: str, actions: Sequence[argparse.Action]
) -> Iterator[str]:
    """Yield a section with a table of arguments; nothing if there are none."""
    if not actions:
        return
    yield f"## {title}\n"
    if text:
        yield f"{text}.\n"
    kind = "option" if actions[0].option_strings else "argument"
    rows = "".join(_row(action, command) for action in actions)
    yield f"| {kind} | meaning |\n|---|---|\n{rows}"


def _row(action: argparse.Action, command: str) -> str:
    """Return the row of an argument: its form, with an anchor, and its meaning."""
    formatter = argparse.HelpFormatter("torusfabric", width=1000)
    name = formatter._format_action_invocation(action)
    text = formatter._expand_help(action) if action.help else ""
    if action.choices and not action.metavar and "{" not in name:
        text += f": {', '.join(map(str, action.choices))}"
    words = [each.lstrip("-") for each in action.option_strings if each.startswith("--")]
    anchor = f"{command}-{words[0] if words else f'argument-{action.dest}'}"
    shown = OPTION.sub(r"`\g<0>`", PAGE.sub(r"[\1](/\1.md\2)", _plain(text)))
    return f"| `{_cell(name)}`{{#{anchor}}} | {_cell(shown)} |\n"


def _capital(text: str) -> str:
    """Return a text with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]


def _plain(text: str) -> str:
    """Return a text in which only backticks have a meaning in Markdown."""
    return "".join(f"\\{char}" if char in "*_<>@[]" else char for char in text)


def _cell(text: str) -> str:
    """Return a text that stays within its cell of a table."""
    return text.replace("|", "\\|")


def read(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Replace the marks of a page by tables."""
    if LIST in source[0]:
        source[0] = source[0].replace(LIST, command_list())
    source[0] = ONE.sub(lambda match: command_section(match[1]), source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension; Sphinx calls this."""
    # After the extension that runs the blocks of pages: examples of the help are not run.
    app.connect("source-read", read, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
