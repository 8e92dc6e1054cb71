"""Reading of untrusted files: limited in size, and strict about their format.

A file is read up to a limit. Neither a device without an end, nor a few compressed kilobytes that
unpack to gigabytes, can exhaust the memory. The second argument of a reader is a noun for the file,
such as ``Schedule file``, with which an error message begins.

JSON must be exact. Refused are an object with a key twice, the constants NaN and Infinity, and a
string with half of a surrogate pair, because no terminal and no file could show that string.
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
from .destinations import COMPRESSED_SUFFIXES, open_with_timeout
from .values import require_path

__all__ = ["excerpt", "split_file_names", "parse_json", "json_location", "read_array", "read_bytes",
           "read_text", "decompress"]  # fmt: skip

#: The largest text that is read, in bytes. Parsed JSON takes about fifteen times as much memory.
MOST_BYTES = 2**29

#: The largest ratio of unpacked to compressed size. Schedules shrink to a tenth at best.
MOST_RATIO = 100

#: The unpacked size, in bytes, that is admitted for any ratio.
SMALL = 2**24

#: Bytes per read.
READ_BYTES = 2**20

#: The longest excerpt of a value in a message, in characters.
LONGEST_EXCERPT = 60

#: The escape of a surrogate in JSON, which may lack its other half.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def split_file_names(text: str) -> list[str]:
    """Return the file names in a text that joins them by commas.

    If the whole text is the name of an existing file, its commas belong to the name.

    Examples
    --------
    >>> split_file_names("a.json,b.json")
    ['a.json', 'b.json']
    """
    return [text] if os.path.exists(text) else text.split(",")


def read_bytes(path: str | os.PathLike[str], what: str, *, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file, unpacked if its name ends in ``.gz`` or ``.svgz``.

    Parameters
    ----------
    path : path
        The file, which may be a named pipe.
    what : str
        Noun for the file, with which an error message begins.
    most : int
        Largest size in bytes, after unpacking.

    Raises
    ------
    InputError
        If the file cannot be read, is damaged, or is too large.
    """
    path = require_path(what, path)
    path = Path(path)
    try:
        with open_with_timeout(path, "rb") as file:
            if path.suffix not in COMPRESSED_SUFFIXES:
                return _read_limited(
                    file, f"{what} {path} must hold at most {_size_text(most)}", most
                )
            limit, reason = _unpacked_limit(os.fstat(file.fileno()).st_size, most)
            with gzip.GzipFile(fileobj=file) as unpacked:
                text = f"{what} {path} must unpack to at most {reason}"
                return _read_limited(cast(BinaryIO, unpacked), text, limit)
    except InputError:
        raise
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InputError(
            f"{what} {path} cannot be unpacked, for it is incomplete or damaged: {error}"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{what} {path} could not be read: {reason}") from error


def read_text(path: str | os.PathLike[str], what: str, *, most: int = MOST_BYTES) -> str:
    """Return the text of a UTF-8 file, without a byte-order mark.

    Parameters
    ----------
    path : path
        The file, unpacked as by `read_bytes`.
    what : str
        Noun for the file, with which an error message begins.
    most : int
        Largest size in bytes, after unpacking.

    Raises
    ------
    InputError
        If the file cannot be read, is damaged, is too large, or is no UTF-8.
    """
    try:
        return read_bytes(path, what, most=most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{what} {path} must be text in UTF-8: {error}") from None


def decompress(packed: bytes) -> bytes:
    """Return the content of bytes that zlib has compressed.

    Raises
    ------
    ValueError
        If the bytes are damaged, end too soon or go on after the end, or if the content is too
        large.

    Examples
    --------
    >>> decompress(zlib.compress(b"abc") + b"d")
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
    """Return the array in a ``.npy`` file; its data are read from the disk when they are used.

    Parameters
    ----------
    path : path
        The file, which must not be compressed.
    what : str
        Noun for the file, with which an error message begins.

    Raises
    ------
    InputError
        If the file cannot be read, is no array, or differs in size from its header.
    """
    try:
        array = np.lib.format.open_memmap(path, mode="r")
        left = os.path.getsize(path) - array.offset - array.nbytes
        if left == 0:
            return array
        reason = f"{left} bytes more than its head says"
    except OSError as error:
        reason = error.strerror or "not an array"
    except Exception:  # numpy's parser raises many types for a damaged header, such as TokenError
        reason = "not an array"
    raise InputError(f"{what} must be a readable .npy file, not {path} ({reason})")


def _unpacked_limit(packed: int, most: int) -> tuple[int, str]:
    """Return the size up to which a compressed file is unpacked, a protection against file bombs.

    The limit is 100 times the compressed size, but at least 16 MiB, and at most `most`.

    Parameters
    ----------
    packed : int
        Bytes of the compressed file.
    most : int
        Largest size in bytes that the caller allows.

    Returns
    -------
    limit : int
        The limit in bytes.
    text : str
        The limit in words, for an error message.
    """
    limit = max(SMALL, MOST_RATIO * packed)
    if limit < most:
        return limit, f"{MOST_RATIO} times its size or {_size_text(SMALL)}"
    return most, _size_text(most)


def _read_limited(file: BinaryIO, text: str, limit: int) -> bytes:
    """Read all of a file, piece by piece.

    A file of more than `limit` bytes is an error, whose message begins with `text`.
    """
    content = bytearray()
    while piece := file.read(READ_BYTES):
        content += piece
        if len(content) > limit:
            raise InputError(f"{text}, not more")
    return bytes(content)


def _size_text(count: int) -> str:
    """Return `count` bytes as text, in MiB from one MiB on."""
    return f"{count >> 20} MiB" if count >= 2**20 else f"{count} bytes"


def parse_json(raw: bytes) -> Any:
    """Return the value that JSON text stands for.

    Parameters
    ----------
    raw : bytes
        Text in UTF-8, with or without a byte-order mark.

    Raises
    ------
    ValueError
        If the text is not JSON, or an object has a key twice. The message is one line.

    Examples
    --------
    >>> parse_json(b'{"a": [{"b": 1, "b": 2}]}')
    Traceback (most recent call last):
    ValueError: an object has the key "b" twice
    """
    try:
        value = json.loads(
            raw.decode("utf-8-sig"),
            object_pairs_hook=_object_of_pairs,
            parse_constant=_refuse_constant,
        )
        if _SURROGATE.search(raw):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair stands alone in a string") from None
    except ValueError as error:
        raise ValueError(str(error).splitlines()[0]) from None
    return value


def _object_of_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object, given its keys and values as pairs, as a dict.

    A key that comes twice raises an error, while Python's own reader would keep the last value.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"an object has the key {excerpt(twice)} twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def excerpt(value: Any) -> str:
    """Return a value from a file as JSON, cut to the length that a message has room for.

    Examples
    --------
    >>> excerpt([True, "a"])
    '[true, "a"]'
    """
    text = json.dumps(value)
    return text if len(text) <= LONGEST_EXCERPT else text[: LONGEST_EXCERPT - 3] + "..."


def json_location(path: Iterable[str | int]) -> str:
    """Return the path to a value within a JSON file, in words.

    Examples
    --------
    >>> json_location(["rounds", 3, 1, "path"])
    'rounds[3][1].path'
    """
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".")
