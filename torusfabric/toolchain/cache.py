"""A cache of what external tools produced, which the processes of one machine share.

The key of an entry is a digest of everything its value depends on (text, options, versions of the
tools). The library diskcache keeps the entries in a database, and removes those that were used
least recently when there are too many. A cache that cannot be used costs time and nothing else.

A cache holds libraries and pickles, which run code when they are loaded. Therefore the entries lie
in a folder that only this user can enter.
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
from .folders import locked

if TYPE_CHECKING:
    import diskcache

__all__ = ["LIMIT_VARIABLE", "Cache", "RenewingCache", "Usage", "default_folder", "digest",
           "size_limit", "source_digest"]  # fmt: skip

T = TypeVar("T")

#: The variable of the environment that sets the limit.
LIMIT_VARIABLE = "TORUSFABRIC_CACHE_LIMIT"

#: The limit in bytes without it.
DEFAULT_LIMIT = 2_000_000_000

#: Options of the database. Losing entries when the power fails is better than waiting for the disk.
#: A write-ahead log would need memory that the hosts of a network file system do not share.
OPTIONS = {
    "eviction_policy": "least-recently-used",
    "sqlite_journal_mode": "delete",
    "sqlite_mmap_size": 0,
    "sqlite_synchronous": 0,
}

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,3})?) ?([kmgt]?)b?", re.IGNORECASE)


class Usage(NamedTuple):
    """The number of entries of a cache, and the bytes that they take on the disk."""

    entries: int
    bytes: int


def default_folder() -> Path:
    """The folder of the cache: `TORUSFABRIC_CACHE`, or where the platform keeps caches."""
    if named := os.environ.get("TORUSFABRIC_CACHE"):
        return Path(named).absolute()  # tools run elsewhere
    return platformdirs.user_cache_path("torusfabric", appauthor=False)


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

    def __init__(self, folder: AnyPath | None = None) -> None:
        self.folder = Path(folder) if folder is not None else default_folder()
        self._entries, self._locks = self.folder / "entries", self.folder / "locks"
        self._limit = size_limit()

    def get(self, key: str) -> Any:
        """Return the value of a key, or None."""
        data = self._use(lambda entries: entries.get(key))
        try:
            return None if data is None else pickle.loads(zlib.decompress(data))
        except Exception:  # whatever classes of another version raise
            return None

    def put(self, key: str, value: Any) -> Any:
        """Keep a value that can be pickled under a key; returns it."""
        if self._limit and self.private_folder():
            data = zlib.compress(pickle.dumps(value), 1)
            self._use(lambda entries: entries.set(key, data))
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
        path = self._locks / f"{name}.lock"
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        with locked(path, waiting=waiting):
            yield

    def usage(self) -> Usage:
        """Return the size of the cache."""
        found = self._use(lambda entries: Usage(len(entries), entries.volume()))
        return found or Usage(0, 0)

    def clear(self) -> Usage:
        """Remove all entries and locks, and nothing else; returns what was removed."""
        found = self.usage()
        for folder in (self._entries, self._locks):
            shutil.rmtree(folder, ignore_errors=True)
        return found

    def private_folder(self) -> Path | None:
        """Make the folder of the entries, which only this user can enter; None if it cannot be."""
        try:
            self._entries.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            return None
        return self._entries if os.access(self._entries, os.W_OK) and self._is_own() else None

    def _is_own(self) -> bool:
        """True if the folder of the entries is there and this user made it."""
        with contextlib.suppress(OSError):
            return not hasattr(os, "getuid") or self._entries.stat().st_uid == os.getuid()
        return False

    @functools.cached_property
    def _database(self) -> "diskcache.Cache":
        """The entries, opened; it takes longer than most uses."""
        import diskcache  # here, since most commands keep nothing

        return diskcache.Cache(os.fspath(self._entries), size_limit=self._limit, **OPTIONS)

    def _use(self, action: "Callable[[diskcache.Cache], T]") -> T | None:
        """Apply a function to the database; None if there is none that can be used."""
        if not self._is_own():
            return None
        import sqlite3

        try:
            with self._database as entries:
                return action(entries)
        except Exception as error:
            # Another process may have removed it: it is opened anew next time.
            self.__dict__.pop("_database", None)
            if type(error) is sqlite3.DatabaseError:  # damaged
                shutil.rmtree(self._entries, ignore_errors=True)
            return None


class RenewingCache(Cache):
    """A cache that is written but not read, so that every entry is made anew."""

    def get(self, key: str) -> Any:
        """Return no value."""
