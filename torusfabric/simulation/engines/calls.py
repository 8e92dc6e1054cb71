"""Helpers for calls into C libraries: fields of structures, and words as 32-bit chunks.

A *chunk* here is 32 bits of a word, not a part of a message.
"""

import ctypes
from typing import Any

import numpy as np

from .base import Messages

__all__ = ["uint64_fields", "words_from_chunks", "words_to_chunks"]


def uint64_fields(names: str) -> list[tuple[str, Any]]:
    """Return ``_fields_`` of a `ctypes.Structure` whose members are all 64 bits wide.

    Parameters
    ----------
    names : str
        Field names separated by spaces; a trailing ``*`` marks an address. ``"size data*"`` is an
        integer and an address.
    """
    kinds = {True: ctypes.c_void_p, False: ctypes.c_uint64}
    return [(name.rstrip("*"), kinds[name.endswith("*")]) for name in names.split()]


def words_to_chunks(words: Messages, width: int) -> np.ndarray:
    """Convert words to 32-bit chunks.

    Parameters
    ----------
    words : array of int, any shape
        The words.
    width : int
        Bits of a word.

    Returns
    -------
    ndarray of uint32, shape (.., chunks)
        For each word its chunks, the lowest bits first.
    """
    chunks = -(-width // 32)
    if width <= 64:
        halves = np.asarray(words, "<u8")[..., None].view("<u4")
        return np.ascontiguousarray(halves[..., :chunks])
    words = np.asarray(words, object)
    raw = b"".join(int(word).to_bytes(4 * chunks, "little") for word in words.ravel())
    return np.frombuffer(raw, "<u4").reshape(*words.shape, chunks).copy()


def words_from_chunks(chunks: np.ndarray, width: int) -> np.ndarray:
    """Convert 32-bit chunks to words.

    Parameters
    ----------
    chunks : ndarray of uint32, shape (.., chunks)
        For each word its chunks, the lowest bits first.
    width : int
        Bits of a word.

    Returns
    -------
    ndarray, shape (..)
        Words as uint64, or as Python integers if they have more than 64 bits.
    """
    if width <= 64:
        halves = np.zeros((*chunks.shape[:-1], 2), "<u4")
        halves[..., : chunks.shape[-1]] = chunks
        return halves.view("<u8")[..., 0].astype(np.uint64)
    words, size = np.empty(chunks.shape[:-1], object), 4 * chunks.shape[-1]
    raw = np.ascontiguousarray(chunks, "<u4").tobytes()
    flat = [int.from_bytes(raw[k : k + size], "little") for k in range(0, len(raw), size)]
    words.ravel()[:] = flat
    return words
