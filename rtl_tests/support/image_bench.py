"""The self-test image as bitstream or placed netlist, taken back to Verilog and simulated."""

import json
import re
import subprocess
from pathlib import Path

from torusfabric.toolchain import tools

__all__ = [
    "DIVISOR",
    "bench",
    "from_bitstream",
    "from_ecp5_layout",
    "from_gowin_netlist",
    "run_bench",
]

#: Clock cycles a bit, so few that a line takes little time to simulate.
DIVISOR = 4

#: Sends some bytes once the image has sent its first line, and prints the lines that it sends.
BENCH = """\
`timescale 1ns/1ps
module bench;
  reg clk = 0, rx = 1;
  wire tx;
  {top} dut ({clock}, .{rx}(rx), .{tx}(tx));
  always #5 clk = ~clk;
  integer lines = 0, heard, k, b, c;
  reg [7:0] code;
  reg [8*{size}-1:0] sent = {bytes};
  always begin : listen
    @(negedge tx);
    #({half});
    for (k = 0; k < 8; k = k + 1) begin
      #({bit}) code[k] = tx;
    end
    #({bit});
    if (tx !== 1) $display("\\nframing error");
    $write("%c", code);
    if (code == 10) begin
      lines = lines + 1;
      if (lines == {lines}) $finish(0);
    end
  end
  initial begin
    heard = 1;
    wait (lines == heard);
    for (b = {count} - 1; b >= 0; b = b - 1)
      if (sent[8*b+:8] == 10) begin
        heard = heard + 1;
        wait (lines == heard);
      end else begin
        #({bit}) rx = 0;
        for (c = 0; c < 8; c = c + 1) #({bit}) rx = sent[8*b+c];
        #({bit}) rx = 1;
        #(2*{bit});
      end
  end
  initial #({limit}) begin
    $display("\\nno end");
    $finish(0);
  end
endmodule
"""


def bench(top, *, clock="clk", rx, tx, send="", lines=1, cycles=60_000):
    """A Verilog bench that sends bytes to an image and prints what it sends.

    Parameters
    ----------
    top : str
        The module.
    clock, rx, tx : str
        Its ports.
    send : str
        At the end of a line the bench waits until the image has sent one.
    lines : int
        After how many lines to end.
    cycles : int
        After how many clock cycles to give up.
    """
    return BENCH.format(
        top=top,
        clock=f".{clock}(clk)",
        rx=rx,
        tx=tx,
        size=max(len(send), 1),
        count=len(send),
        bytes="{" + ", ".join(f"8'd{ord(c)}" for c in send) + "}" if send else "8'd0",
        bit=10 * DIVISOR,
        half=5 * DIVISOR,
        lines=lines,
        limit=10 * cycles,
    )


def run_bench(folder, files, text, *, defines=()):
    """Simulate a bench with iverilog; returns the lines that the image sent."""
    Path(folder, "bench.v").write_text(text)
    flags = [f"-D{name}" for name in defines]
    names = ["bench.v", *map(str, files)]
    args = ["-g2012", "-o", "bench.vvp", "-s", "bench", *flags, *names]
    tools.run("iverilog", args, folder=folder, log="iverilog.log")
    said = tools.run("vvp", ["-n", "bench.vvp"], folder=folder, log="vvp.log")
    return [line for line in said.splitlines() if line and "$finish" not in line]


def from_bitstream(folder):
    """The Verilog that the bits of an iCE40 bitstream amount to, with the names of its pins."""
    tools.run("iceunpack", ["selftest.bin", "unpacked.asc"], folder=folder, log="iceunpack.log")
    # The constraints name pins by net; the tool knows no frequencies.
    pins = [
        line for line in Path(folder, "selftest.pcf").read_text().splitlines() if "set_io" in line
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


def from_ecp5_layout(folder):
    """The Verilog of an ECP5 netlist after place and route; its top module is ``top``."""
    netlist = json.loads(Path(folder, "selftest.pnr.json").read_text())
    roms: list[str] = []
    for cell in netlist["modules"]["top"]["cells"].values():
        if cell["type"] == "DP16KD":
            roms.append(_ecp5_rom(cell, f"rom_{len(roms)}"))
    Path(folder, "named.json").write_text(json.dumps(netlist))
    script = "read_json named.json; write_verilog -noattr layout.v"
    tools.run("yosys", ["-q", "-p", script], folder=folder, log="layout.log")
    Path(folder, "roms.v").write_text("".join(roms))
    return "top"


def _ecp5_rom(cell, name):
    """The module of a block RAM that is only read, by its first port, nine bits at a time."""
    settings = cell["parameters"]
    assert int(settings["DATA_WIDTH_A"], 2) == 9
    assert "WEA" not in cell["connections"] or not cell["connections"]["WEA"]
    rows = [int(settings.get(f"INITVAL_{n:02X}", "0"), 2) for n in range(64)]
    words = [row >> (20 * (k // 2) + 9 * (k % 2)) & 0x1FF for row in rows for k in range(32)]
    address = [f"ADA{n}" for n in range(13, 2, -1)]
    outputs = [f"DOA{n}" for n in range(8, -1, -1)]
    ports = [*address, "CLKA", "CEA", *outputs]
    cell.update(type=name, parameters={})
    cell["connections"] = {p: bits for p, bits in cell["connections"].items() if p in ports}
    cell["port_directions"] = {p: cell["port_directions"][p] for p in cell["connections"]}
    lines = "".join(f"    words[{n}] = {word};\n" for n, word in enumerate(words))
    return (
        f"module {name} (input tri0 {', '.join(address)}, input CLKA, input tri1 CEA,\n"
        f"  output {', '.join(outputs)});\n"
        "  reg [8:0] words [0:2047], word;\n"
        f"  assign {{{', '.join(outputs)}}} = word;\n"
        f"  always @(posedge CLKA) if (CEA) word <= words[{{{', '.join(address)}}}];\n"
        f"  initial begin\n{lines}  end\nendmodule\n"
    )


def from_gowin_netlist(folder):
    """The Verilog of a Gowin netlist after synthesis; its top module is ``selftest``."""
    netlist = json.loads(Path(folder, "selftest.syn.json").read_text())
    roms: list[str] = []
    for cell in netlist["modules"]["selftest"]["cells"].values():
        if cell["type"] == "SPX9":
            roms.append(_gowin_rom(cell, f"rom_{len(roms)}"))
    # Only this module: the models of the cells come from a file.
    netlist["modules"] = {"selftest": netlist["modules"]["selftest"]}
    Path(folder, "named.json").write_text(json.dumps(netlist))
    script = "read_json named.json; write_verilog -noattr netlist.v"
    tools.run("yosys", ["-q", "-p", script], folder=folder, log="netlist.log")
    Path(folder, "roms.v").write_text("".join(roms))
    return "selftest"


def _gowin_rom(cell, name):
    """The module of a block RAM that is only read, nine bits at a time."""
    settings = cell["parameters"]
    assert int(settings["BIT_WIDTH"], 2) == 9
    rows = [int(settings[f"INIT_RAM_{n:02X}"].replace("x", "0"), 2) for n in range(64)]
    words = [row >> 9 * k & 0x1FF for row in rows for k in range(32)]
    ports = {"AD", "CLK", "CE", "DO"}
    cell.update(type=name, parameters={})
    for part in ("connections", "port_directions"):
        cell[part] = {port: value for port, value in cell[part].items() if port in ports}
    lines = "".join(f"    words[{n}] = {word};\n" for n, word in enumerate(words))
    return (
        f"module {name} (input [13:0] AD, input CLK, CE, output [35:0] DO);\n"
        "  reg [8:0] words [0:2047], word;\n  assign DO = word;\n"
        "  always @(posedge CLK) if (CE) word <= words[AD[13:3]];\n"
        f"  initial begin\n{lines}  end\nendmodule\n"
    )
