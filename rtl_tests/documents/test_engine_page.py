"""What the page on several collectives in a fabric says: commands and scripts run as they stand."""

import json
import re
import shlex
from pathlib import Path

import pytest

import torusfabric as tf
from torusfabric.cli import main

DOCS = Path(__file__).parents[2] / "docs" / "tutorials"
TEXT = (DOCS / "engines.md").read_text()
FOUND = dict(re.findall(r"<!-- (?:test|file): (\S+) -->\n```\w+\n(.*?)```", TEXT, re.DOTALL))


def carry_out(commands):
    for line in commands.splitlines():
        program, *words = shlex.split(line, comments=True)
        assert program == "torusfabric"
        assert main([*words, "--quiet"]) == 0, line


def test_commands_and_manifest(tmp_path, monkeypatch, capsys):
    """From the list to Verilog; the cycles that the manifest predicts, and its keys."""
    monkeypatch.chdir(tmp_path)
    carry_out(FOUND["commands"])
    capsys.readouterr()
    exec(compile(FOUND["cycles.py"], "cycles.py", "exec"), {})
    said = capsys.readouterr().out.splitlines()
    manifest = json.loads(Path("out/manifest.json").read_text())
    plans = [
        tf.plan_forms("3x3", "allgather", max_flits=4),
        tf.plan_forms("3x3", "broadcast", max_flits=4, root="any"),
    ]
    program = tf.compile(plans, max_flits=4, root="any")
    assert said == [
        f"{name} {[program.cycles(length, mode=mode) for length in (1, 2, 3, 4)]}"
        for mode, name in enumerate(("allgather", "broadcast"))
    ]
    _, _, table = TEXT.partition("## What the manifest says")
    for row in re.findall(r"^\| (`.*?) \|", table, re.M):
        names = re.findall(r"`([\w.\[\]]+)`", row)
        for name in names:
            inside = name.startswith(("modes[k].", "."))
            owner = manifest["modes"][0] if inside else manifest
            assert name.rpartition(".")[2] in owner, name


def test_script(capsys):
    """The example in Python."""
    exec(compile(FOUND["engine.py"], "engine.py", "exec"), {})
    assert int(capsys.readouterr().out) > 0


@pytest.mark.long
def test_commands_that_take_long(tmp_path, monkeypatch, capsys):
    """Simulation, trace, synthesis and sweep."""
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(FOUND["grid.toml"])
    carry_out(FOUND["long"])
    rows = [json.loads(line) for line in Path("grid.jsonl").read_text().splitlines()]
    assert {row["status"] for row in rows} == {"done"}
    assert "cost by mode" in capsys.readouterr().out


def test_grid(tmp_path):
    """The sweep is one."""
    from torusfabric.sweep.grid import load, points

    (tmp_path / "grid.toml").write_text(FOUND["grid.toml"])
    assert len(points(load(tmp_path / "grid.toml"))) == 6
