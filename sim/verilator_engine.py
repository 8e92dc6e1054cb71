"""Verilator on the emitted Verilog, as a reference for `engine_speed.py`."""

import os
import subprocess
import tempfile
from pathlib import Path

import torusfabric as tf
from torusfabric.toolchain import tools

#: Main program in C++: starts the number of runs of its argument, compares no words, and prints the
#: seconds of the runs.
MAIN = """\
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include "Vfabric.h"

static void tick(VerilatedContext &context, Vfabric &top) {
  for (int clk : {1, 0}) {
    context.timeInc(1);
    top.clk = clk;
    top.eval();
  }
}

// Processor time of this thread, as the engine beside it counts.
static double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int, char **arguments) {
  VerilatedContext context;
  context.threads(THREADS);
  Vfabric top(&context);
  top.host_we = top.start = 0;
  top.rst = 1;
  tick(context, top);
  top.rst = 0;
  double const began = now();
  for (int run = std::atoi(arguments[1]); run > 0; run--) {
    top.start = 1;
    tick(context, top);
    top.start = 0;
    tick(context, top);
    while (!top.done) tick(context, top);
  }
  std::printf("%.9f\\n", now() - began);
}
"""


class Verilator:
    """A fabric in Verilator.

    Parameters
    ----------
    fabric : tf.Fabric
        Fabric with a host port.
    threads : int
        Threads of the model.
    """

    def __init__(self, fabric, *, threads=1):
        self._fabric = fabric
        self._folder = tempfile.TemporaryDirectory(prefix="verilator-")
        folder = Path(self._folder.name)
        tf.emit(fabric).write(folder)
        (folder / "main.cpp").write_text(MAIN)
        # A compiler takes much longer for one large file than for its parts.
        command = [
            tools.require("verilator"), "--cc", "--exe", "--build", "-j", str(os.cpu_count() or 1),
            "-O3", "--output-split", "20000", "--output-split-cfuncs", "2000", "-Wno-fatal",
            "-Wno-lint", "--x-assign", "fast", "--x-initial", "fast", "--noassert",
            "--threads", str(threads), "-CFLAGS", f"-O2 -DTHREADS={threads}",
            "--top-module", "fabric", "--prefix", "Vfabric", "--Mdir", "made", "-o", "run",
            "fabric.v", "main.cpp",
        ]  # fmt: skip
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)

    def measure(self, runs):
        """Return the cycles of `runs` runs, and the seconds of processor time that they took."""
        program = Path(self._folder.name) / "made" / "run"
        done = subprocess.run([program, str(runs)], check=True, stdout=subprocess.PIPE, text=True)
        return runs * self._fabric.predicted_cycles, float(done.stdout)
