"""Command lines: every command, with its options, and with values that fit or do not."""

import argparse
import os
import random
from pathlib import Path
from unittest import mock

import torusfabric as tf
from torusfabric.cli import make_parser
from torusfabric.errors import MissingTool
from torusfabric.toolchain import tools

from .mutation import NASTY_NUMBERS, NASTY_TEXTS
from .oracle import Fuzzer, run_line

__all__ = ["LineFuzzer"]

TOPOLOGIES = (
    "2",
    "3",
    "2x2",
    "2x3",
    "3x3",
    "arrowhead:1",
    "1x4",
    "0",
    "4x",
    "1x2x1x2",
    "-2x2",
    "1000000000",
    "1000000000x1000000000",
    "99999999999999999999x3",
    "arrowhead:99",
    "x",
    "",
)
COLLECTIVES = (
    "allgather",
    "broadcast",
    "scatter",
    "gather",
    "alltoall",
    "reduce",
    "reduce-scatter",
    "allreduce",
    "barrier",
    "allgather@0",
    "alltoall@1",
    "allreduce@0+1",
    "broadcast@9",
    "allgather@",
    "allgather:matching",
    "allgather,alltoall",
    "allgather,broadcast:diagonal,allreduce",
    ",",
    "allgather:",
    ":",
    "@",
    "gosip",
    "",
)

#: Numbers for options; the first ones fit most options.
NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "4",
    "8",
    "1",
    "2",
    *(str(n) for n in NASTY_NUMBERS if n < 10**100),
    "1.5",
    "x",
)
PATHS = (
    "out",
    "out.svg",
    "none/out",
    ".",
    "",
    "/dev/null",
    "-",
    "out.json",
    "out.npy",
    "x" * 300,
    "a\nb",
    "/proc/x",
)

#: Values of options, by the metavar of the option; all other options take a number.
VALUES = {
    "NAME": (
        *PATHS[:2],
        "matching",
        "hamiltonian",
        "necklace",
        "add",
        "max:signed",
        "icebreaker",
        "ecp5-25k",
        "x",
        "allgather",
        "0",
        "",
    ),
    "NODE:PORT": ("0:+0", "1:-1", "0:0", "9:9", ":", "", "a:b"),
    "TOPOLOGY": TOPOLOGIES,
    "MAP": ("identity", "gray", "auto", "0,1,2,3", "x", "", "0,0,0,0"),
    "ADDRESS": ("", "x", "tcp://"),
    "COMMAND": ("info", "x", ""),
}

#: Metavars of options that take a path.
PATH_LIKE = ("FILE", "DIR", "PLAN", "RESULTS", "PORT", "DATA")

#: Commands that need no tool, which are three times as likely as others.
QUICK = ("plan", "check", "compare", "draw", "animate", "import", "export", "algorithms", "cache")


def _no_tool(name: str, *args: object, **options: object) -> str:
    raise MissingTool(f"Tool {name} was not found: install it")


class LineFuzzer(Fuzzer):
    """Check the answer to random command lines.

    External tools are replaced by an error, so that commands end soon. Small fabrics are simulated.
    """

    name = "line"
    weight = 24

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        files = folder / "given"
        files.mkdir()
        tf.plan("2x2", "allgather").save(files / "plan.json")
        tf.export_schedule(tf.plan("4", "allgather"), files / "plan.xml")
        (files / "sweep.toml").write_text("steps = 1")
        (files / "bytes").write_bytes(bytes(range(256)))
        self.files = (*map(str, sorted(files.iterdir())), *PATHS)
        (self.commands,) = (
            action.choices
            for action in make_parser()._actions  # noqa: SLF001 (argparse lists them nowhere else)
            if isinstance(action, argparse._SubParsersAction)  # noqa: SLF001
        )

    def make(self, draw: random.Random) -> list[str]:
        name = draw.choice([*self.commands, *QUICK, *QUICK])
        if draw.random() < 0.02:
            name = draw.choice(NASTY_TEXTS)
        words, options = [name], []
        for action in self.commands[name]._actions if name in self.commands else []:  # noqa: SLF001
            if action.option_strings:
                options.append(action)
            elif draw.random() < 0.97:
                words.append(self._value(action, draw))
        count = draw.choice([0, 0, 1, 1, 2, 3, 5])
        needed = [action for action in options if action.required and draw.random() < 0.95]
        for action in [*needed, *draw.sample(options, min(count, len(options)))]:
            words += self._option(action, draw)
        if draw.random() < 0.3:
            words.append("--json")
        if draw.random() < 0.05:
            words.insert(draw.randrange(len(words) + 1), draw.choice(NASTY_TEXTS))
        return words

    def _option(self, action: argparse.Action, draw: random.Random) -> list[str]:
        """Return an option with as many values as it takes."""
        name = draw.choice(action.option_strings)
        if action.nargs == 0:
            return [name]
        count = action.nargs if isinstance(action.nargs, int) else 1
        return [name, *(self._value(action, draw) for _ in range(count))]

    def _value(self, action: argparse.Action, draw: random.Random) -> str:
        """Return a value of an option, or of a positional argument."""
        if draw.random() < 0.03:
            return draw.choice(NASTY_TEXTS)
        if action.choices:
            return str(draw.choice([*action.choices]))
        name = action.metavar if isinstance(action.metavar, str) else ""
        if action.dest in ("topology", "collective"):
            chosen = TOPOLOGIES if action.dest == "topology" else COLLECTIVES
            return draw.choice([draw.choice(chosen), draw.choice(chosen[:6])])
        if any(part in name for part in PATH_LIKE) and ":" not in name:
            return draw.choice(self.files)
        return draw.choice(VALUES.get(name, NUMBERS))

    def run(self, given: list[str]) -> None:
        own = {"TORUSFABRIC_CACHE": str(self.folder / "given" / "cache")}
        with (
            mock.patch.dict(os.environ, own),
            mock.patch.object(tools, "run", _no_tool),
            mock.patch.object(tools, "require", _no_tool),
            mock.patch.object(tools, "run_command", _no_tool),
        ):
            run_line(given, self.folder)
