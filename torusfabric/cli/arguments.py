"""Checks of arguments that several commands have, and `command_line`, which repeats a command."""

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from ..toolchain.destinations import STANDARD_OUTPUT, is_standard_output
from ..toolchain.files import require_writable
from ..toolchain.owned import require_replaceable
from ..toolchain.quoting import shell_command

if TYPE_CHECKING:
    from ..fabric.make import BuiltFabric

__all__ = ["FORCE", "PAGES", "TRACE", "VCD", "check_drawing", "check_output", "check_waves",
           "command_line", "folder_argument", "node_pair"]  # fmt: skip


#: First characters of a file in each format; for pages by the ending of the name. An existing file
#: that begins so may be replaced.
PAGES = dict.fromkeys((".html", ".htm"), '<!doctype html>\n<html lang="en">')
TRACE = '{"format":"torusfabric-trace"'
VCD, FST = "$", b"\0" + (329).to_bytes(8, "big")


#: Declaration of the option ``--force``.
FORCE = """
--force: Replace any file. Without it, an existing file is replaced only if it is empty or of the
    same format, and in a folder only if this command wrote it and nobody changed it since.
"""


def check_output(arguments: argparse.Namespace, path: str, beginning: str | bytes) -> None:
    """Check, before any work starts, that an output file can be written and may be replaced.

    An existing file may be replaced if it has the same format, or with ``--force``.

    Parameters
    ----------
    arguments : Namespace
        Arguments of a command with the option ``--force``.
    path : str
        Path of the output file.
    beginning : str or bytes
        The characters with which each file of this format begins, by which it is recognised.

    Raises
    ------
    InputError
        If the file cannot be written, or may not be replaced.
    """
    require_writable(path)
    require_replaceable(path, beginning, force=arguments.force)


def check_drawing(
    arguments: argparse.Namespace, path: str, beginnings: Mapping[str, str | bytes]
) -> None:
    """Check, before any work starts, that a picture or a page can be written and may be replaced.

    The ending of the file name decides the format.

    Parameters
    ----------
    arguments : Namespace
        Arguments of a command with the option ``--force``.
    path : str
        Path of a picture or a page.
    beginnings : dict of str to (str or bytes)
        For each ending of a file name, the characters with which a file of this format begins. The
        first entry is for names without an ending and for standard output.

    Raises
    ------
    InputError
        If the file cannot be written, may not be replaced, or has another ending.
    """
    name, (first, *others) = Path(path.removesuffix(".gz")), beginnings
    ending = first if is_standard_output(path) else name.suffix or first
    if ending not in beginnings:
        known = " or ".join(f"{name.stem}{each}" for each in (first, *others))
        raise InputError(f"Drawing must be written to a file such as {known}, not to {path}")
    check_output(arguments, path, beginnings[ending])


def check_waves(arguments: argparse.Namespace, path: str) -> None:
    """Check, before any work starts, that a waveform file can be written and may be replaced.

    Parameters
    ----------
    arguments : Namespace
        Arguments of a command with the option ``--force``.
    path : str
        Path of the waveform file. The format is FST if it ends in ``.fst``, else VCD.

    Raises
    ------
    InputError
        If the file cannot be written, or may not be replaced.
    """
    check_output(arguments, path, FST if path.endswith(".fst") else VCD)


#: Arguments that `command_line` leaves out: paths of outputs, and options without effect on the
#: fabric.
OMITTED_ARGUMENTS = ("output", "force", "json", "quiet", "verbose", "minutes", "dry_run")


def command_line(arguments: argparse.Namespace, made: "BuiltFabric", **others: object) -> str:
    """Return a command line that makes the same fabric again.

    It has the options of the user and an option for each choice that was made for the user, such as
    the algorithm. So a later version with other defaults makes the same fabric.

    Parameters
    ----------
    arguments : Namespace
        Arguments of the command.
    made : BuiltFabric
        The fabric, with all choices.
    **others : object
        Values that replace arguments, keyed by the names of the attributes of `arguments`.
    """
    known = {"command": arguments.command} | others
    decided = dict.fromkeys(OMITTED_ARGUMENTS) | made.decided_choices() | known
    words = arguments.parser.command_words(arguments, decided)
    return shell_command(["torusfabric", str(known["command"]), *words])


def folder_argument(text: str) -> str:
    """Return `text`, an argument that is the path of a folder; ``-`` is refused.

    Raises
    ------
    ArgumentTypeError
        If `text` is ``-``, which stands for standard output.
    """
    if text == STANDARD_OUTPUT:
        raise argparse.ArgumentTypeError("must be a folder, not - (several files are written)")
    return text


def node_pair(text: str) -> tuple[int, int]:
    """Return the two node numbers of an argument such as ``0:21``.

    Parameters
    ----------
    text : str
        Two node numbers with a colon between them.

    Raises
    ------
    ArgumentTypeError
        If `text` has another form.
    """
    found = re.fullmatch(r"([0-9]{1,4000}):([0-9]{1,4000})", text)
    if not found:
        raise argparse.ArgumentTypeError(
            f"must be two node numbers, ORIGIN:DESTINATION, not {text!r}"
        )
    return int(found[1]), int(found[2])
