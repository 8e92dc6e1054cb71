"""Ownership of output files: only files that torusfabric wrote are replaced or removed.

A command that writes a set of files into a folder also writes a hidden *record*: the digest of
each file. A file that the record lacks, or that differs from its digest, is *foreign*: somebody
else made or changed it. A foreign file is replaced only if the user forces it.

A single file has no record. It may be replaced if it is empty, or begins like the new file.

The *seal* of a set is the file by which a reader recognises that the set is complete. It is removed
before the set changes, and written last.
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
from .destinations import AnyPath, is_standard_output, is_written_directly, writable_status
from .files import as_input_error, open_for_writing, replace_when_finished
from .folders import make_folder
from .values import require_path

__all__ = ["is_replaceable", "require_replaceable", "require_replaceable_files",
           "require_complete_set", "write_file_set"]  # fmt: skip

#: File name of the record, with the maker filled in.
RECORD = ".torusfabric-{}.json"


def owned_files(folder: Path, maker: str) -> set[str]:
    """Return the names of the files in a folder that belong to torusfabric.

    These are files that the command `maker` wrote and nobody has changed since.
    """
    known = _read_record(folder, maker)
    return {name for name, digests in known.items() if _has_recorded_digest(folder, name, digests)}


def require_replaceable_files(
    folder: Path, maker: str, names: Iterable[str], *, force: bool
) -> None:
    """Refuse to replace foreign files in a folder: files that somebody else made or changed.

    Parameters
    ----------
    folder : Path
        Folder that the files go into; it may be missing.
    maker : str
        Name of the command that writes the files.
    names : iterable of str
        Paths of the files, relative to the folder.
    force : bool
        True if foreign files may be replaced.

    Raises
    ------
    InputError
        If one of the files exists, is foreign, and `force` is False.
    """
    there = {name for name in names if os.path.lexists(folder / name)}
    if foreign := sorted(there - owned_files(folder, maker)) if there and not force else []:
        raise _foreign_file_error(folder / foreign[0])


def write_file_set(
    folder: Path, maker: str, files: Mapping[str, bytes], *, seal: str, force: bool
) -> None:
    """Write a set of files into a folder, in place of the set that the same maker wrote before.

    Files of the old set that are unchanged and absent from the new set are removed, and so are
    inner folders that are empty then.

    The folder has a hidden *record* with the digest of each file. The *seal* is the file by which a
    reader recognises that the set is complete. The order of operations makes an interruption
    harmless:

    1. All files are written under temporary names, so a full disk changes nothing.
    2. The record lists the old and the new digests of each file.
    3. The old seal and other files of the old set are removed.
    4. The new files take their names, the seal last.
    5. The record lists the new digests alone.

    Parameters
    ----------
    folder : Path
        Folder for the set; it and its parents are made if they are missing.
    maker : str
        Name of the command that writes the files.
    files : dict of str to bytes
        Path of each file relative to the folder -> its content.
    seal : str
        Path of the seal, relative to the folder.
    force : bool
        True if files that somebody else made or changed (*foreign* files) may be replaced.

    Raises
    ------
    InputError
        If a file is foreign or cannot be written. The folder is unchanged then.
    """
    require_replaceable_files(folder, maker, files, force=force)
    before, gone = _read_record(folder, maker), owned_files(folder, maker) - files.keys()
    if not files and not gone:
        return
    new = {name: [hashlib.sha256(content).hexdigest()] for name, content in files.items()}
    # At any moment of the exchange each file has one of the two digests.
    both = {name: [*before.get(name, []), *digests] for name, digests in new.items()}
    with as_input_error(folder), contextlib.ExitStack() as stack:
        for inside in sorted({(folder / name).parent for name in files}):
            stack.enter_context(make_folder(inside))
        # The exit stack unwinds in reverse: the seal is entered first and takes its name last.
        for name in sorted(files, key=lambda name: name != seal):
            with as_input_error(folder / name):
                unfinished = stack.enter_context(replace_when_finished(folder / name))
                unfinished.write_bytes(files[name])
        _write_record(folder, maker, before | both)
        for name in [seal, *sorted(gone - {seal})]:
            _remove_file(folder / name, folder)
    _write_record(folder, maker, new)


def _remove_file(path: Path, folder: Path) -> None:
    """Remove the file `path`, and its inner folder if that is empty then.

    An inner folder lies within `folder`, the folder of the set, which itself stays.
    """
    try:
        path.unlink(missing_ok=True)
        if path.parent != folder and not any(path.parent.iterdir()):
            path.parent.rmdir()
    except OSError as error:
        raise InputError(
            f"File {path} cannot be removed ({error.strerror or error}); remove it, or choose "
            "another folder"
        ) from None


def require_complete_set(seal: AnyPath) -> None:
    """Refuse a set of files whose writing was interrupted.

    The folder of such a set has a record of its files, but lacks the *seal*.

    Parameters
    ----------
    seal : path
        Path of the seal, the file of a set that is written last.

    Raises
    ------
    InputError
        If the seal is missing and the folder has a record.
    """
    path = Path(require_path("File", seal))
    if not path.exists() and any(path.parent.glob(RECORD.format("*"))):
        raise InputError(
            f"Folder {path.parent} is incomplete, for {path.name} is missing: the command that "
            "wrote it was interrupted, so run it again"
        )


def require_replaceable(path: AnyPath, beginning: str | bytes, *, force: bool = False) -> None:
    """Refuse to replace a single file that does not begin like the new file.

    Such a file is *foreign*: torusfabric has not written it.

    Parameters
    ----------
    path : path
        File to be replaced; the file and its folder may be missing.
    beginning : str or bytes
        Beginning that all files of this format share, before compression.
    force : bool
        True if any file may be replaced.

    Raises
    ------
    InputError
        If the file is foreign.
    """
    if not force and not is_replaceable(path, beginning):
        raise _foreign_file_error(Path(path))


def is_replaceable(path: AnyPath, beginning: str | bytes) -> bool:
    """Return True if a single file may be replaced by a new file of a format.

    This holds for a file that is missing or empty, for a special file, and for a file that begins
    like the new one.

    Parameters
    ----------
    path : path
        File to be replaced.
    beginning : str or bytes
        Beginning that all files of this format share, before compression.
    """
    path = require_path("File", path)
    if is_standard_output(path):
        return True
    with as_input_error(path):
        status = writable_status(path)
        if status is None or is_written_directly(path, status) or not status.st_size:
            return True
        return _begins_with(
            Path(path), beginning.encode() if isinstance(beginning, str) else beginning
        )


def _begins_with(path: Path, beginning: bytes) -> bool:
    """True if the file `path`, unpacked if it is compressed, begins with the bytes `beginning`."""
    with open(path, "rb") as file:
        found = file.read(max(len(beginning), 2))
    if found.startswith(b"\x1f\x8b"):
        try:
            with gzip.open(path) as unpacked:
                found = unpacked.read(len(beginning))
        except (OSError, EOFError, zlib.error):
            return False
    return found.startswith(beginning)


def _foreign_file_error(path: Path) -> InputError:
    return InputError(
        f"File {path} exists and is not as torusfabric wrote it; choose another, or replace it by "
        "--force (in Python force=True)"
    )


def _read_record(folder: Path, maker: str) -> dict[str, list[str]]:
    """Return the record of the files that the command `maker` wrote into `folder`.

    It is a dict: path of a file relative to the folder -> its digests. Without a readable record,
    it is empty.
    """
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
    with open_for_writing(folder / RECORD.format(maker)) as file:
        file.write(json.dumps(record, indent=1).encode() + b"\n")


def _has_recorded_digest(folder: Path, name: str, digests: Iterable[str]) -> bool:
    """True if the file `name` has one of the digests and lies within the folder, not behind a link.

    `name` is a path relative to `folder`.
    """
    path = folder / name
    try:
        inside = path.parent.resolve().is_relative_to(folder.resolve())
        # Reading a special file might never end.
        content = path.read_bytes() if inside and path.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return False
    return content is not None and hashlib.sha256(content).hexdigest() in digests
