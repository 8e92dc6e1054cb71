"""The mutation tester: its mutants, its verdicts on tests, and its results file."""

import shutil
import sys
from pathlib import Path

import pytest
from mutation.mutants import mutants_of, sample
from mutation.reached import Reached
from mutation.results import Results
from mutation.trial import Copy, Verdict, _surely

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
    count = len(items)
    while count:
        count -= 1
    assert a >= 0
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
    """A source tree of one module with one test."""
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
    """The mutants of a module include every expected change, and all of them compile."""
    mutants = mutants_of("torusfabric/room/module.py", tree)
    assert {*(mutant.change for mutant in mutants)} >= CHANGES
    for mutant in mutants:
        compile(mutant.after, "module.py", "exec")
        assert mutant.line in range(5, 21)
        assert "assert" not in mutant.change[0]
        assert "max(LIMIT, a)" not in mutant.change[1]
        assert "def" not in mutant.change[0] or "= 0" in mutant.change[0]


def test_samples_stay_what_they_are(tree):
    """A seed always gives the same sample, spread over the operators.

    Another seed gives another.
    """
    mutants = mutants_of("torusfabric/room/module.py", tree)
    chosen = sample(mutants, 6, seed=1)
    assert sample(mutants[::-1], 6, seed=1) == chosen
    assert len({mutant.operator for mutant in chosen}) == 6
    assert sample(mutants, 6, seed=2) != chosen


@pytest.mark.long
def test_verdicts(tree, tmp_path, monkeypatch):
    """A mutant is killed by a test, times out, survives or is unreached.

    The source tree is unchanged.
    """
    monkeypatch.setattr("mutation.trial.PATIENCE", 1.0)
    mutants = {m.change: m for m in mutants_of("torusfabric/room/module.py", tree)}
    test, reached = "rtl_tests/room/test_f.py::test_f", Reached([])
    reached.seconds = {test: 0.1}
    reached.lines = {"torusfabric/room/module.py": {line: {test} for line in range(10, 14)}}
    expected = {
        ("LIMIT: int = 3", "LIMIT: int = 4"): ("killed", test),
        ("return (a) + (LIMIT)", "return (a) - (LIMIT)"): ("killed", test),
        ("count -= 1", "pass"): ("timeout", ""),
        ("items = list(range(a, LIMIT))", "items = list(range(LIMIT, a))"): ("killed", test),
        ("if a < 0:", "if a <= 0:"): ("unreached", ""),
    }
    with Copy(tree, tmp_path / "copy", ["room"]) as copy:
        for change, verdict in expected.items():
            assert copy.try_out(mutants[change], reached, 10)[:2] == verdict
        reached.lines["torusfabric/room/module.py"] |= {line: {test} for line in range(14, 23)}
        survivor = mutants["if a < 0:", "if a <= 0:"]
        assert copy.try_out(survivor, reached, 10)[:2] == ("survived", "")
    assert (tree / "torusfabric/room/module.py").read_text() == MODULE
    assert (copy.folder / "torusfabric/room/module.py").read_text() == MODULE


@pytest.mark.long
def test_tests_that_fail_anyway(tree, tmp_path):
    """A test that fails without any mutant is found."""
    path = tree / "rtl_tests/room/test_f.py"
    path.write_text(TESTS + "\n\ndef test_odd():\n    assert f() == 4\n")
    names = [f"rtl_tests/room/test_f.py::{name}" for name in ("test_f", "test_odd")]
    with Copy(tree, tmp_path / "copy", ["room"]) as copy:
        assert copy.failing(names) == {names[1]}


def test_what_a_test_leaves_behind_kills_nothing():
    """A test that fails only after other tests does not count as killing a mutant."""
    asked = []

    def run(tests):
        asked.append([*tests])
        failing = "b" if tests.keys() > {"b"} else "d" if "d" in tests else ""
        return ("killed" if failing else "survived"), failing

    assert _surely(run, dict.fromkeys("abcd", 1.0)) == ("killed", "d")
    assert asked == [[*"abcd"], ["b"], ["c", "d"], ["d"]]
    assert _surely(run, dict.fromkeys("abc", 1.0)) == ("survived", "")


def test_order_of_tests(tree):
    """The examples of the module run first, then one case of each function, own package first."""
    mutant = next(m for m in mutants_of("torusfabric/room/module.py", tree) if 10 in m.lines)
    order = {
        "rtl_tests/documents/test_docstrings.py::test_examples[torusfabric.room.module]": 3.0,
        "rtl_tests/room/test_f.py::test_f[1]": 1.0,
        "rtl_tests/room/test_f.py::test_g": 2.0,
        "rtl_tests/cli/test_x.py::test_x": 0.1,
        "rtl_tests/room/test_f.py::test_f[2]": 2.0,
        "rtl_tests/room/test_f.py::test_other": 0.1,
    }
    reached = Reached([])
    reached.seconds = order
    *reaching, beside = order
    reached.lines = {"torusfabric/room/module.py": {10: {*reaching}, 11: {beside}}}
    assert reached.chosen(mutant, 60) == [*order]
    assert reached.chosen(mutant, 4.2) == [[*order][n] for n in (0, 1, 3, 5)]
    reached.forget(reaching[:2])
    assert reached.chosen(mutant, 60) == [reaching[n] for n in (4, 2, 3)] + [beside]


def test_results_are_kept(tree, tmp_path):
    """The last entry of a mutant counts; a mutant killed by a useless test is to be tried again."""
    first, second, *_ = mutants_of("torusfabric/room/module.py", tree)
    results = Results(tmp_path / "results.jsonl")
    results.add(first, Verdict("survived", "", 1, 0.1))
    results.add(first, Verdict("killed", "a", 1, 0.1))
    results.add(second, Verdict("killed", "b", 1, 0.1))
    assert results.doubtful([first, second]) == {"a", "b"}
    results.confirm({"a", "b"}, useless={"b"})
    again = Results(tmp_path / "results.jsonl")
    assert [again.outcome(mutant) for mutant in (first, second)] == ["killed", ""]
    assert not again.doubtful([first, second])


def test_listed_mutants_exist():
    """Every mutant listed as equivalent still exists, and has a reason."""
    listed = tomllib.loads((ROOT / "rtl_tests/equivalent_mutants.toml").read_text("utf-8"))
    for mutant in listed["mutant"]:
        assert mutant["reason"].endswith(".")
        changes = {found.change for found in mutants_of(mutant["path"], ROOT)}
        assert (mutant["before"], mutant["after"]) in changes, mutant
