"""Checks of arguments, and the command line that is kept of them."""

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from ..toolchain.destinations import STANDARD_OUTPUT, is_standard_output
from ..toolchain.files import writable
from ..toolchain.owned import require_like
from ..toolchain.quoting import shell_command

if TYPE_CHECKING:
    from ..fabric.make import Made

__all__ = ["FORCE", "PAGES", "TRACE", "VCD", "check_drawing", "check_output", "check_waves",
           "command_line", "folder", "node_pair"]  # fmt: skip


#: How files of some formats begin; of pages by the endings of their names.
PAGES = dict.fromkeys((".html", ".htm"), '<!doctype html>\n<html lang="en">')
TRACE = '{"format":"torusfabric-trace"'
VCD, FST = "$", b"\0" + (329).to_bytes(8, "big")


#: The option to replace files of others.
FORCE = """
--force: replace any file; else an existing file is replaced if it is empty or of the format that is
    written, and in a folder if this command wrote it and nobody changed it since
"""


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


#: Arguments of which a kept command has none: they say where files go and how a command works.
NOT_KEPT = ("output", "force", "json", "quiet", "verbose", "minutes", "dry_run")


def command_line(arguments: argparse.Namespace, made: "Made", **others: object) -> str:
    """Return the command that makes a fabric again: options as given, with every choice made.

    Other values may stand in place of those of arguments, by their attributes.
    """
    known = {"command": arguments.command} | others
    decided = dict.fromkeys(NOT_KEPT) | made.decided() | known
    words = arguments.parser.words(arguments, decided)
    return shell_command(["torusfabric", str(known["command"]), *words])


def folder(text: str) -> str:
    """The path of a folder."""
    if text == STANDARD_OUTPUT:
        raise argparse.ArgumentTypeError("must be a folder, not - (several files are written)")
    return text


def node_pair(text: str) -> tuple[int, int]:
    """Two node numbers with a colon between them."""
    found = re.fullmatch(r"([0-9]{1,4000}):([0-9]{1,4000})", text)
    if not found:
        raise argparse.ArgumentTypeError(
            f"must be two node numbers, ORIGIN:DESTINATION, not {text!r}"
        )
    return int(found[1]), int(found[2])
