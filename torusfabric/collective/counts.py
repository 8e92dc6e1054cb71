"""Lengths of unequal messages as a user gives them: an array, or a file of numbers.

A file may name the nodes of its rows and columns by *labels*: in a first line, in a first column,
or in both. Labels are the names of nodes that reports print. Rows and columns then have any order.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import InputError
from ..toolchain.reading import read_text
from ..toolchain.values import message_text, parse_non_negative_int
from ..topology import IntArray, Topology
from .traffic import integer_table

__all__ = ["common_longest", "parse_counts"]

#: The largest file of counts, in bytes.
MOST_FILE_BYTES = 2**26


def parse_counts(
    kind: str,
    counts: Any,
    topology: Topology | None,
    members: Sequence[Sequence[int]],
) -> tuple[tuple[int, ...], ...]:
    """Return the field `lengths` of a collective.

    Parameters
    ----------
    kind : str
        The kind of the collective.
    counts : array_like of int, or path
        The numbers of a user, or their file.
    topology : Topology or None
        The network, in which labels name nodes; None if it is unknown.
    members : sequence of (sequence of int)
        The nodes of each listed group; empty for one group of all nodes.
    """
    if isinstance(counts, str | os.PathLike):

        def find_position(label: str) -> int:
            return _position_of(label, topology, members)

        counts = _read_table(counts, find_position)
    table = integer_table("Counts", counts)
    if kind in ("allgather", "gather"):
        table = table.reshape(-1, 1)
    elif kind in ("scatter", "reduce-scatter"):
        table = table.reshape(1, -1)
    return tuple(map(tuple, np.atleast_2d(table).tolist()))


def _position_of(label: str, topology: Topology | None, members: Sequence[Sequence[int]]) -> int:
    """Return the position of the node that a file of counts names, in the only group."""
    if topology is None:
        raise InputError(
            f"Counts name the node {message_text(label)}; give the network, or leave labels out"
        )
    if len(members) > 1:
        raise InputError(
            "Counts of several groups are for positions; leave the labels of nodes out, such as "
            f"{message_text(label)}"
        )
    node = topology.node_in_file(label, noun="Label of counts")
    for group in members:
        if node not in group:
            raise InputError(f"Label of counts must be a node of the group, not {label}")
        return group.index(node)
    return node


def _read_table(path: str | os.PathLike[str], find_position: Callable[[str], int]) -> Any:
    """Return the rows of numbers of a file; those with labels in the order of positions.

    `find_position` returns the position of the node that a label names.
    """
    lines = read_text(path, "File of counts", most=MOST_FILE_BYTES).splitlines()
    rows = [_split_line(line) for line in lines if line.strip(" \t,")]
    if not rows:
        raise InputError(f"File of counts {path} must have a row of numbers, and is empty")
    head: list[str] = []
    if not rows[0][0] or not all(map(_is_number, rows[0][1:])):
        head, *rows = rows
    labels: list[str] = []
    if rows and (head[:1] == [""] or not _is_number(rows[0][0]) or 0 < len(head) < len(rows[0])):
        labels, rows = [row[0] for row in rows], [row[1:] for row in rows]
        head = head[len(head) > len(rows[0]) :]
    if not rows or len({len(row) for row in [*rows, *([head] if head else [])]}) > 1:
        raise InputError(f"File of counts {path} must have equally many numbers in each line")
    table = np.array([[parse_non_negative_int("Count", cell) for cell in row] for row in rows])
    if not table.size:
        raise InputError(f"File of counts {path} must have numbers, with commas between them")
    if labels:
        table = table[_order_of(labels, find_position)]
    if head and len(head) > (1 if labels else 0):  # the title of a single column is no node
        table = table[:, _order_of(head, find_position)]
    return table


def _split_line(line: str) -> list[str]:
    """Return the cells of a line: between commas, where blanks do not count, or between blanks."""
    if "," not in line:
        return line.split()
    (cells,) = csv.reader([line.strip()], skipinitialspace=True)
    return [cell.strip() for cell in (cells if cells[-1].strip() else cells[:-1])]


def _is_number(cell: str) -> bool:
    """Return True if a cell is a number of any kind, and so no label."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _order_of(labels: Sequence[str], find_position: Callable[[str], int]) -> IntArray:
    """Return the indices that bring rows or columns with labels into the order of positions."""
    positions = [find_position(label) for label in labels]
    if len({*positions}) < len(labels):
        twice = next(k for k, at in enumerate(positions) if at in positions[:k])
        raise InputError(f"Labels of counts must name each node once, not {labels[twice]} twice")
    if max(positions) >= len(labels):
        raise InputError(f"Labels of counts must name each node once, not {len(labels)} nodes only")
    return np.argsort(positions)


def common_longest(lengths: Iterable[int]) -> int:
    """Return the flits of the longest messages of all modes whose messages have unequal lengths.

    The result is 0 if there is no such mode.

    Parameters
    ----------
    lengths : iterable of int
        For each mode, the flits of its longest message; 0 if its messages have one length.

    Raises
    ------
    InputError
        If modes have longest messages of different lengths, because all runs have one length.

    Examples
    --------
    >>> common_longest([8, 0, 8])
    8
    """
    found = sorted({*lengths} - {0})
    if len(found) > 1:
        raise InputError(
            "Modes with messages of unequal lengths must have equally long longest messages, not "
            f"{' and '.join(map(str, found))} flits; lengthen one message"
        )
    return found[0] if found else 0
