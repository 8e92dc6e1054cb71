"""Commands about the installation: `doctor`, completion in shells, and missing extras."""

import importlib.metadata
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import few

from torusfabric.cli import installation, main
from torusfabric.errors import MissingTool, WorkFailed
from torusfabric.toolchain import cxx, tools
from torusfabric.toolchain.extras import EXTRAS, MODULES
from torusfabric.toolchain.tools import TOOLS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]

#: A script that runs a command as if one package were missing.
WITHOUT = """
import sys
class Missing:
    @staticmethod
    def find_spec(name, *_):
        if name == {module!r}:
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Missing)
from torusfabric.cli import installation, main
sys.exit(main({words!r}))
"""


@pytest.fixture(autouse=True)
def versions(monkeypatch):
    """Versions of tools without running them; one tool is missing, and one is broken."""

    def version(name):
        if name == "iverilog":
            raise MissingTool("Tool iverilog was not found")
        if name == "vcd2fst":
            raise WorkFailed("Tool vcd2fst must be a program that runs")
        return "Usage: iceprog [options]" if name == "iceprog" else f"{name} 1.2"

    monkeypatch.setattr(tools, "version", version)
    monkeypatch.setattr(cxx, "compiler_version", lambda command: "g++ 1.2")


def test_doctor_lists_what_is_there(capsys):
    """`doctor` lists tools and packages with their purpose, and the way to install missing ones."""
    assert main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    tools = {tool["name"]: tool for tool in facts["tools"]}
    assert tools.keys() == TOOLS.keys()
    assert tools["yosys"]["version"] == "yosys 1.2"
    assert not any(tool["required"] for tool in tools.values())
    assert tools["yosys"]["install"] == "pip install 'torusfabric[hardware]'"
    assert tools["iceprog"]["version"] == "installed"
    assert tools["iverilog"]["version"] is None
    assert tools["iverilog"]["install"] == "install the package iverilog of your system"
    assert tools["vcd2fst"]["problem"] == "Tool vcd2fst must be a program that runs"
    packages = {package["name"]: package for package in facts["packages"]}
    assert packages["numpy"]["required"]
    assert packages["distributed"]["install"] == "pip install 'torusfabric[dask]'"
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "All required tools and packages are installed" in said
    assert "does not run: Tool vcd2fst must be" in said


@pytest.mark.parametrize(("system", "wanted"), [("linux", "b"), ("win32", "c")])
def test_packages_of_other_systems_are_left_out(monkeypatch, system, wanted):
    """A package that only another system needs is not listed as missing."""
    lines = ["a>=1", "b<2,>=1; (sys_platform != 'win32') and extra == 'hardware'",
             "c; (sys_platform == 'win32') and extra == 'hardware'"]  # fmt: skip
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: lines)
    assert [found.name for found in installation.find_packages()] == ["a", wanted]


def test_doctor_fails_without_what_is_required(monkeypatch, capsys):
    """`doctor` ends with the status of a missing tool if a required package is missing."""

    def version(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert main(["doctor"]) == 3
    assert "missing, though required: " in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, tmp_path, capsys):
    """The completion script is valid for its shell and contains commands, options and names."""
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("simulate", "max-flits", "hamiltonian", "reduce-scatter", "ecp5-25k"):
        assert word in script
    if program := shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([program, "-n", tmp_path / "script"], check=True)


def test_bash_completes(capsys):
    """Bash completes commands, collectives and algorithms."""
    if not shutil.which("bash"):
        pytest.skip("no bash")
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out

    def complete(*words):
        line = f"COMP_WORDS=(torusfabric {' '.join(words)}); COMP_CWORD={len(words)}"
        tail = f'{line}; _shtab_torusfabric; echo "${{COMPREPLY[@]}}"'
        return subprocess.run(
            ["bash", "-c", script + tail], capture_output=True, text=True, check=True
        ).stdout.split()

    assert complete("dr") == ["draw"]
    assert complete("plan", "4x4", "allg") == ["allgather"]
    assert complete("plan", "--algorithm", "ha") == ["hamiltonian"]


def test_completion_without_the_library(monkeypatch, capsys):
    """`completion` without its library names the extra to install."""
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 3
    error = capsys.readouterr().err
    assert "Package shtab was not found: pip install 'torusfabric[completion]'" in error


@pytest.mark.parametrize(
    ("line", "module", "extra"),
    few(
        4,
        [
            ("verilog 2x2 allgather --width 8 -o out", "amaranth", "hardware"),
            ("simulate 2x2 allgather --width 8", "amaranth", "hardware"),
            ("synth 2x2 allgather --target ecp5-25k", "amaranth", "synthesis"),
            ("prove 2x2 allgather", "amaranth", "prove"),
            ("build --board icestick 2x2 allgather --width 8 -o out", "amaranth", "boards"),
            ("boards", "amaranth_boards", "boards"),
            ("run 2x2 allgather --port /dev/null", "serial", "boards"),
            ("import plan.xml --topology 2x2", "defusedxml", "foreign"),
        ],
    ),
)
def test_a_command_names_the_extra_that_it_needs(line, module, extra, tmp_path):
    """A command whose extra is missing ends with status 3 and one line that names the extra."""
    (tmp_path / "plan.xml").write_text("<algo></algo>")
    script = WITHOUT.format(module=module, words=line.split())
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    install = f"Package {module} was not found: pip install 'torusfabric[{extra}]'\n"
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.endswith(install)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "line", few(2, ["plan 2x2 allgather", "completion bash", "doctor"], tuples=True)
)
def test_a_command_does_without_hardware(line, tmp_path):
    """A command that makes no hardware works without Amaranth."""
    script = WITHOUT.format(module="amaranth", words=line.split())
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)


@pytest.mark.parametrize("collectives", ["allgather", "allgather,broadcast"])
def test_compare_without_hardware(collectives, monkeypatch, capsys):
    """`compare` without Amaranth reports cycles, and names the extra that counts hardware."""
    words = ["compare", "3x3", collectives, "--max-flits", "4"]
    rows = {}
    for without in (False, True):
        if without:
            monkeypatch.setitem(sys.modules, "amaranth", None)
        assert main([*words, "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        rows[without] = facts.get("algorithms") or facts["fabrics"]
    assert [row["cycles"] for row in rows[True]] == [row["cycles"] for row in rows[False]]
    assert {row["classes"] for row in rows[True]} == {None}
    assert main(words) == 0
    assert "counted after pip install 'torusfabric[hardware]'\n" in capsys.readouterr().out


def test_extras_are_those_of_the_package():
    """The table of extras is that of the package, and the installation page explains each extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {*project["optional-dependencies"]} == {*EXTRAS}
    assert {*MODULES.values()} <= {*EXTRAS}
    said = (ROOT / "docs/start/install.md").read_text("utf-8")
    assert all(f"`{extra}`" in said for extra in EXTRAS)
