"""Tables from a task to a command: commands are valid, and the lines of Python run."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import torusfabric as tf
from torusfabric.cli import main, make_parser

DOCS = Path(__file__).parents[2] / "docs"
SHEET = DOCS / "reference/cheat-sheet.md"
PAGES = [DOCS / "start/i-want-to.md", DOCS / "how-to/troubleshoot.md"]


def cells(page: Path, column: int | None = None) -> list[str]:
    """Return the code in the tables of a page, in one column or in all columns."""
    found: list[str] = []
    for line in page.read_text("utf-8").splitlines():
        if line.startswith("| "):
            parts = line.strip("|").split(" | ")
            for number, part in enumerate(parts):
                if column in (None, number):
                    found += re.findall(r"`([^`]+)`", part)
    return found


COMMANDS = sorted(
    {text for page in PAGES for text in cells(page) if text.startswith("torusfabric ")}
    | {f"torusfabric {text}" for text in cells(SHEET, 1)}
)


def test_pages_have_commands() -> None:
    """The tables of the pages contain commands."""
    assert len(COMMANDS) > 80
    assert "torusfabric algorithms" in COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_valid(command: str) -> None:
    """Every command of a table has valid options."""
    words = shlex.split(command)[1:]
    if "--help" in words:
        with pytest.raises(SystemExit):
            make_parser().parse_args(words)
    else:
        assert make_parser().parse_args(words).command == words[0]


def test_python_of_the_cheat_sheet_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python column runs as one session, except lines that need a board or place and route."""
    monkeypatch.chdir(tmp_path)
    room = "--tables ram --rows 64 --inputs all --max-flits 4"
    assert main(["verilog", "3x3", "allgather", *room.split(), "-o", "ram/", "--quiet"]) == 0
    names = {"tf": tf, "data": np.arange(4)[:, None], "b": tf.connect("sim:2x2 allreduce")}
    lines = [line for line in cells(SHEET, 2) if "/dev/" not in line and "pnr" not in line]
    assert len(lines) > 20
    for line in lines:
        exec(line, names)
    assert Path("out/fabric.v").exists()
    assert Path("a.bin").exists()
