"""The public interface, `import torusfabric as tf`: its names, its examples and its imports."""

import ast
import doctest
import gzip
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import few

import torusfabric as tf

PUBLIC = [name for name in tf.__all__ if name != "__version__"]


def test_names_are_those_that_type_checkers_see():
    """The names of the package are those that it imports for type checkers."""
    tree = ast.parse(Path(tf.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = [alias.asname or alias.name for node in imports for alias in node.names]
    assert sorted(seen) == sorted(PUBLIC)
    assert set(tf.__all__) <= set(dir(tf))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_has_an_example(name):
    """The docstring of each public name has an example; `test_docstrings` runs these examples."""
    value = getattr(tf, name)
    globs = vars(sys.modules[value.__module__])
    (found,) = doctest.DocTestFinder(recurse=False).find(value, name, globs=globs)
    assert found.examples


def test_there_are_no_other_names():
    """A misspelt public name raises an AttributeError."""
    with pytest.raises(AttributeError, match="module 'torusfabric' has no attribute 'plann'"):
        tf.plann  # noqa: B018


#: A script that uses every public name as if the packages of the extras were missing.
WITHOUT = """
import sys
class Missing:
    @staticmethod
    def find_spec(name, *_):
        if name in ("amaranth", "defusedxml"):
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Missing)
import torusfabric as tf
for name in tf.__all__:
    try:
        getattr(tf, name)
    except tf.MissingTool as error:
        print(name, error.status, error)
try:
    tf.import_schedule("plan.xml", topology="2x2")
except tf.MissingTool as error:
    print("import_schedule", error.status, error)
"""


def test_a_name_without_its_extra(tmp_path):
    """A name whose extra is missing raises one error that names the extra; all other names work."""
    (tmp_path / "plan.xml").write_text("<algo></algo>")
    command = [sys.executable, "-c", WITHOUT]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    said = "3 Package {} was not found: pip install 'torusfabric[{}]'"
    hardware = ("Fabric", "Job", "emit", "image", "repair", "simulate", "synthesize")
    expected = [f"{name} {said.format('amaranth', 'hardware')}" for name in hardware]
    expected.append(f"import_schedule {said.format('defusedxml', 'foreign')}")
    assert done.stdout.splitlines() == expected


@pytest.mark.parametrize(
    ("words", "absent"),
    few(
        2,
        [
            ("tf.__version__", "numpy"),
            ("tf.check(tf.plan('4x4', 'allreduce', latency='auto'))", "amaranth"),
            ("tf.compile(tf.plan('4x4', 'scatter'), flits=3).cycles()", "amaranth"),
        ],
    ),
)
def test_what_is_not_used_is_not_imported(words, absent):
    """Planning and compiling do not import Amaranth, and the version does not import NumPy."""
    script = f"import sys, torusfabric as tf; {words}; print({absent!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_from_plan_to_hardware(tmp_path):
    """The calls of a whole design work one after another, from plan to Verilog."""
    schedule = tf.plan(tf.Torus(2, 3), "allgather", algorithm="matching")
    assert schedule.steps == tf.bound(schedule) == 2
    schedule.save(tmp_path / "plan.json")
    assert tf.load(tmp_path / "plan.json").digest == schedule.digest
    program = tf.compile(schedule, flits=2)
    words = np.arange(12).reshape(6, 2)
    assert (program.execute(words) == np.tile(words.ravel(), (6, 1))).all()
    fabric = tf.Fabric(program, width=8)
    assert tf.simulate(fabric).passed
    tf.emit(fabric).write(tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        ".torusfabric-verilog.json",
        "bench",
        "fabric.v",
        "manifest.json",
    ]


def test_files_stand_for_schedules(tmp_path):
    """Functions that take a schedule accept the path of a schedule file, too."""
    schedule, path = tf.plan("4x4", "alltoall"), tmp_path / "plan.json.gz"
    schedule.save(path)
    assert tf.check(path) == tf.check(str(path)) == tf.check(schedule)
    assert tf.bound(path) == tf.bound(schedule)
    tf.export_schedule(path, tmp_path / "file.csv", "csv")
    tf.export_schedule(schedule, tmp_path / "value.csv", "csv")
    assert (tmp_path / "file.csv").read_bytes() == (tmp_path / "value.csv").read_bytes()
    text = gzip.decompress(path.read_bytes()).decode()
    wrong = tmp_path / "wrong.json"
    wrong.write_text(text[: text.index("\n")] + "\n]}\n")
    with pytest.raises(tf.ScheduleError, match=r"^After 0 steps: node 0 .* ends without"):
        tf.check(wrong)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"operators": ["add"]}, "allgather combines nothing, so it has no operators"),
        ({"flits": 0}, "Flits must be at least 1, not 0"),
        ({"flits": 1 << 64}, "Flits must be at most 4294967296, not 18446744073709551616"),
        ({"root": "any"}, "Root any needs a collective with a root"),
    ],
)
def test_what_does_not_compile(options, message):
    """A program that cannot be compiled is refused in one line."""
    with pytest.raises(tf.InputError, match=f"^{message}"):
        tf.compile(tf.plan("4x4", "allgather"), **options)


def test_the_example_of_the_readme(tmp_path, monkeypatch, capsys):
    """The example of the README runs and prints the stated output; synthesis is left out."""
    readme = Path(__file__).parents[2] / "README.md"
    (block,) = re.findall(r"```python\n(.*?)```", readme.read_text(), re.S)
    lines = [line for line in block.splitlines() if "synthesize" not in line]
    monkeypatch.chdir(tmp_path)
    exec("\n".join(lines), {})
    shown = [line.partition("#")[2].strip() for line in lines if line.startswith("print")]
    assert capsys.readouterr().out.splitlines() == shown
    assert (tmp_path / "plan.json").exists()
    assert (tmp_path / "out" / "fabric.v").exists()
