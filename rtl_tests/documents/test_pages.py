"""Pages on engines, streams and schedule files: their commands, scripts and tables are correct."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import blocks_of
from session import run_blocks

import torusfabric as tf
from torusfabric.adapters.streams.ports import stream_ports
from torusfabric.cli import main
from torusfabric.schedule.schema import schema

DOCS = Path(__file__).parents[2] / "docs"
ENGINES = (DOCS / "tutorials/engines.md").read_text(encoding="utf-8")
KEYS = (DOCS / "reference/engines.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"<!-- (?:test|file): (\S+) -->\n```\w+\n(.*?)```", ENGINES, re.DOTALL))


def run_lines(commands):
    for line in commands.splitlines():
        program, *words = shlex.split(line, comments=True)
        assert program == "torusfabric"
        assert main([*words, "--quiet"]) == 0, line


def test_commands_and_manifest(tmp_path, monkeypatch, capsys):
    """The commands of the tutorial run, and its script prints the cycles that the manifest
    predicts.

    The page names only keys that the manifest has.
    """
    monkeypatch.chdir(tmp_path)
    run_lines(BLOCKS["commands"])
    capsys.readouterr()
    exec(compile(BLOCKS["cycles.py"], "cycles.py", "exec"), {})
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
    section = KEYS.partition("## What the manifest says")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.M)
    assert len(rows) > 5
    for row in rows:
        names = re.findall(r"`([\w.\[\]]+)`", row)
        for name in names:
            inside = name.startswith(("modes[k].", "."))
            owner = manifest["modes"][0] if inside else manifest
            assert name.rpartition(".")[2] in owner, name


def test_script(capsys):
    """The Python example of the tutorial runs."""
    exec(compile(BLOCKS["engine.py"], "engine.py", "exec"), {})
    assert int(capsys.readouterr().out) > 0


@pytest.mark.long
def test_commands_that_take_long(tmp_path, monkeypatch, capsys):
    """Simulation, trace, synthesis and sweep of the tutorial run."""
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(BLOCKS["grid.toml"])
    run_lines(BLOCKS["long"])
    rows = [json.loads(line) for line in Path("grid.jsonl").read_text().splitlines()]
    assert {row["status"] for row in rows} == {"done"}
    assert "cost by mode" in capsys.readouterr().out


def test_grid(tmp_path):
    """The grid of the tutorial is a valid sweep of six points."""
    from torusfabric.sweep.grid import grid_points, read_sweep

    (tmp_path / "grid.toml").write_text(BLOCKS["grid.toml"])
    assert len(grid_points(read_sweep(tmp_path / "grid.toml"))) == 6


STREAMS = (DOCS / "how-to/use-streams.md").read_text(encoding="utf-8")
SIGNALS = (DOCS / "reference/streams.md").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="Icarus is not installed")
def test_all_of_it_runs(tmp_path, monkeypatch):
    """All blocks of the page on streams run, and print the stated packets."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    printed = "".join(
        said for block in run_blocks([block.as_json() for block in blocks_of(STREAMS)])
        for _, said in block
    )  # fmt: skip
    lines = re.findall(r"node 0 has a packet from node (\d) that ends with (\w+)", printed)
    assert lines == [("0", "3"), ("1", "103"), ("0", "7"), ("1", "107")]
    assert "limited by" in printed
    assert "node 3 has 1111" in printed


def test_it_names_every_port():
    """The page on streams names every signal of a node."""
    program = tf.compile(tf.plan("2x2", "alltoall"), flits=1)
    ports = {name for beat in (1, 2)
             for name, port in stream_ports(program, 8, beat=beat).items()
             if port.node == 0}  # fmt: skip
    named = {name.replace("_N_", "_0_") for name in re.findall(r"`([sm]_axis_N_\w+)`", SIGNALS)}
    assert ports == named


PAGES = (
    DOCS / "reference/schedule-file.md",
    DOCS / "tutorials/bring-your-own-schedule.md",
)
FORMATS, OWN = (page.read_text() for page in PAGES)
EXAMPLES = re.findall(r"<!-- example: (\w+) -->\n```json\n(.*?)```", FORMATS, re.DOTALL)


@pytest.mark.parametrize(("form", "text"), EXAMPLES)
def test_examples(tmp_path, form, text):
    """Each example file is correct, has the stated form, and compiles."""
    path = tmp_path / "plan.json"
    path.write_text(text)
    schedule = tf.load(path)
    tf.check(schedule)
    assert schedule.form == form
    assert tf.compile(schedule).cycles() > 0


def test_there_is_one_of_each_form():
    """There is an example of each form, and every key of the schema is described."""
    assert {form for form, _ in EXAMPLES} == {"pattern", "table", "rounds"}
    parts = schema()["properties"], schema()["$defs"]["transfer"]["properties"]
    for key in (*parts[0], *parts[1], *parts[0]["collective"]["properties"]):
        assert f"| `{key}` |" in FORMATS


def test_script_and_commands(tmp_path, monkeypatch, capsys):
    """The script and the commands of the tutorial run, from the script to Verilog."""
    found = dict(re.findall(r"<!-- (?:test|file): (\S+) -->\n```\w+\n(.*?)```", OWN, re.DOTALL))
    monkeypatch.chdir(tmp_path)
    Path("rows_columns.py").write_text(found["rows_columns.py"])
    for line in found["commands"].splitlines():
        program, *words = shlex.split(line, comments=True)
        if program == "python":
            subprocess.run([sys.executable, *words], check=True)
        else:
            assert main([*words, "--quiet"]) == 0
    assert "words wrong       0" in capsys.readouterr().out
    assert json.loads(Path("mine.json").read_text())["algorithm"] == "rows-columns"
    assert Path("out/fabric.v").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links(page):
    """Each relative link leads to an existing file."""
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target
