"""A content-addressed cache of what external tools produced, which many processes share.

The key of an entry is a digest of everything its value depends on (text, options, versions of the
tools). An entry is one file, which gets its name once it is complete. It begins with a digest,
which is compared whenever it is read: an entry that was damaged or changed counts as none. A cache
that cannot be written, or an entry that cannot be read, costs time and nothing else.

A cache holds libraries and pickles, which run code when they are loaded. So an entry counts only
if its file belongs to this user or to root, and nobody else may write it.

Beyond its limit, what was not used for long is removed. Only what has the name of an entry is
counted or removed: a folder that a user names may hold other files. What was used last stays
longest, and what was used just now stays in any case.

Why no library does this: caches such as diskcache keep a database, which the hosts of a cluster
cannot share through a network file system.
"""

import contextlib
import functools
import hashlib
import json
import os
import pickle
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import platformdirs

from ..errors import InputError
from .files import AnyPath, replacing
from .folders import locked

__all__ = ["LIMIT_VARIABLE", "Cache", "RenewingCache", "Usage", "clear", "default_folder", "digest",
           "is_private", "keep_below", "size_limit", "source_digest", "usage"]  # fmt: skip

#: The variable of the environment that sets the limit.
LIMIT_VARIABLE = "TORUSFABRIC_CACHE_LIMIT"

#: The limit in bytes without it.
DEFAULT_LIMIT = 2_000_000_000

#: Seconds for which an entry stays after its use, and seconds after which a use is noted again.
GRACE, NOTED = 600.0, 60.0

#: Bytes of the digest that a value begins with.
HEAD = 32

#: Names of entries.
_ENTRY = re.compile(r"[0-9a-f]{64}\.kept")
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,3})?) ?([kmgt]?)b?", re.IGNORECASE)


def default_folder() -> Path:
    """The folder of the cache: `TORUSFABRIC_CACHE`, or where the platform keeps caches."""
    if named := os.environ.get("TORUSFABRIC_CACHE"):
        return Path(named).absolute()  # tools run elsewhere
    return platformdirs.user_cache_path("torusfabric", appauthor=False)


def digest(*parts: Any) -> str:
    """A name for values: the SHA-256, in hexadecimal, of their JSON form."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def source_digest(*rooms: str) -> str:
    """A digest of the text of some rooms of this package."""
    package = Path(__file__).parents[1]
    paths = [path for room in rooms for path in sorted((package / room).rglob("*.py"))]
    return digest(*(path.read_text(encoding="utf-8") for path in paths))


class Cache:
    """A folder of entries named by `digest`.

    Parameters
    ----------
    folder : path, optional
        Where; by default `default_folder()`.

    Raises
    ------
    InputError
        If its limit is set to something that is no size.
    """

    #: Bytes kept by this process in each folder since the limit was last looked at.
    _kept: ClassVar[dict[Path, int]] = {}

    def __init__(self, folder: AnyPath | None = None) -> None:
        self.folder = Path(folder) if folder is not None else default_folder()
        self._limit = size_limit()

    def get(self, key: str) -> Any:
        """Return the value of a key, or None."""
        data = self._read(key)
        try:
            return None if data is None else pickle.loads(zlib.decompress(data))
        except Exception:  # whatever classes of another version raise
            return None

    def put(self, key: str, value: Any) -> Any:
        """Keep a value that can be pickled under a key; returns it."""
        self._write(key, zlib.compress(pickle.dumps(value), 1))
        return value

    def put_files(self, key: str, sources: Mapping[str, AnyPath]) -> None:
        """Keep copies of files under a key, by their names, with their modes."""
        with contextlib.suppress(OSError):
            self.put(
                key,
                {
                    name: (os.stat(path).st_mode & 0o777, Path(path).read_bytes())
                    for name, path in sources.items()
                },
            )

    def fetch_files(self, key: str, names: Iterable[str], folder: Path) -> bool:
        """Copy the files kept under a key into a folder; returns whether they are there."""
        kept = self.get(key) or {}
        if not kept.keys() >= {*names}:
            return False
        for name in names:
            mode, content = kept[name]
            (folder / name).write_bytes(content)
            (folder / name).chmod(mode)
        return True

    @contextlib.contextmanager
    def lock(self, name: str, *, waiting: Callable[[], object] | None = None) -> Iterator[None]:
        """Let one process or thread at a time in; where files cannot be locked, let all in.

        Who makes an entry that takes long holds the lock of its key meanwhile, so that nobody
        makes it a second time at once.

        Parameters
        ----------
        waiting : function of (), optional
            Called if somebody else is in.
        """
        path = self.folder / "locks" / f"{name}.lock"
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        with locked(path, waiting=waiting):
            yield

    def _read(self, key: str) -> bytes | None:
        """Return the value of a key, if there is a whole one that only this user can have made."""
        try:
            with open(self._path(key), "rb") as file:
                if not is_private(file.fileno()):
                    return None
                head, data = file.read(HEAD), file.read()
                used = os.fstat(file.fileno()).st_mtime
        except OSError:
            return None
        if head != _digest_of_value(key, data):
            return None
        if abs(time.time() - used) > NOTED:
            with contextlib.suppress(OSError):  # of a cache that can only be read
                os.utime(self._path(key))
        return data

    def _write(self, key: str, data: bytes) -> None:
        """Keep a value under a key, if that is possible."""
        if not self._limit:
            return
        with contextlib.suppress(OSError):
            self._path(key).parent.mkdir(parents=True, exist_ok=True)
            with replacing(self._path(key)) as unfinished:
                unfinished.chmod(unfinished.stat().st_mode & 0o755)  # others may read
                unfinished.write_bytes(_digest_of_value(key, data) + data)
            # Look at the limit at first, and whenever a part of it has been added.
            kept = self._kept.get(self.folder, self._limit) + len(data)
            if kept > self._limit // 16:
                keep_below(self.folder, self._limit)
                kept = 0
            self._kept[self.folder] = kept

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.kept"


class RenewingCache(Cache):
    """A cache that is written but not read, so that every entry is made anew."""

    def _read(self, key: str) -> None:
        """Return no value."""
        return


def _digest_of_value(key: str, data: bytes) -> bytes:
    """Return the digest that the entry of a key begins with."""
    return hashlib.sha256(key.encode() + data).digest()


def is_private(file: AnyPath | int) -> bool:
    """True if a file or folder is there and only this user, or root, can have written it."""
    if not hasattr(os, "getuid"):  # Windows, whose folders of a user are private
        return True
    try:
        status = os.stat(file)
    except OSError:
        return False
    return status.st_uid in (os.getuid(), 0) and not status.st_mode & 0o022


class Usage(NamedTuple):
    """The entries of a cache, counted."""

    entries: int
    bytes: int


class _Entry(NamedTuple):
    """An entry, and the time of its last use."""

    path: Path
    bytes: int
    used: float


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
    """Return the size of a cache."""
    sizes = [entry.bytes for entry in _entries(folder)]
    return Usage(len(sizes), sum(sizes))


def clear(folder: Path) -> Usage:
    """Remove all entries and locks, and nothing else; returns what was removed."""
    sizes = [entry.bytes for entry in _entries(folder) if _remove(entry.path)]
    for lock in (folder / "locks").glob("*.lock"):
        with contextlib.suppress(OSError):
            lock.unlink()
    for inner in (*folder.glob("[0-9a-f][0-9a-f]"), folder / "locks"):
        with contextlib.suppress(OSError):  # not empty
            inner.rmdir()
    return Usage(len(sizes), sum(sizes))


def keep_below(folder: Path, limit: int) -> None:
    """Remove entries that were not used for long, down to four fifths of a limit that is passed."""
    now, found = time.time(), list(_entries(folder))
    total = sum(entry.bytes for entry in found)
    if total <= limit:
        return
    for entry in sorted(found, key=lambda entry: entry.used):
        if total > limit * 4 // 5 and now - entry.used > GRACE and _remove(entry.path):
            total -= entry.bytes


def _entries(folder: Path) -> Iterator[_Entry]:
    """Yield all entries."""
    for path in sorted(folder.glob("[0-9a-f][0-9a-f]/*.kept")):
        if _ENTRY.fullmatch(path.name) and path.name[:2] == path.parent.name:
            with contextlib.suppress(OSError):
                status = path.stat()
                # A clock that is set back leaves times that are yet to come.
                used = status.st_mtime if status.st_mtime <= time.time() + GRACE else 0.0
                yield _Entry(path, status.st_size, used)


def _remove(path: Path) -> bool:
    """Remove an entry; returns whether it is gone."""
    try:
        path.unlink()
    except OSError:
        return False
    return True
