"""The gateware of a board, compiled to C++, with its serial line behind a pseudo-terminal."""

import contextlib
import os
import pty
import shutil
import subprocess
import tty
from pathlib import Path

from amaranth.back import rtlil
from bitstream_bench import DIVISOR

from torusfabric.errors import MissingTool
from torusfabric.fpga.bridge.gateware import Gateware
from torusfabric.toolchain import tools

__all__ = ["compiled", "on_terminal"]

#: Cycles without a byte after which a command is dropped.
TIMEOUT = 1 << 17

#: Main program: sends bytes from standard input to the gateware bit by bit, and bytes from the
#: gateware to standard output. It sleeps while both sides are idle.
MAIN = r"""
#include <poll.h>
#include <unistd.h>
#include "gateware.cc"

int main() {
  cxxrtl_design::p_gateware top;
  const int bit = DIVISOR;
  int out_left = 0, out_timer = 0, in_left = 0, in_timer = 0, quiet = 0;
  unsigned out_byte = 0, in_byte = 0;
  top.p_rx.set<bool>(true);
  for (unsigned long cycle = 0;; cycle++) {
    if (in_left == 0 && (cycle & 63) == 0) {
      pollfd input = {0, POLLIN, 0};
      unsigned char byte;
      if (poll(&input, 1, quiet > 5000 ? 5 : 0) > 0 && input.revents & POLLIN) {
        if (read(0, &byte, 1) != 1) return 0;
        in_byte = byte << 1 | 0x200, in_left = 10, in_timer = 0, quiet = 0;
      }
    }
    if (in_left && in_timer-- == 0) {
      top.p_rx.set<bool>(in_byte & 1);
      in_byte >>= 1, in_timer = bit - 1, in_left--;
    }
    top.p_clk.set<bool>(false), top.step();
    top.p_clk.set<bool>(true), top.step();
    bool tx = top.p_tx.get<bool>();
    quiet++;
    if (out_left == 0) {
      if (!tx) out_left = 9, out_timer = bit + bit / 2 - 1;
    } else if (out_timer-- == 0) {
      out_timer = bit - 1, quiet = 0;
      if (--out_left) {
        out_byte = out_byte >> 1 | tx << 7;
      } else {
        unsigned char byte = out_byte;
        if (!tx || write(1, &byte, 1) != 1) return 1;
      }
    }
  }
}
"""

SCRIPT = """\
read_rtlil gateware.il
hierarchy -top gateware
proc
flatten
opt_clean
write_cxxrtl -g0 gateware.cc
"""


def compiled(fabric, folder):
    """Compile the gateware of a fabric; return the path of the program."""
    gateware = Gateware(fabric, DIVISOR, TIMEOUT)
    (folder / "gateware.il").write_text(rtlil.convert(gateware, name="gateware", emit_src=False))
    (folder / "script.ys").write_text(SCRIPT)
    (folder / "main.cc").write_text(MAIN.replace("DIVISOR", str(DIVISOR)))
    tools.run("yosys", ["-q", "-s", "script.ys"], folder=folder, log="yosys.log")
    flags = ["-std=c++14", "-O1", "-DNDEBUG", f"-I{include_folder()}", "main.cc", "-o", "gateware"]
    tools.run("g++", flags, folder=folder, log="g++.log")
    return folder / "gateware"


@contextlib.contextmanager
def on_terminal(program):
    """Run a compiled gateware behind a pseudo-terminal.

    Yields
    ------
    str
        Path of the terminal.
    """
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    process = subprocess.Popen([str(program)], stdin=ours, stdout=ours)
    try:
        yield os.ttyname(theirs)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def include_folder() -> Path:
    """Return the folder of CXXRTL's own headers."""
    path = Path(tools.require("yosys"))
    shares = [path.resolve().parent.parent / "share" / "yosys"]
    if folder := tools.package_folder("pyosys"):
        shares.append(folder / "share")
    if config := shutil.which("yosys-config", path=os.fspath(path.parent)):
        shares.append(Path(config).resolve().parent.parent / "share" / "yosys")
    for share in shares:
        folder = share / "include" / "backends" / "cxxrtl"
        for place in (folder / "runtime", folder.parent.parent):
            if (place / "cxxrtl" / "cxxrtl.h").is_file():
                return place
    raise MissingTool(f"Headers of CXXRTL were not found beside {path}")
