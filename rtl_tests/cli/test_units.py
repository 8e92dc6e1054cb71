"""What commands count stands beside each count."""

import json

import pytest

from torusfabric.cli import main
from torusfabric.sweep.work import work

BUFFERLESS = ("6x6", "allgather", "--algorithm", "bufferless")


def lines(capsys, *words):
    """What a command prints, by the first word of each line."""
    assert main(list(words)) == 0
    found = (line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    return {line[0]: line[1] for line in found if len(line) == 2}


def test_plan_and_check_say_the_same(capsys, tmp_path):
    path = str(tmp_path / "b.json")
    planned = lines(capsys, "plan", *BUFFERLESS, "-o", path)
    checked = lines(capsys, "check", path)
    assert planned["steps"] == "10 of 1 message"
    assert planned["bound"] == "10 of 1 message, where no block rests"
    assert planned["tau"] == "10 message times; no schedule takes less than 35/4"
    for name in ("seconds", "file"):
        planned.pop(name), checked.pop(name, None)
    assert checked == planned


def test_json_has_the_unit(capsys):
    assert main(["plan", "6x6", "allgather", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rounds"], facts["unit"], facts["bound"]) == (18, "steps of 1/2 message", 18)
    assert (facts["tau"], facts["tau_bound"]) == (9, 8.75)


@pytest.mark.parametrize("command", ["draw", "animate"])
def test_pictures_and_pages(capsys, tmp_path, command):
    path = tmp_path / "x"
    assert (
        lines(capsys, command, "4x4", "allgather", "-o", str(path))["steps"] == "8 of 1/2 message"
    )
    assert "8 steps of 1/2 message, store-and-forward" in path.read_text()


def test_simulation(capsys):
    found = lines(capsys, "simulate", "2x2", "allgather", "--width", "4")
    assert found["steps"] == "2 of 1/2 message"
    assert found["lower"] == "bound       2 of 1/2 message"
    assert found["tau"].startswith("1 message times; ")


def test_compare(capsys):
    """Steps of half messages and of whole ones stand in one table, and so does their time."""
    assert main(["compare", "6x6", "allgather", "--width", "4"]) == 0
    out = capsys.readouterr().out
    assert "no schedule takes less than 35/4 message times" in out
    rows = {line.split()[0]: " ".join(line.split()) for line in out.splitlines()}
    assert rows["algorithm"].startswith("algorithm by of chunks steps or rounds bound delta messa")
    assert rows["hamiltonian"].startswith("hamiltonian steps 1/2 message 2 18 18 18 9 ")
    assert rows["bufferless"].startswith(
        "bufferless steps 1 message 1 10 10 (no block rests) 10 10 "
    )
    assert rows["matching"].startswith("matching steps 1 message 1 9 9 9 9 ")


def test_sweep():
    """Rows of a sweep have the unit and the time."""
    point = {"step": "plan", "topology": "4x4", "collective": "allgather", "algorithm": "best"}
    row = work(point)["result"]
    assert (row["unit"], row["tau"], row["tau_bound"]) == ("steps of 1/2 message", 4, 3.75)
