"""A cache of results of external tools, shared by all processes of a user on one machine.

The key of an entry is a digest of everything that the value depends on: texts, options, and the
versions of the tools. The library diskcache keeps the entries in a database. It evicts the least
recently used entries when the cache exceeds its size limit. A cache that cannot be used costs
time, but causes no error.

Why a private folder: entries are shared libraries and pickles, and loading either runs code.
Therefore the entries lie in a folder that only the current user can enter.
"""

import contextlib
import functools
import hashlib
import json
import os
import pickle
import re
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import platformdirs

from ..errors import InputError
from .destinations import AnyPath
from .folders import hold_lock

if TYPE_CHECKING:
    import diskcache

__all__ = ["LIMIT_VARIABLE", "Cache", "RenewingCache", "CacheUsage", "default_folder", "digest",
           "size_limit", "source_digest"]  # fmt: skip

T = TypeVar("T")

#: The environment variable that sets the size limit.
LIMIT_VARIABLE = "TORUSFABRIC_CACHE_LIMIT"

#: The size limit in bytes without that variable.
DEFAULT_LIMIT = 2_000_000_000

#: Options of the database. The cache does not wait for the disk (`synchronous`): entries that are
#: lost in a power failure can be made again. A write-ahead log is ruled out, because it needs
#: memory that processes share, and the hosts of a network file system share none.
OPTIONS = {
    "eviction_policy": "least-recently-used",
    "sqlite_journal_mode": "delete",
    "sqlite_mmap_size": 0,
    "sqlite_synchronous": 0,
}

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,3})?) ?([kmgt]?)b?", re.IGNORECASE)


class CacheUsage(NamedTuple):
    """The number of entries of a cache, and the bytes that they take on the disk."""

    entries: int
    bytes: int


def default_folder() -> Path:
    """Return the folder of the cache.

    The environment variable `TORUSFABRIC_CACHE` names it. By default it is the platform's folder
    for caches.
    """
    if named := os.environ.get("TORUSFABRIC_CACHE"):
        return Path(named).absolute()  # because tools run in other folders
    return platformdirs.user_cache_path("torusfabric", appauthor=False)


def size_limit() -> int:
    """Return the size limit of the cache in bytes; 0 switches the cache off.

    The environment variable `LIMIT_VARIABLE` sets it, for example to ``500M``.

    Raises
    ------
    InputError
        If the environment variable is set and is no size.
    """
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not text:
        return DEFAULT_LIMIT
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InputError(f"{LIMIT_VARIABLE} must be a size such as 500M or 2G, not {text!r}")
    return int(float(match[1]) * 1000 ** " kmgt".index(match[2].lower() or " "))


def digest(*parts: Any) -> str:
    """Return the key of a cache entry, a digest of the values `parts`.

    It is the SHA-256 of the values as JSON, in hexadecimal.
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def source_digest(*rooms: str) -> str:
    """Return a digest of the source code of some subpackages, given by name, such as ``"rtl"``.

    It is a part of cache keys whose values depend on the code.
    """
    package = Path(__file__).parents[1]
    paths = [path for room in rooms for path in sorted((package / room).rglob("*.py"))]
    return digest(*(path.read_text(encoding="utf-8") for path in paths))


class Cache:
    """A folder of entries, each under a key that `digest` makes.

    Parameters
    ----------
    folder : path, optional
        Folder that holds entries and locks; by default `default_folder()`.

    Raises
    ------
    InputError
        If the environment sets a size limit that is no size.
    """

    def __init__(self, folder: AnyPath | None = None) -> None:
        self.folder = Path(folder) if folder is not None else default_folder()
        self._entries, self._locks = self.folder / "entries", self.folder / "locks"
        self._limit = size_limit()

    def get(self, key: str) -> Any:
        """Return the value of a key; None if there is no entry, or none that can be read."""
        data = self._apply_to_database(lambda entries: entries.get(key))
        try:
            return None if data is None else pickle.loads(zlib.decompress(data))
        except Exception:  # of any type: unpickling runs code of classes that may have changed
            return None

    def put(self, key: str, value: Any) -> Any:
        """Store a value under a key, if the cache can be used, and return the value.

        Parameters
        ----------
        key : str
            Key of the entry, as `digest` returns it.
        value : object
            Any value that can be pickled, except None.
        """
        if self._limit and self.make_private_folder():
            data = zlib.compress(pickle.dumps(value), 1)
            self._apply_to_database(lambda entries: entries.set(key, data))
        return value

    def put_files(self, key: str, sources: Mapping[str, AnyPath]) -> None:
        """Store copies of files under a key, with their names and modes.

        Parameters
        ----------
        key : str
            Key of the entry, as `digest` returns it.
        sources : mapping of str to path
            Path of each file, by the name under which it is stored.
        """
        with contextlib.suppress(OSError):
            self.put(
                key,
                {
                    name: (os.stat(path).st_mode & 0o777, Path(path).read_bytes())
                    for name, path in sources.items()
                },
            )

    def fetch_files(self, key: str, names: Iterable[str], folder: Path) -> bool:
        """Copy files that are stored under a key into a folder.

        Parameters
        ----------
        key : str
            Key of the entry, as `digest` returns it.
        names : iterable of str
            Names under which the files are stored.
        folder : Path
            Folder that gets the copies.

        Returns
        -------
        bool
            True if all files were there. Otherwise nothing is copied.
        """
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
        """Context manager: hold an exclusive lock while its ``with`` block runs.

        A process that makes an expensive entry holds the lock of the key meanwhile. Other processes
        then wait for the entry instead of making it a second time. Where files cannot be locked,
        the block runs without a lock.

        Parameters
        ----------
        name : str
            Name of the lock, such as a key.
        waiting : function of (), optional
            Called once if another process or thread holds the lock.
        """
        path = self._locks / f"{name}.lock"
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        with hold_lock(path, waiting=waiting):
            yield

    def usage(self) -> CacheUsage:
        """Return the number and the size of the entries."""
        found = self._apply_to_database(lambda entries: CacheUsage(len(entries), entries.volume()))
        return found or CacheUsage(0, 0)

    def clear(self) -> CacheUsage:
        """Remove all entries and locks, and nothing else.

        Returns
        -------
        CacheUsage
            Number and size of the entries that were removed.
        """
        found = self.usage()
        for folder in (self._entries, self._locks):
            shutil.rmtree(folder, ignore_errors=True)
        return found

    def make_private_folder(self) -> Path | None:
        """Make the folder of the entries, which only the current user can enter, and return it.

        Returns
        -------
        Path or None
            None if the folder cannot be made, cannot be written, or belongs to another user.
        """
        try:
            self._entries.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            return None
        return (
            self._entries if os.access(self._entries, os.W_OK) and self._is_own_folder() else None
        )

    def _is_own_folder(self) -> bool:
        """True if the folder of the entries exists and belongs to the current user."""
        with contextlib.suppress(OSError):
            return not hasattr(os, "getuid") or self._entries.stat().st_uid == os.getuid()
        return False

    @functools.cached_property
    def _database(self) -> "diskcache.Cache":
        """The database of the entries, opened at the first use because that is slow."""
        import diskcache  # here, because most commands use no cache

        return diskcache.Cache(os.fspath(self._entries), size_limit=self._limit, **OPTIONS)

    def _apply_to_database(self, action: "Callable[[diskcache.Cache], T]") -> T | None:
        """Apply the function `action` to the database; return its result, or None if it fails."""
        if not self._is_own_folder():
            return None
        import sqlite3

        try:
            with self._database as entries:
                return action(entries)
        except Exception as error:
            # Another process may have removed the database. The next use opens it again.
            self.__dict__.pop("_database", None)
            if type(error) is sqlite3.DatabaseError:  # damaged
                shutil.rmtree(self._entries, ignore_errors=True)
            return None


class RenewingCache(Cache):
    """A cache into which results are written, but from which nothing is read.

    Every result is therefore computed again.
    """

    def get(self, key: str) -> Any:
        """Return None, as if the entry of `key` were missing."""
