"""Files and folders that exist only while something is made: what a killed process leaves, goes.

Each is locked as long as its process lives. Whoever makes another one in the same folder removes
those that have such a name, belong to the same user and are locked by nobody. Where files cannot be
locked (Windows, some network file systems) nothing is removed, since it may be in use.
"""

import contextlib
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["temporary_folder", "transient"]

#: The random part of a name.
_RANDOM = "[0-9a-f]{16}"

#: Folders that this process has looked through, with the pattern of names.
_looked: set[tuple[str, str]] = set()


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


def temporary_folder(use: str = "") -> contextlib.AbstractContextManager[Path]:
    """A new folder among the temporary files, which only this user can enter; see `transient`."""
    make = lambda path: path.mkdir(0o700)
    return transient(Path(tempfile.gettempdir()), "torusfabric-", make=make, use=use)


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
    if fcntl is None or looked in _looked:
        return
    _looked.add(looked)
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
