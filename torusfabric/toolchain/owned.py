"""Files of ours: only what was written here is replaced or removed, unless a user says otherwise.

A folder has a hidden record with the digest of each file that was written into it: a file that is
not in it, or has changed since, is somebody else's. A single file has no record: it may be
replaced if it is empty, or begins as the new one does.
"""

import contextlib
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..errors import InputError
from .destinations import AnyPath, is_standard_output, is_written_directly, status_of
from .files import replacing, reporting, writing
from .folders import made_folder
from .values import path_of

__all__ = ["is_like", "require_like", "require_owned", "require_whole", "write_owned"]

#: The record, by what wrote the files.
RECORD = ".torusfabric-{}.json"


def owned_files(folder: Path, maker: str) -> set[str]:
    """The names of the files in a folder that a maker wrote and nobody changed."""
    known = _recorded(folder, maker)
    return {name for name, digests in known.items() if _is_recorded(folder, name, digests)}


def require_owned(folder: Path, maker: str, names: Iterable[str], *, force: bool) -> None:
    """Refuse to replace files in a folder that are not ours.

    Parameters
    ----------
    maker : str
        What writes them: a command.
    names : iterable of str
        The files, by their paths from the folder.
    force : bool
        Whether they may be replaced whoever wrote them.
    """
    there = {name for name in names if os.path.lexists(folder / name)}
    if foreign := sorted(there - owned_files(folder, maker)) if there and not force else []:
        raise _foreign(folder / foreign[0])


def write_owned(
    folder: Path, maker: str, files: Mapping[str, bytes], *, seal: str, force: bool
) -> None:
    """Write a set of files into a folder in place of the set that the same maker wrote before.

    Files of the earlier set that nobody changed and that the new set lacks are removed, with inner
    folders that are empty then. The set is whole, or its seal is missing. All files are written
    under other names first, so that a full disk changes nothing. Then the old seal is removed, the
    new files take their names, and the new seal comes last.

    Parameters
    ----------
    folder, maker, force
        As of `require_owned`; the folder is made if need be, and those in it.
    files : dict of str to bytes
        The content of each file, by its path from the folder.
    seal : str
        The file by which a reader knows that the set is whole.

    Raises
    ------
    InputError
        If one is not ours or cannot be written; nothing is changed then.
    """
    require_owned(folder, maker, files, force=force)
    before, gone = _recorded(folder, maker), owned_files(folder, maker) - files.keys()
    if not files and not gone:
        return
    new = {name: [hashlib.sha256(content).hexdigest()] for name, content in files.items()}
    # Wherever this is interrupted, each file is as one of its digests says.
    both = {name: [*before.get(name, []), *digests] for name, digests in new.items()}
    with reporting(folder), contextlib.ExitStack() as stack:
        for inside in sorted({(folder / name).parent for name in files}):
            stack.enter_context(made_folder(inside))
        # What is entered first takes its name last.
        for name in sorted(files, key=lambda name: name != seal):
            with reporting(folder / name):
                unfinished = stack.enter_context(replacing(folder / name))
                unfinished.write_bytes(files[name])
        _write_record(folder, maker, before | both)
        for name in [seal, *sorted(gone - {seal})]:
            _unlink(folder / name, folder)
    _write_record(folder, maker, new)


def _unlink(path: Path, folder: Path) -> None:
    """Remove a file of a folder, and the inner folder that is empty then."""
    try:
        path.unlink(missing_ok=True)
        if path.parent != folder and not any(path.parent.iterdir()):
            path.parent.rmdir()
    except OSError as error:
        raise InputError(
            f"File must be removable, not {path} ({error.strerror or error})"
        ) from None


def require_whole(seal: AnyPath) -> None:
    """Refuse a set of files whose seal is missing where its record is: it was interrupted.

    Parameters
    ----------
    seal : path
        The file by which a reader knows that the set is whole.
    """
    path = Path(path_of("File", seal))
    if not path.exists() and any(path.parent.glob(RECORD.format("*"))):
        raise InputError(
            f"Folder {path.parent} must be whole, with its {path.name}; what wrote it was "
            "interrupted, so carry the command out again"
        )


def require_like(path: AnyPath, beginning: str | bytes, *, force: bool = False) -> None:
    """Refuse to replace a file unless it begins as the new one does; a folder may be missing.

    Parameters
    ----------
    beginning : str or bytes
        How all files of this format begin, before they are compressed.
    force : bool
        Whether any file may be replaced.
    """
    if not force and not is_like(path, beginning):
        raise _foreign(Path(path))


def is_like(path: AnyPath, beginning: str | bytes) -> bool:
    """Whether a file is missing or empty, no regular file, or begins as the new one does.

    Parameters as of `require_like`.
    """
    path = path_of("File", path)
    if is_standard_output(path):
        return True
    with reporting(path):
        status = status_of(path)
        if status is None or is_written_directly(path, status) or not status.st_size:
            return True
        return _begins(Path(path), beginning.encode() if isinstance(beginning, str) else beginning)


def _begins(path: Path, beginning: bytes) -> bool:
    """Whether a file, unpacked if it is packed, begins like this."""
    with open(path, "rb") as file:
        found = file.read(max(len(beginning), 2))
    if found.startswith(b"\x1f\x8b"):
        try:
            with gzip.open(path) as unpacked:
                found = unpacked.read(len(beginning))
        except (OSError, EOFError, zlib.error):
            return False
    return found.startswith(beginning)


def _foreign(path: Path) -> InputError:
    return InputError(
        f"File {path} must be missing, or as torusfabric wrote it, not another or changed "
        "(--force replaces it; in Python force=True)"
    )


def _recorded(folder: Path, maker: str) -> dict[str, list[str]]:
    """The digests of each file that a maker wrote into a folder."""
    try:
        record = json.loads((folder / RECORD.format(maker)).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    match record:
        case {"format": "torusfabric-files", "files": dict(files)}:
            return {name: digests for name, digests in files.items() if isinstance(digests, list)}
    return {}


def _write_record(folder: Path, maker: str, files: Mapping[str, list[str]]) -> None:
    record = {"format": "torusfabric-files", "files": dict(sorted(files.items()))}
    with writing(folder / RECORD.format(maker)) as file:
        file.write(json.dumps(record, indent=1).encode() + b"\n")


def _is_recorded(folder: Path, name: str, digests: Iterable[str]) -> bool:
    """True if a file lies in a folder, not behind a link that leads out, and has a known digest."""
    path = folder / name
    try:
        inside = path.parent.resolve().is_relative_to(folder.resolve())
        # What is no regular file may have no end.
        content = path.read_bytes() if inside and path.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return False
    return content is not None and hashlib.sha256(content).hexdigest() in digests
