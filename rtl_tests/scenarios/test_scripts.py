"""Scripts in `sim/`, and the hardware targets that one of them measures."""

import contextlib
import importlib
import json
import runpy
import subprocess
import sys
from pathlib import Path

import clocks
import hardware_targets as targets
import pytest
import silicon_costs
from helpers import few
from rich.console import Console

from torusfabric.fpga.synthesis.silicon import GENERIC_CELLS

SIM = Path(__file__).parents[2] / "sim"

#: The smallest run of each script, with the key of its rows in the JSON and keys of a row.
SCRIPTS = {
    "arrowhead_costs.py --orders 1": ("rows", {"order", "claimed", "planned", "cycles"}),
    "benchmarks.py --only cycles": ("counts", {"name", "value", "kept", "verdict"}),
    "circuit_broadcast.py 3x3 --largest 1": ("rows", {"torus", "bound", "max-flow"}),
    "circuit_gossip.py --largest 0": ("cases", {"topology", "planned rounds", "predicted"}),
    "clocks.py --only none": ("rows", set()),
    "cycle_goals.py --only scatter --tori 3x3 --lengths 1": (
        "cases",
        {"torus", "collective", "length", "cycles", "goal", "met"},
    ),
    "cycle_goals.py --random 3 --only scatter,alltoall": ("cases", {"torus", "met"}),
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
    "operator_costs.py --only none": ("rows", set()),
    "other_planners.py --largest 5 --planned 9 --flits 1": (
        "published",
        {"torus", "algorithm", "bound", "steps", "cycles", "our steps", "our cycles"},
    ),
    "silicon_costs.py --torus 3x3 --only hamiltonian": (
        "rows",
        {"name", "cells", "gates", "ffs", "ram_bits", "mean_gates"},
    ),
    "oblivious_gossip.py --largest 0": ("steps", {"algorithm", "planned", "data"}),
    "traffic_plans.py --networks 4x4 --patterns transpose": (
        "rows",
        {"network", "pattern", "bound", "steps", "share", "reason"},
    ),
}


def test_all_are_here():
    scripts = {path.name for path in SIM.glob("*.py") if "__main__" in path.read_text()}
    assert {words.split()[0] for words in SCRIPTS} == scripts


def test_speed_has_a_bound():
    """An engine that is not built and run within the time bound is reported and stopped."""
    command = [sys.executable, SIM / "engine_speed.py", "2x2", "--engines", "icarus"]
    done = subprocess.run([*command, "--bound", "0.1"], capture_output=True, text=True, check=True)
    assert "icarus on 2x2: not built and run within 0.1 s" in done.stdout


def test_silicon_of_other_verilog(tmp_path):
    """A file of other Verilog is a row for each library; a missing file or top is an error."""
    gate, cells = tmp_path / "two_gates.v", tmp_path / "cells.lib"
    below = "module below(input a, output y); assign y = ~a; endmodule\n"
    top = "module gates(input a, b, output y, z); below p(a, y), q(b, z); endmodule"
    gate.write_text(below + top)
    cells.write_text(GENERIC_CELLS.read_text().replace("area : 0.67", "area : 9"))  # that of INV
    command = [sys.executable, SIM / "silicon_costs.py", "--only", "none", "--json", "--verilog"]
    run = lambda *more: subprocess.run([*command, *more], capture_output=True, text=True)
    found = json.loads(run(gate, "--top", "gates", "--liberty", cells).stdout)["rows"]
    sizes = {"no process": 1.34, "cells": 18.0}
    assert {row["cells"]: row["gates"] for row in found} == sizes
    assert all((row["name"], row["ffs"]) == ("two gates", 0) for row in found)
    missing = run(tmp_path / "none.v", "--top", "gates")
    assert missing.returncode == 1
    assert "none.v must be a Verilog file: No such file" in missing.stderr
    unnamed = run(gate)
    assert unnamed.returncode == 2
    assert "each --verilog needs a --top" in unnamed.stderr


def test_silicon_of_several_classes(monkeypatch):
    """Sizes are those of the largest router class; the mean counts each class by its nodes."""
    classes = [
        {"nodes": nodes, "gates": gates, "ffs": 10 * nodes, "ram_bits": 0}
        for nodes, gates in ((1, 4.0), (2, 10.0), (3, 6.0))
    ]
    report = type("Report", (), {"classes": classes, "fabric": {}})
    monkeypatch.setattr(silicon_costs.tf, "synthesize", lambda *_: report)
    sizes = {"gates": 10.0, "ffs": 20, "ram_bits": 0, "mean_gates": 7.0}
    assert silicon_costs.measure_sizes(None, "asic") == sizes


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


def row(**others):
    """A row of a clock-rate table: 399.5 MHz for a target of 400 MHz."""
    known = {"router": "r", "program": "p", "what": "MHz", "measured": 399.5, "target": 400}
    noise = {"spread": [347.0, 433.0], "interval": [390.0, 396.0], "worst_class": 391.0}
    return known | noise | {"limit": 1314.06, "met": False} | others


def text(*rows):
    """Render rows as a table; return its lines."""
    console = Console(width=200)
    with console.capture() as captured:
        console.print(targets.render(rows))
    return [line for line in captured.get().splitlines() if " r " in line]


def test_limit_is_shown_where_a_target_is_missed():
    """A missed target has the limit of the netlist beside it; a met target has none."""
    missed, met = text(row(), row(met=True, measured=410.0))
    assert "399.5 (347-433, median within 390-396, worst class 391)" in missed
    assert "missed │" in missed
    assert "<= 1314" in missed
    assert "<=" not in met.replace(">=", "")
    (unknown,) = text(row(measured=None, limit=None))
    assert "no path" in unknown


def test_doubt_is_shown():
    """A target within the bounds of the median is marked "within noise"."""
    near, far = text(row(interval=[391.0, 404.0]), row())
    assert "missed, within noise" in near
    assert "within noise" not in far


def test_tables_are_whole():
    """LUTs are shown as whole numbers, with a lower limit."""
    cost = {"what": "LUT4", "measured": 310, "target": 300, "limit": 250, "met": False}
    cost |= {"share": 0.5, "full_crossbar": 620}
    (line,) = text({"router": "r", "program": "p"} | cost)
    assert "310 (50.0 % of 620)" in line
    assert ">= 250" in line


def test_interval_of_a_median():
    """Bounds of a median are measured values: the extremes of few, or values near the middle."""
    assert targets.interval([]) == [None, None]
    assert targets.interval([7.0]) == [7.0, 7.0]
    assert targets.interval(list(range(15, -1, -1))) == [3, 12]
    assert targets.interval(list(range(100))) == [39, 60]


@pytest.fixture
def placed(monkeypatch):
    """Let place and route end at once: 231 MHz, of which 3 ns are wire and 1 ns is logic."""
    path = {"words": "from a of the host to b of node 3", "logic_ns": 1.0, "wire_ns": 3.0}
    fabric = {"fmax_mhz": 231.0, "fmax_by_seed": [231.0], "logic_mhz": 1000.0, "why": None}
    fabric |= {"luts": 7000, "ffs": 7400, "brams": 0, "slowest_path": path | {"tables": 2}}
    report = type("Report", (), {"fabric": fabric})
    monkeypatch.setattr(clocks.tf, "synthesize", lambda *_, **__: report)
    return fabric


def test_whole_fabrics_name_their_slowest_path(placed):
    """The row of a fabric has its clock, its slowest path, and the share of wires in it."""
    found = clocks.measure(clocks.Clock("wires", "2x2 allgather --width 2", 230), 1, None)
    assert (found["met"], found["mhz"], found["luts"]) == (True, 231.0, 7000)
    assert (found["tables"], found["wire_share"]) == (2, 0.75)
    console = Console(width=200)
    with console.capture() as captured:
        console.print(clocks.render([found], {}))
    assert "from a of the host to b of node 3" in captured.get()


def test_unplaced_fabrics_say_why(placed):
    """The row of a fabric that does not fit has the reason in place of a path, and misses."""
    rates = dict.fromkeys(("fmax_mhz", "logic_mhz", "slowest_path"))
    placed.update(rates, fmax_by_seed=[None], why="70 block RAMs of 56")
    found = clocks.measure(clocks.Clock("big", "2x2 allgather --width 2", 230), 1, None)
    assert (found["met"], found["path"], found["wire_share"]) == (False, placed["why"], None)
    assert clocks.is_worse(found, {"big": {"mhz": 200}})
    console = Console(width=200)
    with console.capture() as captured:
        console.print(clocks.render([found], {}))
    assert "70 block RAMs of 56" in captured.get()


def test_clocks_have_noise():
    """A clock is worse than the kept one if it is lower by more than the noise of a placement."""
    kept = {"wires": {"mhz": 200.0}}
    lower = [clocks.is_worse({"name": "wires", "mhz": mhz}, kept) for mhz in (181.0, 179.0)]
    assert lower == [False, True]
    assert not clocks.is_worse({"name": "new", "mhz": 10.0}, kept)
