"""The recipes of CONTRIBUTING.md work as they are written."""

import filecmp
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import parity
import pytest
from pages import blocks_of

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"<!-- test: (\w+) -->\n```python\n(.*?)```", re.DOTALL)
PATCH = re.compile(r"<!-- test: (\w+) -->\n```diff\n--- (\S+)\n@@\n(.*?)```", re.DOTALL)


def recipe(name):
    """Return all the code of a recipe."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return "\n".join(code for found, code in BLOCK.findall(text) if found == name)


def run(script):
    """Run a script in a process of its own, so that its registrations end with it."""
    done = subprocess.run(
        [sys.executable, "-W", "error", script.name], cwd=script.parent, capture_output=True,
        text=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", ["topology", "operator"])
def test_recipe(name, tmp_path):
    """The code of a recipe runs and checks its schedule."""
    script = tmp_path / f"{name}_recipe.py"
    script.write_text(recipe(name), encoding="utf-8")
    assert recipe(name).count("check(") == 1
    run(script)


def test_an_algorithm(tmp_path):
    """The code of the tutorial on algorithms runs."""
    page = ROOT / "docs" / "tutorials" / "own-algorithm.md"
    blocks = [block for block in blocks_of(page.read_text("utf-8")) if block.language == "python"]
    for block in blocks:
        with (tmp_path / (block.file or "recipe.py")).open("a") as file:
            file.write(block.text)
    run(tmp_path / "recipe.py")


def apply(name, folder):
    """Apply the changes of a recipe to the files in a folder, and return their names."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    changes = [found[1:] for found in PATCH.findall(text) if found[0] == name]
    for file, hunks in changes:
        content = (folder / file).read_text(encoding="utf-8")
        for hunk in hunks.split("@@\n"):
            lines = hunk.splitlines(keepends=True)
            before, after = (
                "".join(line[1:] if line[0] in " +-" else line for line in lines if line[0] != sign)
                for sign in "+-"
            )
            assert content.count(before) == 1, f"{file} has this once:\n{before}"
            content = content.replace(before, after)
        (folder / file).write_text(content, encoding="utf-8")
    return {file for file, _ in changes}


def changed(compared):
    """Return the files and folders that differ between two folders."""
    found = {Path(compared.right, n) for n in compared.diff_files + compared.right_only}
    return found.union(*map(changed, compared.subdirs.values()))


def test_a_control_point_takes_four_files(tmp_path):
    """The recipe for a control point changes at most four files and adds parity to links.

    Words and cycles stay correct, and every fault on a used link is reported.
    """
    package = tmp_path / "torusfabric"
    shutil.copytree(ROOT / "torusfabric", package, ignore=shutil.ignore_patterns("__pycache__"))
    files = apply("point", tmp_path)
    there = changed(filecmp.dircmp(ROOT / "torusfabric", package))
    assert {str(file.relative_to(tmp_path)) for file in there} == files
    assert len(files) <= 4
    example = tmp_path / "example.py"
    example.write_text(recipe("point"), encoding="utf-8")
    printed = ""
    for script in (example, ROOT / "rtl_tests/support/parity.py"):
        done = subprocess.run(
            [sys.executable, "-W", "error", script], cwd=tmp_path, capture_output=True, text=True,
            env=os.environ | {"PYTHONPATH": str(tmp_path)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed = done.stdout
    cycles = [
        [program.cycles(mode=mode) for mode in range(len(program.modes))]
        for program in (parity.compiled(*case) for case in parity.CASES)
    ]
    assert json.loads(printed) == {"package": str(tmp_path), "cycles": cycles}


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "docs/project/architecture.md"])
def test_paths_in_documents_exist(document):
    """Every path that a document names exists."""
    text = (ROOT / document).read_text(encoding="utf-8")
    named = re.findall(r"`((?:torusfabric|rtl_tests|scripts|sim|docs|boards)/[\w./-]*)`", text)
    assert named
    for path in named:
        assert (ROOT / path).exists(), path
