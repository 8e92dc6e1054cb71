"""Atomic writing: a file is replaced as a whole, or stays unchanged.

The *target* is the path that the user gave. The content is written to a new file in a hidden folder
beside the target. The new file takes the target's name when it is complete. The new file gets the
mode of the old one. If the target is a symbolic link, the link stays, and the file to which it
points is replaced. A process that is killed may leave the hidden folder.

Two destinations are written directly: standard output, named ``-`` or ``/dev/stdout``, and special
files (see `torusfabric.toolchain.destinations`).
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
    COMPRESSED_SUFFIXES,
    AnyPath,
    is_standard_output,
    is_written_directly,
    open_with_timeout,
    writable_status,
)
from .values import require_path

__all__ = ["AnyPath", "copy_when_finished", "replace_when_finished", "as_input_error",
           "require_writable", "write_text_file", "open_for_writing",
           "open_text_for_writing"]  # fmt: skip


@contextlib.contextmanager
def replace_when_finished(path: AnyPath) -> Iterator[Path]:
    """Context manager: provide an empty file, which replaces `path` at the end.

    The file is filled in the ``with`` block. It replaces the target `path` if the block ends
    without an error; otherwise the target stays unchanged.

    Parameters
    ----------
    path : path
        Target, which need not exist; not ``-``.

    Yields
    ------
    Path
        An empty file for the content, on the disk of the target. For a special file, `path` itself.

    Raises
    ------
    OSError
        If the target cannot be written.
    """
    path = Path(path)
    status = writable_status(path)
    if is_written_directly(path, status):
        yield path
        return
    target = Path(os.path.realpath(path))
    # Why a folder: `tempfile` makes files that only this user can read, and the target would keep
    # that mode. A file made within the folder gets the usual mode.
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
def copy_when_finished(path: AnyPath) -> Iterator[Path]:
    """Context manager: provide a regular file, whose content goes to `path` at the end.

    It serves programs that open a file by its name and seek in it, which fails in a pipe. If the
    target `path` is a special file, the content is copied there at the end of the ``with`` block.
    Otherwise the file replaces the target, as by `replace_when_finished`.

    Parameters
    ----------
    path : path
        The target; it may be a special file, or ``-`` for standard output.

    Raises
    ------
    InputError
        If standard output or a special file cannot be written.
    OSError
        If a regular file cannot be written.
    """
    if is_written_directly(path, writable_status(path)):
        with tempfile.TemporaryDirectory(prefix="torusfabric-") as folder:
            copied = Path(folder, "content")
            yield copied
            with open_for_writing(path) as file, open(copied, "rb") as content:
                shutil.copyfileobj(content, file)
    else:
        with replace_when_finished(path) as unfinished:
            yield unfinished


@contextlib.contextmanager
def open_for_writing(path: AnyPath) -> Iterator[BinaryIO]:
    """Context manager: open a binary file, which replaces `path` at the end.

    The file is written in the ``with`` block. It replaces the target `path` if the block ends
    without an error; otherwise the target stays unchanged.

    Parameters
    ----------
    path : path
        The target; it may be a special file, or ``-`` for standard output.

    Yields
    ------
    binary file

    Raises
    ------
    InputError
        If the target cannot be written. Any `OSError` in the block counts as that, except a
        `BrokenPipeError` of standard output.
    """
    path = require_path("File", path)
    with as_input_error(path):
        if is_standard_output(path):
            sys.stdout.flush()
            with io.BufferedWriter(_StandardOutput()) as file:
                yield file
        else:
            with (
                replace_when_finished(path) as unfinished,
                open_with_timeout(unfinished, "wb") as file,
            ):
                yield file


@contextlib.contextmanager
def open_text_for_writing(path: AnyPath) -> Iterator[TextIO]:
    """Context manager: open a UTF-8 text file, which replaces `path` at the end.

    It works as `open_for_writing` does. A file whose name ends in ``.gz`` or ``.svgz`` is
    compressed, without a time stamp, so that equal text gives equal bytes. Surrogates, which stand
    for bytes of file names that are no UTF-8, are escaped.

    Parameters
    ----------
    path : path
        The target; it may be a special file, or ``-`` for standard output.
    """
    with contextlib.ExitStack() as stack:
        raw = stack.enter_context(open_for_writing(path))
        if Path(path).suffix in COMPRESSED_SUFFIXES:
            packed = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0)
            raw = cast(BinaryIO, stack.enter_context(packed))
        text = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", newline="\n")
        yield stack.enter_context(text)


def write_text_file(path: AnyPath, text: str) -> None:
    """Write a text file as a whole, or leave the old file unchanged.

    Parameters
    ----------
    path : path
        The target. The file is compressed if its name ends in ``.gz`` or ``.svgz``.
    text : str
        Content of the file.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with open_text_for_writing(path) as file:
        file.write(text)


def require_writable(path: AnyPath) -> None:
    """Check that a file can be written, before hours are spent on computing its content.

    Raises
    ------
    InputError
        If the path is a folder, or if the folder of the file is missing or cannot be written.
    """
    if is_standard_output(path):
        return
    folder = Path(path).parent
    if not folder.is_dir():
        raise _unwritable_error("Folder", folder, OSError(errno.ENOENT, os.strerror(errno.ENOENT)))
    with as_input_error(path):
        if is_written_directly(path, writable_status(path)):
            return
    folder = Path(os.path.realpath(path)).parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable_error("Folder", folder, error) from None


@contextlib.contextmanager
def as_input_error(path: AnyPath) -> Iterator[None]:
    """Context manager: an `OSError` in its ``with`` block becomes an `InputError` about `path`.

    The block writes to `path`. A `BrokenPipeError` of standard output is passed on: its reader has
    closed the pipe, which is no mistake.
    """
    try:
        yield
    except OSError as error:
        name = path
        if is_standard_output(path):
            if isinstance(error, BrokenPipeError):
                raise
            name = "standard output"
        raise _unwritable_error("File", name, error) from None


class _StandardOutput(io.RawIOBase):
    """Standard output as a binary file; closing this file leaves standard output open."""

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Write the bytes `data` and return their number."""
        return sys.stdout.buffer.write(data)

    def flush(self) -> None:
        """Flush the buffer of standard output."""
        sys.stdout.buffer.flush()


def _unwritable_error(what: str, name: AnyPath, error: OSError) -> InputError:
    return InputError(
        f"{what} {name} cannot be written ({error.strerror or error}); choose another file or "
        "folder"
    )
