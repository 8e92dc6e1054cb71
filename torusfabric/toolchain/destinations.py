"""What a path leads to: a regular file, standard output, or what is written directly."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, cast

from ..errors import InputError

__all__ = ["COMPRESSED", "STANDARD_OUTPUT", "AnyPath", "is_standard_output", "is_written_directly",
           "open_in_time", "require_plain", "status_of"]  # fmt: skip

#: The name of standard output in place of a path.
STANDARD_OUTPUT = "-"

#: Seconds in which somebody must open the other end of a named pipe.
PATIENCE = 10

#: The endings of names of text files that are compressed, in writing as in reading.
COMPRESSED = (".gz", ".svgz")

#: What a path is; where something is written, ``-`` is standard output.
AnyPath = str | os.PathLike[str]


def is_standard_output(path: AnyPath) -> bool:
    """Whether a path is ``-``, or a name of the system for descriptor 1 or a link to it."""
    return os.fspath(path) == STANDARD_OUTPUT or any(
        link.name == "1" and _folder(link) == _descriptors() for link in _links(Path(path))
    )


def status_of(path: AnyPath) -> os.stat_result | None:
    """The status of an existing file that may be written; None if there is none.

    Raises
    ------
    OSError
        If it may not be written.
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
    """Whether a path is no regular file, or names a descriptor, whatever that is open on."""
    if status is None:
        return False
    return not stat.S_ISREG(status.st_mode) or any(map(_is_descriptor, _links(Path(path))))


def open_in_time(path: Path, mode: str) -> BinaryIO:
    """Open a binary file; wait some seconds for the other end of a named pipe.

    Why: opening a pipe blocks without end while nobody opens its other end.

    Raises
    ------
    OSError
        If it cannot be opened, or is a pipe without another end.
    """
    if not path.is_fifo():
        return cast(BinaryIO, open(path, mode))
    from concurrent import futures  # here, since hardly any file is a pipe

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


def require_plain(what: str, path: AnyPath) -> None:
    """Refuse a name that ends as those of compressed files do, for a file that is none.

    Parameters
    ----------
    what : str
        What the file is, to begin the error with.
    """
    if (name := Path(path)).suffix in COMPRESSED:
        raise InputError(
            f"{what} must be written uncompressed, to a file such as {name.stem}, not to {path}"
        )


def _links(path: Path) -> list[Path]:
    """A path, and those that it leads to as a symbolic link; round trips end."""
    found = [path]
    while path.is_symlink() and len(found) < 40:
        path = path.parent / os.readlink(path)
        found.append(path)
    return found


def _is_descriptor(path: Path) -> bool:
    """Whether a path is a name of the system for an open file, of this process or another."""
    return _folder(path) == _descriptors() or _folder(path).startswith("/proc/")


def _folder(path: Path) -> str:
    return os.path.realpath(path.parent)


def _descriptors() -> str:
    """The folder of the open files of this process."""
    return os.path.realpath("/dev/fd")
