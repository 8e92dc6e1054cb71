"""Folders are worked in by one at a time, and replaced as a whole."""

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers import few

from torusfabric.errors import InputError, WorkFailed
from torusfabric.toolchain import tools
from torusfabric.toolchain.folders import (
    ROOM,
    locked,
    private_folder,
    require_room,
    work_folder,
)

posix = pytest.mark.skipif(os.name != "posix", reason="folders can be opened")


@posix
def test_one_at_a_time_is_in(tmp_path):
    inside, most, waited = [], [], []

    def work():
        with locked(tmp_path, waiting=lambda: waited.append(1)):
            inside.append(1)
            most.append(len(inside))
            entered.set()
            leave.wait(5)
            inside.pop()

    entered, leave = threading.Event(), threading.Event()
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    entered.wait(5)
    while len(waited) < 2:
        pass
    leave.set()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1]
    assert not list(tmp_path.iterdir())


def start(tmp_path, opened):
    """A process that works in a folder or a file, whose path it prints, until it reads a line."""
    code = (
        "from torusfabric.toolchain.files import replacing\n"
        "from torusfabric.toolchain.folders import *\n"
        f"with {opened} as path: print(path.resolve(), flush=True), input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


@posix
@pytest.mark.parametrize(
    "opened",
    few(2, ["work_folder('x')", "private_folder('build')", "replacing('plan.json')"], tuples=True),
)
def test_the_next_one_removes_what_a_killed_one_left(tmp_path, opened):
    """And nothing that is in use, or that is somebody else's."""
    others = [tmp_path / name for name in ("torusfabric-notes", ".build-1", "a.part", "x.kept")]
    for other in others:
        other.mkdir()
    killed, left = start(tmp_path, opened)
    with killed:
        (left / "file" if left.is_dir() else left).write_text("half")
        killed.kill()
    assert left.exists()
    lives, kept = start(tmp_path, opened)
    with lives:
        assert not left.exists()
        third, last = start(tmp_path, opened)
        with third:
            assert kept.exists()
            assert kept != last
            third.communicate("\n")
        lives.communicate("\n")
    assert (third.returncode, lives.returncode) == (0, 0)
    final = {"private": {tmp_path / "build"}, "replacing": {tmp_path / "plan.json"}}
    assert set(tmp_path.iterdir()) == {*others} | final.get(
        opened.split("_folder")[0].split("(")[0], set()
    )


def test_folder_that_is_not_there_is_not_locked(tmp_path):
    with locked(tmp_path / "no"):
        pass


def test_private_folder_takes_its_name_at_the_end(tmp_path):
    final = tmp_path / "work"
    for text in ("one", "two"):
        with private_folder(final) as work:
            assert work != final
            (work / "log").write_text(text)
        assert (final / "log").read_text() == text
        assert list(tmp_path.iterdir()) == [final]


def fail_in(final, text, error):
    """Write a log into a private folder, and fail with an error made of its path."""
    with private_folder(final) as work:
        (work / "log").write_text(text)
        raise error(f"no (log: {work / 'log'})")


def test_failure_keeps_the_files_and_names_them(tmp_path):
    final = tmp_path / "work"
    with pytest.raises(WorkFailed, match=rf"^no \(log: {final}/log\)$"):
        fail_in(final, "why", WorkFailed)
    assert (final / "log").read_text() == "why"


def test_interrupt_leaves_what_was_there(tmp_path):
    final = tmp_path / "work"
    with private_folder(final) as work:
        (work / "log").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        fail_in(final, "new", KeyboardInterrupt)
    assert (final / "log").read_text() == "old"
    assert list(tmp_path.iterdir()) == [final]


def test_others_files_are_not_replaced(tmp_path):
    final = tmp_path / "work"
    final.mkdir()
    with private_folder(final):
        pass  # an empty one may be
    for change in ((final / "other").touch, lambda: (final / "log").write_text("mine")):
        change()
        with pytest.raises(InputError, match=r"^Folder \S+ must be missing, empty or as .*--force"):
            private_folder(final).__enter__()
        with private_folder(final, force=True) as work:
            (work / "log").write_text("ours")
        assert not (final / "other").exists()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"^Folder "):
        private_folder(tmp_path / "file").__enter__()
    with pytest.raises(InputError, match=r"^Folder must be writable, not "):
        private_folder(tmp_path / "file" / "work").__enter__()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG])
def test_full_folder_for_temporary_files(number, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def fill():
        with work_folder("x"):
            raise OSError(number, os.strerror(number))

    message = rf"^Folder for temporary files must have room, not {tmp_path} \(.*: TMPDIR names anot"
    with pytest.raises(WorkFailed, match=message):
        fill()
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(
        WorkFailed, match=r"^Folder for temporary files must have room, not \S+none"
    ):
        work_folder("x").__enter__()


def test_tools_need_room(monkeypatch, tmp_path):
    """Before they run, and after: who ran out of room meanwhile may have cut its files off."""
    free = [ROOM, ROOM - 1]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=1, free=free.pop(0)))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "work").mkdir()
    message = rf"^Disk of {tmp_path} must have 10 MB of room for what tools write, not 10.0 MB \("
    with pytest.raises(WorkFailed, match=message):
        tools.run("sh", ["-c", "true"], folder=tmp_path / "work", log="log")
    assert free == []
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=0, free=0))
    require_room(tmp_path)  # a file system that does not say
