"""What the pages on schedule files say: examples load, scripts and commands run as they stand."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.schedule.schema import schema

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (DOCS / "reference/schedule-file.md", DOCS / "tutorials/bring-your-own-schedule.md")
FORMATS, OWN = (page.read_text() for page in PAGES)
EXAMPLES = re.findall(r"<!-- example: (\w+) -->\n```json\n(.*?)```", FORMATS, re.DOTALL)


@pytest.mark.parametrize(("form", "text"), EXAMPLES)
def test_examples(tmp_path, form, text):
    """Each is right, of the form that is said, and becomes hardware."""
    path = tmp_path / "plan.json"
    path.write_text(text)
    schedule = tf.load(path)
    tf.check(schedule)
    assert schedule.form == form
    assert tf.compile(schedule).cycles() > 0


def test_there_is_one_of_each_form():
    """And all keys of the schema are described."""
    assert {form for form, _ in EXAMPLES} == {"pattern", "table", "rounds"}
    parts = schema()["properties"], schema()["$defs"]["transfer"]["properties"]
    for key in (*parts[0], *parts[1], *parts[0]["collective"]["properties"]):
        assert f"| `{key}` |" in FORMATS


def test_script_and_commands(tmp_path, monkeypatch, capsys):
    """From the script to Verilog."""
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
    """What is linked is there."""
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target
