"""The command line: common commands, mistakes, and suggestions in messages."""

import json
import re

import pytest
from helpers import check_refused, few, run_command, run_json

from torusfabric.cli import main


def test_algorithms(capsys):
    """The catalogue is listed as text and as JSON."""
    names = {entry["name"] for entry in run_json(capsys, "algorithms")["algorithms"]}
    assert {"hamiltonian", "lee-code", "one-packet", "matching", "necklace"} <= names
    assert "hamiltonian" in run_command(capsys, "algorithms")[1]


@pytest.mark.parametrize(
    ("selection", "rounds", "bound", "delta", "tau"),
    [
        (("6x8", "allgather", "--algorithm", "hamiltonian"), 24, 24, 24, 12),
        (("7x7x7", "allgather", "--algorithm", "lee-code"), 4, 4, 12, 400),
        (("7x7x7", "allgather"), 171, 171, 171, 57),
        (("8x8", "gossiping", "--algorithm", "hamiltonian"), 32, 32, 32, 16),
        (("12x12x4", "allgather", "--algorithm", "one-packet"), 200, 96, 200, 200),
    ],
)
def test_plan(capsys, selection, rounds, bound, delta, tau):
    """A plan is checked, and its counts are those of the papers."""
    facts = run_json(capsys, "plan", *selection)
    assert facts["checked"] is True
    got = (facts["rounds"], facts["bound"], facts["delta"], facts["tau"])
    assert got == (rounds, bound, delta, tau)


@pytest.mark.parametrize(
    "words",
    ["animate 2x2 allgather", "export 2x2 allgather --format csv", "verilog 2x2 allgather",
     "verilog 2x2 allgather,alltoall"],
)  # fmt: skip
def test_what_was_checked_is_said(capsys, tmp_path, words):
    """Each command that plans states the result of the check in words."""
    _, out, _ = run_command(capsys, *words.split(), "-o", str(tmp_path / "a.html"))
    assert re.search(r"^checked  +every block reaches every node that must hold it", out, re.M)


def test_check_finds_a_fault(capsys, tmp_path):
    """A file without one transfer fails with status 2, and the message names the place."""
    path = tmp_path / "plan.json"
    run_command(capsys, "plan", "4x4", "allgather", "--algorithm", "hamiltonian", "-o", str(path))
    data = json.loads(path.read_text())
    del data["rounds"][0][5]
    path.write_text(json.dumps(data))
    said = check_refused(capsys, "check", path, status=2)
    assert "round 2" in said.lower()
    assert "node" in said


def test_verilog(capsys, tmp_path):
    """Verilog and manifest are written; the header names the command without the folder."""
    out = tmp_path / "out"
    facts = run_json(capsys, "verilog", "4x4", "allgather", "--flits", "2", "-o", str(out))
    names = sorted(path.name for path in out.iterdir())
    assert names == [".torusfabric-verilog.json", "bench", "fabric.v", "manifest.json"]
    assert facts["predicted_cycles"] == 13
    assert "torusfabric verilog 4x4 allgather" in (out / "fabric.v").read_text()
    assert str(tmp_path) not in (out / "fabric.v").read_text()


BAD = [
    (("plan", "nonsense", "allgather"), "Topology must be"),
    (("plan", "0x4", "allgather"), "Sides of a torus must be"),
    (("plan", "1x4", "allgather"), "Sides of a torus must be"),
    (("plan", "4x4", "nonsense"), "Collective must be one of"),
    (("plan", "4x4", "allgather", "--algorithm", "hamilton"), "did you mean hamiltonian?"),
    (("plan", "2x3", "allgather", "--algorithm", "hamiltonian"), "Algorithm hamiltonian needs"),
    (("plan", "5x5", "allgather", "--algorithm", "lee-code"), "Algorithm lee-code needs"),
    (("plan", "4x4", "allgather", "--root", "1"), "allgather has no root"),
    (("plan", "4x4", "broadcast", "--root", "16"), "Root must be a node from 0 to 15, not 16"),
    (("plan", "4x4", "allgather", "--ports", "5"), "Ports must be from 1 to 4 on 4x4, not 5"),
    (("plan", "4x4", "allgather", "--bogus"), "Unrecognized arguments"),
    (
        ("plan", "4x4", "allgather", "-o", "/nonexistent/plan.json"),
        "Folder /nonexistent cannot be written (No such",
    ),
    (("check", "/nonexistent/plan.json"), "could not be read"),
    (("simulate", "4x4", "allgather", "--width", "0"), "Width must be from 1 to 1024 bits, not 0"),
    (("simulate", "2x2", "allgather", "--vcd", "/nonexistent/x.vcd"), "cannot be written ("),
    (("verilog", "2x2", "allgather", "-o", "/proc/nonexistent"), "cannot be made ("),
    (("synth", "2x2", "allgather", "--target", "nonsense"), "Target must be one of"),
    ((), "required"),
]


@pytest.mark.parametrize(("words", "text"), BAD)
def test_bad_input(capsys, words, text):
    """A user's mistake gives one line on standard error, and status 1."""
    assert text in check_refused(capsys, *words)


def test_missing_tool(capsys, tmp_path, monkeypatch):
    """A missing tool gives one line with the installation command, and status 3."""
    monkeypatch.setenv("YOSYS", str(tmp_path / "yosys"))
    words = ("synth", "2x2", "allgather", "--target", "ice40-hx8k")
    assert "pip install 'torusfabric[hardware]'" in check_refused(capsys, *words, status=3)


def test_text_takes_no_tool(capsys, tmp_path, monkeypatch):
    """Verilog is written without any tool."""
    monkeypatch.setenv("YOSYS", str(tmp_path / "yosys"))
    assert run_command(capsys, "verilog", "2x2", "allgather", "-o", str(tmp_path / "out"))[0] == 0


@pytest.mark.parametrize(
    ("collective", "options"),
    few(
        2,
        [
            ("reduce", ("--root", "4")),
            ("reduce-scatter", ("--op", "min", "--signed")),
            ("allreduce", ("--op", "xor", "--width", "70")),
        ],
    ),
)
def test_simulate_reductions(capsys, collective, options):
    """Reductions with any operator are simulated and compared word by word."""
    result = run_json(capsys, "simulate", "3x3", collective, *options)
    words = {"reduce": 4, "reduce-scatter": 72, "allreduce": 81}[collective]
    operator = {"reduce": "add", "reduce-scatter": "signed min", "allreduce": "xor"}[collective]
    assert result["passed"] is True
    assert (result["words_checked"], result["operator"]) == (words, operator)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("allgather", "--op", "add"),
            "--op is for reductions (reduce, reduce-scatter, allreduce)",
        ),
        (("broadcast", "--signed"), "leave it out for broadcast"),
        (("reduce", "--op", "mul"), "Operator must be one of add, min, max, and, or, xor, min:"),
        (("reduce", "--op", "add,"), "Operator must be one of add, min, max, and, or"),
        (("reduce", "--op", "max,min,max"), "Operators must be different, not max more than once"),
        (
            ("reduce", "--op", "max,or", "--signed"),
            "--signed needs --op min, --op max or --op add:saturating, not or",
        ),
        (
            ("allreduce", "--signed"),
            "--signed needs --op min, --op max or --op add:saturating, not add",
        ),
    ],
)
def test_operators_that_do_not_fit(capsys, words, message):
    """An operator that has no effect, or is unknown, is refused in one line."""
    assert message in check_refused(capsys, "simulate", "3x3", *words)


def test_several_operators(capsys):
    """Each of several operators is simulated, and further random jobs on request."""
    words = ("2x2", "reduce-scatter", "--op", "add,max,max:signed")
    result = run_json(capsys, "simulate", *words, "--jobs", "2", "--width", "6")
    assert result["passed"] is True
    assert [job["operation"] for job in result["jobs"][:3]] == [0, 1, 2]
    assert len(result["jobs"]) == 5
    signed = run_json(
        capsys, "simulate", "3", "reduce", "--op", "min,max", "--signed", "--jobs", "0"
    )
    assert signed["operator"] == "signed min, signed max"
    assert run_json(capsys, "compare", *words)["algorithms"][0]["cycles"] > 0


def test_no_trace_of_an_open_root(capsys, tmp_path):
    """A trace of a run with any root is refused before the simulation."""
    words = ("3x3", "broadcast", "--root", "any", "--trace", str(tmp_path / "trace.jsonl"))
    said = check_refused(capsys, "simulate", *words)
    assert "--trace needs a root that is fixed" in said
    assert not any(tmp_path.iterdir())


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
    """A misspelt word gets a suggestion."""
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
        (
            "5x5 broadcast --algorithm diagonal --large",
            "diagonal has no option --large; leave it out\n",
        ),
        (
            "4x4 allgather --trees 7",
            "no --trees is known to lee-code, hamiltonian, ",
        ),
        ("4x4 allreduce --chunks 5", "divisible by the number of nodes, 16, not 5"),
    ],
)
def test_numbers_that_would_do(capsys, line, message):
    """A message about a wrong number names the numbers that are allowed."""
    assert message in check_refused(capsys, "plan", *line.split())


def test_a_seed_changes_no_algorithm(capsys):
    """A seed is refused if the best algorithm searches nothing.

    No other algorithm is chosen for it.
    """
    assert main(["plan", "4x4", "allgather", "--seed", "5"]) == 1
    assert capsys.readouterr().err == (
        "torusfabric: Seed 5 has no effect, because hamiltonian, the best for 4x4 allgather, "
        "searches nothing; leave it out, or choose --algorithm bufferless or matching\n"
    )
    for words in (["allgather", "--seed", "0"], ["alltoall", "--seed", "5"]):
        assert main(["plan", "4x4", *words]) == 0
