"""What numbers and words a user may write on the command line."""

import argparse
import functools
import re
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from ..errors import InputError
from ..toolchain import values
from ..toolchain.destinations import STANDARD_OUTPUT, is_standard_output
from ..toolchain.files import writable
from ..toolchain.owned import require_like

__all__ = ["FORCE", "PAGES", "TRACE", "VCD", "add_options", "check_drawing",
           "check_output", "check_waves", "constants", "folder", "lengths", "natural",
           "node_or_any", "node_pair", "option_names", "positive", "positive_or_auto",
           "real"]  # fmt: skip


#: How files of some formats begin; of pages by the endings of their names.
PAGES = dict.fromkeys((".html", ".htm"), '<!doctype html>\n<html lang="en">')
TRACE = '{"format":"torusfabric-trace"'
VCD, FST = "$", b"\0" + (329).to_bytes(8, "big")


#: The option to replace files of others.
FORCE = """
--force: replace any file; else an existing file is replaced if it is empty or of the format that is
    written, and in a folder if this command wrote it and nobody changed it since
"""

#: An option of a text: its names and metavars, and what is said of it.
OPTION = re.compile(r"^(-.*?): (.*\n(?:    .*\n)*)", re.MULTILINE)


def add_options(parser: argparse._ActionsContainer, *texts: str, **settings: Any) -> None:
    r"""Add the options of texts.

    Parameters
    ----------
    *texts : str
        A line an option, ``-n --name METAVAR: text``, which may go on in indented lines. An option
        without a metavar is a flag. A text that begins with ``with --other:`` or ``with --other A
        or B:`` is a rule, too: the option is refused without that other one, or without one of
        these values of it (`Parser.check_needs`).
    **settings : function, tuple or dict
        By names of options: what reads them; that and the default; or arguments of argparse.

    Examples
    --------
    >>> parser = argparse.ArgumentParser()
    >>> add_options(parser, "--flits L: of a message\n--json: no text\n", flits=(int, 4))
    >>> parser.parse_args(["--json"])
    Namespace(flits=4, json=True)
    """
    for names, metavars, says in (option for text in texts for option in _options(text)):
        how = settings.get(names[-1].strip("-").replace("-", "_"), {})
        if callable(how):
            how = {"type": how}
        elif isinstance(how, tuple):
            how = dict(zip(("type", "default"), how, strict=True))
        if metavars:
            how = {"metavar": metavars if len(metavars) > 1 else metavars[0]} | how
        elif "choices" not in how and "action" not in how:
            how = {"action": "store_true"} | how
        parser.add_argument(*names, help=says, **how)


@functools.cache
def _options(text: str) -> list[tuple[list[str], tuple[str, ...], str]]:
    """The names and metavars of each option of a text, which several commands may share."""
    found = []
    for head, body in OPTION.findall(textwrap.dedent(text)):
        words = head.split()
        names = [word for word in words if word.startswith("-")]
        found.append((names, tuple(words[len(names) :]), " ".join(body.split())))
    return found


def option_names(text: str) -> list[str]:
    """The last name of each option of a text."""
    return [names[-1] for names, *_ in _options(text)]


def check_output(arguments: argparse.Namespace, path: str, beginning: str | bytes) -> None:
    """Check that a file can be written, and replaces nobody's, before time is spent on it.

    All files of its format begin alike; arguments are of a parser with the option `FORCE`.

    Raises
    ------
    InputError
        If it cannot be written or replaced.
    """
    writable(path)
    require_like(path, beginning, force=arguments.force)


def check_drawing(
    arguments: argparse.Namespace, path: str, beginnings: Mapping[str, str | bytes]
) -> None:
    """As `check_output`, of a picture or a page, whose name says its format.

    Parameters
    ----------
    beginnings : dict of str to (str or bytes)
        How files of each format begin, by the ending of their names; the first where a name has no
        ending, and for standard output.

    Raises
    ------
    InputError
        If the name has another ending.
    """
    name, (first, *others) = Path(path.removesuffix(".gz")), beginnings
    ending = first if is_standard_output(path) else name.suffix or first
    if ending not in beginnings:
        known = " or ".join(f"{name.stem}{each}" for each in (first, *others))
        raise InputError(f"Drawing must be written to a file such as {known}, not to {path}")
    check_output(arguments, path, beginnings[ending])


def check_waves(arguments: argparse.Namespace, path: str) -> None:
    """As `check_output`, of a file of waves, whose format its name tells."""
    check_output(arguments, path, FST if path.endswith(".fst") else VCD)


T = TypeVar("T")


def _given(read: Callable[[str, object], T], text: str) -> T:
    """A value that Python takes as well, with a message that argparse puts its name before."""
    try:
        return read("", text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error).strip()) from None


def _fault(what: str) -> argparse.ArgumentTypeError:
    """What argparse puts the name of an option before."""
    return argparse.ArgumentTypeError(f"must be {what}")


def folder(text: str) -> str:
    """The path of a folder."""
    if text == STANDARD_OUTPUT:
        raise _fault("a folder, not - (several files are written)")
    return text


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
            raise _fault(f"a range such as 1:1024, not {part!r}")
        found |= {low, high, *(n for k in range(high.bit_length()) if (n := 1 << k) > low)}
    return tuple(sorted(found))


def real(text: str) -> float:
    """A number that need not be whole."""
    return _given(values.real, text)


def constants(text: str) -> dict[str, str]:
    """Constants of the cost model by name: ``alpha=100,tau=1``."""
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name and sign and value for name, sign, value in pairs):
        raise _fault(f"such as alpha=100,tau=1, not {text!r}")
    found = {name.strip(): value for name, _, value in pairs}
    if len(found) < len(pairs):
        raise _fault(f"of different names, not {text!r}")
    return found


def node_or_any(text: str) -> int | Literal["any"]:
    """A node number, or the word any."""
    if text == "any":
        return "any"
    if not re.fullmatch(r"[0-9]{1,4000}", text):
        raise _fault(f"a node number or any, not {text!r}")
    return int(text)


def node_pair(text: str) -> tuple[int, int]:
    """Two node numbers with a colon between them."""
    found = re.fullmatch(r"([0-9]{1,4000}):([0-9]{1,4000})", text)
    if not found:
        raise _fault(f"two node numbers, ORIGIN:DESTINATION, not {text!r}")
    return int(found[1]), int(found[2])


def positive_or_auto(text: str) -> int | Literal["auto"]:
    """A positive integer, or the word auto."""
    return "auto" if text == "auto" else positive(text)
