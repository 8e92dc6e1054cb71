"""Reading files that someone else made: nothing in them is believed.

A file is read up to a limit, so that neither a device without an end nor a few kilobytes that
unpack to gigabytes exhaust the memory. JSON is taken strictly: no key twice in an object, no
number that JSON does not know, no half of a surrogate pair, which no terminal and no file can take.
"""

import gzip
import json
import os
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .destinations import COMPRESSED, open_in_time
from .values import path_of

__all__ = ["excerpt", "listed_files", "parse_json", "location_of", "read_array", "read_bytes",
           "read_text", "unpack"]  # fmt: skip

#: Bytes of text that are read. Its lists and numbers take some fifteen times as much memory.
MOST_BYTES = 2**29

#: Compressed text may unpack to so many times its size; schedules shrink to a tenth at best.
MOST_RATIO = 100

#: It may always unpack to so many bytes.
SMALL = 2**24

#: Bytes that are read at a time.
PIECE = 2**20

#: What is left of a value in a message.
LONGEST_EXCERPT = 60

#: What may be a half of a surrogate pair, in the text of JSON.
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


def listed_files(text: str) -> list[str]:
    """The names of files that are joined by commas; a file that is there may have some in its name.

    Examples
    --------
    >>> listed_files("a.json,b.json")
    ['a.json', 'b.json']
    """
    return [text] if os.path.exists(text) else text.split(",")


def read_bytes(path: str | os.PathLike[str], what: str, *, most: int = MOST_BYTES) -> bytes:
    """The content of a file, unpacked if its name ends in ``.gz``.

    Parameters
    ----------
    what : str
        What the file is, to begin an error with: ``Schedule file``.
    most : int
        Bytes that it may hold, once unpacked.

    Raises
    ------
    InputError
        If it cannot be read, is not whole, or holds more.
    """
    path = path_of(what, path)
    path = Path(path)
    try:
        with open_in_time(path, "rb") as file:
            if path.suffix not in COMPRESSED:
                return _read(file, f"{what} {path} must hold at most {_size(most)}", most)
            limit, reason = _unpacked_limit(os.fstat(file.fileno()).st_size, most)
            with gzip.GzipFile(fileobj=file) as unpacked:
                text = f"{what} {path} must unpack to at most {reason}"
                return _read(cast(BinaryIO, unpacked), text, limit)
    except InputError:
        raise
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(f"{what} {path} must be whole and compressed: {error}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{what} {path} could not be read: {reason}") from error


def read_text(path: str | os.PathLike[str], what: str, *, most: int = MOST_BYTES) -> str:
    """The text of a file in UTF-8, without a byte-order mark; otherwise as `read_bytes`."""
    try:
        return read_bytes(path, what, most=most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{what} {path} must be text in UTF-8: {error}") from None


def unpack(packed: bytes) -> bytes:
    """The content of bytes that zlib has compressed, all of them.

    Raises
    ------
    ValueError
        If bytes are missing or left over, or unpack to more than a file may hold.

    Examples
    --------
    >>> unpack(zlib.compress(b"abc") + b"d")
    Traceback (most recent call last):
    ValueError: 1 byte more than is packed
    """
    limit, reason = _unpacked_limit(len(packed), MOST_BYTES)
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(packed, limit)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if stream.unconsumed_tail:
        raise ValueError(f"more than {reason}")
    if not stream.eof:
        raise ValueError("bytes that end too soon")
    if count := len(stream.unused_data):
        raise ValueError(f"{count} byte{'s' * (count > 1)} more than is packed")
    return content


def read_array(path: str | os.PathLike[str], what: str) -> NDArray[Any]:
    """The array of a ``.npy`` file, which is read as it is used.

    Raises
    ------
    InputError
        If it cannot be read, or holds something else, or less or more than its head says.
    """
    try:
        array = np.lib.format.open_memmap(path, mode="r")
        left = os.path.getsize(path) - array.offset - array.nbytes
        if left == 0:
            return array
        reason = f"{left} bytes more than its head says"
    except OSError as error:
        reason = error.strerror or "not an array"
    except Exception:  # of a damaged head whatever its parser meets, such as TokenError
        reason = "not an array"
    raise InputError(f"{what} must be a readable .npy file, not {path} ({reason})")


def _unpacked_limit(packed: int, most: int) -> tuple[int, str]:
    """How much so many compressed bytes may hold, as a number and in words."""
    limit = max(SMALL, MOST_RATIO * packed)
    if limit < most:
        return limit, f"{MOST_RATIO} times its size or {_size(SMALL)}"
    return most, _size(most)


def _read(file: BinaryIO, text: str, limit: int) -> bytes:
    """All of a file, piece by piece; an error with some text if that is more than a limit."""
    content = bytearray()
    while piece := file.read(PIECE):
        content += piece
        if len(content) > limit:
            raise InputError(f"{text}, not more")
    return bytes(content)


def _size(count: int) -> str:
    """A number of bytes for people."""
    return f"{count >> 20} MiB" if count >= 2**20 else f"{count} bytes"


def parse_json(raw: bytes) -> Any:
    """The value that JSON text stands for.

    Parameters
    ----------
    raw : bytes
        In UTF-8, perhaps behind a byte-order mark.

    Raises
    ------
    ValueError
        If it is not JSON, or an object has a key twice; the message is one line.

    Examples
    --------
    >>> parse_json(b'{"a": [{"b": 1, "b": 2}]}')
    Traceback (most recent call last):
    ValueError: an object has the key "b" twice
    """
    try:
        value = json.loads(
            raw.decode("utf-8-sig"), object_pairs_hook=_as_object, parse_constant=_no_number
        )
        if _HALF.search(raw):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair stands alone in a string") from None
    except ValueError as error:
        raise ValueError(str(error).splitlines()[0]) from None
    return value


def _as_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object that pairs of a key and a value make."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"an object has the key {excerpt(twice)} twice")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def excerpt(value: Any) -> str:
    """A value from a file as JSON, cut to a length that fits a message.

    Examples
    --------
    >>> excerpt([True, "a"])
    '[true, "a"]'
    """
    text = json.dumps(value)
    return text if len(text) <= LONGEST_EXCERPT else text[: LONGEST_EXCERPT - 3] + "..."


def location_of(path: Iterable[str | int]) -> str:
    """A place in a file for people.

    Examples
    --------
    >>> location_of(["rounds", 3, 1, "path"])
    'rounds[3][1].path'
    """
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".")
