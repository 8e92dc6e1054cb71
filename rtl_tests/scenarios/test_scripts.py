"""Every script of `sim/` prints one JSON object when asked to."""

import contextlib
import importlib
import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import few

SIM = Path(__file__).parents[2] / "sim"

#: The least that each does, and keys of a row.
SCRIPTS = {
    "arrowhead_costs.py --orders 1": ("rows", {"order", "claimed", "planned", "cycles"}),
    "benchmarks.py --only cycles": ("counts", {"name", "value", "kept", "verdict"}),
    "circuit_broadcast.py 3x3 --largest 1": ("rows", {"torus", "bound", "max-flow"}),
    "circuit_gossip.py --largest 0": ("cases", {"topology", "planned rounds", "predicted"}),
    "cycle_goals.py --only scatter --tori 3x3 --lengths 1": (
        "cases",
        {"torus", "collective", "length", "cycles", "goal", "met"},
    ),
    "engine_costs.py --only none": ("rows", set()),
    "engine_speed.py --times 0 --pairs 0": ("rows", set()),
    "form_cycles.py --tori 3x3 --most 4": (
        "3x3",
        {"torus", "collective", "forms", "cycles", "alone"},
    ),
    "hardware_mutants.py --kinds wires --count 1": ("mutants", {"kind", "number"}),
    "hardware_targets.py --only none": ("rows", set()),
    "network_times.py --networks mesh:2x2 --collectives allgather": (
        "rows",
        {"network", "collective", "bound", "times", "above"},
    ),
    "necklace_tables.py --limit 30 --largest 8": ("table_4", {"axes", "necklaces", "printed"}),
    "other_planners.py --largest 5 --planned 9 --flits 1": (
        "published",
        {"torus", "algorithm", "bound", "steps", "cycles", "our steps", "our cycles"},
    ),
    "oblivious_gossip.py --largest 0": ("steps", {"algorithm", "planned", "data"}),
}


def test_all_are_here():
    scripts = {path.name for path in SIM.glob("*.py") if "__main__" in path.read_text()}
    assert {words.split()[0] for words in SCRIPTS} == scripts


def test_speed_has_a_bound():
    """What is not built and run in time is said, and not waited for."""
    command = [sys.executable, SIM / "engine_speed.py", "2x2", "--engines", "icarus"]
    done = subprocess.run([*command, "--bound", "0.1"], capture_output=True, text=True, check=True)
    assert "icarus on 2x2: not built and run within 0.1 s" in done.stdout


@pytest.mark.parametrize("words", few(3, [*SCRIPTS], tuples=True))
def test_json(words, monkeypatch, capsys):
    name, *options = words.split()
    monkeypatch.syspath_prepend(SIM)
    counts = importlib.import_module("benchmark_counts")
    monkeypatch.setattr(counts, "TORI", counts.TORI[:1])  # all of them are measured in CI
    monkeypatch.setattr(sys, "argv", [name, *options, "--json"])
    with contextlib.suppress(SystemExit):
        runpy.run_path(str(SIM / name), run_name="__main__")
    key, names = SCRIPTS[words]
    found = json.loads(capsys.readouterr().out)
    assert all(names <= set(row) for row in found[key][:1])
    assert bool(found[key]) == bool(names)
