"""Faults of the machine: killed commands, full disks, and caches that cannot be used.

A test kills a command and its tools at a random moment. No file with a final name may then be
incomplete, and the same command must succeed afterwards.
"""

import functools
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from xml.etree import ElementTree

import pytest

import torusfabric as tf

SWEEP = 'steps = ["plan"]\ntopologies = ["2", "3"]\ncollectives = ["allgather", "alltoall"]\n'

SMALL = ["2x2", "allgather", "--width", "4"]

#: Commands that write files, and the latest second at which each is killed. Times are those of a
#: common machine.
COMMANDS = {
    "plan": (["plan", "4x4", "allgather", "-o", "plan.json"], 3),
    "plan.gz": (["plan", "4x4", "alltoall", "-o", "plan.json.gz"], 3),
    "draw": (["draw", "4x4", "allgather", "-o", "picture.svg"], 3),
    "animate": (["animate", "2x2", "allgather", "-o", "page.html"], 3),
    "export": (["export", "4x4", "allgather", "-o", "plan.xml"], 3),
    "import": (["import", "given.xml", "--topology", "4", "-o", "imported.json"], 3),
    "sweep": (["sweep", "sweep.toml", "-o", "results.jsonl", "--jobs", "1"], 5),
    "verilog": (["verilog", *SMALL, "-o", "out"], 5),
    "compare": (["compare", "4x4", "allgather", "--plot", "bars.svg"], 3),
    "simulate": (["simulate", *SMALL, "--wave", "w.vcd", "--trace", "trace.jsonl"], 3),
    "compiled": (["simulate", *SMALL, "--engine", "compiled", "--wave", "w.vcd"], 12),
    "prove": (["prove", "2", "allgather", "--width", "2"], 6),
    "cache": (["cache", "--clear"], 1),
    "synth": (["synth", "2x2", "allgather", "--width", "2", "--target", "ice40-hx8k"], 8),
    "build": (["build", "2", "allgather", "--width", "1", "--board", "icebreaker", "-o", "bits"],
              20),
}  # fmt: skip

#: Commands whose files differ in each run: they contain seconds, or output of tools.
VARYING = ("sweep", "build")

QUICK = ("plan", "verilog")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the input files of all commands, and a cache of its own."""
    monkeypatch.setenv("TORUSFABRIC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    work = tmp_path / "work"
    work.mkdir()
    (work / "sweep.toml").write_text(SWEEP)
    tf.export_schedule(tf.plan("4", "allgather"), work / "given.xml")
    return work


def started(words, place, **options):
    """Start a command as the first process of a new process group."""
    words = [sys.executable, "-m", "torusfabric", *words, "--quiet"]
    return subprocess.Popen(
        words,
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **options,
    )


def done(words, place):
    """Run a command that must succeed."""
    process = started(words, place)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")


def check_whole(place):
    """Check that every file with a final name is complete."""
    for path in place.rglob("*"):
        inside = path.relative_to(place).parts
        if not path.is_file() or any(part.startswith(".") for part in inside):
            continue
        if path.name.endswith((".json", ".json.gz")) and path.name.startswith(("plan", "imported")):
            tf.check(tf.load(path))
        elif path.suffix in (".svg", ".xml"):
            ElementTree.parse(path)
        elif path.suffix == ".html":
            assert path.read_text("utf-8").rstrip().endswith("</html>")
        elif path.suffix == ".json":
            json.loads(path.read_text("utf-8"))
        elif path.suffix == ".jsonl":
            for line in path.read_text("utf-8").splitlines(keepends=True):
                assert line.endswith("\n") or not line.startswith("{") or json.loads(line)
        elif path.name == "fabric.v":
            assert path.read_text("utf-8").endswith("endmodule\n\n`default_nettype wire\n")


def files_of(place):
    """Return the content of each file with a final name, by path."""
    paths = (path for path in place.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in paths if "/." not in path.as_posix()}


def kill_at_random(name, place, draw, *, times=1, slower=1.0):
    """Kill a command with its tools at random moments, several times; then run it to its end.

    A file that was there after a kill must be the same, byte for byte, at the end.
    """
    words, longest = COMMANDS[name]
    found = {}
    for _ in range(times):
        process = started(words, place)
        time.sleep(draw.uniform(0.05, slower * longest))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if name != "build":  # the folder named build holds the tools' own files
            check_whole(place)
        found |= {} if name in VARYING else files_of(place)
    done(words, place)
    check_whole(place)
    last = files_of(place)
    assert [path for path, content in found.items() if last.get(path) != content] == []


@functools.cache
def slowness():
    """Return the slowness of this machine now, as a factor of a common machine, at least 1."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "torusfabric", "algorithms"], stdout=subprocess.DEVNULL)
    return max(1.0, time.monotonic() - began)


@pytest.mark.parametrize("name", QUICK)
def test_killed(name, place):
    """A command killed at a random moment leaves complete files, and succeeds when run again."""
    kill_at_random(name, place, random.Random(name))


@pytest.mark.long
@pytest.mark.parametrize("trial", range(4))
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_often(name, trial, place):
    """Two kills in each trial, 128 in all: the second meets the remains of the first."""
    draw = random.Random(f"{name} {trial}")
    kill_at_random(name, place, draw, times=2, slower=slowness())


def test_a_full_disk(place):
    """On a full disk, an incomplete file is removed and an older file stays unchanged."""
    path = place / "plan.json"
    path.write_text("older")
    limited = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
    process = started(["plan", "4x4", "allgather", "-o", "plan.json"], place, preexec_fn=limited)
    _, err = process.communicate(timeout=100)
    assert process.returncode in (1, 2)
    assert err.count("\n") == 1
    assert err.startswith("torusfabric: ")
    assert path.read_text() == "older"
    assert sorted(os.listdir(place)) == ["given.xml", "plan.json", "sweep.toml"]


def verilog(place, name="out"):
    """Return the emitted Verilog of a small fabric, written by a command."""
    words, _ = COMMANDS["verilog"]
    done([*words[:-1], name], place)
    return (place / name / "fabric.v").read_text("utf-8")


def test_caches_that_cannot_be_written(place, monkeypatch):
    """A cache folder that cannot be made does not stop a command."""
    file = place.parent / "file"
    file.write_text("")
    monkeypatch.setenv("TORUSFABRIC_CACHE", str(file / "cache"))
    assert verilog(place).endswith("endmodule\n\n`default_nettype wire\n")


def test_two_processes_with_one_cache(place):
    """Two processes with one cache emit the same Verilog at the same time."""
    words, _ = COMMANDS["verilog"]
    both = [started([*words[:-1], name], place) for name in ("one", "two")]
    for process in both:
        assert process.communicate(timeout=200)[1] == ""
        assert process.returncode == 0
    one, two = ((place / name / "fabric.v").read_text("utf-8") for name in ("one", "two"))
    assert one == two
