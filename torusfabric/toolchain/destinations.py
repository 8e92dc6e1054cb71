"""Classification of paths to write to: regular files, standard output, and special files.

A *special file* is a device, a named pipe, or a descriptor such as ``/dev/fd/3``. Special files
are written directly, while regular files are replaced as a whole (see
`torusfabric.toolchain.files`).
"""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, cast

from ..errors import InputError

__all__ = ["COMPRESSED_SUFFIXES", "STANDARD_OUTPUT", "AnyPath", "is_standard_output",
           "is_written_directly", "open_with_timeout", "require_uncompressed",
           "writable_status"]  # fmt: skip

#: The name of standard output in place of a path.
STANDARD_OUTPUT = "-"

#: Seconds within which the other end of a named pipe must be opened.
PATIENCE = 10

#: Suffixes of text files that are compressed when written and unpacked when read.
COMPRESSED_SUFFIXES = (".gz", ".svgz")

#: The type of a path. For functions that write, ``-`` stands for standard output.
AnyPath = str | os.PathLike[str]


def is_standard_output(path: AnyPath) -> bool:
    """Return True if a path is ``-``, or leads to descriptor 1, as ``/dev/stdout`` does."""
    return os.fspath(path) == STANDARD_OUTPUT or any(
        link.name == "1" and _real_folder(link) == _descriptor_folder()
        for link in _link_chain(Path(path))
    )


def writable_status(path: AnyPath) -> os.stat_result | None:
    """Return the status of a file that exists and may be written; None if no file exists.

    Raises
    ------
    OSError
        If the path is a folder, or the file may not be written.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    except ValueError:  # a byte of 0 in its name
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL)) from None
    if stat.S_ISDIR(status.st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not os.access(path, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    return status


def is_written_directly(path: AnyPath, status: os.stat_result | None) -> bool:
    """Return True if a file is written in place, and not replaced as a whole: a special file.

    The system's names for open files, such as ``/dev/fd/3``, are always special, even if a regular
    file is behind them.

    Parameters
    ----------
    path : path
        The path that the user gave.
    status : os.stat_result or None
        Status of the file, as `writable_status` returns it.
    """
    if status is None:
        return False
    return not stat.S_ISREG(status.st_mode) or any(map(_is_descriptor, _link_chain(Path(path))))


def open_with_timeout(path: Path, mode: str) -> BinaryIO:
    """Open a binary file; for a named pipe, wait at most `PATIENCE` seconds for the other end.

    Why: opening a named pipe blocks for ever while its other end is closed.

    Parameters
    ----------
    path : Path
        The file or named pipe.
    mode : str
        Mode of `open`, with the letter for binary files, such as ``"rb"``.

    Raises
    ------
    OSError
        If the file cannot be opened, or the other end of the pipe stays closed.
    """
    if not path.is_fifo():
        return cast(BinaryIO, open(path, mode))
    from concurrent import futures  # here, because hardly any file is a pipe

    with futures.ThreadPoolExecutor(1) as pool:
        opened = pool.submit(open, path, mode)
        try:
            return cast(BinaryIO, opened.result(PATIENCE))
        except BaseException as error:
            if not opened.done():
                os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))  # so that the thread ends
                opened.result().close()
            if not isinstance(error, futures.TimeoutError):
                raise
    reason = f"a named pipe, whose other end nobody opened for {PATIENCE} seconds"
    raise OSError(errno.ENXIO, reason)


def require_uncompressed(what: str, path: AnyPath) -> None:
    """Refuse a name with the suffix of compressed files, for a format that is never compressed.

    Parameters
    ----------
    what : str
        Noun for the file, with which the error message begins.
    path : path
        The name to check; the file need not exist.

    Raises
    ------
    InputError
        If the name ends in ``.gz`` or ``.svgz``.
    """
    if (name := Path(path)).suffix in COMPRESSED_SUFFIXES:
        raise InputError(
            f"{what} cannot be compressed; name the file {name.stem} in place of {path}"
        )


def _link_chain(path: Path) -> list[Path]:
    """Return a path, followed by the paths to which it leads by symbolic links, one by one.

    At most 40 paths are returned, because links may form a cycle.
    """
    found = [path]
    while path.is_symlink() and len(found) < 40:
        path = path.parent / os.readlink(path)
        found.append(path)
    return found


def _is_descriptor(path: Path) -> bool:
    """True if a path is the system's name for an open file of any process."""
    return _real_folder(path) == _descriptor_folder() or _real_folder(path).startswith("/proc/")


def _real_folder(path: Path) -> str:
    """Return the folder of a path, without symbolic links."""
    return os.path.realpath(path.parent)


def _descriptor_folder() -> str:
    """Return the folder in which the system lists the open files of this process."""
    return os.path.realpath("/dev/fd")
