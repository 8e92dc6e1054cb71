"""The results file of a sweep: no row is lost, and no point is computed twice."""

import pytest
from sweeps import plan_step

from torusfabric.errors import InputError
from torusfabric.sweep.grid import point_key
from torusfabric.sweep.results import Results
from torusfabric.sweep.work import compute_rows


def test_rows_outlive_the_file_being_closed(tmp_path):
    path = tmp_path / "r.jsonl"
    row = {"key": point_key(plan_step()), **plan_step(), "status": "done"}
    with Results(path) as results:
        assert plan_step() not in results
        results.add(row)
        results.add(row | {"status": "again"})
    with Results(path) as results:
        assert plan_step() in results
        assert list(results.rows.values()) == [row]


ROW = '{"key": "0", "status": "done"}'


@pytest.mark.parametrize("end", ["\n{", '\n{"key": "1", "st', "\n", ""])
def test_the_next_row_follows_the_last_whole_one(tmp_path, end):
    """The next row follows the last complete one, after half a row and after a missing line end."""
    path = tmp_path / "r.jsonl"
    path.write_text(ROW + end)
    with Results(path) as results:
        assert list(results.rows) == ["0"]
        results.add({"key": "1"})
    assert path.read_text() == ROW + '\n{"key": "1"}\n'


def test_results_are_not_compressed(tmp_path):
    """A compressed results file is refused, because rows are appended."""
    with pytest.raises(
        InputError,
        match=r"^Results cannot be compressed; name the file r\.jsonl in place of \S+\.gz$",
    ):
        Results(tmp_path / "r.jsonl.gz")
    assert not list(tmp_path.iterdir())


def test_half_a_row_alone_goes(tmp_path):
    """A file with only the beginning of a row is emptied."""
    path = tmp_path / "r.jsonl"
    path.write_text('{"key": "0123456789abcdef", "step": "pl')
    with Results(path) as results:
        assert not results.rows
    assert path.read_text() == ""


@pytest.mark.parametrize(
    "text",
    [
        "hello\n",
        "{}\n",
        "[1]\n",
        "a file of the user",
        "{",
        '{"key": "',
        '{"key": "C major", "notes": [1, 2]}',
        '{"key": "0"}\n',
        '{"key": 0, "status": "done"}\n',
        '{"key": "0", "status": "failed"}\n',
        '{"key": "0", "key": "1", "status": "done"}\n',
        "[" * 100_000 + "\n",
        ROW + "\nnote\n",
        ROW + "\nnote",
    ],
)
def test_other_files_are_left_alone(tmp_path, text):
    """A file of another kind stays, and its first foreign line is named by number."""
    path = tmp_path / "notes.txt"
    path.write_text(text)
    line = 1 + text.startswith(ROW)
    with pytest.raises(InputError, match=rf"^Line {line} of \S+ is no row of a sweep; choose a "):
        Results(path)
    assert path.read_text() == text


def test_results_that_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match=r"^File \S+ cannot be written \(No such file"):
        Results(tmp_path / "none" / "r.jsonl")


def test_one_sweep_a_file(tmp_path):
    path = tmp_path / "r.jsonl"
    with (
        Results(path),
        pytest.raises(InputError, match=r"^Results \S+ are in use by another sweep; wait for it"),
    ):
        Results(path)
    with Results(path):
        pass


def test_only_what_is_missing_is_done(tmp_path):
    wanted = [plan_step(f"{n}x{n}", algorithm="best") for n in (3, 4, 5)]
    asked, reported = [], []

    def workers(todo):
        asked.append([point["topology"] for point in todo])
        for point in todo:
            yield {"key": point_key(point), **point, "status": "done"}

    with Results(tmp_path / "r.jsonl") as results:
        compute_rows(wanted[:1], results, workers)
        outcome = compute_rows(wanted, results, workers, lambda *step: reported.append(step[:2]))
    assert asked == [["3x3"], ["4x4", "5x5"]]
    assert reported == [(1, 3), (2, 3), (3, 3)]
    assert outcome == {"rows": 3, "kept": 1, "done": 2, "misfits": 0, "failed": []}


def test_what_failed_is_reported_and_tried_again(tmp_path):
    point = plan_step(algorithm="best")
    failed = {"key": point_key(point), **point, "status": "failed", "reason": "no luck"}
    with Results(tmp_path / "r.jsonl") as results:
        outcome = compute_rows([point], results, lambda todo: (r for r in [failed]))
        assert outcome["failed"] == ["plan 4x4 allgather best: no luck"]
        assert point not in results


def _stop_after(path, rows):
    """Add some rows, and end with an error."""
    with Results(path) as results:
        for row in rows:
            results.add(row)
        raise InputError("Scheduler must answer")


def test_no_file_is_left_where_nothing_could_begin(tmp_path):
    """A new results file without rows is removed after an error; other files stay."""
    new, empty, begun = (tmp_path / name for name in ("new", "empty", "begun"))
    empty.touch()
    for path, rows in ((new, []), (empty, []), (begun, [{"key": "0", "status": "done"}])):
        with pytest.raises(InputError):
            _stop_after(path, rows)
    assert sorted(tmp_path.iterdir()) == [begun, empty]
    assert begun.read_text() == '{"key": "0", "status": "done"}\n'
