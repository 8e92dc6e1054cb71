"""The harness around a module that is placed alone."""

import shutil
import subprocess

import pytest

from torusfabric.errors import WorkFailed
from torusfabric.fpga.synthesis.wrappers import HARNESS, harness


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
    (tmp_path / "x.v").write_text(text + harness("m", ports) + bench)
    subprocess.run(["iverilog", "-g2005", "-o", "x", "x.v"], cwd=tmp_path, check=True)
    said = subprocess.run(["vvp", "x"], cwd=tmp_path, check=True, capture_output=True, text=True)
    # Registers start unknown; by then the scan chain has cleared all of them.
    assert said.stdout.split() == [str(width)]


def test_harness_refuses_other_ports():
    with pytest.raises(WorkFailed, match=r"^Port pad of m must be an input or output, not inout$"):
        harness("m", {"pad": ("inout", 1)})
