"""The work of a sweep: one point of the grid."""

import json

from sweeps import plan_step

from torusfabric.sweep.grid import key, load, points
from torusfabric.sweep.work import work


def test_work_plans():
    row = work(plan_step(algorithm="hamiltonian"))
    assert row["status"] == "done"
    assert row["key"] == key(plan_step(algorithm="hamiltonian"))
    # 15 messages, each in two chunks, arrive by 4 ports in the fewest steps.
    assert row["result"]["rounds"] == row["result"]["bound"] == 8
    assert json.loads(json.dumps(row)) == row


def test_work_in_groups(write):
    """A collective in groups is a name as any other."""
    grid = """
    steps = ["plan", "simulate"]
    topologies = ["2x3"]
    collectives = ["allgather@1"]
    widths = [8]
    """
    planned, simulated = (work(point)["result"] for point in points(load(write(grid))))
    assert planned["collective"] == simulated["collective"] == "allgather@1"
    assert simulated["words_wrong"] == 0


def test_work_simulates():
    point = plan_step("3x3", algorithm="best", width=8) | {"step": "simulate"}
    result = work(point)["result"]
    assert result["words_wrong"] == 0
    assert result["cycles"] == result["predicted_cycles"]


def test_what_does_not_fit_is_a_row():
    row = work(plan_step("4x4", algorithm="lee-code"))
    assert row["status"] == "misfit"
    assert row["reason"].startswith("Algorithm lee-code needs ")


def test_a_fault_of_ours_does_not_end_a_sweep(monkeypatch):
    monkeypatch.setattr("torusfabric.planning.selection.find", lambda name: 1 // 0)
    row = work(plan_step("4x4", algorithm="matching"))
    assert row["status"] == "failed"
    assert "result" not in row
