"""Tables, which the checker judges by their offsets, or by one owner of a sum."""

from dataclasses import replace

import numpy as np
import pytest
from check_model import collective, faulty_round, first_fault, greedy_table, summing_table
from helpers import few
from hypothesis import given, settings
from hypothesis import strategies as st

from torusfabric.analysis.check import check, check_rounds
from torusfabric.collective import Collective
from torusfabric.errors import ScheduleError
from torusfabric.schedule import Masked, Switching, Table
from torusfabric.topology import Torus


@pytest.mark.parametrize(
    "sides", few(4, [(3,), (4,), (2, 2), (2, 3), (2,), (3, 3), (4, 4), (2, 3, 4)], tuples=True)
)
@pytest.mark.parametrize(
    ("make", "kind", "chunks"),
    [(greedy_table, "allgather", 1), (greedy_table, "allgather", 2), (greedy_table, "alltoall", 1),
     *((summing_table, kind, n) for kind in ("reduce-scatter", "allreduce") for n in (1, 2))],
)  # fmt: skip
def test_tables_agree_with_their_transfers(make, sides, kind, chunks):
    """The check of a table by offsets, or by one owner, agrees with the check of all transfers."""
    schedule = make(sides, kind, chunks)
    assert check(schedule) == check_rounds(schedule)
    assert first_fault(schedule) is None


@pytest.mark.parametrize("prove", [check, check_rounds])
def test_tables_may_not_forward_at_once(prove):
    """A block that arrives in a step leaves in the next step at the earliest."""
    table = Table(
        topology=Torus([5]), collective=collective("allgather"), algorithm="by hand", ports=2,
        switching=Switching.STORE_AND_FORWARD, offset=np.array([[1, 4], [2, 3]]),
        chunk=np.zeros((2, 2), int),
    )  # fmt: skip
    assert prove(table).duplicates == 0
    turned = replace(table, topology=Torus([2, 3]), ports=4, offset=np.array([[3, -1, 4, -1]]),
                     chunk=np.zeros((1, 4), int))  # fmt: skip
    with pytest.raises(
        ScheduleError, match=r"^Round 1: node 0 \(0,0\) port \+1 sends block \(3, 0"
    ):
        prove(turned)


TABLES = [
    (greedy_table((3, 3)), 0), (greedy_table((5,), chunks=2), 0), (greedy_table((4, 2)), 0),
    (greedy_table((3, 3), "alltoall"), 1), (greedy_table((2, 3), "alltoall"), 1),
]  # fmt: skip


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.sampled_from(TABLES), st.booleans(), st.data())
def test_damaged_tables(case, half, data):
    """A damaged table gets the same first faulty round from all three checkers."""
    table, personal = case
    offset, chunk = table.offset.copy(), table.chunk.copy()
    destination = table.destination.copy() if personal else None
    for _ in range(data.draw(st.integers(0, 2))):
        step = data.draw(st.integers(0, len(offset) - 1))
        port = data.draw(st.integers(0, offset.shape[1] - 1))
        what = data.draw(st.sampled_from([offset, chunk] + [destination] * personal))
        top = table.chunks if what is chunk else table.topology.nodes
        what[step, port] = data.draw(st.integers(-1 if what is offset else 0, top - 1))
    ports = data.draw(st.sampled_from([table.ports, table.ports, 1]))
    table = replace(
        table, offset=offset, chunk=chunk, destination=destination, ports=ports,
        duplex="half" if half else "full",
    )  # fmt: skip
    quick, followed = faulty_round(table), faulty_round(table, check_rounds)
    assert quick == followed == first_fault(table)
    if quick is None:
        assert check(table) == check_rounds(table)


SUMMING = [
    summing_table((3, 3), "reduce-scatter"), summing_table((5,), "reduce-scatter", 2),
    summing_table((2, 2), "allreduce"), summing_table((4,), "allreduce", 2),
    summing_table((3,), "allreduce"),
]  # fmt: skip


@settings(derandomize=True, deadline=None, max_examples=80)
@given(st.sampled_from(SUMMING), st.sampled_from(["full", "full", "half"]), st.data())
def test_damaged_tables_of_sums(table, duplex, data):
    """A damaged table of sums gets the same first faulty round from all three checkers."""
    offset, chunk = table.offset.copy(), table.chunk.copy()
    for _ in range(data.draw(st.integers(0, 2))):
        step = data.draw(st.integers(0, len(offset) - 1))
        port = data.draw(st.integers(0, offset.shape[1] - 1))
        what = data.draw(st.sampled_from([offset, chunk]))
        top = chunk.max() if what is chunk else table.topology.nodes - 1
        what[step, port] = data.draw(st.integers(-1 if what is offset else 0, int(top)))
    reducing = table.reducing + data.draw(st.sampled_from([0, 0, 0, 1, -1]))
    ports = data.draw(st.sampled_from([table.ports, table.ports, 1]))
    table = replace(
        table, offset=offset, chunk=chunk, ports=ports, duplex=duplex, reducing=reducing
    )  # fmt: skip
    assert faulty_round(table) == faulty_round(table, check_rounds) == first_fault(table)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"offset": np.full((1, 2), 9)}, "Round 1: node 0 .* sends a block whose offset does not"),
        ({"chunk": np.full((1, 2), 1)}, "Round 1: node 0 .* sends a block whose chunk does not"),
        ({"chunk": np.full((1, 2), -1)}, "Round 1: node 0 .* sends a block whose chunk does not"),
        ({"chunk": np.zeros((2, 2), int)}, "The entries of a table must have shape"),
        ({"collective": Collective("alltoall")}, "A table for alltoall needs destinations"),
    ],
)  # fmt: skip
def test_malformed_tables(fields, message):
    """Invalid entries and shapes are refused."""
    table = replace(greedy_table((3,)), **fields)
    with pytest.raises(ScheduleError, match=f"^{message}"):
        check(table)


def test_malformed_table_of_which_one_root_counts():
    """A masked table with an invalid destination is refused."""
    exchange = greedy_table((2, 3), "alltoall")
    broken = replace(exchange, destination=np.where(exchange.destination == 1, -1, 2))
    with pytest.raises(ScheduleError, match=r"^Round 1: .* a block whose destination does not"):
        check(Masked.for_root(broken, Collective("scatter", 0)))
