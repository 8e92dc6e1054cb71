"""The fuzzers: a few cases of each, former faults, and planted faults that they must see."""

import itertools
import os
import time

import pytest
from fuzzing import FUZZERS, oracle, run_cases
from fuzzing.oracle import Fuzzer, run_line
from helpers import few

from torusfabric import cli, errors
from torusfabric.cli import main
from torusfabric.errors import MissingTool
from torusfabric.toolchain import tools

#: Number of cases of each fuzzer in the quick tests and in the long tests.
FEW = {"schedule": 80, "msccl": 80, "sweep": 60, "line": 15, "board": 40, "bus": 120,
       "packet": 12, "call": 100}  # fmt: skip
MANY = {"schedule": 3000, "msccl": 3000, "sweep": 2000, "line": 500, "board": 6000, "bridge": 100,
        "bus": 2500, "packet": 20000, "call": 5000}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TORUSFABRIC_CACHE", str(tmp_path / "cache"))


def check(name, folder, seed, count):
    """Check that no case of a fuzzer gets a wrong answer."""
    folder.mkdir()
    fuzzer = FUZZERS[name](folder)
    fuzzer.batch = min(fuzzer.batch, count)
    try:
        faults = list(run_cases(fuzzer, seed, range(-(-count // fuzzer.batch))))
    finally:
        fuzzer.close()
    assert [fault for fault in faults if fault] == []


@pytest.mark.parametrize("name", few(3, [*FEW], tuples=True))
def test_a_few_cases(name, tmp_path):
    """A few cases of each fuzzer show no fault."""
    check(name, tmp_path / "work", 1, FEW[name])


@pytest.mark.long
@pytest.mark.parametrize("name", MANY)
def test_many_cases(name, tmp_path):
    """Many cases of each fuzzer show no fault."""
    check(name, tmp_path / "work", 2, MANY[name])


class Planted(Fuzzer):
    """A fuzzer whose only case calls a planted function."""

    name = "planted"

    def make(self, draw):
        return draw.random()

    def run(self, given):
        self.act()


def judged(folder, act):
    """Return the reason for which the oracle calls a case a fault, or None."""
    fuzzer = Planted(folder)
    fuzzer.act = act
    (fault,) = run_cases(fuzzer, 0, range(1))
    return fault and fault.reason


def raising(error):
    def act(*_):
        raise error

    return act


def test_right_answers_are_no_faults(tmp_path):
    """Results and errors with a message are no faults."""
    assert judged(tmp_path, lambda: None) is None
    assert judged(tmp_path, raising(errors.InputError("Side must be at least 2, not 1"))) is None
    assert judged(tmp_path, lambda: run_line(["plan", "3x", "allgather"], tmp_path)) is None


def test_faults_are_seen(tmp_path, monkeypatch):
    """Exceptions, empty messages, endless cases and files that are left behind are faults."""
    monkeypatch.setattr(oracle, "PATIENCE", 0.05)
    assert "KeyError" in judged(tmp_path, raising(KeyError("x")))
    assert "without a message" in judged(tmp_path, raising(errors.InputError("")))
    assert "no answer" in judged(tmp_path, lambda: time.sleep(5))
    assert "no answer" in judged(tmp_path, lambda: [None for _ in itertools.count()])
    assert "files are left: ['x']" in judged(tmp_path, lambda: os.mkdir(tmp_path / "x"))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (raising(KeyError("x")), "KeyError"),
        (lambda _: 7, "exit status 7"),
        (lambda _: 1, "no error"),
        (lambda _: open(".0123.part", "w").close(), "files are left"),
        (lambda _: print("[]"), "no object"),
    ],
)
def test_faults_of_commands_are_seen(run, message, tmp_path, monkeypatch):
    """Wrong statuses, missing errors, left files and missing JSON objects are faults."""
    monkeypatch.setattr("torusfabric.cli.installation.run_cache", run)
    monkeypatch.setattr(oracle, "_parser", cli.make_parser)
    words = ["cache", "--json"] if message == "no object" else ["cache"]
    assert message in judged(tmp_path, lambda: run_line(words, tmp_path))


def refused(capsys, words):
    """Return the one line that a refused command prints."""
    assert main(words) == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_a_mode_of_nothing(capsys):
    """A command with a mode and no collective asks for the collective."""
    line = refused(capsys, ["draw", "3", "-o", "x.svg", "--mode", "7"])
    assert line.startswith("torusfabric: COLLECTIVE must be given")


def test_names_of_several_lines(capsys):
    """A line break in a name is printed as an escape."""
    assert r"a\nb" in refused(capsys, ["import", "a\nb", "--topology", "4"])
    assert r"not 'a\nb'" in refused(capsys, ["plan", "4x4", "allgather", "--algorithm", "a\nb"])


def test_values_of_any_length(capsys):
    """A message repeats only the beginning of a long value."""
    line = refused(capsys, ["plan", "x" * 5000, "allgather"])
    assert len(line) < 1100
    assert line.startswith("torusfabric: Topology must be side lengths")


def test_names_that_no_file_can_have(tmp_path, capsys):
    """Names that no file can have are refused in one line."""
    line = refused(capsys, ["draw", "4x4", "allgather", "-o", "a\0b"])
    assert line.startswith(r"torusfabric: File a\x00b cannot be written (Invalid argument); ")
    for command in (["verilog"], ["flash", "--board", "icebreaker"]):
        line = refused(capsys, [*command, "2x2", "allgather", "-o", "a\0b"])
        assert line.startswith(r"torusfabric: Folder a\x00b cannot be made (Invalid argument); ")
    (tmp_path / "sweep.toml").write_text(f'plans = ["{"x" * 5000}"]')
    line = refused(capsys, ["sweep", str(tmp_path / "sweep.toml")])
    assert line.startswith("torusfabric: Plan must be a schedule file, not xxx")


@pytest.mark.parametrize("words", [["build", "--board", "icebreaker", "-o"]])
def test_folders_without_files(words, tmp_path, monkeypatch, capsys):
    """A command whose tool is missing leaves no empty folder behind."""

    def missing(name, *_, **__):
        raise MissingTool(f"Tool {name} was not found")

    for name in ("run", "require", "version"):
        monkeypatch.setattr(tools, name, missing)
    folder = tmp_path / "new" / "folder"
    assert main([words[0], "2x2", "allgather", "--width", "4", *words[1:], str(folder)]) == 3
    assert not any(tmp_path.iterdir())
    folder.parent.mkdir()
    assert main([words[0], "2x2", "allgather", "--width", "4", *words[1:], str(folder)]) == 3
    assert [*tmp_path.rglob("*")] == [folder.parent]
