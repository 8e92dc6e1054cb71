"""Icarus Verilog on the emitted Verilog, as a reference for `engine_speed.py`."""

import resource
import subprocess
import tempfile
from pathlib import Path

import torusfabric as tf
from torusfabric.toolchain import tools

#: Test bench in Verilog that starts run after run and compares no words.
BENCH = """\
module bench;
  reg clk = 0, rst = 1, start = 0;
  wire done;
  integer run, runs;
  always #1 clk = ~clk;
  fabric net(.clk(clk), .rst(rst), .start(start), .done(done), .host_we(1'b0));
  initial begin
    if (!$value$plusargs("runs=%d", runs)) runs = 0;
    repeat (2) @(negedge clk);
    rst = 0;
    for (run = 0; run < runs; run = run + 1) begin
      start = 1; @(negedge clk);
      start = 0; @(negedge clk);
      while (!done) @(negedge clk);
    end
    $finish;
  end
endmodule
"""


class Icarus:
    """A fabric in Icarus Verilog.

    Parameters
    ----------
    fabric : tf.Fabric
        Fabric with a host port.
    """

    def __init__(self, fabric):
        self._fabric = fabric
        self._folder = tempfile.TemporaryDirectory(prefix="icarus-")
        tf.emit(fabric).write(self._folder.name)
        (Path(self._folder.name) / "bench.v").write_text(BENCH)
        command = [tools.require("iverilog"), "-g2005", "-s", "bench", "-o", "bench.vvp",
                   "fabric.v", "bench.v"]  # fmt: skip
        subprocess.run(command, cwd=self._folder.name, check=True)

    def measure(self, runs):
        """Return the cycles of `runs` runs, and the seconds of processor time that they took."""
        return runs * self._fabric.predicted_cycles, self._seconds(runs) - self._seconds(0)

    def _seconds(self, runs):
        """Return the seconds of processor time of `runs` runs, loading of the bench included."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        command = [tools.require("vvp"), "-n", "bench.vvp", f"+runs={runs}"]
        subprocess.run(command, cwd=self._folder.name, check=True, stdout=subprocess.DEVNULL)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
