"""Runs the blocks of a page, in their order, in one folder and one process."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from torusfabric.cli import main

__all__ = ["BlockError", "run_blocks", "run_blocks_in"]

#: Characters of a command that only a shell understands.
SHELL = re.compile(r"[|><;&$`*~(]")

#: Folders from which pages can import, besides installed packages.
ROOT = Path(__file__).parents[2]
PACKAGES = [str(ROOT / name) for name in ("", "sim", "docs/figures", "examples")]


class BlockError(Exception):
    """Error: a block does not do what its page says."""


def run_blocks_in(folder: str, blocks: list[dict[str, Any]]) -> list[list[tuple[str, str]]]:
    """Run blocks in a folder, in a process that does nothing else; their files stay there.

    Returns
    -------
    list
        For each block a list of its commands, each with its output; empty if the block is not run.
    """
    os.chdir(folder)
    sys.path[:0] = PACKAGES
    known = filter(None, [os.environ.get("PYTHONPATH")])
    os.environ |= {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([*PACKAGES, *known]),
        # A fixed width, so that help and tables do not depend on the terminal.
        "COLUMNS": "100",
    }
    return run_blocks(blocks)


def run_blocks(blocks: list[dict[str, Any]]) -> list[list[tuple[str, str]]]:
    """Run blocks; return the output of each, as pairs of a command and its output."""
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks:
        if block["file"]:
            Path(block["file"]).write_text(block["text"], encoding="utf-8")
    outputs: list[list[tuple[str, str]]] = []
    for block in blocks:
        if not block["runs"]:
            outputs.append([])
        elif block["language"] == "python":
            outputs.append([("", _python(block["text"], names))])
        else:
            lines = _commands(block["text"])
            wanted = [0] * (len(lines) - 1) + [block["status"]]
            outputs.append(
                [(line, _command(line, status)) for line, status in zip(lines, wanted, strict=True)]
            )
    return outputs


def _commands(text: str) -> list[str]:
    """Return the commands of a block: its lines, with continued lines joined."""
    joined = re.sub(r"\\\n\s*", " ", text)
    return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]


def _command(line: str, wanted: int) -> str:
    """Run a command, and return its output.

    A command of torusfabric runs in this process, which saves time; any other command runs in a
    shell.
    """
    words = shlex.split(line, comments=True)
    if words[0] == "torusfabric" and not SHELL.search(line.partition(" #")[0]):
        status, said, errors = _ours(words[1:])
    else:
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        status, said, errors = done.returncode, done.stdout, done.stderr
    if status != wanted:
        raise BlockError(f"{line}\nended with status {status}, not {wanted}\n{said}{errors}")
    return said + (errors if wanted else "")


def _ours(words: list[str]) -> tuple[int, str, str]:
    """Run a command of torusfabric; return its status, standard output and standard error."""
    said, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        try:
            status = main(words)
        except SystemExit as end:  # after --help
            status = int(end.code or 0)
    return status, said.getvalue(), errors.getvalue()


def _python(text: str, names: dict[str, Any]) -> str:
    """Run Python, and return its output."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            exec(compile(text, "page", "exec"), names)
    except (Exception, SystemExit):
        raise BlockError(f"{text}\n{traceback.format_exc()}") from None
    return said.getvalue()
