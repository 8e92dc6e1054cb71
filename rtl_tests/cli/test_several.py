"""Several collectives in the commands that plan, check, draw, animate and trace."""

import pytest
from helpers import check_refused, run_json

import torusfabric as tf
from torusfabric.cli import main


def test_plans_to_files_and_back(capsys, tmp_path):
    """Each collective is saved to a file, and `check` of the files states the same facts."""
    files = [str(tmp_path / name) for name in ("a.json", "b.json.gz")]
    words = ("plan", "4x4", "allgather:matching,broadcast", "--root", "5", "-o", ",".join(files))
    facts = run_json(capsys, *words)
    assert (facts["topology"], facts["collective"]) == ("4x4", "allgather,broadcast from 5")
    assert [mode["file"] for mode in facts["modes"]] == files
    assert [tf.load(file).algorithm for file in files] == ["matching", "spanning-tree"]
    for form in (["--plan", ",".join(files)], [",".join(files)]):
        again = run_json(capsys, "check", *form)
        for mode, known in zip(again["modes"], facts["modes"], strict=True):
            assert mode == {name: known[name] for name in known if name not in ("file", "why")}
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "mode 0    allgather by matching: 4 steps of 1 message, bound 4" in out
    assert f"in {files[1]}" in out


@pytest.mark.parametrize("mode", ["1", "alltoall", "alltoall:necklace"])
@pytest.mark.parametrize("command", ["draw", "animate"])
def test_one_of_several_is_shown(capsys, tmp_path, command, mode):
    """`--mode` selects one of several collectives by number or name."""
    path = tmp_path / "shown"
    several = ("4x4", "allgather,alltoall:necklace")
    facts = run_json(capsys, command, *several, "--mode", mode, "-o", str(path))
    assert (facts["collective"], facts["algorithm"]) == ("alltoall", "necklace")
    shown = path.read_text()
    assert main([command, "4x4", "alltoall:necklace", "-o", str(path)]) == 0
    assert path.read_text() == shown


def test_one_of_several_files(capsys, tmp_path, monkeypatch):
    """`--mode` selects one of several files by number, file name or collective."""
    monkeypatch.chdir(tmp_path)
    tf.plan("3x3", "allgather").save("a.json")
    tf.plan("3x3", "broadcast", root=2).save("b.json")
    for mode in ("1", "b.json", "broadcast"):
        words = ("draw", "--plan", "a.json,b.json", "--mode", mode, "-o", "x.svg")
        assert run_json(capsys, *words)["collective"] == "broadcast from 2"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["plan", "4x4", "allgather,alltoall", "-o", "a.json"],
         "--output must be 2 different files joined by commas, one for each of"),
        (["plan", "4x4", "allgather,alltoall", "-o", "a.json,a.json"], "2 different files"),
        (["plan", "4x4", "allgather,alltoall", "-o", "a.json,none/b.json"], "written"),
        (["plan", "4x4", "allgather,"], "Collective must be one of"),
        (["check", "4x4", "allgather,alltoall", "--root", "1"], "--root 1 has no meaning here"),
        (["check", "4x4", "allgather,alltoall", "--algorithm", "matching"],
         "for example allgather:matching"),
        (["check", "a.json,b.json"], "a.json"),
        (["draw", "4x4", "allgather,alltoall", "-o", "x.svg"],
         "choose it by --mode 0 to 1, or by name: allgather, alltoall"),
        (["draw", "4x4", "allgather,alltoall", "--mode", "2", "-o", "x.svg"], "not '2'"),
        (["draw", "4x4", "allgather:matching,allgather", "--mode", "alltoall", "-o", "x.svg"],
         "0 to 1, or one of allgather:matching, allgather, not 'alltoall'"),
        (["animate", "4x4", "allgather", "--mode", "1", "-o", "x.html"], "--mode must be 0, or"),
    ],
)  # fmt: skip
def test_what_is_refused(capsys, tmp_path, monkeypatch, words, error):
    """A wrong selection of files or modes gives one line and status 1, and leaves no file."""
    monkeypatch.chdir(tmp_path)
    assert error in check_refused(capsys, *words)
    assert not list(tmp_path.iterdir())


def test_files_of_different_topologies(capsys, tmp_path, monkeypatch):
    """Files of different topologies cannot form a fabric."""
    monkeypatch.chdir(tmp_path)
    for sides in ("3x3", "3x4"):
        tf.plan(sides, "allgather").save(f"{sides}.json")
    said = check_refused(capsys, "check", "3x3.json,3x4.json")
    assert "Topology must be the same for all collectives of a fabric, 3x3" in said
