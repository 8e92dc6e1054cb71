"""The command that a fabric keeps makes the same again."""

import json
import shlex

import pytest

from torusfabric.cli import main


@pytest.mark.parametrize(
    "line",
    [
        "2x2 allgather,allreduce --flits 64 --forms long",
        "9 broadcast --max-flits 32 --forms all",
        "2x2 allgather,reduce --link-latency 3 --flits 4 --root 1",
        "2x2 allgather:matching,allreduce --link-latency 0:2,1:1 --latency auto",
        "4 allgather,allreduce --boards 2 --flits 2",
        "3 broadcast,scatter --max-flits 64 --forms short --root any",
        "3x3 allgather,allgather!0:+0 --flits 4",
        "2x2 alltoall,halo --chunks 4 --ports 4",
    ],
)
def test_text_is_the_same(capsys, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    assert main(["verilog", *line.split(), "--width", "8", "-o", "once"]) == 0
    command = json.loads((tmp_path / "once/manifest.json").read_text())["command"]
    _, *words = shlex.split(command)
    assert main([*words, "-o", "again"]) == 0, (command, capsys.readouterr().err)
    once, again = (tmp_path / name / "fabric.v" for name in ("once", "again"))
    assert once.read_text() == again.read_text()
