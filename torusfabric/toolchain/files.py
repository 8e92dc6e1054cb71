"""Writing files: a file is replaced as a whole, or stays as it was.

The content goes into a new file beside the target, which takes the target's name once it is
complete. An existing file keeps its mode, and a symbolic link keeps pointing to it. What is no
regular file (a device, a FIFO, a descriptor under ``/dev/fd``) is written directly, and the names
``-`` and ``/dev/stdout`` are standard output.

Files and folders that exist only while something is made are *transient*. Each is locked as long
as its process lives. Whoever makes another one in the same folder removes those that have such a
name, belong to the same user and are locked by nobody. Where files cannot be locked (Windows, some
network file systems) nothing is removed, since it may be in use.
"""

import contextlib
import errno
import gzip
import io
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from ..errors import InputError
from .destinations import (
    COMPRESSED,
    AnyPath,
    is_standard_output,
    is_written_directly,
    open_in_time,
    status_of,
)
from .values import path_of

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["AnyPath", "finished", "replacing", "reporting", "temporary_folder", "transient",
           "writable", "write_file", "writing", "writing_text"]  # fmt: skip


@contextlib.contextmanager
def replacing(path: AnyPath) -> Iterator[Path]:
    """A file that takes the place of another one at the end, unless an exception comes first.

    Parameters
    ----------
    path : path
        The file to replace or to make; not ``-``.

    Yields
    ------
    Path
        An empty file in the same folder, for the content; of what is no regular file, the path
        itself.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    path = Path(path)
    status = status_of(path)
    if is_written_directly(path, status):
        yield path
        return
    target = Path(os.path.realpath(path))
    make = partial(_create, status=status)
    with transient(target.parent, ".", ".part", make=make) as unfinished:
        yield unfinished
        unfinished.replace(target)


@contextlib.contextmanager
def finished(path: AnyPath) -> Iterator[Path]:
    """A regular file whose content gets to a path at the end, whatever is there.

    For programs that open a file themselves, and go back in it: as `replacing`, but where the path
    is written directly, the content is copied there.

    Raises
    ------
    InputError
        If what is no regular file cannot be written.
    OSError
        If a regular file cannot.
    """
    if is_written_directly(path, status_of(path)):
        with temporary_folder() as folder:
            yield folder / "content"
            with writing(path) as file, open(folder / "content", "rb") as content:
                shutil.copyfileobj(content, file)
    else:
        with replacing(path) as unfinished:
            yield unfinished


@contextlib.contextmanager
def writing(path: AnyPath) -> Iterator[BinaryIO]:
    """A binary file to write into, which takes the place of another one at the end.

    Yields
    ------
    binary file

    Raises
    ------
    InputError
        If it cannot be written. Every `OSError` of the body counts as that, but for standard
        output whose reader is gone.
    """
    path = path_of("File", path)
    with reporting(path):
        if is_standard_output(path):
            sys.stdout.flush()
            with io.BufferedWriter(_StandardOutput()) as file:
                yield file
        else:
            with replacing(path) as unfinished, open_in_time(unfinished, "wb") as file:
                yield file


@contextlib.contextmanager
def writing_text(path: AnyPath, *, errors: str = "backslashreplace") -> Iterator[TextIO]:
    """A text file to write into, in UTF-8; else as `writing`.

    It is compressed, without a time stamp, if its name ends in ``.gz`` or ``.svgz``. Names of files
    may hold bytes that are no UTF-8: these are escaped, or treated as `errors` says.
    """
    with contextlib.ExitStack() as stack:
        raw = stack.enter_context(writing(path))
        if Path(path).suffix in COMPRESSED:
            packed = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0)
            raw = cast(BinaryIO, stack.enter_context(packed))
        text = io.TextIOWrapper(raw, encoding="utf-8", errors=errors, newline="\n")
        yield stack.enter_context(text)


def write_file(path: AnyPath, text: str, *, errors: str = "backslashreplace") -> None:
    """Write a text as a whole or not at all.

    Parameters
    ----------
    errors : str
        What becomes of bytes in names of files that are no UTF-8, as `str.encode` has it.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    with writing_text(path, errors=errors) as file:
        file.write(text)


def writable(path: AnyPath, *, make: bool = False) -> None:
    """Check that a file can be written, before hours are spent on its content.

    Parameters
    ----------
    make : bool
        Whether its folder is made if need be.

    Raises
    ------
    InputError
        If it is a folder, or its folder does not exist (and may not be made) or cannot be written.
    """
    if is_standard_output(path):
        return
    path = Path(path)
    folder = path.parent
    try:
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        elif not folder.is_dir():
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    except OSError as error:
        raise _unwritable("Folder", folder, error) from None
    with reporting(path):
        if is_written_directly(path, status_of(path)):
            return
    try:
        folder = Path(os.path.realpath(path)).parent
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable("Folder", folder, error) from None


@contextlib.contextmanager
def reporting(path: AnyPath) -> Iterator[None]:
    """Turn errors of writing a file into errors of the user's input.

    Standard output whose reader is gone stays a `BrokenPipeError`: the reader has seen enough.
    """
    try:
        yield
    except OSError as error:
        name = path
        if is_standard_output(path):
            if isinstance(error, BrokenPipeError):
                raise
            name = "standard output"
        raise _unwritable("File", name, error) from None


class _StandardOutput(io.RawIOBase):
    """Standard output as a file that can be closed while standard output stays open."""

    def writable(self) -> bool:
        """It can be written."""
        return True

    def write(self, data: Any) -> int:
        """Write bytes."""
        return sys.stdout.buffer.write(data)

    def flush(self) -> None:
        """Pass on what is buffered."""
        sys.stdout.buffer.flush()


def _create(path: Path, status: os.stat_result | None) -> None:
    """Make an empty file with the mode of another one, or with the usual mode."""
    mode = 0o666 if status is None else stat.S_IMODE(status.st_mode)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
    if status is not None:
        path.chmod(mode)


def _unwritable(what: str, name: AnyPath, error: OSError) -> InputError:
    return InputError(f"{what} must be writable, not {name} ({error.strerror or error})")


#: The random part of a name.
_RANDOM = "[0-9a-f]{16}"

#: Folders that this process has looked through, with the pattern of names.
folders_looked_through: set[tuple[str, str]] = set()


@contextlib.contextmanager
def transient(
    folder: Path, before: str, after: str = "", *, make: Callable[[Path], object], use: str = ""
) -> Iterator[Path]:
    """A new file or folder, which is locked during the body, and removed after it if still there.

    Parameters
    ----------
    before, after : str
        What its name begins and ends with.
    make : function of (Path)
        Makes it, empty.
    use : str
        What it is for, as a part of its name; what was left of any use is removed.

    Raises
    ------
    OSError
        If `make` does.
    """
    _remove_abandoned(folder, f"{re.escape(before)}([a-z]+-)?{_RANDOM}{re.escape(after)}")
    begin = f"{before}{use}-" if use else before
    with contextlib.ExitStack() as stack:
        while True:
            path = folder / f"{begin}{secrets.token_hex(8)}{after}"
            make(path)
            stack.callback(_remove, path)
            if _locked(path, stack):
                break
        yield path


def temporary_folder(
    use: str = "", *, within: Path | None = None
) -> contextlib.AbstractContextManager[Path]:
    """Make a folder that only this user can enter, among the temporary files; see `transient`."""
    make = lambda path: path.mkdir(0o700)
    folder = within or Path(tempfile.gettempdir())
    return transient(folder, "torusfabric-", make=make, use=use)


def _locked(path: Path, stack: contextlib.ExitStack) -> bool:
    """Lock what has just been made; False if another process has taken it for abandoned."""
    if fcntl is None:
        return True
    try:
        descriptor = _opened(path)
        stack.callback(os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, FileNotFoundError):
        return False
    except OSError:
        return True  # others cannot lock it either
    return path.exists()


def _remove_abandoned(folder: Path, pattern: str) -> None:
    """Remove what processes that were killed left in a folder; looks once in each."""
    looked = os.path.abspath(folder), pattern
    if fcntl is None or looked in folders_looked_through:
        return
    folders_looked_through.add(looked)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for name in [entry.name for entry in entries if re.fullmatch(pattern, entry.name)]:
            with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
                descriptor = _opened(folder / name)
                stack.callback(os.close, descriptor)
                if os.fstat(descriptor).st_uid == os.geteuid():
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(folder / name)


def _opened(path: Path) -> int:
    """A descriptor of a file or a folder itself, to lock it."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)


def _remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(path.lstat().st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
