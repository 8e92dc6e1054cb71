"""The recipes of CONTRIBUTING.md work as they stand."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"<!-- test: (\w+) -->\n```python\n(.*?)```", re.DOTALL)


def recipe(name):
    """All the code of a recipe."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return "\n".join(code for found, code in BLOCK.findall(text) if found == name)


@pytest.mark.parametrize("name", ["algorithm", "topology", "operator"])
def test_recipe(name, tmp_path):
    """In a process of its own, for what it registers stays registered."""
    script = tmp_path / f"{name}_recipe.py"
    script.write_text(recipe(name), encoding="utf-8")
    assert recipe(name).count("check(") == 1
    done = subprocess.run(
        [sys.executable, "-W", "error", script], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "docs/project/architecture.md"])
def test_paths_in_documents_exist(document):
    """What a document names by a path is there."""
    text = (ROOT / document).read_text(encoding="utf-8")
    named = re.findall(r"`((?:torusfabric|rtl_tests|scripts|sim|docs|boards)/[\w./-]*)`", text)
    linked = re.findall(r"\]\((?!http)([^)#]+)\)", text)
    assert named or linked
    for path in named:
        assert (ROOT / path).exists(), path
    for path in linked:
        assert ((ROOT / document).parent / path).exists(), path
