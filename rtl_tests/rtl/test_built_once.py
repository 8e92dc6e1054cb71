"""What is equal is built once, and what must differ is not: parts of hardware that are shared."""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from torusfabric.rtl.endpoint_wires import memory_size
from torusfabric.rtl.place import Column, ColumnSet, Location, Shown, Table


def test_equal_values_lie_in_one_place():
    table = Table(members=1, spans=[slice(0, 3), slice(3, 5)])
    values = np.array([[0, 1, 2, 7, 7]])
    first = table.place(values)
    assert table.place(values) == first
    assert table.width == first.width == 3
    wider = np.array([[0, 1, 2, 8, 8]])
    assert table.place(wider) != first
    assert table.width == 3 + 4


def test_what_does_not_matter_is_what_does():
    """A mode in which a value does not matter takes the constant of another."""
    table = Table(members=1, spans=[slice(0, 2), slice(2, 4)])
    assert table.place(np.array([[-1, -1, 3, 3]])).constants == (3, 3)
    assert table.width == 0


def test_nodes_that_know_no_mode():
    """A constant of a mode lies in their tables, unless all nodes are given it."""
    values = np.array([[1, 1, 0, 0], [1, 1, 0, 1]])
    table = Table(members=2, spans=[slice(0, 2), slice(2, 4)], by_form=False)
    assert table.place(values) == Location(1, (0, 0), start=0)
    assert [table.rows(member) for member in range(2)] == [(1, 1, 0, 0), (1, 1, 0, 1)]
    place = partial(table.place, column=0, given=[True, False])
    assert place(values) == Location(1, (0, 0), start=1, column=0)
    assert [row >> 1 for row in table.rows(1)] == [0, 0, 0, 1]
    assert place(values[:1]) == Location(1, (0, 0), column=0)


def test_columns_that_are_shown_in_different_ways():
    columns, shown = ColumnSet(), (Shown.VALUE, Shown.STROBE, Shown.VALUE)
    assert [columns.add(Column(np.array([1, 0]), (4,), way)) for way in shown] == [0, 1, 0]
    assert [column.shown for column in columns.all] == [Shown.VALUE, Shown.STROBE]


def test_columns_that_may_be_one():
    """Where values, delays and pitches do not contradict each other."""
    column = Column(np.array([3, -1, 5]), (4, None), Shown.ADDRESS, (1, None))
    other = Column(np.array([-1, 2, 5]), (None, 6), Shown.ADDRESS, (None, 2))
    both = column.with_other(other)
    assert both is not None
    assert (both.values.tolist(), both.delays, both.pitches) == ([3, 2, 5], (4, 6), (1, 2))
    assert column.with_other(replace(other, values=np.array([-1, 2, 4]))) is None
    assert column.with_other(replace(other, delays=(5, 6))) is None
    assert column.with_other(replace(other, pitches=(2, 2))) is None


@pytest.mark.parametrize("depth", [1, 2, 16, 17, 256, 257, 512, 513])
def test_sizes_of_memories(depth):
    """Sizes are 16, 256 and multiples of 512 words; what is a size is taken as it is."""
    many = np.full((2, 1), 10**6)
    program = SimpleNamespace(depth=many)
    sizes = {1: 1, 2: 16, 16: 16, 17: 256, 256: 256, 257: 512, 512: 512, 513: 1024}
    assert memory_size(program, 0, depth) == sizes[depth]
