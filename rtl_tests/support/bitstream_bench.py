"""Simulation of a board's bitstream or placed netlist, converted back to Verilog."""

import json
import re
import subprocess
from pathlib import Path

from torusfabric.toolchain import tools

__all__ = [
    "DIVISOR",
    "BenchPort",
    "from_bitstream",
    "from_ecp5_layout",
    "from_gowin_netlist",
]

#: Clock cycles per bit of the serial line. Few cycles make the simulation short.
DIVISOR = 4

#: Test bench that obeys numbers on standard input: 0 to 255 sends a byte, 256 + n waits for n more
#: bytes. It prints each byte that arrives, or "silent" if a byte is missing.
BENCH = """\
`timescale 1ns/1ps
module bench;
  reg clk = 0, rx = 1;
  wire tx;
  {top} dut (.{clock}(clk), .{rx}(rx), .{tx}(tx));
  always #5 clk = ~clk;
  integer heard = 0, wanted = 0, waited, former, word, k, c;
  reg [7:0] code;
  always begin : listen
    @(negedge tx);
    #({half});
    for (k = 0; k < 8; k = k + 1) begin
      #({bit}) code[k] = tx;
    end
    #({bit});
    if (tx !== 1) $display("framing error");
    $display("%0d", code);
    $fflush;
    heard = heard + 1;
  end
  initial begin
    while ($fscanf(32'h8000_0000, "%d", word) == 1)
      if (word < 256) begin
        #({bit}) rx = 0;
        for (c = 0; c < 8; c = c + 1) #({bit}) rx = word >> c & 1;
        #({bit}) rx = 1;
        #({bit});
      end else begin
        wanted = wanted + word - 256;
        waited = 0;
        while (heard < wanted && waited < {limit}) begin
          former = heard;
          #({bit}) waited = heard == former ? waited + 1 : 0;
        end
        if (heard < wanted) $display("silent");
        wanted = heard;
        $fflush;
      end
    $finish(0);
  end
endmodule
"""


class BenchPort:
    """The serial port of a bitstream that Icarus Verilog simulates.

    Parameters
    ----------
    folder : path
        Work folder.
    files : sequence of path
        Verilog of the bitstream.
    top : str
        Top module.
    clock, rx, tx : str
        Ports of the top module.
    defines : sequence of str
        Verilog macros to define.
    """

    name = "bench"

    def __init__(self, folder, files, top, *, clock, rx, tx, defines=()):
        text = BENCH.format(
            top=top, clock=clock, rx=rx, tx=tx, bit=10 * DIVISOR, half=5 * DIVISOR, limit=400
        )
        Path(folder, "bench.v").write_text(text)
        flags = [f"-D{name}" for name in defines]
        names = ["bench.v", *map(str, files)]
        args = ["-g2012", "-o", "bench.vvp", "-s", "bench", *flags, *names]
        tools.run("iverilog", args, folder=folder, log="iverilog.log")
        self._process = subprocess.Popen(
            [tools.require("vvp"), "-n", "bench.vvp"], cwd=folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._said, self._heard = self._process.stdin, self._process.stdout

    def write(self, data):
        """Queue bytes; they are sent at the next `read`."""
        self._said.write("".join(f"{byte}\n" for byte in data))

    def read(self, size):
        """Return `size` bytes, or fewer if no more arrive."""
        self._said.write(f"{256 + size}\n")
        self._said.flush()
        said: list[int] = []
        while len(said) < size and (line := self._heard.readline().strip()) != "silent":
            said.append(int(line))
        return bytes(said)

    def close(self):
        """End the simulation."""
        self._process.kill()
        self._process.communicate()


def from_bitstream(folder):
    """Write an iCE40 bitstream as Verilog with the names of its pins; return its top module."""
    tools.run("iceunpack", ["fabric.bin", "unpacked.asc"], folder=folder, log="iceunpack.log")
    # The constraints name pins by net; the tool knows no frequencies.
    pins = [
        line for line in Path(folder, "fabric.pcf").read_text().splitlines() if "set_io" in line
    ]
    Path(folder, "pins.pcf").write_text("\n".join(pins) + "\n")
    text = subprocess.run(
        [tools.require("icebox_vlog"), "-s", "-p", "pins.pcf", "unpacked.asc"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    Path(folder, "bitstream.v").write_text(text)
    return re.findall(r"^module (\w+)", text, re.M)[0]


def from_ecp5_layout(folder, netlist):
    """Write an ECP5 netlist after place and route as Verilog; return its top module, ``top``."""
    script = f"read_json {netlist}; write_verilog -noattr layout.v"
    tools.run("yosys", ["-q", "-p", script], folder=folder, log="layout.log")
    return "top"


def from_gowin_netlist(folder, netlist):
    """Write a Gowin netlist after synthesis as Verilog; return its top module, ``fabric``."""
    found = json.loads(Path(netlist).read_text())
    # Only this module: the models of the cells come from a file.
    found["modules"] = {"fabric": found["modules"]["fabric"]}
    Path(folder, "named.json").write_text(json.dumps(found))
    script = "read_json named.json; write_verilog -noattr netlist.v"
    tools.run("yosys", ["-q", "-p", script], folder=folder, log="netlist.log")
    return "fabric"
