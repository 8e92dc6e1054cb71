"""A small content-addressed cache of what external tools produced.

The key of an entry is a digest of everything its value depends on (text, options, versions of the
tools), so an entry is never wrong, only unused. Values are JSON or files. Writes are atomic: an
entry is there whole or not at all, whatever other processes do. A cache that cannot be written,
or an entry that cannot be read, costs time and nothing else.
"""

import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["Cache", "default_folder", "digest"]


def default_folder():
    """The folder of the cache: `TORUSFABRIC_CACHE` if set, else the platform's place for caches."""
    if named := os.environ.get("TORUSFABRIC_CACHE"):
        return Path(named)
    if xdg := os.environ.get("XDG_CACHE_HOME"):
        base = Path(xdg)
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or os.path.expanduser("~"))
    elif sys.platform == "darwin":
        base = Path(os.path.expanduser("~/Library/Caches"))
    else:
        base = Path(os.path.expanduser("~/.cache"))
    return base / "torusfabric"


def digest(*parts):
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

    def __init__(self, folder=None):
        self._folder = Path(folder) if folder is not None else default_folder()

    @property
    def folder(self):
        """Where the entries are."""
        return self._folder

    def get(self, key):
        """The JSON value of a key, or None."""
        try:
            return json.loads(self._path(key, ".json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def put(self, key, value):
        """Keep a JSON value under a key; returns it as `get` will."""
        text = json.dumps(value)
        self._write(self._path(key, ".json"), lambda path: path.write_text(text, encoding="utf-8"))
        return json.loads(text)

    def get_file(self, key, name):
        """The path of a kept file, or None. Read it, do not change it."""
        path = self._path(key, "") / name
        return path if path.is_file() else None

    def put_file(self, key, name, source):
        """Keep a copy of a file under a key and a name; returns its path there, or None."""
        path = self._path(key, "") / name
        return path if self._write(path, lambda part: shutil.copyfile(source, part)) else None

    @contextlib.contextmanager
    def lock(self, name):
        """Let one process at a time in; where files cannot be locked, let everyone in."""
        with contextlib.ExitStack() as stack:
            if fcntl is not None:
                with contextlib.suppress(OSError):
                    self._folder.mkdir(parents=True, exist_ok=True)
                    file = stack.enter_context(open(self._folder / f"{name}.lock", "w"))
                    fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _path(self, key, suffix):
        return self._folder / key[:2] / (key + suffix)

    @staticmethod
    def _write(path, fill):
        # A file of its own in the same folder, then one rename: readers see all or nothing.
        part = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, part = tempfile.mkstemp(prefix=".part-", dir=path.parent)
            os.close(handle)
            fill(Path(part))
            os.replace(part, path)
        except OSError:
            return False
        finally:
            if part is not None:  # gone already where the rename happened
                with contextlib.suppress(OSError):
                    os.unlink(part)
        return True
