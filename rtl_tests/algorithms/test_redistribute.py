"""All-gather whose first step makes all packets equally large."""

import math

import numpy as np
import pytest
from flooding import steps_until_complete

from torusfabric.algorithms.oblivious import redistribute
from torusfabric.algorithms.oblivious.hamiltonian.plan import HAMILTONIAN
from torusfabric.algorithms.oblivious.redistribute import REDISTRIBUTE
from torusfabric.analysis.check import check, check_rounds
from torusfabric.collective import Collective
from torusfabric.topology import Torus

ALLGATHER = Collective("allgather")
STEPS = {(4, 3): 9, (4, 5): 15, (6, 5): 20, (6, 7): 28, (8, 7): 34, (8, 9): 44, (10, 9): 53,
         (12, 11): 75}  # fmt: skip


def plan(*sides):
    return REDISTRIBUTE(Torus(sides), ALLGATHER)


def messages_over_a_link(schedule):
    """Return the messages on the busiest link, summed over all rounds."""
    return sum(
        np.diff(transfers.payload.indptr).max() / schedule.chunks for transfers in schedule.rounds()
    )


@pytest.mark.parametrize("sides", STEPS)
def test_steps(sides):
    """Plans take the expected steps."""
    schedule = plan(*sides)
    assert schedule.round_count == STEPS[sides]
    assert check(schedule).rounds == STEPS[sides]


@pytest.mark.parametrize(
    "sides", [(4, 3), (3, 4), (4, 5), (5, 4), (6, 3), (12, 3), (6, 5), (6, 7), (2, 3), (7, 2)]
)
def test_no_step_is_idle(sides):
    """The plan is complete in its last step, and not before."""
    schedule = plan(*sides)
    assert steps_until_complete(schedule) == schedule.round_count


def test_packets_are_of_one_size_after_the_first_step():
    """After the first step all packets have the same size."""
    schedule = plan(6, 7)
    first, *others = schedule.rounds()
    assert schedule.chunks == 13
    # Columns 1 to 5 send 1 to 5 blocks to the left. Column 5, the special column, sends one to the
    # right.
    assert sorted(np.diff(first.payload.indptr)) == sorted([1, 2, 3, 4, 5, 1] * 6)
    assert all((np.diff(transfers.payload.indptr) == 7).all() for transfers in others)
    assert all(len(transfers) == 4 * 42 for transfers in others)


@pytest.mark.parametrize("columns", [3, 5, 7, 9])
@pytest.mark.parametrize("rows", [2, 4, 6, 10, 14, 20])
def test_closed_formula(rows, columns):
    """The steps follow the closed formula, in both orders of the sides."""
    schedule = plan(rows, columns)
    size = rows * columns - rows // 2
    expected = 1 + math.ceil((size + 2 * columns) / 2) if rows > 2 else columns + 1
    assert schedule.round_count == expected
    assert plan(columns, rows).round_count == expected
    check(schedule)


@pytest.mark.parametrize("sides", [*STEPS, (20, 3)])
def test_the_table_of_the_module_and_that_hamiltonian_moves_less(sides):
    """The table in the module is right, and Hamiltonian cycles move less over a link."""
    ours, other = plan(*sides), HAMILTONIAN(Torus(sides), ALLGATHER)
    moved = messages_over_a_link(ours), messages_over_a_link(other)
    rows, columns = sides
    at_least = rows * columns / 4 + (columns**2 + columns - 2) / (2 * columns - 1)
    assert moved[1] == pytest.approx(rows * columns / 4)
    assert at_least - 1e-9 <= moved[0] < at_least + 1
    line = next(
        line for line in redistribute.__doc__.splitlines() if line.startswith(f"{rows}x{columns} ")
    )
    numbers = [f"{ours.round_count} steps", f"{moved[0]:.2f}", f"{other.round_count} steps"]
    assert all(number in line for number in [*numbers, f"{moved[1]:.2f}"])


def test_only_tall_tori_take_fewer_steps_than_hamiltonian_cycles():
    """Only tori with many rows take fewer steps than Hamiltonian cycles."""
    for columns in (3, 5):
        for rows in range(4, 40, 2):
            fewer = plan(rows, columns).round_count < rows * columns // 2
            assert not fewer or rows > 4 * (columns + 1)


@pytest.mark.long
@pytest.mark.parametrize("sides", [(24, 25), (200, 3), (23, 26), (12, 11)])
def test_large_tori(sides):
    """Plans of large tori are correct."""
    check_rounds(plan(*sides))
