"""What rows of loaded tables say of the nodes, each different setting once.

A node has a table for what its control points do, by `Table`, and a row names a setting of each. So
rows that say the same at all nodes, or in which it does not matter at some, take one setting.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..topology import IntArray
from .fields import IDLE

if TYPE_CHECKING:
    from .loadable import Loadable

__all__ = ["Table", "columns", "joined", "named", "settings"]

#: More than there are ports.
MANY = 1 << 12

#: Of addresses, which may be below 0: they are counted modulo any power of two up to this.
ADDRESSES = 1 << 30


class Table(enum.IntEnum):
    """The tables of a node."""

    #: What out-ports select.
    SELECT = 0
    #: What operators select, the memory that each reader reads, and its address in a block.
    READ = 1
    #: The block.
    ADDRESS = 2
    #: Of what comes by each in-port, after how many cycles it is stored.
    STORE = 3


def named(sources: IntArray) -> IntArray:
    """A number for each stage and number of a source, shape (.., 2); -1 where it does not matter.

    Examples
    --------
    >>> named(np.array([[0, 3], [2, 1], [-1, -1]])).tolist()
    [3, 8193, -1]
    """
    return np.where(sources[..., 0] >= 0, sources[..., 0] * MANY + sources[..., 1], IDLE)


def columns(form: Loadable) -> tuple[IntArray, ...]:
    """What the rows of a form say, for each `Table`, shape (rows, nodes, columns).

    Examples
    --------
    >>> import torusfabric as tf
    >>> from torusfabric.program.rewriting import loadable
    >>> plan = tf.plan("4x4", "alltoall", algorithm="matching")
    >>> [found.shape for found in columns(loadable(tf.compile(plan, max_flits=4)))]
    [(8, 16, 4), (8, 16, 12), (8, 16, 4), (8, 16, 4)]
    """
    program, low = form.program, (form.program.flits - 1).bit_length()
    memory, base, delay = np.moveaxis(form.reads, -1, 0)
    if not form.streams:
        # In a loop with pauses words are counted on: a late one begins earlier by as much.
        base = base - delay * np.where(memory == program.ports, form.chunks, 1)
    block, within = np.divmod(base % ADDRESSES, 1 << low)
    read = [np.where(memory >= 0, values, IDLE) for values in (memory, within, block)]
    stored = np.where((form.blocks > 0)[:, None, None], np.maximum(form.stores, 0), IDLE)
    return (
        named(form.select),
        np.concatenate([named(form.operand), *read[:2]], axis=2),
        read[2],
        stored,
    )


def joined(rows: IntArray) -> tuple[IntArray, IntArray]:
    """Of each row which setting it takes, and the settings; values below 0 do not matter.

    Examples
    --------
    >>> of, settings = joined(np.array([[4, -1], [3, 8], [-1, 9]]))
    >>> of.tolist(), settings.tolist()
    ([0, 1, 0], [[4, 9], [3, 8]])
    """
    of, known = np.zeros(len(rows), int), np.zeros((0, *rows.shape[1:]), int)
    others = tuple(range(1, rows.ndim))
    for number, row in enumerate(rows):
        fits = ((known == row) | (known < 0) | (row < 0)).all(axis=others)
        if not fits.any():
            known, fits = np.concatenate([known, row[None]]), np.append(fits, True)
        of[number] = fits.argmax()
        known[of[number]] = np.maximum(known[of[number]], row)
    return of, known


def settings(forms: Sequence[Loadable]) -> list[tuple[IntArray, IntArray]]:
    """What the rows of forms, one after another, take of each `Table`, as `joined` says it."""
    each = map(columns, forms)
    return [joined(np.concatenate(found)) for found in zip(*each, strict=True)]
