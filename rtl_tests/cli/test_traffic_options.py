"""The options `--traffic` and `--counts`, and groups, in commands: results and refused input."""

import pytest
from helpers import check_refused, run_json

import torusfabric as tf

FILES = {
    "unequal.csv": "source,destinations,words\n0,1,8\n1,2 3,2\n",
    "equal.csv": "source,destinations,words\n0,1,3\n3,2,3\n",
    "counts.csv": "0,8,8,8\n1,0,1,1\n1,1,0,1\n1,1,1,0\n",
    "vector.csv": "1 2 3 4\n",
    "long.csv": "source,destinations,words\n0,1,1000000000\n1,2,3\n",
}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Files of messages and of lengths in the current folder."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "flits"),
    [
        ("alltoall --counts counts.csv", 8),
        ("allgather --counts vector.csv", 4),
        ("pattern --traffic unequal.csv", 8),
        ("Pattern --traffic equal.csv --flits 3", 3),
        ("pattern --traffic equal.csv", 3),
        ("allreduce@{0,3}{1,2} --flits 3", 3),
    ],
)
def test_compare_chooses_the_chunks_of_a_simulation(capsys, words, flits):
    """A comparison builds hardware for the length of the longest message, as `simulate` does."""
    found = run_json(capsys, "compare", "2x2", *words.split())
    (entry,) = found["algorithms"]
    simulated = run_json(capsys, "simulate", "2x2", *words.split(), "--width", "8")
    assert (found["flits"], entry["cycles"]) == (flits, simulated["cycles"])
    named = run_json(
        capsys, "simulate", "2x2", *words.split(), "--width", "8", "--algorithm", "any-traffic"
    )
    assert named["cycles"] == simulated["cycles"]
    assert simulated["words_wrong"] == 0


def test_compare_in_python():
    """Without a length, `tf.compare` takes that of the longest message."""
    counts = [[0, 8, 8, 8], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]
    collective = tf.parse_collective("alltoall", counts=counts)
    assert {row.flits for row in tf.compare("2x2", collective)} == {8}
    with pytest.raises(tf.InputError, match="has the length of its longest message, 8 flits"):
        tf.compare("2x2", collective, flits=[1, 8])
    assert {row.flits for row in tf.compare("2x2", "allgather")} == {1}


@pytest.mark.parametrize("command", ["animate", "draw"])
@pytest.mark.parametrize(
    "words",
    [
        "alltoall --counts counts.csv",
        "pattern --traffic unequal.csv",
        "gather@{0,3,1} --root 1",
        "allreduce@{0-3}",
        "reduce-scatter --counts vector.csv",
    ],
)
def test_pictures(capsys, tmp_path, command, words):
    """Animations and drawings show irregular collectives."""
    file = tmp_path / ("a.html" if command == "animate" else "a.svg")
    run_json(capsys, command, "2x2", *words.split(), "-o", file)
    assert file.stat().st_size > 1000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("plan 2x2 allgather --traffic equal.csv", "--traffic is for the collective pattern"),
        ("plan 2x2 pattern --traffic equal.csv,unequal.csv", "one for each, 1, not 2"),
        ("plan 2x2 pattern", "give --traffic FILE"),
        ("plan 2x2 pattern --traffic none.csv", "Traffic file none.csv could not be read"),
        ("plan 2x2 pattern --traffic .", "Is a directory"),
        ("plan 2x2 pattern@{0,1} --traffic equal.csv", "A pattern has no groups"),
        ("plan 2x2 pattern@0 --traffic equal.csv", "A pattern has no groups"),
        ("plan 2x2 alltoall --counts vector.csv", "4 lines of 4 numbers, not 1 line of 4"),
        ("plan 2x2 allgather --counts counts.csv", "must be 4 numbers, not 16"),
        ("plan 2x2 alltoall --counts .", "Is a directory"),
        ("plan 2x2 allgather@{}", "not nothing in {}"),
        ("plan 2x2 allgather@{0,1}{2}", "at least 2 nodes, not 1"),
        ("plan 2x2 gather@{0,1,2} --root 3", "position in a group from 0 to 2, not 3"),
        ("compare 2x2 alltoall --counts counts.csv --flits 3", "longest message, 8 flits"),
        ("compare 2x2 alltoall --counts counts.csv --flits 1:8", "longest message, 8 flits"),
        ("simulate 2x2 pattern,allgather --traffic unequal.csv --flits 3", "leave flits and max"),
        ("verilog 2x2 pattern --traffic unequal.csv --tables ram --max-flits 7 -o o", "not 8"),
        ("simulate 2x2 alltoall,pattern,pattern --traffic a,b,c", "file for all patterns or one"),
        ("simulate 2x2 alltoall,gather --counts counts.csv,vector.csv", "lengthen one message"),
        ("simulate 2x2 gather@{0,1,2} --root any --max-flits 3", "Root any needs"),
    ],
)
def test_refused_words(capsys, words, message):
    """Words that do not fit are refused in one line, with the reason."""
    assert message in check_refused(capsys, *words.split())


def test_long_messages_do_not_fit_in_memory(capsys):
    """Lengths of a file count in the estimate of memory, as those of an option do."""
    run_json(capsys, "plan", "2x2", "pattern", "--traffic", "long.csv")
    words = ("simulate", "2x2", "pattern", "--traffic", "long.csv", "--width", "8")
    assert "must fit in memory" in check_refused(capsys, *words)
