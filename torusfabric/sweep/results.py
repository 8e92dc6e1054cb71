"""The file of results of a sweep: JSON lines that are only appended and survive a crash.

Results may also go to standard output or another file that is not regular, such as a pipe. Such a
file cannot be read back, so each sweep starts anew.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import filelock

from ..errors import InputError
from ..toolchain.destinations import (
    AnyPath,
    is_standard_output,
    is_written_directly,
    require_uncompressed,
    writable_status,
)
from ..toolchain.files import as_input_error, open_for_writing
from ..toolchain.reading import parse_json
from .grid import Point, point_key

__all__ = ["Results", "Row"]

#: A line of the file: a point with its key, status and result.
Row = dict[str, Any]

#: First bytes of every line.
BEGINNING = b'{"key": "'

#: Beginning of a first row that was not written completely. A shorter text may be a file of others.
_ROW_BEGINNING = re.compile(rb'\{"key": "[0-9a-f]{16}", "step": "')


class Results:
    """An open file of results of a sweep, used as a context manager.

    A *row* of the file is a line of JSON: a point (a step with a value for each axis) and its
    result.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard output. A missing file is created; it is removed again if an
        error comes before the first row.

    Raises
    ------
    InputError
        If the file cannot be written, is in use by another sweep, has the name of a compressed
        file, or contains a line that is no row.
    """

    def __init__(self, path: AnyPath) -> None:
        require_uncompressed("Results", path)
        self._path = Path(path)
        self._rows: dict[str, Row] = {}
        self._is_new = not os.path.lexists(path)
        with contextlib.ExitStack() as stack:
            self._file = stack.enter_context(_open_results(path))
            self._kept = self._file.seekable() and self._file.readable()
            if self._kept:
                self._lock_file()
                self._rows = self._read_rows()
            self._stack = stack.pop_all()

    def __enter__(self) -> "Results":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and self._kept and self._is_new and not self._rows:
            with contextlib.suppress(OSError):  # Windows removes no open file
                self._path.unlink()
        self._stack.__exit__(kind, error, trace)

    def __contains__(self, point: Point) -> bool:
        return point_key(point) in self._rows

    @property
    def rows(self) -> dict[str, Row]:
        """All rows of the file, keyed by `point_key`; a row is a point with its result."""
        return self._rows

    def add(self, row: Row) -> None:
        """Append a row and force it to the disk, unless the file has a row for the same point."""
        if row["key"] in self._rows:
            return
        line = json.dumps(row).encode() + b"\n"
        self._file.write(line)
        self._file.flush()
        if self._kept:
            os.fsync(self._file.fileno())
        self._rows[row["key"]] = row

    def _lock_file(self) -> None:
        """Lock the file against other sweeps."""
        try:
            locked = filelock.lock_descriptor(self._file.fileno(), blocking=False)
        except OSError:
            return  # this file system has no locks
        if not locked:
            raise InputError(
                f"Results {self._path} are in use by another sweep; wait for its end, or choose "
                "another file"
            )

    def _read_rows(self) -> dict[str, Row]:
        """Read the file: one row, a point of the sweep with its result, in each line.

        An incomplete line at the end, left by a crash, is removed.
        """
        self._file.seek(0)
        rows: dict[str, Row] = {}
        end, whole = 0, True
        for number, line in enumerate(self._file, start=1):
            row = _parse_row(line)
            if row is None and not line.endswith(b"\n") and _is_row_beginning(line, first=not end):
                break
            if row is None:
                raise InputError(
                    f"Line {number} of {self._path} is no row of a sweep; choose a new file, or "
                    "one that a sweep wrote"
                )
            rows[row["key"]] = row
            end += len(line)
            whole = line.endswith(b"\n")
        self._file.truncate(end)
        if not whole:  # an editor may have removed the last newline
            self._file.write(b"\n")
        return rows


@contextlib.contextmanager
def _open_results(path: AnyPath) -> Iterator[BinaryIO]:
    """Open the file of results: a regular file to read and append, any other only to write.

    `path` is the file that the user names, or ``-`` for standard output.
    """
    with as_input_error(path):
        if is_standard_output(path) or is_written_directly(path, writable_status(path)):
            with open_for_writing(path) as direct:
                yield direct
        else:
            with open(path, "a+b") as file:
                yield file


def _is_row_beginning(line: bytes, *, first: bool) -> bool:
    """Return True if a line of a file looks like a result of a sweep, complete or cut off.

    The first line of a file must have the key and the step of a result. Why: the file may belong to
    another program. A later line may have been cut by a crash.
    """
    if first:
        return bool(_ROW_BEGINNING.match(line))
    return line[: len(BEGINNING)] == BEGINNING[: len(line)]


def _parse_row(line: bytes) -> Row | None:
    """Return the result of a sweep (a row) that a line of JSON holds; None if it holds none."""
    try:
        match parse_json(line):
            case {"key": str(), "status": "done" | "misfit"} as row:
                return dict(row)
    except ValueError:
        pass
    return None
