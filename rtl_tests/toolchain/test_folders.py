"""Folders are worked in by one at a time, and replaced as a whole."""

import errno
import os
import shutil
import tempfile
import threading
from types import SimpleNamespace

import pytest

from torusfabric.errors import WorkFailed
from torusfabric.toolchain import tools
from torusfabric.toolchain.folders import ROOM, locked, require_room, work_folder

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


def test_folder_that_is_not_there_is_not_locked(tmp_path):
    with locked(tmp_path / "no"):
        pass


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
