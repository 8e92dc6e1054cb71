"""Memories of many instances at once, with bits as in `symbols`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from ..topology import BoolArray, IntArray
from .gates import Bit, Ram
from .symbols import UNKNOWN, multiplexed

__all__ = ["Memory", "memory_of"]


@dataclass(frozen=True)
class Memory:
    """A memory, as far as it matters: its ports are places among the bits of a module.

    Parameters
    ----------
    size : int
        Words.
    reads : list of (ndarray of int, ndarray of int)
        Of each read port, address and data.
    writes : list of (ndarray of int, ndarray of int, ndarray of int)
        Of each write port, address, data and enables.
    contents : ndarray of int, shape (words, bits), or None
        Of a memory that is never written.
    collides : bool
        Whether nothing is known of a word that is read while it is written.
    """

    size: int
    reads: list[tuple[IntArray, IntArray]]
    writes: list[tuple[IntArray, IntArray, IntArray]]
    contents: IntArray | None
    collides: bool

    def unknown(self, instances: int) -> IntArray:
        """The words, shape (words, bits, instances), where nothing is known of what is written."""
        if self.contents is not None:
            return np.broadcast_to(self.contents[:, :, None], (*self.contents.shape, 1))
        width = len(self.reads[0][1])
        return np.full((self.size, width, instances), UNKNOWN, np.int32)

    def read(self, values: IntArray, words: IntArray) -> None:
        """Put what is read among the bits, shape (bits, instances)."""
        for address, data in self.reads:
            at = _address(values[address])
            known = (at >= 0) & (at < self.size)
            lanes = np.arange(values.shape[1]) if words.shape[2] > 1 else 0
            read = words[np.where(known, at, 0), :, lanes].T
            for into, _, enable in self.writes if self.collides else ():
                writing = (values[enable] != 0).any(axis=0)
                if writing.any():
                    known &= ~(writing & _may_meet(values, address, into))
            values[data] = np.where(known, read, UNKNOWN)

    def write(self, values: IntArray, words: IntArray) -> None:
        """Write what the bits say, in place."""
        for address, data, enable in self.writes:
            _write(words, values[address], values[data], values[enable])


def memory_of(
    ram: Ram, bits: Collection[int], places: Callable[[Collection[Bit]], IntArray]
) -> Memory:
    """The part of a memory that matters.

    Parameters
    ----------
    bits : collection of int
        The positions in its words that matter.
    places : function of (bits) -> ndarray of int
        Where bits of the module are.
    """
    chosen = sorted(bits)
    pick = lambda row: places([row[k] for k in chosen])
    contents = None
    if not ram.writes:
        text = ram.initial[::-1].ljust(ram.size * ram.width, "x")
        table = [[text[w * ram.width + k] for k in chosen] for w in range(ram.size)]
        contents = np.array([[_constant(char) for char in row] for row in table], np.int32)
    return Memory(
        ram.size,
        [(places(address), pick(data)) for address, data in ram.reads],
        [(places(at), pick(data), pick(enable)) for at, data, enable in ram.writes],
        contents,
        ram.collides,
    )


def _address(bits: IntArray) -> IntArray:
    """Addresses as numbers; -1 where not all bits are known."""
    weights = 1 << np.arange(len(bits))
    return np.where(((bits == 0) | (bits == 1)).all(axis=0), weights @ bits, -1)


def _write(words: IntArray, address: IntArray, data: IntArray, enable: IntArray) -> None:
    """Write into memories, in place."""
    active = (enable != 0).any(axis=0)
    if not active.any():
        return
    at = _address(address)
    open_ = np.nonzero(active & (at < 0))[0]
    if len(open_):
        _forget(words, address, enable, open_)
    lanes = np.nonzero(active & (at >= 0) & (at < len(words)))[0]
    if len(lanes):
        old, e, new = words[at[lanes], :, lanes].T, enable[:, lanes], data[:, lanes]
        words[at[lanes], :, lanes] = multiplexed(e, old, new).T


def _may_meet(values: IntArray, a: IntArray, b: IntArray) -> BoolArray:
    """Whether two addresses can be the same, by what is known of them."""
    common = min(len(a), len(b))
    apart = (values[a[:common]] ^ values[b[:common]]) == 1
    for rest in (a[common:], b[common:]):
        apart = np.concatenate([apart, values[rest] == 1])
    may_meet: BoolArray = ~apart.any(axis=0)
    return may_meet


def _forget(words: IntArray, address: IntArray, enable: IntArray, lanes: IntArray) -> None:
    """Write anything wherever addresses can lead, by what is known of them, in place."""
    bits = address[:, lanes]
    numbers = np.arange(len(words))[None] >> np.arange(len(address))[:, None] & 1
    forms, form_of = np.unique(np.where((bits == 0) | (bits == 1), bits, -1), axis=1,
                               return_inverse=True)  # fmt: skip
    for number, form in enumerate(forms.T):
        there = np.nonzero(((form[:, None] < 0) | (form[:, None] == numbers)).all(axis=0))[0]
        here = lanes[form_of.ravel() == number]
        for k in range(words.shape[1]):
            written = here[enable[k, here] != 0]
            words[there[:, None], k, written] = UNKNOWN


def _constant(char: str) -> int:
    return {"0": 0, "1": 1}.get(char, UNKNOWN)
