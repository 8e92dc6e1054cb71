"""The work of a sweep: one point of the grid."""

import json

import pytest
from sweeps import plan_step

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.errors import InputError
from torusfabric.planning import selection_schedule
from torusfabric.planning.selection_schedule import plan_with_algorithm as plan
from torusfabric.sweep.cores import run_on_cores
from torusfabric.sweep.grid import grid_points, point_key, read_sweep
from torusfabric.sweep.work import compute_row


def test_work_plans():
    row = compute_row(plan_step(algorithm="hamiltonian"))
    assert row["status"] == "done"
    assert row["key"] == point_key(plan_step(algorithm="hamiltonian"))
    # 15 messages of two chunks each arrive by 4 ports in 8 steps, which is the bound.
    assert row["result"]["rounds"] == row["result"]["bound"] == 8
    assert json.loads(json.dumps(row)) == row


def test_work_in_groups(write):
    """A collective in groups is planned and simulated by its name."""
    grid = """
    steps = ["plan", "simulate"]
    topologies = ["2x3"]
    collectives = ["allgather@1"]
    widths = [8]
    """
    planned, simulated = (
        compute_row(point)["result"] for point in grid_points(read_sweep(write(grid)))
    )
    assert planned["collective"] == simulated["collective"] == "allgather@1"
    assert simulated["words_wrong"] == 0


def test_work_simulates():
    point = plan_step("3x3", algorithm="best", width=8) | {"step": "simulate"}
    result = compute_row(point)["result"]
    assert result["words_wrong"] == 0
    assert result["cycles"] == result["predicted_cycles"]


def test_cycles_are_those_of_a_simulation():
    """The step `cycles` reports the cycles of a simulation, for one run and for the runs of a
    fabric with choices.
    """
    for others in ({}, {"max_flits": 4}):
        point = plan_step("3x3", algorithm="best", width=8, **others)
        said, counted = (
            compute_row(point | {"step": step})["result"] for step in ("cycles", "simulate")
        )
        assert said["cycles"] == counted["cycles"]
        assert [job["cycles"] for job in said["jobs"]] == [job["cycles"] for job in counted["jobs"]]
        assert set(said) < set(counted)


def test_what_rows_share_is_done_once(monkeypatch):
    """An algorithm is planned once for all lengths and widths; a wrong width is a misfit."""
    found = []

    def counted(selection):
        found.append(selection)
        return plan(selection)

    monkeypatch.setattr(selection_schedule, "plan_with_algorithm", counted)
    point = plan_step("3x2", collective="scatter", algorithm="best") | {"step": "cycles"}
    rows = [
        compute_row(point | {"width": width, "flits": flits})
        for width in (8, 9)
        for flits in (2, 3)
    ]
    assert len({*found}) == len(found)
    assert len({selection.resolve_algorithm().name for selection in found}) > 1
    assert [row["result"]["width"] for row in rows] == [8, 8, 9, 9]
    assert rows[0]["result"]["cycles"] == rows[2]["result"]["cycles"] < rows[1]["result"]["cycles"]
    assert compute_row(point | {"width": 2000, "flits": 2})["status"] == "misfit"


def test_the_best_is_that_for_the_length():
    """The best algorithm is that for the length, or several forms for any length."""
    step = plan_step("3", collective="allreduce", algorithm="best", width=8)
    point = step | {"step": "simulate"}
    chosen = [tf.plan("3", "allreduce", flits=flits).algorithm for flits in (1, 18)]
    assert len({*chosen}) == 2
    for flits, algorithm in zip((1, 18), chosen, strict=True):
        assert compute_row(point | {"flits": flits})["result"]["algorithm"] == algorithm
    engine = compute_row(point | {"max_flits": 64})["result"]
    program = tf.compile([tf.plan_forms("3", "allreduce", max_flits=64)], max_flits=64)
    assert engine["words_wrong"] == 0
    assert program.modes[0].has_several_ranges
    for job in engine["jobs"]:
        assert job["cycles"] == program.cycles(job["length"])


def test_what_does_not_fit_is_a_row():
    row = compute_row(plan_step("4x4", algorithm="lee-code"))
    assert row["status"] == "misfit"
    assert row["reason"].startswith("Algorithm lee-code needs ")


def test_a_fault_of_ours_does_not_end_a_sweep(monkeypatch):
    monkeypatch.setattr("torusfabric.planning.selection.find_algorithm", lambda name: 1 // 0)
    row = compute_row(plan_step("4x4", algorithm="matching"))
    assert row["status"] == "failed"
    assert "result" not in row


def _plan_point(write, path):
    return grid_points(read_sweep(write(f'plans = ["{path}"]')))[0]


def test_plan_that_was_replaced_gives_no_row(write, tmp_path):
    """A replaced plan file is a failure; a worker with the original content computes its row."""
    path = tmp_path / "plan.json"
    tf.plan("3", "allgather").save(path)
    point, before = _plan_point(write, path), path.read_bytes()
    tf.plan("4", "broadcast").save(path)
    message = f"Plan {path} was changed after the sweep began; write the results to a new file"
    assert (compute_row(point)["status"], compute_row(point)["reason"]) == ("failed", message)
    assert [row["reason"] for row in run_on_cores([point])] == [message]
    path.unlink()
    assert compute_row(point)["status"] == "failed"
    row = compute_row(point, [before])  # a worker on another machine
    assert row["result"]["collective"] == "allgather"
    assert "allgather" not in row["plan"]


def test_only_what_follows_from_the_point_is_a_misfit(monkeypatch, write, tmp_path):
    """Too little memory and wrong settings are failures, which are tried again. A file that is no
    schedule is a misfit.
    """
    point = plan_step("3x7", algorithm="best", width=8) | {"step": "simulate"}
    with monkeypatch.context() as patch:
        patch.setattr("torusfabric.planning.limits.available_memory", lambda: 0)
        patch.setattr("torusfabric.planning.limits.NEGLIGIBLE_BYTES", 0)
        assert compute_row(point)["status"] == "failed"
    with monkeypatch.context() as patch:
        patch.setenv("TORUSFABRIC_CACHE_LIMIT", "much")
        synth = {"step": "synth", "target": "ice40-hx8k", "mapping": "compact", "pnr": False}
        assert compute_row(point | synth)["status"] == "failed"
    path = tmp_path / "plan.json"
    tf.plan("3", "allgather").save(path)
    with monkeypatch.context() as patch:
        patch.setattr("torusfabric.schedule.parsing.available_memory", lambda: 0)
        assert compute_row(_plan_point(write, path))["status"] == "failed"
    path.write_text("{}")
    row = compute_row(_plan_point(write, path))
    assert (row["status"], str(path) in row["reason"]) == ("misfit", True)


@pytest.mark.parametrize(
    "line",
    [
        f"seeds = {'9' * 310}",
        f"seeds = 0x{'f' * 9000}",
        f"widths = [{'9' * 310}]",
        f"pnr = [[{'9' * 310}]]",
        "seeds = nan",
        "seeds = -1",
        "seeds = 1979-05-27",
        "flits = [inf]",
        "max_flits = [1.5]",
        "ports = [true]",
        "chunks = [-1]",
        "widths = 8",
        "steps = [[]]",
        "algorithms = [{}]",
        "mappings = [1]",
        "pnr = 1",
    ],
)
def test_values_that_no_sweep_has(write, line):
    """A wrong value is refused with one short line."""
    with pytest.raises(InputError, match=r"^Key \w+ of a sweep must ") as caught:
        read_sweep(write(f'topologies = ["3"]\ncollectives = ["allgather"]\n{line}'))
    assert len(str(caught.value)) < 200


def test_too_many_processes(write, capsys):
    """Too many processes are refused before a results file is made."""
    path = write('topologies = ["3"]\ncollectives = ["allgather"]')
    assert main(["sweep", str(path), "--jobs", "2147483648"]) == 1
    assert capsys.readouterr().err.endswith(
        "--jobs must be at most 1024 processes, not 2147483648\n"
    )
    assert not path.with_suffix(".jsonl").exists()
