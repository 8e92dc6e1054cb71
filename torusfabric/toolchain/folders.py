"""Folders to work in: one process at a time in what a user names, and folders of one's own.

A folder is locked itself, so that no lock file is left in it. A tool works in a private folder,
which takes its final name at the end; so two that do not see each other's locks cannot mix their
files either. What a killed process left behind is removed by the next one, see `transient`.
"""

import atexit
import contextlib
import errno
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import filelock

from ..errors import InputError, WorkFailed
from .files import AnyPath, temporary_folder, transient
from .owned import is_owned, record_all

__all__ = ["lasting_folder", "locked", "made_folder", "private_folder",
           "remove_work_folders", "require_room", "work_folder"]  # fmt: skip


#: Errors of a disk that takes no more.
_NO_ROOM = {
    getattr(errno, name) for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS") if hasattr(errno, name)
}


#: Bytes that must be free where tools work, before and after.
ROOM = 10_000_000

#: Bytes of a name that a private folder shares with its final name.
LONGEST_NAME = 200

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
        _make(folder, folder, exist_ok=True)
        yield
    except BaseException:
        for path in new:  # the inner ones first
            with contextlib.suppress(OSError, ValueError):
                path.rmdir()
        raise


@contextlib.contextmanager
def private_folder(final: AnyPath, *, force: bool = False) -> Iterator[Path]:
    """A new folder to work in, which takes the place of another one in the end, errors or not.

    Messages of a `WorkFailed` name the files by where they are in the end.

    Parameters
    ----------
    final : path
        The name that the folder takes.
    force : bool
        Whether a folder that is there already is replaced even if it holds what others wrote or
        changed; else only if it is empty or as it was put in place.

    Raises
    ------
    InputError
        If the folder may not be replaced, or none can be made.
    """
    final = Path(final)
    replaced = force and final.is_dir() and not final.is_symlink()
    if os.path.lexists(final) and not (replaced or is_owned(final)):
        raise InputError(
            f"Folder {final} must be missing, empty or as torusfabric wrote it, not hold files "
            "that are others' or changed (--force replaces it; in Python force=True)"
        )
    make = partial(_make, named=final)
    with transient(final.parent, _private_name(final), make=make) as private:
        try:
            yield private
        except WorkFailed as error:
            _rename_in(error, private, _put_in_place(private, final))
            raise
        except InputError as error:
            _rename_in(error, private, final)
            raise
        _put_in_place(private, final)


def _private_name(final: Path) -> str:
    """What the name of a private folder begins with; a file system takes 255 bytes in all."""
    name = os.fsdecode(os.fsencode(final.name)[:LONGEST_NAME])
    return f".{name}-"


def _rename_in(error: Exception, before: Path, after: Path) -> None:
    """Let the message of an error name a folder by where it is then."""
    error.args = (str(error).replace(str(before), str(after)), *error.args[1:])


def _make(folder: Path, named: Path, *, exist_ok: bool = False) -> None:
    """Make a folder, and those above it, for one that a user named."""
    try:
        folder.mkdir(parents=True, exist_ok=exist_ok)
    except OSError as error:
        raise InputError(f"Folder must be writable, not {named} ({error.strerror})") from None
    except ValueError:  # a byte of 0 in its name
        reason = os.strerror(errno.EINVAL)
        raise InputError(f"Folder must be writable, not {named} ({reason})") from None


@contextlib.contextmanager
def work_folder(use: str = "") -> Iterator[Path]:
    """A new folder, which is removed at the end.

    It is kept after a `WorkFailed` whose message names it, or a log in it; its name ends in
    ``.kept`` then, also in the message.

    Parameters
    ----------
    use : str
        What it is for, for its name.

    Raises
    ------
    WorkFailed
        If there is no room for it, or for what the body writes.
    """
    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(temporary_folder(use))
        except OSError as error:
            raise _no_room(error) from None
        _open.add(folder)
        try:
            yield folder
        except WorkFailed as error:
            if str(folder) in str(error):
                _rename_in(error, folder, _kept(folder))
            raise
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            raise _no_room(error) from None
        finally:
            _open.discard(folder)


def _kept(folder: Path) -> Path:
    """Give a folder a name under which nobody removes it, if possible; returns where it is."""
    kept = folder.with_name(f"{folder.name}.kept")
    try:
        return folder.rename(kept)
    except OSError:
        return folder


def lasting_folder(within: Path | None = None) -> Path:
    """Make a folder that is removed when this process ends, among the temporary files or within."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(temporary_folder(within=within))


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


def _put_in_place(private: Path, final: Path) -> Path:
    """Replace a folder by a private one; returns where that is then."""
    old = final.with_name(f"{_private_name(final)}{secrets.token_hex(8)}")
    record_all(private)
    with contextlib.suppress(OSError):
        final.rename(old)
    try:
        private.rename(final)
    except OSError:
        return _kept(private)  # somebody else was quicker
    finally:
        shutil.rmtree(old, ignore_errors=True)
    return final
