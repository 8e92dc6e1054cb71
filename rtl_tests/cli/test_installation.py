"""The commands about this installation: what is there, and completion in shells."""

import json
import shutil
import subprocess
import sys

import pytest

from torusfabric.cli import main
from torusfabric.errors import MissingTool, WorkFailed
from torusfabric.toolchain import installation
from torusfabric.toolchain.programs import TOOLS


@pytest.fixture(autouse=True)
def versions(monkeypatch):
    """No program is run, but one is missing and one is broken."""

    def version(name):
        if name == "iverilog":
            raise MissingTool("Tool iverilog was not found")
        if name == "vcd2fst":
            raise WorkFailed("Tool vcd2fst must be a program that runs")
        return "Usage: iceprog [options]" if name == "iceprog" else f"{name} 1.2"

    monkeypatch.setattr(installation, "_version", version)


def test_doctor_lists_what_is_there(capsys):
    """Tools and packages, with what they are for and how to get what is missing."""
    assert main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    tools = {tool["name"]: tool for tool in facts["tools"]}
    assert tools.keys() == TOOLS.keys()
    assert tools["yosys"]["version"] == "yosys 1.2"
    assert tools["yosys"]["required"]
    assert not tools["z3"]["required"]
    assert tools["iceprog"]["version"] == "installed"
    assert tools["iverilog"]["version"] is None
    assert tools["iverilog"]["install"] == "install the package iverilog of your system"
    assert tools["vcd2fst"]["problem"] == "Tool vcd2fst must be a program that runs"
    packages = {package["name"]: package for package in facts["packages"]}
    assert packages["numpy"]["required"]
    assert packages["distributed"]["install"] == "pip install torusfabric[dask]"
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "All that is required is installed" in said
    assert "does not run: Tool vcd2fst must be" in said


def test_doctor_fails_without_what_is_required(monkeypatch, capsys):
    """With the status of a missing tool."""

    def version(name):
        raise MissingTool(f"Tool {name} was not found")

    monkeypatch.setattr(installation, "_version", version)
    assert main(["doctor"]) == 3
    assert "missing, though required: yosys, " in capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, tmp_path, capsys):
    """A script that the shell reads, with commands, options and names."""
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("simulate", "max-flits", "hamiltonian", "reduce-scatter", "ecp5-25k"):
        assert word in script
    if program := shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([program, "-n", tmp_path / "script"], check=True)


def test_bash_completes(capsys):
    """Names of commands, collectives and algorithms."""
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
    """Says how to get it."""
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 3
    assert "Package shtab was not found: pip install shtab" in capsys.readouterr().err
