"""The recipe "An adapter" of CONTRIBUTING: a folder and an entry give commands an APB port."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import apb.options
import pytest
from helpers import check_refused, run_command
from make_bench import have_bench, run_bench

from torusfabric.adapters import ADAPTERS
from torusfabric.fabric import adapter_access

ROOT = Path(__file__).parents[2]
RECIPE = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## An adapter\n")[2]
RECIPE = RECIPE.partition("\n## ")[0]


@pytest.fixture(autouse=True)
def with_apb(monkeypatch):
    """Add the APB adapter to the list of adapters."""
    monkeypatch.setattr(adapter_access, "ADAPTERS", (*ADAPTERS, apb.options.ADAPTER))


def write(capsys, folder, *words):
    """Write a fabric behind APB and return its manifest."""
    command = ["verilog", "2x2", "--width", "12", "--apb", *words, "-o", str(folder), "--json"]
    status, out, err = run_command(capsys, *command)
    assert (status, json.loads(out)["files"][0]) == (0, "fabric.v"), err
    return json.loads((folder / "manifest.json").read_text())


def test_the_manifest_has_the_port(tmp_path, capsys):
    """The manifest describes each APB signal, and its command has the options of the adapter."""
    more = ["--prefix", "left_", "--flow", "vivado", "--templates"]
    said = write(capsys, tmp_path, "allgather", "--apb-waits", "3", *more)
    assert (said["top"], said["interface"]) == ("left_fabric", "apb")
    assert said["bus"]["protocol"] == said["ports"]["psel"]["protocol"] == "apb4"
    assert said["ports"]["paddr"]["meaning"].startswith("the address of the first byte")
    assert said["ports"]["irq"]["role"] == "interrupt"
    assert not [name for name in said["ports"] if name.startswith(("host_", "wb_"))]
    assert "--apb --apb-waits 3" in said["command"]
    assert {"bench/bus.py", "fabric.rdl", "vivado/fabric.xdc"} <= {*said["files"]}
    assert ".pready(pready)" in (tmp_path / "fabric_inst.v").read_text()
    if shutil.which("iverilog"):
        command = ["iverilog", "-g2005", "-Wall", "-o", tmp_path / "out", tmp_path / "fabric.v"]
        subprocess.run(command, check=True)


@pytest.mark.parametrize("waits", [0, 2])
def test_the_bench_drives_it(tmp_path, capsys, waits):
    """The bench drives the APB port: every word is right, in the predicted cycles."""
    if not have_bench():
        pytest.skip("cocotb, make or Icarus is not installed")
    words = ["allgather,reduce", "--max-flits", "4", "--apb-waits", str(waits)]
    write(capsys, tmp_path, *words)
    passed, text = run_bench(tmp_path)
    assert passed, text[-3000:]
    assert len(re.findall(r"flits: \d+ words in \d+ cycles", text)) == 6


def test_help_shows_the_options(capsys):
    """The help has a group with the title and the options of the adapter."""
    with pytest.raises(SystemExit):
        run_command(capsys, "verilog", "--help", "apb")
    assert re.match(r"APB:\n  --apb .*\n  --apb-waits N ", capsys.readouterr().out, re.S)
    with pytest.raises(SystemExit):
        run_command(capsys, "verilog", "--help")
    assert "  --help apb        --apb, --apb-waits\n" in capsys.readouterr().out


@pytest.mark.parametrize(("line", "message"), [
    ("verilog 2 allgather --apb --apb-waits 16 -o out", "Wait states must be from 0 to 15, not 16"),
    ("verilog 2 allgather --apb --apb-waits x -o out", "--apb-waits must be a non-negative int"),
    ("verilog 2 allgather --apb-waits 1 -o out", "--apb-waits needs --apb; give both"),
    ("verilog 2 allgather --apb --bus axi4 -o out", "--bus and --apb exclude each other"),
    ("verilog 2 allgather --apb --boards 2 -o out", "--apb and --boards exclude each other"),
    ("simulate 2 allgather --apb", "simulate has no option --apb; it is for verilog"),
    ("prove 2 allgather --apb", "prove has no option --apb; it is for verilog"),
])  # fmt: skip
def test_what_the_adapter_cannot_do_is_said(tmp_path, monkeypatch, capsys, line, message):
    """Unsupported options are refused in one line, before anything is written."""
    monkeypatch.chdir(tmp_path)
    assert message in check_refused(capsys, *line.split())
    assert not any(tmp_path.iterdir())


def test_the_recipe_names_what_the_adapter_has():
    """The recipe names each file of the adapter, in fewer than 40 lines."""
    folder = ROOT / "rtl_tests" / "support" / "apb"
    files = {str(path.relative_to(folder)) for path in folder.rglob("*.py")} - {"__init__.py"}
    assert files == set(re.findall(r"^\d\. `([\w/]+\.py)`", RECIPE, re.M))
    assert len(RECIPE.splitlines()) < 40
