"""Options of commands: declared once, read from a command line or from Python keywords.

Options are declared in a text, one line for each: ``-n --name METAVAR: explanation``. The *metavar*
stands for the value in the help. Indented lines continue an explanation. An option without a
metavar is a flag, or takes one of several choices. The *attribute* of an option is the last of its
names as a keyword of Python: ``link_latency`` for ``--link-latency``.

An explanation that begins with ``with --other:`` makes the option depend on ``--other``: without
that option it is refused. ``with --other A or B:`` demands that ``--other`` has the value A or B.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple, TypeVar

from ..errors import InputError
from ..toolchain import values
from ..toolchain.values import unknown_name_error

__all__ = ["Option", "add_options", "check_needs", "parse_constants", "parse_lengths",
           "parse_non_negative_int", "parse_node_or_any", "option_names", "options_of",
           "parse_positive_int", "parse_positive_or_auto", "parse_number"]  # fmt: skip

#: The declaration of an option: names and metavars, then the explanation.
OPTION_PATTERN = re.compile(r"^(-.*?): (.*\n(?:    .*\n)*)", re.MULTILINE)

#: The beginning of an explanation that names the other option, and perhaps values of it.
NEEDS_PATTERN = re.compile(r"with --([\w-]+)((?: \w+)(?: or \w+)*)?:")


class Option(NamedTuple):
    """A command-line option, which is at the same time a keyword of Python.

    Parameters
    ----------
    names : tuple of str
        All spellings, with their dashes. Messages show the last one.
    text : str
        Explanation that the help of the command shows.
    settings : dict
        Keyword arguments for `argparse.ArgumentParser.add_argument`.
    """

    names: tuple[str, ...]
    text: str
    settings: Mapping[str, Any]

    @property
    def attribute(self) -> str:
        """The option's name as a keyword of Python: ``link_latency`` for ``--link-latency``."""
        return self.names[-1].strip("-").replace("-", "_")

    @property
    def default(self) -> Any:
        """The value that the option has if a user leaves it out."""
        flag = self.settings.get("action") == "store_true"
        return self.settings.get("default", False if flag else None)

    def parse_value(self, value: object) -> Any:
        """Check a value that a user gives for this option as a keyword of Python, and return it.

        A text that contains a number is accepted, and the number is returned.

        Raises
        ------
        InputError
            If the option does not take the value.
        """
        name = self.attribute
        action, choices = self.settings.get("action"), self.settings.get("choices")
        if action == "store_true":
            return values.require_bool(name, value)
        if choices is not None:
            if str(value) not in choices:
                raise unknown_name_error(name, str(value), choices)
            return str(value)
        try:
            read: Callable[[str], Any] = self.settings.get("type", str)
            if action == "append" or "nargs" in self.settings:
                return tuple(read(str(one)) for one in values.entries_of(value))
            return read(str(value))
        except argparse.ArgumentTypeError as error:
            raise InputError(f"{name} {error}") from None


def options_of(*texts: str, **settings: Any) -> dict[str, Option]:
    r"""Return the options that some texts declare, by their names as keywords of Python.

    Parameters
    ----------
    *texts : str
        Declarations, a line ``-n --name METAVAR: explanation`` for each option. Indented lines
        continue an explanation.
    **settings : function, tuple or dict
        For the keyword of an option: the function that reads its value from text; or a pair of this
        function and the default; or keyword arguments for `argparse.ArgumentParser.add_argument`.

    Examples
    --------
    The option ``--flits`` has the default 4, and its value is read from text as a number.

    >>> text, flits = "--flits L: length of a message\n", (parse_non_negative_int, 4)
    >>> flits = options_of(text, flits=flits)["flits"]
    >>> flits.default, flits.parse_value("7"), flits.text
    (4, 7, 'length of a message')
    """
    found = {}
    for names, metavars, text in (option for each in texts for option in _parse_options(each)):
        how = settings.get(names[-1].strip("-").replace("-", "_"), {})
        if callable(how):
            how = {"type": how}
        elif isinstance(how, tuple):
            how = dict(zip(("type", "default"), how, strict=True))
        if metavars:
            how = {"metavar": metavars if len(metavars) > 1 else metavars[0]} | how
        elif "choices" not in how and "action" not in how:
            how = {"action": "store_true"} | how
        option = Option(names, text, how)
        found[option.attribute] = option
    return found


def add_options(parser: argparse._ActionsContainer, *texts: str, **settings: Any) -> None:
    r"""Add to a parser the options that some texts declare.

    `texts` declares the options, and `settings` gives their readers and defaults, as for
    `options_of`.

    Examples
    --------
    Of two options, the user gives the flag ``--json``; ``--flits`` then has its default.

    >>> parser = argparse.ArgumentParser()
    >>> add_options(parser, "--flits L: of a message\n--json: no text\n", flits=(int, 4))
    >>> parser.parse_args(["--json"])
    Namespace(flits=4, json=True)
    """
    for option in options_of(*texts, **settings).values():
        parser.add_argument(*option.names, help=option.text, **option.settings)


@cache
def _parse_options(text: str) -> list[tuple[tuple[str, ...], tuple[str, ...], str]]:
    """Return a tuple (names, metavars, explanation) for each option that a text declares.

    For ``-n --name N: a number`` it has the names ``-n`` and ``--name``, the metavar ``N``, and "a
    number".
    """
    found = []
    for head, body in OPTION_PATTERN.findall(textwrap.dedent(text)):
        words = head.split()
        names = tuple(word for word in words if word.startswith("-"))
        found.append((names, tuple(words[len(names) :]), " ".join(body.split())))
    return found


def option_names(text: str) -> list[str]:
    """Return the last name, such as ``--name``, of each option that a text declares."""
    return [names[-1] for names, *_ in _parse_options(text)]


def check_needs(texts: Iterable[tuple[str, str | None]], chosen: Mapping[str, Any]) -> None:
    """Refuse options that depend on another option which is not given.

    Parameters
    ----------
    texts : iterable of (str, str)
        Name and explanation of each option that the user has given. If the explanation begins with
        ``with --other:``, the option depends on ``--other``.
    chosen : mapping of str to object
        Values of all options, by their names as keywords of Python.

    Raises
    ------
    InputError
        If an option is given without the option, or the value, on which it depends.
    """
    for name, text in texts:
        needed = NEEDS_PATTERN.match(text or "")
        if needed:
            value, wanted = chosen.get(needed[1].replace("-", "_")), (needed[2] or "").strip()
            if value in (None, False) or (wanted and str(value) not in wanted.split(" or ")):
                raise InputError(
                    f"{name} needs {needed[0].removeprefix('with ')[:-1]}; give both, or leave "
                    f"{name} out"
                )


T = TypeVar("T")


def _read_argument(read: Callable[[str, object], T], text: str) -> T:
    """Return the value of an option: the result of the function `read` for its text.

    An `InputError` of `read` becomes the error that argparse expects. The first argument of `read`,
    the title of its message, is empty, because argparse puts the name of the option before it.
    """
    try:
        return read("", text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error).strip()) from None


def parse_non_negative_int(text: str) -> int:
    """Return the integer that a text contains, which must be 0 or more."""
    return _read_argument(values.parse_non_negative_int, text)


def parse_positive_int(text: str) -> int:
    """Return the integer that a text contains, which must be 1 or more."""
    return _read_argument(values.parse_positive_int, text)


def parse_lengths(text: str) -> int | tuple[int, ...]:
    """Return the lengths of messages, in flits, that a text lists.

    For a text with one number, the result is this number. For a list such as ``1,10,100``, it is a
    tuple in ascending order. For a range such as ``3:20``, it is a tuple with both ends and the
    powers of two between them: 3, 4, 8, 16, 20.
    """
    if text.isdecimal():
        return parse_non_negative_int(text)
    found: set[int] = set()
    for part in text.split(","):
        first, colon, last = part.partition(":")
        try:
            low = parse_positive_int(first)
            high = parse_positive_int(last) if colon else low
        except argparse.ArgumentTypeError:
            raise argparse.ArgumentTypeError(
                "must be a positive number, a list such as 1,10,100 or a range such as 1:1024, "
                f"not {text!r}"
            ) from None
        if high < low:
            raise argparse.ArgumentTypeError(f"must be a range such as 1:1024, not {part!r}")
        found |= {low, high, *(n for k in range(high.bit_length()) if (n := 1 << k) > low)}
    return tuple(sorted(found))


def parse_number(text: str) -> float:
    """Return the number, perhaps with a fraction, that a text contains."""
    return _read_argument(values.parse_number, text)


def parse_constants(text: str) -> dict[str, str]:
    """Return constants of a formula for the time of a run, from a text like ``alpha=100,tau=1``.

    The result has the text of each value by the name of the constant: ``{"alpha": "100", ..}``.
    """
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name and sign and value for name, sign, value in pairs):
        raise argparse.ArgumentTypeError(f"must be such as alpha=100,tau=1, not {text!r}")
    found = {name.strip(): value for name, _, value in pairs}
    if len(found) < len(pairs):
        raise argparse.ArgumentTypeError(f"must be of different names, not {text!r}")
    return found


def parse_node_or_any(text: str) -> int | str:
    """Return the number of a node that a text contains; the name of a node, or "any", unchanged."""
    if re.fullmatch(r"[0-9]{1,4000}", text):
        return int(text)
    if text.isdigit():
        raise argparse.ArgumentTypeError(f"must be a node or any, not {text!r}")
    return text


def parse_positive_or_auto(text: str) -> int | Literal["auto"]:
    """Return the integer of 1 or more that a text contains, or the word "auto" unchanged."""
    return "auto" if text == "auto" else parse_positive_int(text)
