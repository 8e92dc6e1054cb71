"""The harness around a module for nextpnr, and the watch over placers that are stuck."""

import shutil
import subprocess
from types import SimpleNamespace

import pytest

from torusfabric.errors import WorkFailed
from torusfabric.fpga.synthesis import nextpnr as placers
from torusfabric.fpga.synthesis.nextpnr import SILENT_SECONDS, PlacerWatch, StuckPlacer
from torusfabric.fpga.synthesis.wrappers import HARNESS, harness_text


@pytest.fixture
def clock(monkeypatch):
    """A clock whose seconds pass only under control of the test."""
    now = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(placers, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def lasts(watch, clock, most=10_000):
    """Return the seconds of silence after which a placer is stopped, or None."""
    for seconds in range(most):
        try:
            watch()
        except StuckPlacer:
            return seconds
        clock.seconds += 1
    return None


def says(log, clock, watch, seconds):
    """Write a line to a log every ten seconds, for the given number of seconds."""
    for _ in range(0, seconds, 10):
        with log.open("a") as file:
            file.write("Info: iter\n")
        watch()
        clock.seconds += 10


@pytest.mark.parametrize("before", [10, 60, 300, 1000])
def test_silence_as_long_as_all_before(tmp_path, clock, before):
    """A placer is stopped after a silence as long as its output so far, but not before
    `SILENT_SECONDS`. Time counts from the first line.
    """
    log = tmp_path / "nextpnr.log"
    watch = PlacerWatch(log)
    for _ in range(500):  # a tool is being prepared
        watch()
        clock.seconds += 1
    log.touch()
    watch()
    clock.seconds += 500
    says(log, clock, watch, before)
    silent = lasts(watch, clock) + 10
    assert silent == max(SILENT_SECONDS, before - 10) + 1
    watch = PlacerWatch(log)
    assert lasts(watch, clock) == SILENT_SECONDS + 1


def test_routing_may_be_silent(tmp_path, clock):
    """A silent router is not stopped."""
    log = tmp_path / "nextpnr.log"
    log.write_text("Info: Routing globals...\n")
    assert lasts(PlacerWatch(log), clock) is None


def test_error_names_the_log(tmp_path, clock):
    log = tmp_path / "nextpnr.log"
    log.write_text("Info: Strict legalising 4 cells...\n")
    watch = PlacerWatch(log)
    watch()
    clock.seconds += SILENT_SECONDS + 1
    with pytest.raises(StuckPlacer, match=r"^Placer must .* stuck \(log: \S+nextpnr.log\)$"):
        watch()


@pytest.mark.parametrize("outputs", [0, 1, 4, 5, 17])
@pytest.mark.skipif(shutil.which("iverilog") is None, reason="needs Icarus Verilog")
def test_harness_drives_every_input_and_sees_every_output(outputs, tmp_path):
    width = max(outputs, 1)
    ports = {"clk": ("input", 1), "a": ("input", width)}
    text = f"module m(input clk, input [{width - 1}:0] a"
    if outputs:
        ports["q"] = ("output", outputs)
        text += f", output [{outputs - 1}:0] q"
    text += ");\n" + ("  assign q = a;\n" if outputs else "") + "endmodule\n"
    bench = f"""
    module bench;
      reg clk = 0, scan = 0; wire pin; integer n, ones = 0;
      {HARNESS} h (clk, scan, pin);
      initial begin
        for (n = 0; n < {4 * width + 40}; n = n + 1) begin
          scan = n == {2 * width + 10};  // one bit, which passes each input once
          #1 clk = 1; #1 clk = 0;
          if (n >= {2 * width + 10}) ones = ones + pin;
        end
        $display("%0d", ones);
      end
    endmodule
    """
    (tmp_path / "x.v").write_text(text + harness_text("m", ports) + bench)
    subprocess.run(["iverilog", "-g2005", "-o", "x", "x.v"], cwd=tmp_path, check=True)
    said = subprocess.run(["vvp", "x"], cwd=tmp_path, check=True, capture_output=True, text=True)
    # Registers start unknown; by then the scan chain has cleared all of them.
    assert said.stdout.split() == [str(width)]


def test_harness_refuses_other_ports():
    with pytest.raises(WorkFailed, match=r"^Port pad of m must be an input or output, not inout$"):
        harness_text("m", {"pad": ("inout", 1)})
