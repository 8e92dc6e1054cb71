"""The file of results of a sweep: lines of JSON, of which none is lost and none is changed."""

import json
import os
from pathlib import Path
from typing import Any

import filelock

from ..errors import InputError
from ..toolchain.reading import parse_json
from .grid import Point, key

__all__ = ["Results", "Row"]

#: A line of the file: a point, and what came of it.
Row = dict[str, Any]

#: With what every line begins.
BEGINNING = b'{"key": "'


class Results:
    """The file of results: lines of JSON that are added and never changed.

    Parameters
    ----------
    path : path
        It is made if need be.

    Raises
    ------
    InputError
        If it cannot be written, is in use, or holds something else.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        try:
            self._file = open(self._path, "a+b")  # noqa: SIM115 (closed by `__exit__`)
        except OSError as error:
            raise InputError(
                f"Results must be a file that can be written, not {path} ({error.strerror})"
            ) from None
        try:
            self._lock()
            self._rows = self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> "Results":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __contains__(self, point: Point) -> bool:
        return key(point) in self._rows

    @property
    def rows(self) -> dict[str, Row]:
        """The rows, by key."""
        return self._rows

    def add(self, row: Row) -> None:
        """Keep a row, unless there is one with its key."""
        if row["key"] in self._rows:
            return
        line = json.dumps(row).encode() + b"\n"
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._rows[row["key"]] = row

    def _lock(self) -> None:
        """Keep other sweeps out."""
        try:
            locked = filelock.lock_descriptor(self._file.fileno(), blocking=False)
        except OSError:
            return  # on this file system files cannot be locked
        if not locked:
            raise InputError(f"Results must not be in use by another sweep, as {self._path} is")

    def _read(self) -> dict[str, Row]:
        """The rows that are there; half a line at the end is what a sweep died of, and goes."""
        self._file.seek(0)
        rows: dict[str, Row] = {}
        end = 0
        for number, line in enumerate(self._file, start=1):
            if line.endswith(b"\n"):
                row = _row(line)
            else:
                row = {} if end or line.startswith(BEGINNING[: len(line)]) else None
            if row is None:
                raise InputError(
                    f"Results must be rows of a sweep, not line {number} of {self._path}"
                )
            if row:
                rows[row["key"]] = row
                end += len(line)
        self._file.truncate(end)
        return rows


def _row(line: bytes) -> Row | None:
    """The row of a line, None if it is none."""
    try:
        match parse_json(line):
            case {"key": str(), "status": "done" | "misfit"} as row:
                return dict(row)
    except ValueError:
        pass
    return None
