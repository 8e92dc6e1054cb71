r"""Options: choices of a user, declared once, read from a command line or as keywords of Python.

A text declares options, a line each, ``-n --name METAVAR: explanation``, which may go on in
indented lines. An option without a metavar is a flag, or has choices. A text that begins with
``with --other:`` or ``with --other A or B:`` is a rule, too: the option is refused without that
other one, or without one of these values of it.
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
from ..toolchain.values import no_such

__all__ = ["Option", "add_options", "check_needs", "constants", "lengths", "natural",
           "node_or_any", "option_names", "options_of", "positive", "positive_or_auto",
           "real"]  # fmt: skip

#: An option of a text: its names and metavars, and its explanation.
OPTION = re.compile(r"^(-.*?): (.*\n(?:    .*\n)*)", re.MULTILINE)

#: The beginning of the explanation of an option that needs another one, perhaps with some values.
NEEDS = re.compile(r"with --([\w-]+)((?: \w+)(?: or \w+)*)?:")


class Option(NamedTuple):
    """An option.

    Parameters
    ----------
    names : tuple of str
        All names with their dashes; the last is the one that messages show.
    text : str
        The explanation.
    settings : dict
        Arguments of `argparse.ArgumentParser.add_argument`.
    """

    names: tuple[str, ...]
    text: str
    settings: Mapping[str, Any]

    @property
    def attribute(self) -> str:
        """The name as a keyword of Python."""
        return self.names[-1].strip("-").replace("-", "_")

    @property
    def default(self) -> Any:
        """The value of an option that is left out."""
        flag = self.settings.get("action") == "store_true"
        return self.settings.get("default", False if flag else None)

    def read(self, value: object) -> Any:
        """Return the value that a keyword gives: numbers may be text, as on a command line.

        Raises
        ------
        InputError
            If it is none that the option takes.
        """
        name = self.attribute.replace("_", " ").capitalize()
        action, choices = self.settings.get("action"), self.settings.get("choices")
        if action == "store_true":
            return values.flag(name, value)
        if choices is not None:
            if str(value) not in choices:
                raise no_such(name, str(value), choices)
            return str(value)
        try:
            read: Callable[[str], Any] = self.settings.get("type", str)
            if action == "append" or "nargs" in self.settings:
                return tuple(read(str(one)) for one in values.entries_of(value))
            return read(str(value))
        except argparse.ArgumentTypeError as error:
            raise InputError(f"{name} {error}") from None


def options_of(*texts: str, **settings: Any) -> dict[str, Option]:
    r"""Return the options that texts declare, by their attributes.

    Parameters
    ----------
    **settings : function, tuple or dict
        By attribute: the function that reads a value, that and the default, or arguments of
        `argparse.ArgumentParser.add_argument`.

    Examples
    --------
    >>> flits = options_of("--flits L: length of a message\n", flits=(natural, 4))["flits"]
    >>> flits.default, flits.read("7"), flits.text
    (4, 7, 'length of a message')
    """
    found = {}
    for names, metavars, text in (option for each in texts for option in _declared(each)):
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
    r"""Add the options that texts declare to a parser; see `options_of`.

    Examples
    --------
    >>> parser = argparse.ArgumentParser()
    >>> add_options(parser, "--flits L: of a message\n--json: no text\n", flits=(int, 4))
    >>> parser.parse_args(["--json"])
    Namespace(flits=4, json=True)
    """
    for option in options_of(*texts, **settings).values():
        parser.add_argument(*option.names, help=option.text, **option.settings)


@cache
def _declared(text: str) -> list[tuple[tuple[str, ...], tuple[str, ...], str]]:
    """The names, the metavars and the explanation of each option of a text."""
    found = []
    for head, body in OPTION.findall(textwrap.dedent(text)):
        words = head.split()
        names = tuple(word for word in words if word.startswith("-"))
        found.append((names, tuple(words[len(names) :]), " ".join(body.split())))
    return found


def option_names(text: str) -> list[str]:
    """The last name of each option of a text."""
    return [names[-1] for names, *_ in _declared(text)]


def check_needs(texts: Iterable[tuple[str, str | None]], chosen: Mapping[str, Any]) -> None:
    """Refuse an option without the one that it needs.

    Parameters
    ----------
    texts : iterable of (str, str)
        Name and explanation of each option that is given.
    chosen : mapping of str to object
        Values of all options, by their attributes.

    Raises
    ------
    InputError
        If an option is given without the one that it needs.
    """
    for name, text in texts:
        needed = NEEDS.match(text or "")
        if needed:
            value, wanted = chosen.get(needed[1].replace("-", "_")), (needed[2] or "").strip()
            if value in (None, False) or (wanted and str(value) not in wanted.split(" or ")):
                raise InputError(f"{name} must come with {needed[0].removeprefix('with ')[:-1]}")


T = TypeVar("T")


def _given(read: Callable[[str, object], T], text: str) -> T:
    """Read a text as Python reads a keyword; argparse puts the name before the message."""
    try:
        return read("", text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error).strip()) from None


def natural(text: str) -> int:
    """An integer of at least 0."""
    return _given(values.natural, text)


def positive(text: str) -> int:
    """An integer of at least 1."""
    return _given(values.positive, text)


def lengths(text: str) -> int | tuple[int, ...]:
    """A number of flits, or several: a list such as ``1,10,100``, or a range.

    A range such as ``1:1024`` stands for its ends and the powers of two between them.
    """
    if text.isdecimal():
        return natural(text)
    found: set[int] = set()
    for part in text.split(","):
        first, colon, last = part.partition(":")
        low = positive(first)
        high = positive(last) if colon else low
        if high < low:
            raise argparse.ArgumentTypeError(f"must be a range such as 1:1024, not {part!r}")
        found |= {low, high, *(n for k in range(high.bit_length()) if (n := 1 << k) > low)}
    return tuple(sorted(found))


def real(text: str) -> float:
    """A number that need not be whole."""
    return _given(values.real, text)


def constants(text: str) -> dict[str, str]:
    """Constants of the cost model by name: ``alpha=100,tau=1``."""
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name and sign and value for name, sign, value in pairs):
        raise argparse.ArgumentTypeError(f"must be such as alpha=100,tau=1, not {text!r}")
    found = {name.strip(): value for name, _, value in pairs}
    if len(found) < len(pairs):
        raise argparse.ArgumentTypeError(f"must be of different names, not {text!r}")
    return found


def node_or_any(text: str) -> int | Literal["any"]:
    """A node number, or the word any."""
    if text == "any":
        return "any"
    if not re.fullmatch(r"[0-9]{1,4000}", text):
        raise argparse.ArgumentTypeError(f"must be a node number or any, not {text!r}")
    return int(text)


def positive_or_auto(text: str) -> int | Literal["auto"]:
    """A positive integer, or the word auto."""
    return "auto" if text == "auto" else positive(text)
