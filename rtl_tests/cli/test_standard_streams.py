"""Standard streams: files on standard output, readers that stop, and full devices."""

import errno
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import few

import torusfabric as tf
from torusfabric import cli
from torusfabric.cli import main
from torusfabric.errors import InputError, WorkFailed
from torusfabric.sweep.results import Results
from torusfabric.toolchain import destinations

needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")

PLAN = ("plan", "3x3", "allgather")

#: Commands that print in different ways.
PRINTING = [("algorithms",), ("compare", "3x3", "allgather"), PLAN, (*PLAN, "--json"), ("boards",),
            ("cache",), ("--version",), ("draw", "2x2", "allgather", "-o", "-")]  # fmt: skip


@needs_full
@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
@pytest.mark.parametrize("buffering", [1, -1])
def test_full_device_is_one_line(words, buffering, monkeypatch, capsys):
    """Output to a full device gives one line and status 1."""
    with open("/dev/full", "w", buffering=buffering) as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(list(words)) == 1
    error = capsys.readouterr().err
    text = (
        "File standard output cannot be written (No space left on device); choose another file or "
        "folder"
    )
    if "--json" in words:
        found = json.loads(error)["error"]
        assert (found["message"], found["status"]) == (text, 1)
    else:
        assert error == f"torusfabric: {text}\n"


@pytest.mark.parametrize("words", few(4, [*PRINTING], tuples=True), ids=" ".join)
def test_reader_that_has_seen_enough(words, monkeypatch, capsys):
    """A reader that stops early is no error."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        assert main(list(words)) == 0
    assert capsys.readouterr().err == ""


@needs_full
def test_errors_that_cannot_be_told(monkeypatch):
    """Standard error on a full device does not change the status."""
    with open("/dev/full", "w") as full, open(os.devnull, "w") as null:
        monkeypatch.setattr(sys, "stderr", full)
        monkeypatch.setattr(sys, "stdout", null)
        assert main(["plan", "3x3", "nonsense"]) == 1
        os.dup2(null.fileno(), full.fileno())


@pytest.mark.skipif(os.name != "posix", reason="a shell of POSIX")
def test_interpreter_ends_without_a_word_of_its_own():
    """At exit the interpreter prints nothing itself, even if a stream is full or closed."""
    command = f"{sys.executable} -m torusfabric plan 3x3 allgather"
    script = f"{command} >&-; echo $? >&2; {command} 2>&- >/dev/null; echo $? >&2"
    if Path("/dev/full").exists():
        script += f"; {command} > /dev/full; echo $? >&2"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True)
    lines = done.stderr.splitlines()
    said = "torusfabric: Standard output is closed; send it somewhere, for example to /dev/null"
    assert lines[:3] == [said, "1", "0"]
    said = (
        "torusfabric: File standard output cannot be written (No space left on device); choose "
        "another file or folder"
    )
    assert lines[3:] in ([], [said, "1"])


FILES = [
    (("plan", "3x3", "allgather", "-o"), '{"format"'),
    (("draw", "2x2", "allgather", "-o"), "<svg"),
    (("animate", "2x2", "allgather", "-o"), "<!doctype"),
    (("simulate", "2x2", "allgather", "--trace"), '{"format"'),
    (("sweep", "grid.toml", "-o"), '{"key"'),
]


@pytest.mark.parametrize(
    ("words", "begins", "name"),
    few(
        4,
        [(*FILES[0], "/dev/stdout"), (*FILES[0], "/dev/fd/1"), (*FILES[0], "link")]
        + [(*file, "-") for file in FILES],
    ),
)
def test_file_on_standard_output(words, begins, name, tmp_path, monkeypatch, capsys):
    """A file on standard output is alone there; the report goes to standard error."""
    if name.startswith("/dev") and not Path(name).exists():
        pytest.skip("no names of descriptors")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text('topologies = ["2x2"]\ncollectives = ["allgather"]\n')
    (tmp_path / "link").symlink_to("/dev/stdout")
    assert main([*words, name]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(begins)
    if "animate" not in words and "draw" not in words:
        for text in [out] if words[0] == "plan" else out.splitlines():
            json.loads(text)
    assert "2x2" in err or "3x3" in err or "rows" in err
    assert {path.name for path in tmp_path.iterdir()} == {"grid.toml", "link"}


@pytest.mark.parametrize(
    "words", [("verilog", "2x2", "allgather"), ("build", "2x2", "allgather", "--board", "icestick")]
)
def test_folder_is_no_standard_output(words, tmp_path, monkeypatch, capsys):
    """A folder cannot be written to standard output."""
    monkeypatch.chdir(tmp_path)
    assert main([*words, "-o", "-"]) == 1
    assert "must be a folder, not - (several files are written)" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@needs_full
def test_results_of_a_sweep_on_a_full_device():
    """A sweep into a full device is refused, and does not read from the endless device."""

    def add():
        with Results("/dev/full") as results:
            assert results.rows == {}
            results.add({"key": "0"})

    with pytest.raises(InputError, match=r"^File /dev/full cannot be written \(No space left"):
        add()


@pytest.mark.skipif(os.name != "posix", reason="names of files are bytes")
def test_names_that_are_no_text(tmp_path, capsys):
    """File names that are no valid text can be used."""
    path = os.path.join(os.fsencode(tmp_path), b"\xff.json")
    assert main([*PLAN, "-o", os.fsdecode(path)]) == 0
    assert os.path.exists(path)
    assert main([*PLAN, "-o", os.fsdecode(path), "--json"]) == 0
    assert main(["check", os.fsdecode(path) + "x"]) == 1
    capsys.readouterr()


@pytest.mark.parametrize(
    "words",
    [(*PLAN, "-o"), ("simulate", "2x2", "allgather", "--wave"),
     ("verilog", "2x2", "allgather", "-o"), ("sweep", "grid.toml", "-o")],
)  # fmt: skip
def test_names_that_are_empty(words, tmp_path, monkeypatch, capsys):
    """An empty file name, such as an unset shell variable, is refused."""
    monkeypatch.chdir(tmp_path)
    assert main([*words, ""]) == 1
    assert " must have a value, not an empty one" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_file_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch, capsys):
    """A file that cannot be written is refused before planning."""
    monkeypatch.setattr("torusfabric.cli.planning.choose_schedules", None)
    assert main([*PLAN, "-o", str(tmp_path / "none" / "plan.json")]) == 1
    assert capsys.readouterr().err.startswith("torusfabric: Folder ")


def fail_with(error, monkeypatch):
    def make_parser(**_):
        raise error

    monkeypatch.setattr(cli, "make_parser", make_parser)


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (MemoryError(), 2,
         "The memory of this machine does not suffice; choose a smaller network or shorter "
         "messages"),
        (WorkFailed("it is\nwrong"), 2, "it is\nwrong"),
        (OSError(errno.ENOSPC, "No space left on device"), 2,
         "A file could not be written (No space left on device); free the disk, or choose another "
         "folder"),
        (PermissionError(errno.EACCES, "Permission denied", "some/file"), 2,
         "File some/file cannot be used (Permission denied); choose another file or "
         "folder"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("as_json", [False, True])
def test_errors_as_lines_and_as_objects(error, status, text, as_json, monkeypatch, capsys):
    """An error is a line, or with --json an object with version, message, status and page."""
    fail_with(error, monkeypatch)
    assert main(["plan"] + ["--json"] * as_json) == status
    out, err = capsys.readouterr()
    assert out == ""
    if as_json:
        found = json.loads(err)
        assert found.pop("version") == 1
        assert found["error"].pop("page").startswith("docs/reference/errors.md#")
        assert found == {"error": {"message": text, "status": status}}
        assert err.count("\n") == 1
    else:
        shown = text.replace("\n", r"\n")
        assert err == f"torusfabric: {shown}\n"


def test_errors_of_ours_keep_their_traceback(monkeypatch):
    """An internal error keeps its traceback."""
    fail_with(FileNotFoundError(errno.ENOENT, "No such file"), monkeypatch)
    with pytest.raises(FileNotFoundError):
        main(["plan"])


def test_every_object_has_a_version(capsys, tmp_path, monkeypatch):
    """Every JSON object has a version."""
    monkeypatch.setenv("TORUSFABRIC_CACHE", str(tmp_path / "cache"))
    for words in (PLAN, ("algorithms",), ("boards",), ("cache",), ("compare", "2x2", "allgather")):
        assert main([*words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["version"] == 1


@needs_full
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (PLAN, 0),
        ((*PLAN, "-o", "-"), 0),
        (("plan", "3x3", "nonsense"), 1),
        (("check", "wrong.json"), 2),
    ],
)
def test_the_status_where_standard_error_is_full(words, status, tmp_path, monkeypatch):
    """The status of a command is the same if standard error is full."""
    monkeypatch.chdir(tmp_path)
    plan = tf.plan("3x3", "allgather", algorithm="matching")
    assert isinstance(plan, tf.Pattern)
    replace(plan, steps=plan.steps - 1).save("wrong.json")
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "torusfabric", *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=full)
    assert done.returncode == status
    assert done.stdout or status


class Terminal(io.StringIO):
    """A terminal that keeps its text."""

    def isatty(self):
        return True


@pytest.mark.parametrize("columns", [20, 40, 60, 79])
def test_narrow_terminals(columns, monkeypatch):
    """On a narrow terminal no word of a table is cut: cells then stand below one another."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    words = ["compare", "3x3", "allgather", "--quiet"]
    assert main(words) == 0
    text = terminal.getvalue()
    for word in ("hamiltonian", "bufferless", "algorithm", "memories"):
        assert word in text
    assert "\u2026" not in text
    assert "\nalgorithm: hamiltonian\n" in text


def test_a_name_that_is_too_long(tmp_path, monkeypatch, capsys):
    """A file name that is too long is refused, and the longest possible name works."""
    monkeypatch.chdir(tmp_path)
    assert main([*PLAN, "-o", "a" * 300]) == 1
    message = "File name aaa"
    assert f"torusfabric: {message}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert main([*PLAN, "-o", "a" * 250 + ".json"]) == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_without_a_writer(tmp_path, monkeypatch, capsys):
    """A named pipe without a writer is refused after a wait; a pipe with a late writer is read."""
    monkeypatch.setattr(destinations, "PATIENCE", 1)
    path = tmp_path / "plan.json"
    os.mkfifo(path)
    for words in (["check", str(path)], ["plan", f"graph:{path}", "allgather"]):
        assert main(words) == 1
        assert (
            "a named pipe, whose other end nobody opened for 1 seconds" in capsys.readouterr().err
        )
    tf.plan("3", "allgather").save(tmp_path / "whole.json")
    script = f"exec 3> {path}; sleep 2; cat {tmp_path / 'whole.json'} >&3"
    with subprocess.Popen(["sh", "-c", script]):
        assert tf.load(path) == tf.plan("3", "allgather")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_without_a_reader(tmp_path, monkeypatch, capsys):
    """A named pipe without a reader is refused after a wait.

    A pipe with a late reader is written.
    """
    monkeypatch.setattr(destinations, "PATIENCE", 1)
    path = tmp_path / "plan.json"
    os.mkfifo(path)
    assert main([*PLAN, "-o", str(path)]) == 1
    assert "a named pipe, whose other end nobody opened for 1 sec" in capsys.readouterr().err
    with subprocess.Popen(["sh", "-c", f"sleep 0.5; cat {path}"], stdout=subprocess.PIPE) as reader:
        assert main([*PLAN, "-o", str(path)]) == 0
        assert json.loads(reader.communicate()[0])["collective"]
