"""The folder of a design: the files of one run, and of no other.

The manifest in a folder lists the files beside it. A run that writes into the folder again removes
those of them that it does not write itself, and nothing else.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from ..errors import InputError
from ..toolchain.files import writable, write_file
from ..toolchain.folders import locked_folder

__all__ = ["MANIFEST", "write_folder"]

#: The file that lists the others.
MANIFEST = "manifest.json"


def write_folder(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files of a run into a folder, and remove those left there by an earlier run.

    Parameters
    ----------
    folder : Path
        It is made if need be.
    files : mapping of str to str
        Text by name, which may be that of a file in a folder inside.

    Raises
    ------
    InputError
        If a file cannot be written or removed; none is written if that is known beforehand.
    """
    for name in files:
        writable(folder / name, make=True)
    with locked_folder(folder):
        # The manifest changes last: until then it lists all that may have to be removed.
        for name in sorted(files, key=MANIFEST.__eq__):
            if name == MANIFEST:
                _remove(folder, _listed(folder) - files.keys())
            write_file(folder / name, files[name])


def _listed(folder: Path) -> set[str]:
    """The files in a folder that its manifest lists, if it is one of ours."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return set()
    match manifest:
        case {"manifest_version": int(), "schedule_digest": str(), "files": list(names)}:
            return {name for name in _inside(folder) if name in names}
    return set()


def _inside(folder: Path) -> set[str]:
    """The names of the files in a folder and in the folders in it; nothing is outside."""
    there = [*folder.iterdir()]
    folders = [path for path in there if path.is_dir() and not path.is_symlink()]
    there += [path for inner in folders for path in inner.iterdir()]
    return {path.relative_to(folder).as_posix() for path in there if path.is_file()}


def _remove(folder: Path, names: set[str]) -> None:
    for name in sorted(names):
        path = folder / name
        try:
            path.unlink(missing_ok=True)
            if path.parent != folder and not any(path.parent.iterdir()):
                path.parent.rmdir()
        except OSError as error:
            raise InputError(
                f"File must be removable, not {path} ({error.strerror or error})"
            ) from None
