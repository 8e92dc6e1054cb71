"""Commands import only modules that they use, because each command starts a new interpreter."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from helpers import few

import torusfabric as tf
from torusfabric.cli.purposes import PURPOSES

#: Modules that are slow to import, or that only some commands need: other packages, and our own.
GRAPHS = ("scipy", "networkx")
TABLES = ("rich",)
HARDWARE = ("amaranth", "jschon", "torusfabric.rtl", "torusfabric.verilog")
COMPILER = ("torusfabric.program",)
TOOLS = ("filelock", "platformdirs", "torusfabric.toolchain.tools", "torusfabric.toolchain.cache")
DATABASE = ("diskcache", "sqlite3")
SIMULATORS = ("amaranth.sim", "vcd", "torusfabric.simulation")
FILES = ("jsonschema", "xml", "urllib.request", "http.client", "email", "importlib.metadata")
PICTURES = ("torusfabric.draw",)
BOARDS = ("serial", "amaranth_boards", "amaranth.build", "torusfabric.fpga")
OTHERS = ("dask", "distributed", "cocotb", "litex", "torusfabric.sweep", "torusfabric.proof")
SELDOM = (*GRAPHS, *BOARDS, *OTHERS, *DATABASE, "psutil", "numpy.random", "jsonschema")

#: Modules that planning does not need.
PLANNING = (*SELDOM, *TABLES, *HARDWARE, *COMPILER, *TOOLS, *SIMULATORS, *FILES)

#: Modules that each command line must not import.
FORBIDDEN = {
    "--help": (*PLANNING, *PICTURES, "numpy", "torusfabric.planning", "torusfabric.algorithms"),
    "--version": (*PLANNING, *PICTURES, "numpy", "torusfabric.planning"),
    "algorithms": tuple({*PLANNING, *PICTURES} - {*TABLES, *FILES}),
    "plan 4x4 allgather": (*PLANNING, *PICTURES),
    "plan 4x4 allgather --json": (*PLANNING, *PICTURES),
    "plan 4x4 allgather -o made.json": (*PLANNING, *PICTURES),
    "check plan.json": tuple({*PLANNING, *PICTURES} - {"jsonschema", "psutil"}),
    "draw 4x4 allgather -o picture.svg": PLANNING,
    "animate 4x4 allgather -o play.html": (*SELDOM, *TABLES, *HARDWARE, *SIMULATORS),
    "synth --help": (*SELDOM, *TABLES, *HARDWARE, *SIMULATORS),
    "verilog 4x4 allgather -o out": (*SELDOM, *TABLES, *SIMULATORS, *PICTURES),
    "simulate 4x4 allgather --width 8": (
        *({*SELDOM, *TABLES, *TOOLS, *PICTURES} - {"numpy.random"}),
        *(
            "vcd",
            "html",
            "amaranth.back",
            "torusfabric.verilog",
            "torusfabric.adapters.streams.drive",
        ),
        "torusfabric.simulation.engines.compiled",
    ),
    "cache": tuple({*SELDOM, *HARDWARE, *SIMULATORS, *PICTURES} - {*DATABASE} | {"numpy"}),
}


def imported(words: Iterable[str], folder: Path) -> set[str]:
    """Return the modules that a command line has imported at its end, without lazy stand-ins."""
    script = (
        "import sys; from torusfabric.cli import main\n"
        f"try: status = main({[*words]!r})\n"
        "except SystemExit as end: status = end.code\n"
        "there = [name for name, each in sys.modules.items()"
        " if type(each).__name__ != '_LazyLibrary']\n"
        "print(*there, file=sys.stderr); sys.exit(status)"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


@pytest.mark.parametrize("line", few(8, [*FORBIDDEN][::-1]))
def test_what_is_not_needed_is_not_imported(line: str, tmp_path: Path) -> None:
    """A command line imports no forbidden module, nor a part of one."""
    tf.plan("4x4", "allgather").save(tmp_path / "plan.json")
    found = imported(line.split(), tmp_path)
    wrong = {
        module
        for module in found
        if any(module == name or module.startswith(f"{name}.") for name in FORBIDDEN[line])
    }
    assert not wrong


@pytest.mark.parametrize("name", few(8, [name for group in PURPOSES.values() for name in group]))
def test_a_command_imports_no_other(name: str, tmp_path: Path) -> None:
    """The help of a command imports only the module that has its arguments."""
    own = {command.module for group in PURPOSES.values() for command in group.values()}
    found = {module.removeprefix("torusfabric.cli.") for module in imported([name, "-h"], tmp_path)}
    needed = next(group[name].module for group in PURPOSES.values() if name in group)
    borrowed = {"compare": {"foreign"}, "board": {"monitor"}}  # share options
    assert found & own == {needed} | borrowed.get(needed, set())
