"""How large a cache is, and how it is kept below its limit.

Only what has the name of an entry is counted or removed: a folder that a user names may hold other
files. What was used last stays longest, and what was used just now stays in any case.
"""

import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError

__all__ = ["LIMIT_VARIABLE", "Usage", "clear", "keep_below", "mark_used", "size_limit", "usage"]

#: The variable of the environment that sets the limit.
LIMIT_VARIABLE = "TORUSFABRIC_CACHE_LIMIT"

#: The limit in bytes without it.
DEFAULT_LIMIT = 2_000_000_000

#: Seconds for which an entry stays after its use, and seconds after which a use is noted again.
GRACE, NOTED = 600.0, 60.0

#: Seconds after which what is half made belongs to a process that has died.
ABANDONED = 86_400.0

_ENTRY = re.compile(r"[0-9a-f]{64}(\.json)?")
_HALF_MADE = re.compile(r"\.[0-9a-f]{16}\.part")
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,3})?) ?([kmgt]?)b?", re.IGNORECASE)


class Usage(NamedTuple):
    """What a cache holds."""

    entries: int
    bytes: int


class _Entry(NamedTuple):
    path: Path
    bytes: int
    used: float
    complete: bool


def size_limit() -> int:
    """The limit of a cache in bytes; 0 where nothing is kept.

    Raises
    ------
    InputError
        If the variable is set to something else than a size.
    """
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not text:
        return DEFAULT_LIMIT
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InputError(f"{LIMIT_VARIABLE} must be a size such as 500M or 2G, not {text!r}")
    return int(float(match[1]) * 1000 ** " kmgt".index(match[2].lower() or " "))


def usage(folder: Path) -> Usage:
    """What a cache holds."""
    return _sum(entry for entry in _entries(folder) if entry.complete)


def clear(folder: Path) -> Usage:
    """Remove all entries and locks, and nothing else; returns what was removed."""
    removed = [entry for entry in _entries(folder) if _remove(entry.path) and entry.complete]
    for lock in (folder / "locks").glob("*.lock"):
        with contextlib.suppress(OSError):
            lock.unlink()
    for inner in (*folder.glob("[0-9a-f][0-9a-f]"), folder / "locks"):
        with contextlib.suppress(OSError):  # not empty
            inner.rmdir()
    return _sum(removed)


def keep_below(folder: Path, limit: int) -> None:
    """Remove entries that were not used for long, down to four fifths of a limit that is passed."""
    now, found = time.time(), list(_entries(folder))
    for entry in found:
        if not entry.complete and now - entry.used > ABANDONED:
            _remove(entry.path)
    total = sum(entry.bytes for entry in found)
    if total <= limit:
        return
    old = [entry for entry in found if entry.complete and now - entry.used > GRACE]
    for entry in sorted(old, key=lambda entry: entry.used):
        if total <= limit * 4 // 5:
            return
        if _remove(entry.path):
            total -= entry.bytes


def mark_used(path: Path) -> None:
    """Note that an entry is in use."""
    with contextlib.suppress(OSError):
        if abs(time.time() - path.stat().st_mtime) > NOTED:
            os.utime(path)


def _entries(folder: Path) -> Iterator[_Entry]:
    """All entries, and those that are half made."""
    for inner in sorted(folder.glob("[0-9a-f][0-9a-f]")):
        with contextlib.suppress(OSError):
            for path in list(inner.iterdir()):
                complete = bool(_ENTRY.fullmatch(path.name)) and path.name[:2] == inner.name
                if complete or _HALF_MADE.fullmatch(path.name):
                    with contextlib.suppress(OSError):
                        yield _Entry(path, _bytes(path), _used(path), complete)


def _used(path: Path) -> float:
    """When an entry was used; long ago, if by its time that is yet to come.

    A clock that is set back leaves such entries, which would otherwise stay until then.
    """
    used = path.stat().st_mtime
    return used if used <= time.time() + GRACE else 0.0


def _bytes(path: Path) -> int:
    """The size of a file, or of the files in a folder."""
    if path.is_dir():
        return sum(inner.stat().st_size for inner in path.iterdir())
    return path.stat().st_size


def _sum(entries: Iterable[_Entry]) -> Usage:
    sizes = [entry.bytes for entry in entries]
    return Usage(len(sizes), sum(sizes))


def _remove(path: Path) -> bool:
    """Remove an entry, for others at once; returns whether it is gone."""
    try:
        if path.is_dir():
            old = path.with_name(f".{secrets.token_hex(8)}.part")
            path.rename(old)
            shutil.rmtree(old, ignore_errors=True)
        else:
            path.unlink()
    except OSError:
        return False
    return True
