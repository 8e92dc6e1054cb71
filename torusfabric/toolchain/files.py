"""Writing files: a file is replaced as a whole, or stays as it was.

The content goes into a new file, in a hidden folder beside the target. The file takes the target's
name once it is complete. A process that is killed may leave the hidden folder behind. An existing
file keeps its mode, and a symbolic link keeps pointing to it. What is no regular file (a device, a
FIFO, a descriptor under ``/dev/fd``) is written directly, and the names ``-`` and ``/dev/stdout``
are standard output.
"""

import contextlib
import errno
import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
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

__all__ = ["AnyPath", "finished", "replacing", "reporting", "writable", "write_file", "writing",
           "writing_text"]  # fmt: skip


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
        An empty file on the same disk, for the content; of what is no regular file, the path
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
    # The file lies in a folder of its own, because a temporary file would be of this user alone.
    with tempfile.TemporaryDirectory(
        prefix=".", suffix=".part", dir=target.parent, ignore_cleanup_errors=True
    ) as folder:
        unfinished = Path(folder, target.name)
        unfinished.touch()
        if status is not None:
            unfinished.chmod(stat.S_IMODE(status.st_mode))
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
        with tempfile.TemporaryDirectory(prefix="torusfabric-") as folder:
            copied = Path(folder, "content")
            yield copied
            with writing(path) as file, open(copied, "rb") as content:
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
def writing_text(path: AnyPath) -> Iterator[TextIO]:
    """A text file to write into, in UTF-8; else as `writing`.

    It is compressed, without a time stamp, if its name ends in ``.gz`` or ``.svgz``. Names of files
    may hold bytes that are no UTF-8: these are escaped.
    """
    with contextlib.ExitStack() as stack:
        raw = stack.enter_context(writing(path))
        if Path(path).suffix in COMPRESSED:
            packed = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0)
            raw = cast(BinaryIO, stack.enter_context(packed))
        text = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", newline="\n")
        yield stack.enter_context(text)


def write_file(path: AnyPath, text: str) -> None:
    """Write a text as a whole or not at all.

    Raises
    ------
    InputError
        If it cannot be written.
    """
    with writing_text(path) as file:
        file.write(text)


def writable(path: AnyPath) -> None:
    """Check that a file can be written, before hours are spent on its content.

    Raises
    ------
    InputError
        If it is a folder, or its folder does not exist or cannot be written.
    """
    if is_standard_output(path):
        return
    folder = Path(path).parent
    if not folder.is_dir():
        raise _unwritable("Folder", folder, OSError(errno.ENOENT, os.strerror(errno.ENOENT)))
    with reporting(path):
        if is_written_directly(path, status_of(path)):
            return
    folder = Path(os.path.realpath(path)).parent
    try:
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


def _unwritable(what: str, name: AnyPath, error: OSError) -> InputError:
    return InputError(f"{what} must be writable, not {name} ({error.strerror or error})")
