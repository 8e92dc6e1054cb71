"""Files and folders are replaced as a whole, and locked by one process at a time."""

import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from torusfabric.errors import InputError, WorkFailed
from torusfabric.toolchain import tools
from torusfabric.toolchain.files import (
    open_for_writing,
    open_text_for_writing,
    replace_when_finished,
    require_writable,
    write_text_file,
)
from torusfabric.toolchain.folders import (
    LEAST_FREE_BYTES,
    hold_lock,
    require_disk_space,
    work_folder,
)

posix = pytest.mark.skipif(os.name != "posix", reason="the files of POSIX")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@posix
def test_new_file_has_the_usual_mode(tmp_path):
    usual = tmp_path / "usual"
    usual.touch()
    write_text_file(tmp_path / "new", "text\n")
    assert (tmp_path / "new").read_bytes() == b"text\n"
    assert mode(tmp_path / "new") == mode(usual)


@posix
@pytest.mark.parametrize("bits", [0o600, 0o640, 0o755, 0o666])
def test_existing_file_keeps_its_mode(tmp_path, bits):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(bits)
    write_text_file(path, "new")
    assert (path.read_text(), mode(path)) == ("new", bits)


@posix
def test_symbolic_links_are_followed(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link, second = tmp_path / "folder" / "file", tmp_path / "link", tmp_path / "second"
    link.symlink_to(Path("folder", "file"))
    second.symlink_to("link")
    for text in ("first", "again"):  # the target does not exist the first time
        write_text_file(second, text)
        assert target.read_text() == text
    assert (link.is_symlink(), second.is_symlink()) == (True, True)
    assert len(list(tmp_path.iterdir())) == 3
    link.unlink()
    link.symlink_to("second")
    with pytest.raises(InputError, match=r"^File \S+ cannot be written \(Too many"):
        write_text_file(link, "round and round")


@posix
def test_fifo_is_written_directly(tmp_path):
    path, read = tmp_path / "fifo", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    require_writable(path)
    write_text_file(path, "flows")
    reader.join()
    assert read == ["flows"]
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no names of descriptors")
def test_descriptors_are_written_directly(tmp_path):
    with open(tmp_path / "file", "w+") as file:
        before = os.fstat(file.fileno()).st_ino
        require_writable(f"/dev/fd/{file.fileno()}")
        write_text_file(f"/dev/fd/{file.fileno()}", "text")
        assert (tmp_path / "file").stat().st_ino == before
        assert file.read() == "text"
    reader, writer = os.pipe()
    (tmp_path / "link").symlink_to(f"/dev/fd/{writer}")
    write_text_file(tmp_path / "link", "piped")
    assert os.read(reader, 10) == b"piped"
    os.close(reader)
    os.close(writer)
    write_text_file("/dev/null", "gone")
    assert not Path("/dev/null").is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_full_device_is_one_line():
    with pytest.raises(
        InputError,
        match=r"^File /dev/full cannot be written \(No space left on device\); ",
    ):
        write_text_file("/dev/full", "text")


def test_standard_output(tmp_path):
    script = (
        "import io\n"
        "from torusfabric.toolchain.files import (\n"
        "    open_for_writing, require_writable, write_text_file)\n"
        "require_writable('-')\nprint('first')\nwrite_text_file('-', 'text\\n')\n"
        "with open_for_writing('-') as file: file.write(b'bytes\\n')\n"
        "with open_for_writing('-') as raw, io.TextIOWrapper(raw) as file:\n"
        "    file.write('wrapped\\n')\n"
        "print('last')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, cwd=tmp_path)
    assert done.stdout.split() == [b"first", b"text", b"bytes", b"wrapped", b"last"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, OSError(28, "full")])
@pytest.mark.parametrize("writer", [replace_when_finished, open_for_writing, open_text_for_writing])
@pytest.mark.parametrize("old", [None, "old"])
def test_failure_leaves_what_was_there(tmp_path, writer, error, old):
    path = tmp_path / "file"
    if old is not None:
        path.write_text(old)

    def write_half():
        with writer(path) as file:
            if isinstance(file, Path):
                file.write_text("half")
            else:
                file.write("half" if writer is open_text_for_writing else b"half")
            assert not path.exists() or path.read_text() == old
            raise error

    with pytest.raises((KeyboardInterrupt, ValueError, OSError)):
        write_half()
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"] * (old is not None)
    assert old is None or path.read_text() == old


def test_failed_rename_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match=r"^File .* cannot be written .*No space left on device"):
        write_text_file(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written(tmp_path):
    for path, reason in ((tmp_path, "Is a directory"), (tmp_path / "no" / "x", "No such file")):
        with pytest.raises(InputError, match=rf"^File \S+ cannot be written \({reason}"):
            write_text_file(path, "")
    with pytest.raises(
        InputError,
        match=r"^File \S+ cannot be written \(Is a directory\); choose another file or folder$",
    ):
        require_writable(tmp_path)
    with pytest.raises(InputError, match=r"^Folder \S+/no cannot be written \(No such fi"):
        require_writable(tmp_path / "no" / "x")


def test_folder_below_a_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(InputError, match=r"^Folder \S+ cannot be written "):
        require_writable(path / "x.svg")
    with pytest.raises(InputError, match=r"^File \S+ cannot be written "):
        write_text_file(path / "x.svg", "")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_file_that_is_read_only(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o444)
    for write in (require_writable, lambda path: write_text_file(path, "new")):
        with pytest.raises(InputError, match=r"^File \S+ cannot be written \(Permission"):
            write(path)
    assert path.read_text() == "old"


@posix
def test_one_at_a_time_is_in(tmp_path):
    inside, most, waited = [], [], []

    def work():
        with hold_lock(tmp_path, waiting=lambda: waited.append(1)):
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
    with hold_lock(tmp_path / "no"):
        pass


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG])
def test_full_folder_for_temporary_files(number, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def fill():
        with work_folder("x"):
            raise OSError(number, os.strerror(number))

    message = rf"^No temporary file can be written to {tmp_path} \(.*another folder by TMPDIR"
    with pytest.raises(WorkFailed, match=message):
        fill()
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(WorkFailed, match=r"^No temporary file can be written to \S+none"):
        work_folder("x").__enter__()


def test_tools_need_room(monkeypatch, tmp_path):
    """Disk space is checked before and after a tool, which may leave incomplete files."""
    free = [LEAST_FREE_BYTES, LEAST_FREE_BYTES - 1]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=1, free=free.pop(0)))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "work").mkdir()
    message = rf"^The disk of {tmp_path} has 10.0 MB of free room, but tools need 10 MB"
    with pytest.raises(WorkFailed, match=message):
        tools.run("sh", ["-c", "true"], folder=tmp_path / "work", log="log")
    assert free == []
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=0, free=0))
    require_disk_space(tmp_path)  # a file system that does not report its size
