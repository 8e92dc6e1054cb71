"""Clock rates, slowest paths, and designs that do not fit."""

import dataclasses
from pathlib import Path

import pytest
from hand_written import PORTS, design
from helpers import few
from printed import printed

from torusfabric.errors import WorkFailed
from torusfabric.fpga.synthesis import flow
from torusfabric.fpga.synthesis.flow import Flow
from torusfabric.fpga.synthesis.nextpnr import StuckPlacer, slowest_path
from torusfabric.fpga.synthesis.synthesize import Workplace, synthesize
from torusfabric.fpga.synthesis.target import TARGETS
from torusfabric.toolchain import tools
from torusfabric.toolchain.cache import Cache


@pytest.mark.long
def test_place_and_route_gives_clock_rates(runs, no_runs, cache):
    steps = []
    report = synthesize(
        design(2, 3),
        "ice40-hx8k",
        pnr=True,
        progress=lambda *step: steps.append(step),
        workplace=Workplace(cache=cache),
    )
    assert sorted(runs) == sorted(
        [
            *(("yosys", name) for name in ("router and fabric", "router", "fabric")),
            *(("nextpnr-ice40", name) for name in ("router", "fabric")),
        ]
    )
    row = report.classes[0]
    for part in (row, report.fabric):
        assert 50 < part["fmax_mhz"] < 1000
        assert part["fmax_by_seed"] == [part["fmax_mhz"]]
    # The harness adds a register for each input and output, and one for three outputs.
    inputs, outputs = 1 + 2 + 4 * 2, 4 * 2
    assert row["placed"]["ICESTORM_LC"] >= row["cells"] + inputs + outputs + 3
    assert report.fabric["placed"]["ICESTORM_LC"] >= 3 * 8 + 8
    assert [step[:2] for step in steps] == [(n, 5) for n in range(1, 6)]
    assert report.seeds == [1]
    assert report.tools.keys() == {"yosys", "nextpnr-ice40"}
    no_runs()
    assert (
        synthesize(design(2, 3), "ice40-hx8k", pnr=True, workplace=Workplace(cache=cache)) == report
    )


def test_clock_rate_is_the_median_of_the_seeds(monkeypatch):
    rates = {1: 100.0, 2: 300.0, 3: 120.0, 4: None}
    monkeypatch.setattr(Flow, "map_in_harness", lambda self, name, ports, seeds: {"seconds": 1.0})
    monkeypatch.setattr(
        Flow,
        "place_and_route",
        lambda self, name, ports, seed: {
            "mhz": rates[seed],
            "why": None if rates[seed] else "does not fit: no room",
            "placed": {},
            "logic_mhz": 400.0,
            "seconds": 1.0,
        },
    )
    report = synthesize(design(1), "ice40-hx8k", pnr=True, seeds=range(1, 4))
    assert (report.fabric["fmax_mhz"], report.fabric["why"]) == (120.0, None)
    assert (report.fabric["fmax_min_mhz"], report.fabric["fmax_max_mhz"]) == (100.0, 300.0)
    assert "100-300" in printed(report)
    assert [run.get("seed") for run in report.runs if run["tool"] != "yosys"] == [1, 2, 3] * 2
    assert all(run["seconds"] > 0 for run in report.runs)
    report = synthesize(design(1), "ice40-hx8k", pnr=True, seeds=[4])
    assert (report.fabric["fmax_mhz"], report.fabric["why"]) == (None, "does not fit: no room")


def test_slowest_path_is_that_of_the_median(monkeypatch):
    """The slowest path is that of the median seed, with ends named by part and signal."""
    monkeypatch.setattr(Flow, "map_in_harness", lambda self, name, ports, seeds: {"seconds": 1.0})

    def place(self, name, ports, seed):
        step = lambda kind, delay: {
            "type": kind,
            "delay": delay,
            "from": {"cell": "dut.r0.word_TRELLIS_FF_Q_7"},
            "to": {"cell": f"dut.r{seed}.tx_TRELLIS_FF_Q"},
        }
        steps = [step("clk-to-q", 0.5), step("routing", 2.0), step("logic", 0.25)]
        paths = [{"from": "posedge clk", "to": "posedge clk", "path": steps}]
        known = {"mhz": 100.0 * seed, "why": None, "placed": {}, "logic_mhz": 400.0, "seconds": 1.0}
        return known | {"path": slowest_path({"critical_paths": paths})}

    monkeypatch.setattr(Flow, "place_and_route", place)
    parts = {"r0": "router of node 0", "r2": "router of node 2"}
    named = dataclasses.replace(design(1), instance_parts=parts)
    report = synthesize(named, "ice40-hx8k", pnr=True, seeds=[3, 1, 2])
    path = report.fabric["slowest_path"]
    assert path["from"] == "word of the router of node 0"
    assert path["to"] == "tx of the router of node 2"
    assert (path["logic_ns"], path["wire_ns"], path["tables"]) == (0.75, 2.0, 1)
    assert "slowest path from word of the router of node 0" in " ".join(printed(report).split())
    assert slowest_path({}) is None


@pytest.mark.long
def test_fabric_too_large_for_the_device_is_not_placed(monkeypatch):
    small = dataclasses.replace(TARGETS["ice40-hx8k"], capacity={"luts": 20, "cells": 7680})
    monkeypatch.setitem(TARGETS, "ice40-hx8k", small)
    asked = []

    def harnessed(self, name, ports, seeds):
        asked.append(name)
        return {"seconds": 1.0}

    placed = {"mhz": 99.0, "why": None, "placed": {}, "logic_mhz": 200.0, "seconds": 1.0}
    monkeypatch.setattr(Flow, "map_in_harness", harnessed)
    monkeypatch.setattr(Flow, "place_and_route", lambda *_: placed)
    report = synthesize(design(2, 3), "ice40-hx8k", pnr=True)
    assert report.fabric["fits"] is False
    assert report.fabric["fmax_mhz"] is None
    assert report.fabric["why"] == "does not fit: 24 LUTs of 20"
    assert report.classes[0]["fmax_mhz"] == 99.0
    assert asked == ["router"]
    assert "does not fit: 24 LUTs of 20" in printed(report)


def _pnr_that_fails(monkeypatch, last):
    monkeypatch.setattr(Flow, "map_in_harness", lambda self, name, ports, seeds: {"seconds": 1.0})
    real = tools.run
    said = f"Info: \t ICESTORM_LC:    8472/   7680   110%\nInfo: SB_IO: 3/ 256 1%\nERROR: {last}\n"

    def run(name, args, *, folder, log, what, **options):
        if name == "yosys":
            return real(name, args, folder=folder, log=log, what=what, **options)
        (Path(folder) / log).write_text(said)
        raise WorkFailed(f"{name} failed on {what}: ERROR: {last} (log: {log})")

    monkeypatch.setattr(tools, "run", run)


def test_no_room_found_when_placing_is_a_result(monkeypatch):
    _pnr_that_fails(monkeypatch, "Unable to place cell 'x', no BELs remaining to implement")
    report = synthesize(design(1), "ice40-hx8k", pnr=True, seeds=[8])
    assert report.fabric["fmax_mhz"] is None
    assert report.fabric["why"] == "does not fit: 8472 ICESTORM_LC of 7680"
    assert report.fabric["fits"] is True  # by count


def test_other_failure_of_place_and_route_is_an_error(monkeypatch):
    _pnr_that_fails(monkeypatch, "Unsupported package 'x'")
    with pytest.raises(WorkFailed, match=r"^nextpnr-ice40 failed on router: ERROR: Unsupported"):
        synthesize(design(1), "ice40-hx8k", pnr=True, seeds=[9])


@pytest.mark.parametrize("error", few(0, [StuckPlacer, WorkFailed]))
def test_another_placer_is_tried_where_one_fails(monkeypatch, error, tmp_path):
    real, tried = tools.run, []

    def run(name, args, **options):
        if name == "nextpnr-ecp5":
            tried.append(args[args.index("--placer") + 1])
            # The last placer is never stopped, whatever its log shows.
            assert (options.get("look") is None) == (tried[-1] == "heap")
            if tried[-1] == "static":
                raise error(f"{name} failed on router: ERROR: Placer algorithm 'static' is ..")
        return real(name, args, **options)

    monkeypatch.setattr(tools, "run", run)
    workplace = Workplace(cache=Cache(tmp_path / "cache"))
    report = synthesize(design(1), "ecp5-25k", pnr=True, seeds=[10], workplace=workplace)
    assert set(tried) == {"static", "heap"}
    assert report.fabric["fmax_mhz"] > 50


@pytest.mark.long
def test_the_first_placer_is_enough(monkeypatch):
    real, tried = tools.run, []

    def run(name, args, **options):
        tried.append(args)
        return real(name, args, **options)

    monkeypatch.setattr(tools, "run", run)
    assert synthesize(design(1), "ecp5-25k", pnr=True, seeds=[11]).fabric["fmax_mhz"] > 50
    assert {"static", "heap"} & {word for args in tried for word in args} == {"static"}


@pytest.mark.long
def test_no_path_between_registers_is_reported(monkeypatch):
    real = flow.load_json

    def load(path, tool, what):
        value = real(path, tool, what)
        return value | {"fmax": {}, "critical_paths": []} if "fmax" in value else value

    monkeypatch.setattr(flow, "load_json", load)
    report = synthesize(design(1), "ice40-hx8k", pnr=True, seeds=[7])
    assert report.fabric["fmax_mhz"] is report.fabric["logic_mhz"] is None
    assert report.fabric["why"] == "nextpnr-ice40 found no path from register to register"


@pytest.mark.long
def test_router_at_two_widths_on_all_targets():
    for target in [name for name, t in TARGETS.items() if t.device_family.pnr]:
        for width in (8, 32):
            report = synthesize(design(width, 4), target, pnr=True, seeds=(1, 2))
            assert report.classes[0]["luts"] == report.classes[0]["ffs"] == PORTS * width
            # Without clock enables, Gowin's tool times no path after routing.
            assert target.startswith("gowin") or report.fabric["fmax_mhz"] > 20
