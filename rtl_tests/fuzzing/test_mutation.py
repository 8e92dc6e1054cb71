"""The tester of tests: what it changes, and what it says of tests that notice or do not."""

import shutil
import sys
from pathlib import Path

import pytest
from mutation.mutants import mutants_of, sample
from mutation.trial import Copy, Reached

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]

MODULE = '''\
"""No mutant: 1 + 1."""

__all__ = ["f"]

LIMIT: int = 3


def f(a: int = 0, *, b: "int | None" = None) -> int:
    """No mutant either: a + b."""
    if not a and b is None:
        return (a) + (LIMIT)
    items = list(range(a, LIMIT))
    items.append(max(a, LIMIT))
    assert a > 1
    if a < 0:
        raise ValueError(f"{a + 1}")
    return len(items) if items else 0
'''

CHANGES = {
    ("LIMIT: int = 3", "LIMIT: int = 4"),
    ("if not a and b is None:", "if a and b is None:"),
    ("if not a and b is None:", "if not a or b is None:"),
    ("if not a and b is None:", "if not a and b is not None:"),
    ("return (a) + (LIMIT)", "return (a) - (LIMIT)"),
    ("items = list(range(a, LIMIT))", "items = list(range(LIMIT, a))"),
    ("items.append(max(a, LIMIT))", "pass"),
    ("items.append(max(a, LIMIT))", "items.append(max(LIMIT, a))"),
    ("if a < 0:", "if a <= 0:"),
    ("if a < 0:", "if a < 1:"),
    ('raise ValueError(f"{a + 1}")', "pass"),
    ("return len(items) if items else 0", "return len(items) if not (items) else 0"),
    ("return len(items) if items else 0", "return len(items) if items else 1"),
}

TESTS = """\
from torusfabric.room.module import f


def test_f():
    assert f() == 3
    assert f(1 << 9) == 1
"""


@pytest.fixture
def tree(tmp_path):
    """A tree of one module with a test."""
    root = tmp_path / "tree"
    files = {
        "torusfabric/__init__.py": "",
        "torusfabric/room/module.py": MODULE,
        "rtl_tests/room/test_f.py": TESTS,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copytree(ROOT / "scripts" / "mutation", root / "scripts" / "mutation")
    return root


def test_what_is_changed(tree):
    mutants = mutants_of("torusfabric/room/module.py", tree)
    assert {*(mutant.change for mutant in mutants)} >= CHANGES
    for mutant in mutants:
        compile(mutant.after, "module.py", "exec")
        assert mutant.line in range(5, 18)
        assert "assert" not in mutant.change[0]
        assert "def" not in mutant.change[0] or "= 0" in mutant.change[0]


def test_samples_stay_what_they_are(tree):
    """Those of a seed are the same, of as many operators as there are; others draw others."""
    mutants = mutants_of("torusfabric/room/module.py", tree)
    chosen = sample(mutants, 6, seed=1)
    assert sample(mutants[::-1], 6, seed=1) == chosen
    assert len({mutant.operator for mutant in chosen}) == 6
    assert sample(mutants, 6, seed=2) != chosen


@pytest.mark.long
def test_verdicts(tree, tmp_path):
    """A mutant is killed by a test that reaches it, hangs, or survives; the tree stays as it is."""
    mutants = {m.change: m for m in mutants_of("torusfabric/room/module.py", tree)}
    copy = Copy(tree, tmp_path / "copy")
    test, reached = "rtl_tests/room/test_f.py::test_f", Reached([])
    reached.seconds = {test: 0.1}
    reached.lines = {"torusfabric/room/module.py": {line: {test} for line in range(10, 13)}}
    found = {
        change: copy.try_out(mutants[change], reached, 10).outcome
        for change in [
            ("return (a) + (LIMIT)", "return (a) - (LIMIT)"),
            ("items = list(range(a, LIMIT))", "items = list(range(LIMIT, a))"),
            ("if a < 0:", "if a <= 0:"),
        ]
    }
    assert [*found.values()] == ["killed", "killed", "unreached"]
    reached.lines["torusfabric/room/module.py"] |= {line: {test} for line in range(13, 18)}
    survivor = mutants["if a < 0:", "if a <= 0:"]
    assert copy.try_out(survivor, reached, 10).outcome == "survived"
    assert (tree / "torusfabric/room/module.py").read_text() == MODULE
    assert (copy.folder / "torusfabric/room/module.py").read_text() == MODULE


def test_listed_mutants_exist():
    """What is listed as equivalent is what can be drawn today, with a reason."""
    listed = tomllib.loads((ROOT / "rtl_tests/equivalent_mutants.toml").read_text("utf-8"))
    for mutant in listed["mutant"]:
        assert mutant["reason"].endswith(".")
        changes = {found.change for found in mutants_of(mutant["path"], ROOT)}
        assert (mutant["before"], mutant["after"]) in changes, mutant
