"""Names and numbers that are nearly right: the message says what would do."""

import pytest
from helpers import check_refused

from torusfabric.cli import main


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("plan -4x4 allgather", "Topology must be side lengths .*, not '-4x4' (did you mean 4x4?)"),
        ("check -4x4 allgather", "not '-4x4' (did you mean 4x4?)"),
        ("plan 4X4 allgather", "not '4X4' (did you mean 4x4?)"),
        ("plan 4by6 allgather", "not '4by6' (did you mean 4x6?)"),
        ("plan arowhead:2 broadcast", "not 'arowhead:2' (did you mean arrowhead:ORDER?)"),
        ("plan 4x4 allgathr", "not 'allgathr' (did you mean allgather?)"),
        ("plan 4x4 gosip", "not 'gosip' (did you mean allgather?)"),
        ("plan 4x4 allgather --algorithm matchng", "not 'matchng' (did you mean matching?)"),
        ("plan 4x4 allgather --duplex hal", "--duplex must be full or half, not 'hal' (did you m"),
        ("plan 4x4 allgather --algoritm x", "Unrecognized arguments: --algoritm (did you mean --a"),
        ("plan --algoritm=x 4x4", "Unrecognized arguments: --algoritm (did you mean --algorithm?)"),
        ("plan 4x4 allgather --width 2", "Unrecognized arguments: --width "),
        ("plna 4x4 allgather", "Command must be one of .*, not 'plna' (did you mean plan?)"),
        ("simulate 2x2 allreduce --op ad", "not 'ad' (did you mean add or and?)"),
        ("simulate 2x2 allgather --engine compild", "not 'compild' (did you mean compiled?)"),
        (
            "verilog 2x2 allgather --top cor -o x",
            "--top must be one of host, core, stream, not 'cor'",
        ),
        ("synth 2x2 allgather --target ecp5-25", "not 'ecp5-25' (did you mean ecp5-25k?)"),
        ("build --board icebraker 2x2 allgather", "not 'icebraker' (did you mean icebreaker?)"),
    ],
)
def test_what_was_meant(capsys, line, message):
    said = check_refused(capsys, *line.split())
    for part in message.split(".*"):
        assert part in said


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "arrowhead:2 broadcast --trees 7",
            "spanning-tree needs --trees 1 or 2, not 7; ",
        ),
        ("4x4 broadcast --trees 7", "spanning-tree needs --trees 1 or 4, not 7; "),
        (
            "arrowhead:2 broadcast --algorithm spanning-tree --trees 7",
            "Algorithm spanning-tree needs --trees 1 or 2, not 7\n",
        ),
        ("4x4 allgather --algorithm matching --ports 3", "needs --ports 4 (all of them), not 3\n"),
        ("5x5 broadcast --algorithm diagonal --large", "needs --large left out, not --large\n"),
        (
            "4x4 allgather --trees 7",
            "no --trees is known to lee-code, hamiltonian, ",
        ),
        ("4x4 allreduce --chunks 5", "divisible by the number of nodes, 16, not 5"),
    ],
)
def test_numbers_that_would_do(capsys, line, message):
    assert message in check_refused(capsys, "plan", *line.split())


def test_a_seed_changes_no_algorithm(capsys):
    """Where the best algorithm searches nothing, it is not silently another one that does."""
    assert main(["plan", "4x4", "allgather", "--seed", "5"]) == 1
    assert capsys.readouterr().err == (
        "torusfabric: Seed must be left out for hamiltonian, the best for 4x4 allgather, which "
        "searches nothing (--algorithm bufferless or matching searches), not 5\n"
    )
    for words in (["allgather", "--seed", "0"], ["alltoall", "--seed", "5"]):
        assert main(["plan", "4x4", *words]) == 0
