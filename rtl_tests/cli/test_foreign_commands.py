"""`import` and `export`, and the commands that use an imported schedule."""

import re

import msccl_generators as generators
import pytest
from helpers import few, run_command, run_json

from torusfabric.topology import Torus

#: File, topology and options, with the expected steps and cycles.
FILES = {
    "ring": (generators.ring_allgather(8), ("8",), 7, 12),
    "ring on a torus": (generators.ring_allgather(8), ("2x4", "--map", "auto"), 7, 12),
    "doubling": (generators.recursive_doubling_allgather(16), ("4x4", "--map", "gray"), 15, 48),
    "rows": (generators.hierarchical_allgather(3, 4), ("3x4",), 11, 36),
    "sums": (generators.ring_allreduce(5), ("5",), 8, 23),
    "exchange": (generators.all_pairs_alltoall(8), ("8", "--switching", "circuit"), 10, 69),
}


#: Files of the quick tests.
QUICK = ("ring on a torus", "sums", "exchange")


@pytest.mark.parametrize(
    "name",
    few(
        2,
        [pytest.param(name, marks=[pytest.mark.long] * (name not in QUICK)) for name in FILES],
        tuples=True,
    ),
)
def test_from_a_file_to_hardware(capsys, tmp_path, name):
    """An imported file can be checked, simulated, emitted, animated, and exported again."""
    text, (topology, *options), steps, cycles = FILES[name]
    source, plan, again = (tmp_path / name for name in ("a.xml", "plan.json", "b.xml"))
    source.write_text(text)
    facts = run_json(capsys, "import", source, "--topology", topology, *options, "-o", plan)
    assert (facts["rounds"], facts["checked"]) == (steps, True)
    assert facts["bound"] <= facts["ours"]["rounds"] <= steps
    assert run_json(capsys, "check", plan)["rounds"] == steps
    result = run_json(capsys, "simulate", "--plan", plan, "--width", "8")
    assert result["words_wrong"] == 0 < result["words_checked"]
    assert result["cycles"] == result["predicted_cycles"] == cycles
    run_json(capsys, "verilog", "--plan", plan, "--width", "8", "-o", tmp_path / "out")
    assert (tmp_path / "out" / "manifest.json").exists()
    run_json(capsys, "animate", "--plan", plan, "-o", tmp_path / "page.html")
    if name == "exchange":
        status, _, err = run_command(capsys, "export", plan, "-o", again)
        assert (status, again.exists()) == (1, False)
        assert "Format msccl takes store-and-forward schedules, not circuit" in err
        return
    assert run_json(capsys, "export", plan, "--format", "msccl", "-o", again)["format"] == "msccl"
    back = run_json(capsys, "import", again, "-o", tmp_path / "again.json")
    assert back["rounds"] == steps
    assert (tmp_path / "again.json").read_bytes() == plan.read_bytes()


def test_in_words(capsys, tmp_path):
    """The report of an import has steps, bound, map and the best plan of the catalogue."""
    path = tmp_path / "ring.xml"
    path.write_text(generators.ring_allgather(8))
    status, out, err = run_command(capsys, "import", path, "--topology", "8")
    assert (status, err) == (0, "")
    assert re.search(r"^steps +7 of 1 message$", out, re.MULTILINE)
    assert re.search(r"^bound +4 of 1 message$", out, re.MULTILINE)
    assert re.search(r"^map +rank r is node r$", out, re.MULTILINE)
    assert re.search(
        r"^ours +4 steps of 1 message by hamiltonian: 4 message times$", out, re.MULTILINE
    )
    status, out, _ = run_command(capsys, "import", path, "--topology", "2x4", "--map", "auto")
    (listed,) = re.findall(r"are nodes (.*)", out)
    nodes = [int(node) for node in listed.split(", ")]
    assert sorted(nodes) == list(range(8))
    apart = Torus(2, 4).distance(nodes, [*nodes[1:], nodes[0]])
    assert (apart == 1).all()
    path.write_text(generators.all_pairs_alltoall(8))
    words = ("import", path, "--topology", "8", "-o", tmp_path / "no.json")
    status, out, err = run_command(capsys, *words)
    assert (status, out) == (1, "")
    assert "Rank 0 sends to rank 2, but their nodes 0 and 2 are 2 hops apart on 8" in err
    assert not (tmp_path / "no.json").exists()


def test_export_of_a_selection(capsys, tmp_path):
    """`export` accepts a selection, which it plans, and writes CSV, too."""
    facts = run_json(
        capsys, "export", "3x3", "alltoall", "--format", "csv", "-o", tmp_path / "x.csv"
    )
    assert facts["file"] == str(tmp_path / "x.csv")
    lines = (tmp_path / "x.csv").read_text().splitlines()
    assert len(lines) == 1 + facts["transfers"]
