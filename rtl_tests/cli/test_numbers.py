"""Numbers that no machine has room for, in every option of every command."""

import numpy as np
import pytest
from helpers import command_actions, few

import torusfabric as tf
from torusfabric.cli import main, make_parser

#: More than any float holds.
HUGE = "9" * 310

#: What a command works on, and what it must be told besides.
WORDS = {
    "import": ["plan.json"],
    "boards": [],
    "sweep": ["grid.toml"],
}
MORE = {
    "verilog": ["-o", "out"],
    "build": ["--board", "icebreaker"],
    "flash": ["--board", "icebreaker"],
    "monitor": ["--port", "/dev/null"],
    "run": ["--port", "/dev/null"],
    "synth": ["--target", "ice40-hx8k"],
}

#: What an option is for.
SELECTED = {
    "--trees": ["3x3", "broadcast", "--algorithm", "spanning-tree"],
    "--packets": ["3x3", "broadcast", "--algorithm", "spanning-tree"],
    "--times": ["3x3", "broadcast", "--algorithm", "spanning-tree"],
    "--chunks": ["3x3", "broadcast"],
    "--latency": ["3x3", "allreduce"],
    "--stall": ["3", "allgather", "--top", "stream"],
}

#: Numbers for which any length is right.
ANY = {"--seed", "--data-seed"}


def _options():
    """Command, option and number of values of everything that is a number."""
    return [
        (name, action.option_strings[-1], action.nargs or 1)
        for name, action in command_actions(make_parser())
        if action.type is not None and action.type.__name__ != "folder"
    ]


@pytest.mark.parametrize(("command", "option", "count"), few(83, [*_options()]))
def test_no_option_ends_in_a_traceback(monkeypatch, tmp_path, capsys, command, option, count):
    """It is refused in a line, unless the number does not matter."""
    monkeypatch.chdir(tmp_path)
    tf.plan("2x3", "allgather").save("plan.json")
    np.save("data.npy", np.zeros((3, 2), dtype=np.uint32))
    (tmp_path / "grid.toml").write_text('topologies = ["3"]\ncollectives = ["broadcast"]\n')
    words = WORDS.get(command) or SELECTED.get(option, ["3x3", "allgather"])
    words = [command, *words, *MORE.get(command, []), option, *[HUGE] * count]
    status = main([*words, "--quiet"])
    err = capsys.readouterr().err
    assert len(err.splitlines()) == (status != 0)
    if option not in ANY and (command, option) != ("boards", "--width"):
        assert status in (1, 2)


@pytest.mark.parametrize("options", [{"chunks": 10**400}, {"packets": 10**400}])
def test_numbers_in_python(options):
    """The same holds without the command line."""
    topology, name = ("3x3", "allgather") if "chunks" in options else ("arrowhead:2", "broadcast")
    with pytest.raises(tf.InputError, match=r"^Planning .* must fit in memory, "):
        tf.plan(topology, name, **options)
