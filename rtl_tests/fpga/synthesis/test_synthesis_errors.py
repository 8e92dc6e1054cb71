"""Failures of synthesis are named, and a tool runs once for each text."""

import dataclasses

import pytest
from hand_written import SMALL_STORE, design

from torusfabric.errors import InputError, MissingTool, WorkFailed
from torusfabric.fpga.synthesis.family import Cost
from torusfabric.fpga.synthesis.synthesize import Workplace, synthesize
from torusfabric.fpga.synthesis.target import find_target
from torusfabric.toolchain import tools
from torusfabric.verilog.design import Design


def test_missing_tool_is_one_line(monkeypatch, no_runs):
    no_runs()
    monkeypatch.setenv("YOSYS", "no-such-yosys")
    with pytest.raises(
        MissingTool, match=r"^Tool yosys was not found as 'no-such-yosys' .*: pip install \S+$"
    ):
        synthesize(design(1), "ice40-hx8k")


def test_missing_place_and_route_is_found_out_first(monkeypatch, no_runs):
    no_runs()
    monkeypatch.setenv("NEXTPNR_ICE40", "no-such-nextpnr")
    with pytest.raises(MissingTool, match=r"^Tool nextpnr-ice40 was not found"):
        synthesize(design(1), "ice40-hx8k", pnr=True)


def test_error_in_verilog_is_quoted_and_its_log_kept(tmp_path):
    broken = Design({"m": "module m(input a, output b);\n  assign b = = a;\nendmodule\n"}, "m", {})
    with pytest.raises(
        WorkFailed,
        match=r"^yosys failed on m: 0-m\.v:2: ERROR: syntax error, unexpected '=' "
        r"\(log: .*0-m\.log\)$",
    ):
        synthesize(broken, "ice40-hx8k", workplace=Workplace(folder=tmp_path / "work"))
    assert "syntax error" in (tmp_path / "work" / "0-m.log").read_text()


def test_only_failures_leave_a_folder(tmp_path):
    synthesize(design(1), "ice40-hx8k")
    assert list(tmp_path.glob("torusfabric-synth-*")) == []
    with pytest.raises(WorkFailed) as caught:
        synthesize(Design({"m": "module m(;"}, "m", {}), "ice40-hx8k")
    (log,) = tmp_path.glob("torusfabric-synth-*/0-m.log")
    assert f"(log: {log})" in str(caught.value)


def test_unknown_child_is_an_error():
    orphan = Design({"m": "module m(input a);\n  nobody x (.a(a));\nendmodule\n"}, "m", {})
    with pytest.raises(WorkFailed, match=r"^yosys failed on m: ERROR: .*nobody"):
        synthesize(orphan, "ice40-hx8k")


def test_cell_of_another_family_is_an_error():
    cell = {"type": "TRELLIS_FF", "port_directions": {}, "connections": {}}
    module = {"cells": {"x": cell}, "ports": {}}
    with pytest.raises(WorkFailed, match=r"^Cells must be those of ice40, not TRELLIS_FF$"):
        find_target("ice40-hx8k").module_cost(module, ())
    assert find_target("ecp5-25k").module_cost(module, ()) == Cost(ffs=1)
    assert find_target("ice40-hx8k").module_cost(module, {"TRELLIS_FF"}) == Cost()


def test_child_after_its_parent_is_refused():
    modules = dict(reversed(design(1).modules.items()))
    with pytest.raises(ValueError, match=r"^Module router must come before fabric, which has it$"):
        synthesize(dataclasses.replace(design(1), modules=modules), "ice40-hx8k")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"target": "ice40"},
            r"^Target must be one of ice40-hx8k, .*gowin-gw1nr-9, .*, not 'ice40' \(did you mean ",
        ),
        ({"mapping": "best"}, r"^Mapping must be compact or fast, not 'best'$"),
        ({"seeds": []}, r"^Seeds must be one or more positive integers, not none$"),
        ({"seeds": [1, 0]}, r"^Seeds must be a positive integer, not 0$"),
    ],
)
def test_misfit_options(options, message):
    with pytest.raises(InputError, match=message):
        synthesize(design(1), **{"target": "ice40-hx8k", **options})


def test_second_time_runs_no_tool(no_runs):
    first = synthesize(design(1), "ice40-hx8k")
    no_runs()
    assert synthesize(design(1), "ice40-hx8k") == first
    smaller = synthesize(design(1), "ice40-up5k")  # the same cells, another device
    assert smaller.classes == first.classes
    assert smaller.fabric["capacity"] != first.fabric["capacity"]
    with pytest.raises(AssertionError, match="yosys ran"):
        synthesize(design(1), "ecp5-25k")


def test_only_changed_text_runs_again(runs):
    synthesize(design(1), "ice40-hx8k")
    runs.clear()
    more = dataclasses.replace(design(1), modules={**design(1).modules, "small_store": SMALL_STORE})
    with pytest.raises(WorkFailed, match="small_store"):  # iCE40 has no such memory
        synthesize(more, "ice40-hx8k")
    assert runs == [("yosys", "small_store")]
    runs.clear()
    synthesize(design(1, extra="  // changed"), "ice40-hx8k")
    assert runs == [("yosys", "router and fabric")]


def test_other_tool_version_runs_again(no_runs, monkeypatch):
    synthesize(design(1), "ice40-hx8k")
    no_runs()
    synthesize(design(1), "ice40-hx8k")
    monkeypatch.setattr(tools, "version", lambda name: f"{name} 99")
    with pytest.raises(AssertionError, match="yosys ran"):
        synthesize(design(1), "ice40-hx8k")
