"""Writing files: whether they can be written, and as a whole or not at all."""

import contextlib
import errno
import os
import tempfile
from pathlib import Path

from ..errors import InputError

__all__ = ["writable", "write_file"]


def writable(path, *, make=False):
    """See that a file can be written, before hours are spent on what goes into it.

    Parameters
    ----------
    path : str or Path
    make : bool
        Whether its folder is made if need be.

    Raises
    ------
    InputError
        If it is a folder, or its folder does not exist (and may not be made) or cannot be written.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"File must be writable, not {path} ({os.strerror(errno.EISDIR)})")
    folder = path.parent
    try:
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        elif not folder.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"Folder must be writable, not {folder} ({error.strerror})") from None


def write_file(path, text):
    """Write a file as a whole or not at all.

    Parameters
    ----------
    path : str or Path
    text : str

    Raises
    ------
    InputError
        If it cannot be written.
    """
    path = Path(path)
    temporary = path.parent / f".{path.name}.{os.getpid()}"
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"File must be writable, not {path} ({error.strerror})") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
