"""The folder of a design: the files of one run, and of no other.

A run that writes into the folder again removes those files of the run before that it does not
write itself, and nothing else.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from ..toolchain.files import writable
from ..toolchain.folders import locked_folder
from ..toolchain.owned import owned_files, remove_owned, require_owned, write_owned

__all__ = ["MANIFEST", "require_folder", "write_folder"]

#: The file that lists the others.
MANIFEST = "manifest.json"

#: What writes the files.
MAKER = "verilog"


def write_folder(folder: Path, files: Mapping[str, str], *, force: bool = False) -> None:
    """Write the files of a run into a folder, and remove those left there by an earlier run.

    Parameters
    ----------
    folder : Path
        It is made if need be.
    files : mapping of str to str
        Text by name, which may be that of a file in a folder inside.
    force : bool
        Whether files of others are replaced, too.

    Raises
    ------
    InputError
        If a file is not ours, or cannot be written or removed; none is written if that is known
        beforehand.
    """
    require_folder(folder, files, force=force)
    for name in files:
        writable(folder / name, make=True)
    with locked_folder(folder):
        before = owned_files(folder, MAKER)
        contents = {name: text.encode("utf-8") for name, text in files.items()}
        write_owned(folder, MAKER, contents, force=force)
        remove_owned(folder, MAKER, before - files.keys())


def require_folder(folder: Path, names: Iterable[str], *, force: bool) -> None:
    """Refuse to replace files of others in the folder of a design; see `require_owned`."""
    require_owned(folder, MAKER, names, force=force)
