"""`--plan FILE` in place of TOPOLOGY COLLECTIVE, in every command that works on a schedule."""

import json
import shlex
from pathlib import Path

import pytest
from helpers import check_refused, few, run_json

import torusfabric as tf
from torusfabric.cli import main
from torusfabric.errors import WorkFailed


@pytest.fixture
def saved(tmp_path, capsys):
    """A function that saves a plan into a file and returns the path of the file."""

    def save(*words, name="plan.json"):
        path = tmp_path / name
        run_json(capsys, "plan", *words, "-o", path)
        return str(path)

    return save


SELECTIONS = [
    ("4x4", "allgather", "--algorithm", "matching"),
    ("4x4", "allgather", "--algorithm", "hamiltonian"),
    ("3x3", "reduce-scatter"),
    ("3x3", "allreduce", "--latency", "3"),
    ("3x3", "scatter", "--root", "4"),
    ("3x3", "alltoall"),
    ("5x5", "broadcast", "--algorithm", "lee-code"),
    ("arrowhead:1", "reduce", "--root", "2"),
    ("2x2x2", "gather@0+2", "--root", "2"),
    ("3x4", "alltoall@1"),
]


@pytest.mark.parametrize(
    ("selection", "name"),
    few(2, [(SELECTIONS[2], "plan.json.gz"), *((each, "plan.json") for each in SELECTIONS[1:])]),
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_simulate(capsys, saved, selection, name):
    """A file is simulated like its plan, with the same cycles and routers."""
    path = saved(*selection, name=name)
    planned = run_json(capsys, "simulate", *selection, "--width", "8")
    read = run_json(capsys, "simulate", "--plan", path, "--width", "8")
    same = ("topology", "collective", "operator", "algorithm", "rounds", "bound", "cycles",
            "predicted_cycles", "router_classes", "origins", "words_checked")  # fmt: skip
    assert {key: planned[key] for key in same} == {key: read[key] for key in same}
    assert (read["passed"], read["words_wrong"]) == (True, 0)


def test_verilog_is_the_same_but_for_its_command(capsys, saved, tmp_path):
    """Verilog and manifest of a file and of its selection differ only in the command."""
    words = ("3x3", "reduce-scatter", "--algorithm", "matching")
    path, hardware = saved(*words), ("--width", "8", "--flits", "9", "--op", "max", "--signed")
    run_json(capsys, "verilog", *words, *hardware, "-o", tmp_path / "planned")
    run_json(capsys, "verilog", "--plan", path, *hardware, "-o", tmp_path / "read")
    texts, manifests = [], []
    for folder in ("planned", "read"):
        text = (tmp_path / folder / "fabric.v").read_text()
        texts.append([line for line in text.splitlines() if "torusfabric verilog" not in line])
        manifests.append(json.loads((tmp_path / folder / "manifest.json").read_text()))
    assert texts[0] == texts[1]
    commands = [shlex.split(manifest.pop("command")) for manifest in manifests]
    assert commands[1][:4] == ["torusfabric", "verilog", "--plan", path]
    assert commands[1][4:] == commands[0][6:]
    assert manifests[0] == manifests[1]


def test_check(capsys, saved):
    """`check` accepts a file with and without --plan, and a selection, with the same facts."""
    path = saved("4x4", "allgather", "--algorithm", "bufferless")
    with_option = run_json(capsys, "check", "--plan", path)
    short = run_json(capsys, "check", path)
    planned = run_json(capsys, "check", "4x4", "allgather", "--algorithm", "bufferless")
    for facts in (with_option, short, planned):
        del facts["seconds"]
    assert with_option == short == planned


def test_compare(capsys, saved):
    """`compare` lists a file beside the plans of all algorithms for the same collective."""
    path = saved("3x3", "reduce-scatter")
    entries = run_json(capsys, "compare", "--plan", path)["algorithms"]
    (planned,) = [e for e in entries if e["algorithm"] == "hamiltonian" and not e["plan"]]
    assert entries[0] == planned | {"plan": path}
    assert len(entries) == 4


@pytest.mark.parametrize(("command", "name"), [("draw", "x.svg"), ("animate", "x.html")])
def test_pictures(capsys, saved, tmp_path, command, name):
    """The picture of a file is the picture of its plan."""
    path = saved("3x3", "allgather")
    pictures = []
    for words in (("--plan", path), ("3x3", "allgather")):
        run_json(capsys, command, *words, "-o", tmp_path / name)
        pictures.append((tmp_path / name).read_text())
    assert pictures[0] == pictures[1]


def test_synth(capsys, saved, monkeypatch):
    """`synth` synthesizes the fabric of the file."""
    path, fabrics = saved("2x2", "allgather"), []

    def synthesize(fabric, target, **options):
        fabrics.append(fabric)
        raise WorkFailed("Synthesis must not take that long")

    monkeypatch.setattr("torusfabric.fpga.synthesis.synthesize.synthesize", synthesize)
    assert main(["synth", "--plan", path, "--target", "ice40-hx8k"]) == 2
    assert fabrics[0].program.schedule == tf.load(path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("4x4", "allgather"), "TOPOLOGY and --plan exclude each other"),
        (("--algorithm", "matching"), "--algorithm and --plan exclude each other"),
        (("--chunks", "2"), "--chunks and --plan exclude each other"),
        (("--latency", "auto"), "--latency and --plan exclude each other"),
        (("--root", "1"), "--root and --plan exclude each other"),
        (("--large",), "--large and --plan exclude each other"),
        (("--duplex", "half"), "--duplex and --plan exclude each other"),
        (("--broken-link", "0:+0"), "--broken-link and --plan exclude each other"),
        (("--times", "1", "1", "1"), "--times and --plan exclude each other"),
        (
            ("--root", "any"),
            "Root any needs a broadcast, scatter, gather or reduce, not allgather",
        ),
        (("--op", "add"), "--op is for reductions"),
    ],
)
def test_what_has_no_place_beside_a_file(capsys, saved, words, message):
    """Options that only planning uses are refused beside a file, in one line."""
    path = saved("4x4", "allgather")
    assert message in check_refused(capsys, "simulate", "--plan", path, *words)


@pytest.mark.parametrize(
    ("topology", "words", "idle"),
    [("4x4!0:+0", (), "0:+0"), ("4x4", ("--algorithm", "diagonal"), "5:+0")],
)
def test_links_that_break_later(capsys, saved, topology, words, idle):
    """A plan stays valid if unused links break later, and fails if used links do."""
    path = saved(topology, "broadcast", *words)
    assert run_json(capsys, "check", path, "--broken-link", idle)["topology"] == f"4x4!{idle}"
    said = check_refused(capsys, "check", path, "--broken-link", "0:+1", status=2)
    assert "node 0 (0,0) port +1 has no link" in said


@pytest.mark.parametrize(
    "words",
    [
        ("simulate", "2x2", "--width", "8", "allgather"),
        ("simulate", "--width", "8", "2x2", "allgather", "--flits", "2"),
        ("check", "2x2", "--algorithm", "matching", "allgather"),
        ("compare", "2x2", "--width", "4", "allgather"),
    ],
)
def test_options_may_stand_anywhere(capsys, words):
    """Options may stand between topology and collective."""
    assert run_json(capsys, *words)["topology"] == "2x2"


@pytest.mark.parametrize("command", ["simulate", "draw", "check", "compare", "synth", "verilog"])
def test_neither_a_selection_nor_a_file(capsys, command, tmp_path):
    """A command without a selection and without a file names both."""
    more = {"draw": ["-o", "x"], "verilog": ["-o", "x"], "synth": ["--target", "ecp5-25k"]}
    said = check_refused(capsys, command, *more.get(command, []))
    assert (
        "TOPOLOGY and COLLECTIVE must be given, for example 4x4 allgather, or --plan FILE" in said
    )


#: Reductions in files without lists of contributions: up a tree; with a node that sends its own
#: words first and received words later; and to a root and back.
SUMS = [
    ("reduce", 0, [[(2, 1), (3, 0)], [(1, 0)]]),
    ("reduce", 0, [[(1, 0), (3, 0)], [(2, 1)], [(1, 0)]]),
    ("allreduce", None, [[(2, 1), (3, 0)], [(1, 0)], [(0, 1), (0, 3)], [(1, 2)]]),
]


@pytest.mark.parametrize(("kind", "root", "rounds"), SUMS)
def test_sums_by_hand(capsys, tmp_path, kind, root, rounds):
    """A transfer of all blocks carries everything that its sender holds and has not yet sent."""
    collective = {"kind": kind} | ({"root": root} if root is not None else {})
    data = {
        "format": "torusfabric-schedule", "version": 1,
        "topology": {"kind": "torus", "sides": [4]}, "collective": collective,
        "algorithm": "by hand", "switching": "store-and-forward", "ports": 2, "chunks": 1,
        "rounds": [[{"path": path, "blocks": "all"} for path in paths] for paths in rounds],
    }  # fmt: skip
    (tmp_path / "plan.json").write_text(json.dumps(data))
    words = ("--plan", tmp_path / "plan.json", "--op", "add,max", "--width", "9")
    report = run_json(capsys, "simulate", *words, "--flits", "3")
    assert (report["passed"], report["operator"]) == (True, "add, max")


def test_what_cannot_be_built_is_refused_first(capsys, saved, tmp_path):
    """A schedule whose groups differ is refused before anything is written."""
    path = saved("2x2", "allgather@1", "--ports", "1")
    text = Path(path).read_text()
    Path(path).write_text(text.replace('[2, 3], "via": ["+1"]', '[2, 3], "via": ["-1"]'))
    assert main(["check", path]) == 0
    capsys.readouterr()
    said = check_refused(capsys, "verilog", "--plan", path, "-o", tmp_path / "out")
    assert "The schedule of allgather@1 differs between groups" in said
    assert not (tmp_path / "out").exists()


def test_what_is_wrong_is_not_built(capsys, saved, tmp_path):
    """A faulty schedule is refused with status 2 before anything is written."""
    path = saved("3x3", "allgather")
    data = json.loads(Path(path).read_text())
    del data["rounds"][1][3]
    Path(path).write_text(json.dumps(data))
    words = ("verilog", "--plan", path, "-o", tmp_path / "out")
    assert "Round" in check_refused(capsys, *words, status=2)
    assert not (tmp_path / "out").exists()
