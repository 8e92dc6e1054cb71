"""Synthesis runs a tool once for each text."""

import dataclasses

import pytest
from hand_written import SMALL_STORE, design

from torusfabric.errors import WorkFailed
from torusfabric.fpga.synthesis.synthesize import synthesize
from torusfabric.toolchain import tools


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
    with pytest.raises(WorkFailed, match="small_store"):  # which ice40 cannot have
        synthesize(more, "ice40-hx8k")
    assert runs == [("yosys", "small_store")]
    runs.clear()
    synthesize(design(1, extra="  // changed"), "ice40-hx8k")
    assert sorted(runs) == [("yosys", "fabric"), ("yosys", "router")]


def test_other_tool_version_runs_again(no_runs, monkeypatch):
    synthesize(design(1), "ice40-hx8k")
    no_runs()
    synthesize(design(1), "ice40-hx8k")
    monkeypatch.setattr(tools, "version", lambda name: f"{name} 99")
    with pytest.raises(AssertionError, match="yosys ran"):
        synthesize(design(1), "ice40-hx8k")
