"""The front page: its picture, packages, Verilog and table agree with the code."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from torusfabric.algorithms import CATALOGUE
from torusfabric.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_picture_is_what_its_command_draws(tmp_path):
    """The picture is the output of the command in its caption."""
    (command,) = re.findall(r"\(`torusfabric (draw [^`]*)`\)", README)
    words = shlex.split(command)
    words[-1] = str(tmp_path / words[-1])
    assert main([*words, "--quiet"]) == 0
    (shown,) = re.findall(r"!\[.*\]\((.*\.svg)\)", README)
    assert Path(words[-1]).read_text() == (ROOT / shown).read_text()


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_packages_of_the_system(tmp_path):
    """The README names all system packages that the script lists on an empty system."""
    (named,) = re.findall(r"apt-get install ([^`]*)`", README)
    bash = shutil.which("bash") or "bash"
    done = subprocess.run(
        [bash, ROOT / "scripts" / "system-packages"],
        env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == named.split()


def test_verilog_around_a_fabric(tmp_path, monkeypatch):
    """The Verilog example fits the signals of the fabric that the command before it writes."""
    if not shutil.which("iverilog"):
        pytest.skip("no Icarus Verilog")
    monkeypatch.chdir(tmp_path)
    ((command, text),) = re.findall(
        r"`torusfabric (verilog [^`]*)`.*?```verilog\n(.*?)```", README, re.S
    )
    assert main([*shlex.split(command), "--quiet"]) == 0
    Path("example.v").write_text(text)
    flags = ["-g2005", "-Wall", "-Wno-timescale", "-s", "example"]
    done = subprocess.run(
        ["iverilog", *flags, "-o", "example", "example.v", "out/fabric.v"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "example.v" not in done.stderr


def test_table_has_all_algorithms():
    """The table lists each algorithm once."""
    named = re.findall(r"^\| `([\w-]+)` \|", README, re.M)
    assert sorted(named) == sorted(entry.name for entry in CATALOGUE)
