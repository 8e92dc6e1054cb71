"""Child processes end with their parent, whatever ends the parent."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from torusfabric.__main__ import main as program
from torusfabric.errors import WorkFailed
from torusfabric.toolchain import processes, tools

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs are scripts")

#: Seconds to wait for an immediate event on a busy machine.
PATIENCE = 60

#: A shell that waits for a child of its own, which it names in a file.
NEST = "sleep 300 & echo $! > child.part; mv child.part child; wait"


def wait_for(path):
    """Wait for a file; return the number in it."""
    end = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    return int(path.read_text())


def is_running(pid):
    """True if a process runs and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ends(pid):
    """True if a process ends within `PATIENCE` seconds."""
    end = time.monotonic() + PATIENCE
    while is_running(pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_output_and_status():
    """The exit status and both outputs of a program are returned."""
    done = processes.run(["sh", "-c", "echo out; echo err >&2; cat; exit 3"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_looks_while_it_runs(monkeypatch):
    """`look` is called repeatedly while a program runs, and no output is lost."""
    monkeypatch.setattr(processes, "PERIOD", 0.05)
    looks = []
    script = "echo before; sleep 0.5; echo after"
    done = processes.run(["sh", "-c", script], look=lambda: looks.append(len(looks)))
    assert (done.returncode, done.stdout) == (0, "before\nafter\n")
    assert len(looks) > 1


@pytest.mark.parametrize(
    "script", [NEST, "trap '' INT TERM; echo $$ > child; while :; do sleep 0.1; done"]
)
def test_look_ends_the_children_too(tmp_path, monkeypatch, script):
    """An error in `look` ends the program and its children, even one that ignores signals."""
    monkeypatch.setattr(processes, "GRACE", 0.05)
    monkeypatch.setattr(processes, "PERIOD", 0.05)
    child = tmp_path / "child"

    def look():
        if child.exists() and child.read_text():
            raise WorkFailed("enough")

    with pytest.raises(WorkFailed, match="enough"):
        processes.run(["sh", "-c", script], folder=tmp_path, look=look)
    assert ends(wait_for(child))


@pytest.mark.parametrize(
    ("number", "status"),
    [
        (signal.SIGTERM, 143),
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.long),
        pytest.param(signal.SIGHUP, 129, marks=pytest.mark.long),
    ],
)
def test_signal_to_the_command_alone(tmp_path, number, status):
    """A signal to a command ends its tools and their children, with a message of one line."""
    stub = tmp_path / "yosys"
    stub.write_text(f"#!/bin/sh\ncd {tmp_path}\n{NEST}\n")
    stub.chmod(0o755)
    environ = {"YOSYS": str(stub), "TORUSFABRIC_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "torusfabric", "synth", "2x2", "allgather", "--target",
               "ice40-hx8k"]  # fmt: skip
    with subprocess.Popen(
        command, cwd=tmp_path, env=os.environ | environ, stderr=subprocess.PIPE, text=True
    ) as process:
        child = wait_for(tmp_path / "child")
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == status
    assert said.splitlines() == [f"torusfabric: {'interrupted' if status == 130 else 'terminated'}"]
    assert ends(child)


def test_signal_while_a_process_starts(monkeypatch):
    """A signal during the start of a process is handled once the process is known, and ends it."""
    started = []

    class Interrupted(subprocess.Popen):
        def __init__(self, *args, **options):
            signal.raise_signal(signal.SIGTERM)
            super().__init__(*args, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with processes.interrupt_on_signals(), pytest.raises(processes.Interrupted) as caught:
        processes.run(["sleep", "300"])
    assert caught.value.status == 143
    assert started[0].returncode is not None


def test_handlers_are_put_back():
    """Signal handlers are restored at the end; ignored signals stay ignored."""
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP)
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with processes.interrupt_on_signals():
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGTERM) != before[0]
        assert signal.getsignal(signal.SIGTERM) == before[0]
    finally:
        signal.signal(signal.SIGHUP, before[1])


def test_parallel_keeps_the_order():
    """Two items run at the same time, and results have the order of the items."""
    meet = threading.Barrier(2)

    def square(n):
        meet.wait(timeout=PATIENCE)
        time.sleep(0 if n % 2 else 0.02)
        return n * n

    assert list(processes.map_in_threads(square, range(6))) == [0, 1, 4, 9, 16, 25]
    assert list(processes.map_in_threads(square, [])) == []


def test_failure_ends_what_runs_beside_it(monkeypatch, tmp_path):
    """The first failure ends the other work, and no further process is started."""
    stub, started = tmp_path / "vvp", tmp_path / "child"
    stub.write_text(f"#!/bin/sh\n{NEST}\n")
    stub.chmod(0o755)
    monkeypatch.setenv("VVP", str(stub))

    def work(kind):
        if kind == "slow":
            with pytest.raises(WorkFailed):
                tools.run("vvp", [], folder=tmp_path, log="slow.log")
            processes.run(["touch", "second"], folder=tmp_path)
        wait_for(started)
        raise WorkFailed("the other one")

    with pytest.raises(WorkFailed, match="other one"):
        list(processes.map_in_threads(work, ["fast", "slow"]))
    assert ends(wait_for(started))
    assert not (tmp_path / "second").exists()


def test_interrupt_while_a_command_is_loaded(monkeypatch, capsys):
    """An interrupt while the commands are loaded gives one line and status 130."""
    begun = []

    class Interrupting:
        """An import finder that interrupts the import of `torusfabric.cli`."""

        def find_spec(self, name, path=None, target=None):
            if name == "torusfabric.cli":
                begun.append(name)
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "torusfabric.cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert program() == 130
    assert begun
    assert capsys.readouterr() == ("", "torusfabric: interrupted\n")


def test_what_runs_beside_ends_with_the_body():
    with processes.run_in_background(lambda: 5) as result:
        assert result() == 5
    sleep, began = [sys.executable, "-c", "import time; time.sleep(60)"], time.monotonic()

    def fail_meanwhile():
        with processes.run_in_background(lambda: processes.run(sleep)):
            time.sleep(0.2)
            raise WorkFailed("the body")

    with pytest.raises(WorkFailed):
        fail_meanwhile()
    assert time.monotonic() - began < 30


#: A command within a long computation that does not check for signals.
ABSORBED = """
import hashlib, threading
from torusfabric.toolchain.folders import work_folder
from torusfabric.toolchain.processes import interrupt_on_signals, run
threading.Thread(target=run, args=[["sh", "-c", NEST]], daemon=True).start()
with interrupt_on_signals(), work_folder():
    threading.Timer(1.0, print, ["ready"], {"flush": True}).start()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_signal_during_a_long_call(tmp_path, number, status):
    """A signal ends a command during a long library call, with its tools and its work folder."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", ABSORBED.replace("NEST", repr(NEST))], cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == status
    assert said == f"torusfabric: {'interrupted' if status == 130 else 'terminated'}\n"
    assert not list(temporary.iterdir())
    assert ends(wait_for(tmp_path / "child"))
