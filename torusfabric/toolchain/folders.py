"""Folders to work in: one process at a time in what a user names, and folders of one's own.

A folder is locked itself, so that no lock file is left in it. A tool works in a folder of its own,
whose files are written into that of the user at the end.
"""

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import InputError, WorkFailed
from .destinations import AnyPath

__all__ = ["locked", "made_folder", "remove_work_folders", "require_room", "work_folder"]


#: Errors of a disk that takes no more.
_NO_ROOM = {
    getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS") if hasattr(errno, name)
}


#: Bytes that must be free where tools work, before and after.
ROOM = 10_000_000

#: The work folders of this process.
_open: set[Path] = set()


@contextlib.contextmanager
def locked(path: AnyPath, *, waiting: Callable[[], object] | None = None) -> Iterator[None]:
    """Let one process or thread at a time in; where a file or folder cannot be locked, let all in.

    Parameters
    ----------
    waiting : function of (), optional
        Called if somebody else is in.
    """
    import filelock  # here, since most commands lock nothing

    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            # Network file systems lock only files that are open for writing; folders cannot be.
            descriptor = os.open(path, os.O_RDONLY if os.path.isdir(path) else os.O_RDWR)
            stack.callback(os.close, descriptor)
            if not filelock.lock_descriptor(descriptor, blocking=False):
                if waiting is not None:
                    waiting()
                filelock.lock_descriptor(descriptor)
        yield


@contextlib.contextmanager
def made_folder(folder: AnyPath) -> Iterator[None]:
    """A folder, made with those above it if need be; after an error, empty ones go again.

    Raises
    ------
    InputError
        If it cannot be made.
    """
    folder = Path(folder)
    new = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:  # ValueError: a byte of 0 in its name
            reason = getattr(error, "strerror", None) or os.strerror(errno.EINVAL)
            raise InputError(f"Folder must be writable, not {folder} ({reason})") from None
        yield
    except BaseException:
        for path in new:  # the inner ones first
            with contextlib.suppress(OSError, ValueError):
                path.rmdir()
        raise


@contextlib.contextmanager
def work_folder(use: str = "") -> Iterator[Path]:
    """A new folder, which is removed at the end, but for a `WorkFailed` whose message names it.

    Parameters
    ----------
    use : str
        What it is for, for its name.

    Raises
    ------
    WorkFailed
        If there is no room for it, or for what the body writes.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"torusfabric-{use}-" if use else "torusfabric-"))
    except OSError as error:
        raise _no_room(error) from None
    _open.add(folder)
    named = False
    try:
        yield folder
    except WorkFailed as error:
        named = str(folder) in str(error)
        raise
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise _no_room(error) from None
    finally:
        _open.discard(folder)
        if not named:
            shutil.rmtree(folder, ignore_errors=True)


def remove_work_folders() -> None:
    """Remove all work folders that are open, for a process that ends without leaving them."""
    for folder in list(_open):
        shutil.rmtree(folder, ignore_errors=True)


def require_room(folder: AnyPath) -> None:
    """See that there is room for what tools write, for few of them notice if there is not.

    Raises
    ------
    WorkFailed
        If less than `ROOM` is free.
    """
    try:
        disk = shutil.disk_usage(folder)
    except OSError:
        return  # whoever uses the folder finds out more
    if disk.total and disk.free < ROOM:
        where, temporary = Path(folder).resolve(), Path(tempfile.gettempdir()).resolve()
        where = temporary if temporary in where.parents else where.parent
        raise WorkFailed(
            f"Disk of {where} must have {ROOM // 10**6} MB of room for what tools write, not "
            f"{disk.free / 1e6:.1f} MB (TMPDIR names another folder for temporary files)"
        )


def _no_room(error: OSError) -> WorkFailed:
    """What a full folder for temporary files comes to."""
    try:
        where = tempfile.gettempdir()
    except OSError:  # not a single one can be written
        where = os.environ.get("TMPDIR", "/tmp")
    return WorkFailed(
        f"Folder for temporary files must have room, not {where} ({error.strerror}): TMPDIR names "
        "another"
    )
