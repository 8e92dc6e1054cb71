"""A content-addressed cache of what external tools produced.

The key of an entry is a digest of everything its value depends on (text, options, versions of the
tools), so an entry is never wrong, only unused. A value is JSON or a set of files. An entry gets
its name once it is complete, whatever other processes do. A cache that cannot be written, or an
entry that cannot be read, costs time and nothing else.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import filelock
import platformdirs

from .files import AnyPath, replacing

__all__ = ["Cache", "RenewingCache", "default_folder", "digest"]


def default_folder() -> Path:
    """The folder of the cache: `TORUSFABRIC_CACHE`, or where the platform keeps caches."""
    if named := os.environ.get("TORUSFABRIC_CACHE"):
        return Path(named)
    return platformdirs.user_cache_path("torusfabric", appauthor=False)


def digest(*parts: Any) -> str:
    """A name for values: the SHA-256, in hexadecimal, of their JSON form."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


class Cache:
    """A folder of entries named by `digest`.

    Parameters
    ----------
    folder : path, optional
        Where; by default `default_folder()`.
    """

    def __init__(self, folder: AnyPath | None = None) -> None:
        self._folder = Path(folder) if folder is not None else default_folder()

    @property
    def folder(self) -> Path:
        """Where the entries are."""
        return self._folder

    def get(self, key: str) -> Any:
        """The JSON value of a key, or None."""
        try:
            return json.loads(self._path(f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def put(self, key: str, value: Any) -> Any:
        """Keep a JSON value under a key; returns it as `get` will."""
        text = json.dumps(value)
        path = self._path(f"{key}.json")
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as unfinished:
                unfinished.write_text(text, encoding="utf-8")
        return json.loads(text)

    def get_files(self, key: str, names: Sequence[str]) -> list[Path] | None:
        """The paths of files kept under a key, if all are there. Read them, do not change them."""
        paths = [self._path(key) / name for name in names]
        return paths if all(path.is_file() for path in paths) else None

    def put_files(self, key: str, sources: Mapping[str, AnyPath]) -> list[Path] | None:
        """Keep copies of files, with their modes, under a key.

        Parameters
        ----------
        key : str
        sources : dict of str to path
            The files by the names under which they are kept.

        Returns
        -------
        list of Path or None
            Their paths in the cache; None if they could not be kept.
        """
        folder = self._path(key)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, source in sources.items():
                with replacing(folder / name) as unfinished:
                    shutil.copy(source, unfinished)
        except OSError:
            return None
        return [folder / name for name in sources]

    def get_file(self, key: str, name: str) -> Path | None:
        """The path of a file kept under a key, or None. Read it, do not change it."""
        kept = self.get_files(key, [name])
        return kept[0] if kept else None

    def put_file(self, key: str, name: str, source: AnyPath) -> Path | None:
        """Keep a copy of a file under a key and a name; returns its path there, or None."""
        kept = self.put_files(key, {name: source})
        return kept[0] if kept else None

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Let one process or thread at a time in; where files cannot be locked, let all in.

        Who makes an entry that takes long holds the lock of its key meanwhile, so that nobody
        makes it a second time at once.
        """
        folder = self._folder / "locks"
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(OSError, NotImplementedError):
                folder.mkdir(parents=True, exist_ok=True)
                stack.enter_context(filelock.FileLock(folder / f"{name}.lock"))
            yield

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / name


class RenewingCache(Cache):
    """A cache that is written but not read, so that every entry is made anew."""

    def get(self, key: str) -> None:
        """No value."""
        return

    def get_files(self, key: str, names: Sequence[str]) -> None:
        """No files."""
        return
