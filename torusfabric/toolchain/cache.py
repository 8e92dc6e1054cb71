"""A content-addressed cache of what external tools produced.

The key of an entry is a digest of everything its value depends on (text, options, versions of the
tools). A value is JSON or a set of files, and is kept with its own digest, which is compared
whenever it is read: an entry that was damaged or changed counts as none. An entry gets its name
once it is complete, whatever other processes do. A cache that cannot be written, or an entry that
cannot be read, costs time and nothing else. Beyond its limit, what was not used for long is
removed.

A cache holds libraries, which are run. What another user may have written is not used: an entry
counts only if it and the folders of the cache belong to this user or to root, and nobody else may
write them.
"""

import base64
import contextlib
import functools
import hashlib
import json
import os
import pickle
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import platformdirs

from .cache_size import keep_below, mark_used, size_limit
from .files import AnyPath, replacing
from .folders import locked

__all__ = ["Cache", "RenewingCache", "default_folder", "digest", "source_digest"]

#: The file of an entry that lists the digests of the others.
CONTENTS = "contents.json"


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


#: What reading a value ends in that other versions of Python or of a package have written.
NOT_READ = (AttributeError, EOFError, ImportError, IndexError, KeyError, TypeError, ValueError,
            pickle.UnpicklingError, zlib.error)  # fmt: skip


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
        self._folder = Path(folder) if folder is not None else default_folder()
        self._limit = size_limit()

    @property
    def folder(self) -> Path:
        """Where the entries are."""
        return self._folder

    def get(self, key: str) -> Any:
        """The JSON value of a key, or None."""
        try:
            path = self._path(f"{key}.json")
            if not self._is_trusted(path):
                return None
            head, _, text = path.read_text(encoding="utf-8").partition("\n")
            if head != digest(key, text):
                return None
            mark_used(path)
            return json.loads(text)
        except (OSError, ValueError):
            return None

    def put(self, key: str, value: Any) -> Any:
        """Keep a JSON value under a key; returns it as `get` will."""
        text = json.dumps(value)
        path = self._path(f"{key}.json")
        if not self._limit:
            return json.loads(text)
        with contextlib.suppress(OSError):
            self._make(path.parent)
            with replacing(path) as unfinished:
                unfinished.write_text(f"{digest(key, text)}\n{text}", encoding="utf-8")
                _keep_others_out(unfinished)
            self._stay_below(len(text))
        return json.loads(text)

    def get_object(self, key: str) -> Any:
        """The Python value of a key, or None; only this user or root can have written it."""
        text = self.get(key)
        if text is None:
            return None
        try:
            return pickle.loads(zlib.decompress(base64.b64decode(text)))
        except NOT_READ:
            return None

    def put_object(self, key: str, value: Any) -> None:
        """Keep any Python value that can be pickled under a key."""
        self.put(key, base64.b64encode(zlib.compress(pickle.dumps(value), 1)).decode())

    def get_files(self, key: str, names: Sequence[str]) -> list[Path] | None:
        """The paths of files kept under a key, if all are there. Read them, do not change them."""
        entry = self._path(key)
        if not self._is_trusted(entry, entry / CONTENTS, *(entry / name for name in names)):
            return None
        digests = self._digests(entry, key)
        paths = [entry / name for name in names]
        if not all(_is_sound(path, digests.get(path.name)) for path in paths):
            return None
        mark_used(entry)
        return paths

    def put_files(self, key: str, sources: Mapping[str, AnyPath]) -> list[Path] | None:
        """Keep copies of files, with their modes, under a key.

        Parameters
        ----------
        sources : dict of str to path
            The files by the names under which they are kept.

        Returns
        -------
        list of Path or None
            Their paths in the cache; None if they could not be kept.
        """
        if not self._limit:
            return None
        entry = self._path(key)
        made = entry.with_name(f".{secrets.token_hex(8)}.part")
        try:
            self._make(entry.parent)
            made.mkdir(mode=0o755)
            digests = {name: _copy(source, made / name) for name, source in sources.items()}
            text = json.dumps({"key": key, "files": digests})
            (made / CONTENTS).write_text(text, encoding="utf-8")
            for path in made.iterdir():
                _keep_others_out(path)
            if self.get_files(key, list(sources)) is None or digests != self._digests(entry, key):
                self._stay_below(sum(path.stat().st_size for path in made.iterdir()))
                _replace(made, entry)
        except OSError:
            return None
        finally:
            shutil.rmtree(made, ignore_errors=True)
        paths = [entry / name for name in sources]
        return paths if self._is_trusted(entry, *paths) else None

    def fetch_files(self, key: str, names: Sequence[str], folder: Path) -> bool:
        """Copy the files kept under a key into a folder; returns whether they are there.

        Other than of `get_files`, it does not matter what becomes of the entry meanwhile.
        """
        if (paths := self.get_files(key, names)) is None:
            return False
        digests = self._digests(self._path(key), key)
        try:
            return all(_copy(path, folder / path.name) == digests[path.name] for path in paths)
        except (OSError, KeyError):
            return False

    def get_file(self, key: str, name: str) -> Path | None:
        """The path of a file kept under a key, or None. Read it, do not change it."""
        kept = self.get_files(key, [name])
        return kept[0] if kept else None

    def put_file(self, key: str, name: str, source: AnyPath) -> Path | None:
        """Keep a copy of a file under a key and a name; returns its path there, or None."""
        kept = self.put_files(key, {name: source})
        return kept[0] if kept else None

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
        path = self._folder / "locks" / f"{name}.lock"
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        with locked(path, waiting=waiting):
            yield

    def _stay_below(self, added: int) -> None:
        """Look at the limit at first, and whenever a part of it has been added."""
        kept = self._kept.get(self._folder, self._limit) + added
        if kept > self._limit // 16:
            keep_below(self._folder, self._limit)
            kept = 0
        self._kept[self._folder] = kept

    def _make(self, folder: Path) -> None:
        """Make a folder of entries; of what is ours already, keep others out."""
        folder.mkdir(parents=True, exist_ok=True)
        for path in (self._folder, folder):
            with contextlib.suppress(OSError):
                _keep_others_out(path)

    def _is_trusted(self, *paths: Path) -> bool:
        """Whether nobody else can have written these files and folders of one entry."""
        return all(map(_is_ours, (self._folder, paths[0].parent, *paths)))

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / name

    def _digests(self, entry: Path, key: str) -> dict[str, str]:
        """The digests of the files of an entry; none if it is no entry of the key."""
        try:
            match json.loads((entry / CONTENTS).read_text(encoding="utf-8")):
                case {"key": str(name), "files": dict(files)} if name == key:
                    return files
        except (OSError, ValueError):
            pass
        return {}


class RenewingCache(Cache):
    """A cache that is written but not read, so that every entry is made anew."""

    def get(self, key: str) -> None:
        """No value."""
        return

    def get_files(self, key: str, names: Sequence[str]) -> None:
        """No files."""
        return


def _copy(source: AnyPath, target: Path) -> str:
    """Copy a file with its mode; returns the digest of what was copied."""
    data = Path(source).read_bytes()
    target.write_bytes(data)
    shutil.copymode(source, target)
    return hashlib.sha256(data).hexdigest()


def _is_ours(path: Path) -> bool:
    """Whether nobody else can have written a file or folder: a library there is run."""
    if not hasattr(os, "getuid"):
        return True  # Windows, whose folders of a user are his
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_uid in (os.getuid(), 0) and not status.st_mode & 0o022


def _keep_others_out(path: Path) -> None:
    """Let nobody but its owner write a file or folder."""
    mode = path.stat().st_mode
    if mode & 0o022:
        path.chmod(mode & 0o7755)


def _is_sound(path: Path, expected: str | None) -> bool:
    """Whether a file has the digest that it was kept with."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == expected
    except OSError:
        return False


def _replace(made: Path, entry: Path) -> None:
    """Give a folder its name; what has that name is removed."""
    old = entry.with_name(f".{secrets.token_hex(8)}.part")
    with contextlib.suppress(FileNotFoundError):
        entry.rename(old)
    try:
        made.rename(entry)
    finally:
        shutil.rmtree(old, ignore_errors=True)
