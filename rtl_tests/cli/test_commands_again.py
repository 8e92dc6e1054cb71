"""The command that a fabric keeps makes the same again."""

import json
import shlex

import pytest
from helpers import few

import torusfabric as tf
from torusfabric.cli import main

#: Selections of several collectives, and of one.
SEVERAL = [
    "2x2 allgather,allreduce --flits 64 --forms long",
    "2x2 allgather,reduce --link-latency 3 --flits 4 --root 1",
    "2x2 allgather:matching,allreduce --link-latency 0:2,1:1 --latency auto",
    "2 allgather,allreduce --boards 2 --flits 2",
    "3 broadcast,scatter --max-flits 64 --forms short --root any",
    "2x3 allgather,allgather!0:+0 --flits 4",
    "2x2 alltoall,halo --chunks 4 --ports 4",
]
ONE = [
    "9 broadcast --max-flits 32 --forms all",
    "3x3 reduce-scatter --op min --signed --latency auto",
    "3x3 broadcast@1 --root any",
    "--plan plan.json",
    "2x3 reduce --root any --flits 9 --op max",
    "3x3 gather@0 --root any",
    "3x3 broadcast --algorithm max-flow --broken-link 7:+0 --root 2",
    "arrowhead:1 broadcast --times 3 1 12",
]


@pytest.mark.parametrize("line", [*SEVERAL, *few(4, ONE, tuples=True)])
def test_files_are_the_same(capsys, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    tf.plan("4x4", "allreduce").save("plan.json")
    assert main(["verilog", *line.split(), "--width", "8", "-o", "once"]) == 0
    command = json.loads((tmp_path / "once/manifest.json").read_text())["command"]
    _, *words = shlex.split(command)
    assert main([*words, "-o", "again"]) == 0, (command, capsys.readouterr().err)
    for name in ("fabric.v", "manifest.json"):
        once, again = ((tmp_path / folder / name).read_text() for folder in ("once", "again"))
        assert once == again
