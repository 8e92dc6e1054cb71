"""``check --spread``: a schedule of one's own without collisions, and where transfers met."""

import json

import numpy as np
import pytest
from helpers import check_refused, run_command, run_json

import torusfabric as tf

ONCE = tf.Transfers(
    np.array([0, 0, 0]), np.array([[0, -1], [0, 0], [1, -1]]), tf.Listed.single(np.arange(1, 4))
)


@pytest.fixture
def mine(tmp_path):
    """The path of a file in which two of three circuits meet."""
    schedule = tf.Rounds(
        topology=tf.Torus(4), collective=tf.Collective("scatter", 0), algorithm="mine",
        switching=tf.Switching.CIRCUIT, transfers=(ONCE,),
    )  # fmt: skip
    path = tmp_path / "mine.json"
    schedule.save(path)
    return str(path)


def test_a_right_schedule_is_written(capsys, mine, tmp_path):
    """The command writes a schedule that passes the check, and says where transfers met."""
    right = tmp_path / "right.json"
    _, out, _ = run_command(capsys, "check", mine, "--spread", str(right))
    assert "1 round before, 2 now; these transfers take at least 2" in out
    assert "1 (1 arc)" in out
    assert "Round 1: node 0 (0) port +0 carries 0>1 with block (0, 1, 0) and 0>1>2" in out
    assert tf.load(right).algorithm == "mine"
    assert run_json(capsys, "check", right)["rounds"] == 2


def test_json(capsys, mine, tmp_path):
    """The diagnosis is part of the JSON object."""
    facts = run_json(capsys, "check", mine, "--spread", tmp_path / "right.json")
    found = facts["spread"]
    (first,) = found.pop("first")
    assert found == {
        "rounds_before": 1, "rounds_after": 2, "bound": 2, "busiest_load": 2,
        "busiest": "node 0 (0) port +0", "longest_chain": 1, "collisions": 1, "kinds": {"arc": 1},
    }  # fmt: skip
    assert (first["round"], first["node"], first["port"], first["kind"]) == (1, 0, 0, "arc")
    assert first["transfers"] == [
        {"number": 1, "path": [0, 1], "blocks": [[0, 1, 0]]},
        {"number": 2, "path": [0, 1, 2], "blocks": [[0, 2, 0]]},
    ]
    assert facts["file"] == str(tmp_path / "right.json")


def test_a_schedule_without_collisions(capsys, tmp_path):
    """A right schedule is written as it is, and a second time the file is the same."""
    first, again = str(tmp_path / "plan.json"), str(tmp_path / "again.json")
    run_command(capsys, "plan", "3x3", "allgather", "-o", first)
    _, out, _ = run_command(capsys, "check", first, "--spread", again)
    assert "nothing to mend: no transfers meet, and the schedule is unchanged" in out
    with open(first, encoding="utf-8") as one, open(again, encoding="utf-8") as other:
        assert one.read() == other.read()
    assert run_json(capsys, "check", first, "--spread", again)["spread"]["collisions"] == 0


def test_check_says_what_helps(capsys, mine):
    """Without the option, the error of the check names it."""
    said = check_refused(capsys, "check", mine, status=2)
    assert "carries two messages at once; 1 such fault in all" in said
    assert "`check --spread FILE` mends by delays" in said


def test_faults_that_stay(capsys, mine, tmp_path):
    """A fault that no delay mends is refused as by check, and no file is written."""
    with open(mine, encoding="utf-8") as file:
        data = json.load(file)
    del data["rounds"][0][2]
    wrong, right = tmp_path / "wrong.json", tmp_path / "right.json"
    wrong.write_text(json.dumps(data))
    said = check_refused(capsys, "check", wrong, "--spread", right, status=2)
    assert "After 1 round: node 3 (3) ends without block (0, 3, 0)" in said
    assert "--spread" not in said
    assert not right.exists()


def test_several_files(capsys, mine, tmp_path):
    """Several schedules take one file each."""
    files = [str(tmp_path / name) for name in ("a.json", "b.json")]
    facts = run_json(capsys, "check", f"{mine},{mine}", "--spread", ",".join(files))
    assert [mode["spread"]["rounds_after"] for mode in facts["modes"]] == [2, 2]
    assert [mode["file"] for mode in facts["modes"]] == files
    said = check_refused(capsys, "check", f"{mine},{mine}", "--spread", files[0])
    assert "--spread must be 2 different files joined by commas, one for each schedule" in said


def test_other_files_are_not_replaced(capsys, mine, tmp_path):
    """A file of another kind is replaced only with --force."""
    other = tmp_path / "notes.txt"
    other.write_text("my notes")
    said = check_refused(capsys, "check", mine, "--spread", other)
    assert "--force" in said
    assert other.read_text() == "my notes"
    run_json(capsys, "check", mine, "--spread", other, "--force")
    assert tf.load(other).steps == 2


def test_standard_output(capsys, mine):
    """The schedule can go to standard output; the facts then go to standard error."""
    _, out, err = run_command(capsys, "check", mine, "--spread", "-")
    assert json.loads(out)["algorithm"] == "mine"
    assert "1 round before, 2 now" in err


def test_broken_links_are_not_avoided(capsys, mine, tmp_path):
    """Transfers keep their paths, so a link that broke later is refused."""
    right = tmp_path / "right.json"
    words = ("check", mine, "--spread", right, "--broken-link", "0:+0")
    assert "has no link" in check_refused(capsys, *words, status=2)
    assert not right.exists()
