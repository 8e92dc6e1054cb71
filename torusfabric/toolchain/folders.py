"""Folders: locks on a user's folder, and work folders for external tools.

A lock is taken on the folder itself, so no lock file remains in it. A tool runs in a *work folder*,
a temporary folder of its own. Its results are copied to the user's folder at the end.
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

__all__ = ["hold_lock", "make_folder", "remove_work_folders", "require_disk_space", "work_folder"]


#: Error numbers of a disk that is full or read-only, or of a file that is too large.
_DISK_FULL = {
    getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS") if hasattr(errno, name)
}


#: Bytes that must be free on the disk of a work folder, before and after a tool runs.
LEAST_FREE_BYTES = 10_000_000

#: Work folders of this process that exist at the moment.
_open_folders: set[Path] = set()


@contextlib.contextmanager
def hold_lock(path: AnyPath, *, waiting: Callable[[], object] | None = None) -> Iterator[None]:
    """Context manager: hold an exclusive lock on a file or folder in its ``with`` block.

    Where the file system or the platform cannot lock the path, the block runs without a lock.

    Parameters
    ----------
    path : path
        File or folder to lock.
    waiting : function of (), optional
        Called once if another process or thread holds the lock.
    """
    import filelock  # here, because most commands lock nothing

    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            # Network file systems lock only files that are open for writing. A folder can only be
            # opened for reading.
            descriptor = os.open(path, os.O_RDONLY if os.path.isdir(path) else os.O_RDWR)
            stack.callback(os.close, descriptor)
            if not filelock.lock_descriptor(descriptor, blocking=False):
                if waiting is not None:
                    waiting()
                filelock.lock_descriptor(descriptor)
        yield


@contextlib.contextmanager
def make_folder(folder: AnyPath) -> Iterator[None]:
    """Context manager: make a folder and its missing parents for the ``with`` block.

    After an error in the block, the folders that this call has made are removed if they are empty.

    Raises
    ------
    InputError
        If the folder cannot be made.
    """
    folder = Path(folder)
    new = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, ValueError) as error:  # ValueError: the name contains a zero byte
            reason = getattr(error, "strerror", None) or os.strerror(errno.EINVAL)
            raise InputError(
                f"Folder {folder} cannot be made ({reason}); choose another, for example out/"
            ) from None
        yield
    except BaseException:
        for path in new:  # inner folders first
            with contextlib.suppress(OSError, ValueError):
                path.rmdir()
        raise


@contextlib.contextmanager
def work_folder(use: str = "") -> Iterator[Path]:
    """Context manager: a temporary folder, which is removed at the end of the ``with`` block.

    The folder is kept after a `WorkFailed` whose message names it, so that the user can read the
    logs.

    Parameters
    ----------
    use : str
        Word for the purpose of the folder, which becomes a part of its name.

    Yields
    ------
    Path
        The new folder.

    Raises
    ------
    WorkFailed
        If the disk has too little room for the folder, or for the files that the block writes.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"torusfabric-{use}-" if use else "torusfabric-"))
    except OSError as error:
        raise _disk_full_error(error) from None
    _open_folders.add(folder)
    named = False
    try:
        yield folder
    except WorkFailed as error:
        named = str(folder) in str(error)
        raise
    except OSError as error:
        if error.errno not in _DISK_FULL:
            raise
        raise _disk_full_error(error) from None
    finally:
        _open_folders.discard(folder)
        if not named:
            shutil.rmtree(folder, ignore_errors=True)


def remove_work_folders() -> None:
    """Remove all work folders of this process, although their ``with`` blocks have not ended.

    It is called when the process exits without leaving these blocks.
    """
    for folder in list(_open_folders):
        shutil.rmtree(folder, ignore_errors=True)


def require_disk_space(folder: AnyPath) -> None:
    """Check that the disk of a folder has room for the output of tools.

    Why: few tools notice that the disk is full.

    Raises
    ------
    WorkFailed
        If less than `LEAST_FREE_BYTES` bytes are free.
    """
    try:
        disk = shutil.disk_usage(folder)
    except OSError:
        return  # using the folder will give a better message
    if disk.total and disk.free < LEAST_FREE_BYTES:
        where, temporary = Path(folder).resolve(), Path(tempfile.gettempdir()).resolve()
        where = temporary if temporary in where.parents else where.parent
        raise WorkFailed(
            f"The disk of {where} has {disk.free / 1e6:.1f} MB of free room, but tools need "
            f"{LEAST_FREE_BYTES // 10**6} MB; free some, or name another folder by TMPDIR"
        )


def _disk_full_error(error: OSError) -> WorkFailed:
    """Return the error for a folder of temporary files that is full."""
    try:
        where = tempfile.gettempdir()
    except OSError:  # no folder for temporary files can be written
        where = os.environ.get("TMPDIR", "/tmp")
    return WorkFailed(
        f"No temporary file can be written to {where} ({error.strerror}); free some room, or name "
        "another folder by TMPDIR"
    )
