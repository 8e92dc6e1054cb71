"""Sweeps: the grid, the file of results, and the two kinds of workers."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.errors import InputError, MissingTool
from torusfabric.sweep.grid import AXES, key, load, points
from torusfabric.sweep.results import Results
from torusfabric.sweep.work import describe, on_cluster, on_cores, run, work

#: A sweep of many short things to do.
MANY = """
topologies = ["3x3", "3x4", "4x4", "4x5"]
collectives = ["allgather", "broadcast"]
algorithms = ["all"]
chunks = [1, 2, 4]
"""


@pytest.fixture
def write(tmp_path):
    """A function that writes a sweep; returns its path."""

    def make(text, name="grid.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return make


def _plan(topology="4x4", **others):
    return {"step": "plan", "topology": topology, "collective": "allgather", **others}


def _lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_step_is_done_once_for_what_matters_to_it(write):
    grid = load(
        write(
            """
            steps = ["plan", "simulate", "synth"]
            topologies = ["4x4", "4x6"]
            collectives = ["allgather"]
            algorithms = ["best", "hamiltonian"]
            widths = [8, 16, 32]
            flits = [2, 4]
            targets = ["ecp5-25k", "ice40-hx8k"]
            mappings = ["compact", "fast"]
            pnr = true
            seeds = 3
            """
        )
    )
    found = points(grid)
    steps = [point["step"] for point in found]
    plans, simulations = 2 * 2, 2 * 2 * 3 * 2
    assert [steps.count(s) for s in ("plan", "simulate", "synth")] == [
        plans,
        simulations,
        simulations * 2 * 2,
    ]
    assert len({key(point) for point in found}) == len(found)
    assert "width" not in found[0]
    assert found[-1] == {
        "step": "synth",
        "topology": "4x6",
        "collective": "allgather",
        "algorithm": "hamiltonian",
        "width": 32,
        "flits": 4,
        "target": "ice40-hx8k",
        "mapping": "fast",
        "pnr": True,
        "seeds": 3,
    }


def test_several_collectives_and_lengths_of_any_run(write):
    """They are one fabric, whose algorithms the list does not choose; an algorithm may be named."""
    text = """
        steps = ["plan", "simulate"]
        topologies = ["3"]
        collectives = ["allgather", "allgather,alltoall:necklace", "alltoall:matching"]
        algorithms = ["best", "bufferless"]
        widths = [4]
        max_flits = [2, 3]
        """
    found = points(load(write(text)))
    names = [(point["collective"], point["algorithm"]) for point in found]
    once = [
        ("allgather", "best"),
        ("allgather", "bufferless"),
        ("allgather,alltoall:necklace", "best"),
        ("alltoall:matching", "best"),
    ]
    assert names[:4] == once
    assert sorted(names[4:]) == sorted(once * 2)
    assert [point["max_flits"] for point in found if "max_flits" in point] == [2, 3] * 4
    plan, simulation, _ = [point for point in found if "," in point["collective"]]
    assert [mode["algorithm"] for mode in work(plan)["result"]["modes"]] == [
        "hamiltonian",
        "necklace",
    ]
    jobs = work(simulation)["result"]["jobs"]
    assert {(job["mode"], job["length"], job["words_wrong"]) for job in jobs} == {
        (mode, length, 0) for mode in (0, 1) for length in (1, 2)
    }
    both = [point for point in points(load(write(text + "flits = [4]"))) if "width" in point]
    lengths = [(point.get("flits"), point.get("max_flits")) for point in both]
    assert sorted(set(lengths), key=str) == [(4, None), (None, 2), (None, 3)]
    assert len(both) == 12
    for wrong in ("allgather,nonsense", "allgather:nonsense", "allgather,"):
        with pytest.raises(InputError, match="must be one of"):
            load(write(f'topologies = ["3x3"]\ncollectives = ["{wrong}"]'))


def test_several_files(write, tmp_path):
    """They are one fabric; a point is known by the content of all."""
    files = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for file, kind in zip(files, ("allgather", "broadcast"), strict=True):
        tf.plan("2x3", kind).save(file)
    grid = f'steps = ["plan", "simulate"]\nplans = ["{",".join(files)}"]\nmax_flits = [2]'
    plan, simulate = points(load(write(grid)))
    assert [mode["collective"] for mode in work(plan)["result"]["modes"]] == [
        "allgather", "broadcast"
    ]  # fmt: skip
    assert simulate["max_flits"] == 2
    tf.plan("2x3", "broadcast", root=1).save(files[1])
    assert key(points(load(write(grid)))[0]) != key(plan)
    with pytest.raises(InputError, match=r"^Plan must be a schedule file, not none\.json"):
        load(write('plans = ["none.json"]'))


def test_defaults_are_left_to_the_planner(write):
    grid = load(write('topologies = ["4x4"]\ncollectives = ["allgather"]\n'))
    assert points(grid) == [_plan(algorithm="best")]


def test_all_stands_for_the_algorithms_that_know_the_collective(write):
    text = 'topologies = ["4x4"]\ncollectives = ["alltoall"]\nalgorithms = ["all", "best"]\n'
    names = [point["algorithm"] for point in points(load(write(text)))]
    assert {"matching", "best"} <= set(names)
    assert "hamiltonian" not in names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topologies = [", r"^Sweep file \S+grid.toml must be TOML: "),
        (
            "width = [8]",
            r"^Key of a sweep must be one of steps, .*, not 'width' \(did you mean widths\?\)$",
        ),
        ('topologies = ["4x4"]', r"^Sweep must have collectives, not leave them out$"),
        (
            'steps = ["synth"]\ntopologies = ["4x4"]\ncollectives = ["allgather"]',
            r"^Sweep must have targets, not leave them out$",
        ),
        ('steps = ["fly"]', r"^Step must be one of plan, simulate, synth, not 'fly'$"),
        (
            'topologies = ["4x4"]\ncollectives = ["allgather"]\nchunks = [0]',
            r"^Key chunks of a sweep must be a list of positive integers, not \[0\]$",
        ),
        (
            'topologies = "4x4"\ncollectives = ["allgather"]',
            r"^Key topologies of a sweep must be a list of strings, not '4x4'$",
        ),
        (
            'topologies = ["4x4"]\ncollectives = ["allgather"]\npnr = 1',
            r"^Key pnr of a sweep must be true or false, not 1$",
        ),
        (
            'topologies = ["4x4"]\ncollectives = ["allgather"]\nseeds = 0',
            r"^Key seeds of a sweep must be a positive integer, not 0$",
        ),
        (
            'topologies = ["4x4"]\ncollectives = ["allgather"]\nalgorithms = ["hamilton"]',
            r"^Algorithm must be one of .*, not 'hamilton' \(did you mean hamiltonian\?\)$",
        ),
        (
            'topologies = ["4x4"]\ncollectives = ["allgather"]\nmappings = ["best"]',
            r"^Mapping must be compact or fast, not 'best'$",
        ),
    ],
)
def test_misfit_descriptions(write, text, message):
    with pytest.raises(InputError, match=message):
        load(write(text))


def test_missing_description(tmp_path):
    with pytest.raises(InputError, match=r"^Sweep file .* could not be read: No such file"):
        load(tmp_path / "none.toml")


def test_work_plans():
    row = work(_plan(algorithm="hamiltonian"))
    assert row["status"] == "done"
    assert row["key"] == key(_plan(algorithm="hamiltonian"))
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
    point = _plan("3x3", algorithm="best", width=8) | {"step": "simulate"}
    result = work(point)["result"]
    assert result["words_wrong"] == 0
    assert result["cycles"] == result["predicted_cycles"]


def test_what_does_not_fit_is_a_row():
    row = work(_plan("4x4", algorithm="lee-code"))
    assert row["status"] == "misfit"
    assert row["reason"].startswith("Algorithm lee-code needs ")


def test_a_fault_of_ours_does_not_end_a_sweep():
    row = work(_plan("4x4", algorithm=7))
    assert row["status"] == "failed"
    assert "result" not in row


def test_rows_outlive_the_file_being_closed(tmp_path):
    path = tmp_path / "r.jsonl"
    row = {"key": key(_plan()), **_plan(), "status": "done"}
    with Results(path) as results:
        assert _plan() not in results
        results.add(row)
        results.add(row | {"status": "again"})
    with Results(path) as results:
        assert _plan() in results
        assert list(results.rows.values()) == [row]


@pytest.mark.parametrize("rest", ["{", '{"key": "1", "st', "x"])
def test_half_a_line_at_the_end_goes(tmp_path, rest):
    path = tmp_path / "r.jsonl"
    whole = '{"key": "0", "status": "done"}\n'
    path.write_text(whole + rest)
    with Results(path) as results:
        assert list(results.rows) == ["0"]
        results.add({"key": "1"})
    assert path.read_text() == whole + '{"key": "1"}\n'


def test_text_after_rows_is_named(tmp_path):
    """A line that is no row is named by its number, and nothing is changed."""
    path = tmp_path / "r.jsonl"
    text = '{"key": "0", "status": "done"}\nnote\n'
    path.write_text(text)
    with pytest.raises(InputError, match=r"^Results must be rows of a sweep, not line 2 of \S+$"):
        Results(path)
    assert path.read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        "hello\n",
        "{}\n",
        "[1]\n",
        "a file of the user",
        '{"key": "0"}\n',
        '{"key": 0, "status": "done"}\n',
        '{"key": "0", "status": "failed"}\n',
        '{"key": "0", "key": "1", "status": "done"}\n',
        "[" * 100_000 + "\n",
    ],
)
def test_other_files_are_left_alone(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=r"^Results must be rows of a sweep, not line 1 of \S+$"):
        Results(path)
    assert path.read_text() == text


def test_results_that_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match=r"^File must be writable, not \S+ \(No such file"):
        Results(tmp_path / "none" / "r.jsonl")


def test_one_sweep_a_file(tmp_path):
    path = tmp_path / "r.jsonl"
    with (
        Results(path),
        pytest.raises(InputError, match=r"^Results must not be in use by another sweep, as \S+ is"),
    ):
        Results(path)
    with Results(path):
        pass


def test_only_what_is_missing_is_done(tmp_path):
    wanted = [_plan(f"{n}x{n}", algorithm="best") for n in (3, 4, 5)]
    asked, reported = [], []

    def workers(todo):
        asked.append([point["topology"] for point in todo])
        for point in todo:
            yield {"key": key(point), **point, "status": "done"}

    with Results(tmp_path / "r.jsonl") as results:
        run(wanted[:1], results, workers)
        outcome = run(wanted, results, workers, lambda *step: reported.append(step[:2]))
    assert asked == [["3x3"], ["4x4", "5x5"]]
    assert reported == [(1, 3), (2, 3), (3, 3)]
    assert outcome == {"rows": 3, "kept": 1, "done": 2, "misfits": 0, "failed": []}


def test_what_failed_is_reported_and_tried_again(tmp_path):
    point = _plan(algorithm="best")
    failed = {"key": key(point), **point, "status": "failed", "reason": "no luck"}
    with Results(tmp_path / "r.jsonl") as results:
        outcome = run([point], results, lambda todo: (r for r in [failed]))
        assert outcome["failed"] == ["plan 4x4 allgather best: no luck"]
        assert point not in results


def test_missing_tool_ends_a_sweep(tmp_path):
    row = {"key": "0", "status": "missing", "reason": "Tool yosys was not found"}
    with Results(tmp_path / "r.jsonl") as results, pytest.raises(MissingTool, match="yosys"):
        run([_plan()], results, lambda todo: (r for r in [row]))


def test_command(write, capsys):
    path = write('topologies = ["3x3", "4x4"]\ncollectives = ["allgather"]\n')
    assert main(["sweep", str(path), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    rows = path.with_suffix(".jsonl")
    assert first == {
        "version": 1, "results": str(rows), "rows": 2, "kept": 0, "done": 2, "misfits": 0,
        "failed": [],
    }  # fmt: skip
    before = rows.read_bytes()
    assert main(["sweep", str(path)]) == 0
    assert "kept     2" in capsys.readouterr().out
    assert rows.read_bytes() == before


def test_help_lists_what_a_sweep_may_hold(write, capsys):
    """The example in the help is a sweep, with every key that there is."""
    with pytest.raises(SystemExit) as end:
        main(["sweep", "--help"])
    assert end.value.code == 0
    _, _, example = capsys.readouterr().out.partition("may be left out):\n")
    path = write(textwrap.dedent(example))
    keys = re.findall(r"^(\w+) =", path.read_text(), re.M)
    assert sorted(keys) == sorted({"steps", *AXES, "pnr", "seeds"} - {"plans"})
    assert len(points(load(path))) > 100


def test_schedule_files_in_place_of_topologies(write, tmp_path, capsys):
    """A sweep over schedule files does a file again once its content is another."""
    plan, rows = tmp_path / "plan.json", tmp_path / "rows.jsonl"
    path = write('steps = ["plan", "simulate"]\nwidths = [8]\n')

    def swept(algorithm):
        assert main(["plan", "2x3", "allgather", "--algorithm", algorithm, "-o", str(plan)]) == 0
        assert main(["sweep", str(path), "--plan", str(plan), "-o", str(rows), "--quiet"]) == 0
        assert capsys.readouterr().err == ""
        return _lines(rows)

    first = swept("matching")
    assert [row["result"]["algorithm"] for row in first] == ["matching"] * 2
    assert [row["result"]["words_wrong"] for row in first[1:]] == [0]
    assert swept("matching") == first
    assert [row["result"]["algorithm"] for row in swept("one-packet")[2:]] == ["one-packet"] * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('plans = ["none.json"]', "^Plan must be a schedule file, not none.json$"),
        (
            'plans = ["grid.toml"]\ntopologies = ["4x4"]',
            "^Key topologies of a sweep must be left out with plans$",
        ),
        ('steps = ["synth"]\nplans = ["grid.toml"]', "^Sweep must have targets, not leave them"),
    ],
)
def test_misfit_schedule_files(write, text, message, monkeypatch):
    """What a sweep over schedule files must not hold."""
    path = write(text)
    monkeypatch.chdir(path.parent)
    with pytest.raises(InputError, match=message):
        load(path)


def _start(path, *options):
    return subprocess.Popen([sys.executable, "-m", "torusfabric", "sweep", str(path), *options])


def _wait_for_lines(path, count, process):
    for _ in range(3000):
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        assert process.poll() is None
        time.sleep(0.01)
    raise AssertionError("nothing happens")


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="needs kill -9")
def test_killed_sweep_goes_on_where_it_was(write):
    path = write(MANY)
    rows, total = path.with_suffix(".jsonl"), len(points(load(path)))
    process = _start(path)
    _wait_for_lines(rows, 5, process)
    process.kill()
    process.wait()
    text = rows.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    assert 5 <= whole.count(b"\n") < total
    assert _start(path).wait() == 0
    assert rows.read_bytes().startswith(whole)
    keys = [row["key"] for row in _lines(rows)]
    assert len(keys) == len(set(keys)) == total


@pytest.mark.skipif(sys.platform == "win32", reason="needs kill -9")
def test_lost_process_is_replaced():
    todo = [_plan(f"{n}x{n}", algorithm="hamiltonian") for n in range(3, 8)]
    rows = on_cores(todo, jobs=2)
    found = [next(rows)]
    victims = [p for p in _children(os.getpid()) if b"spawn_main" in _command(p)]
    os.kill(victims[0], signal.SIGKILL)
    found += rows
    assert sorted(map(describe, found)) == sorted(map(describe, todo))
    assert {row["status"] for row in found} == {"done"}


def _children(pid):
    if not os.path.isdir("/proc"):
        pytest.skip("needs /proc")
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


def _command(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


def test_no_scheduler():
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match=r"^Scheduler must be the address of a Dask scheduler"):
        list(on_cluster([_plan()], "nonsense://here"))


@pytest.mark.long
@pytest.mark.filterwarnings("default")
def test_cluster_loses_a_worker(write):
    distributed = pytest.importorskip("distributed")
    path = write(MANY)
    rows, total = path.with_suffix(".jsonl"), len(points(load(path)))
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        process = _start(path, "--scheduler", cluster.scheduler_address)
        _wait_for_lines(rows, 5, process)
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
        assert process.wait() == 0
    keys = [row["key"] for row in _lines(rows)]
    assert len(keys) == len(set(keys)) == total
    assert {row["status"] for row in _lines(rows)} == {"done", "misfit"}
