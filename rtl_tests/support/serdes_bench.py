"""Transceivers of two boards in Icarus Verilog, between link ports, with separate clocks."""

import re
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Elaboratable, IOPort, Module, Signal

from torusfabric.adapters.boards.hardware.ports import LINK_PORTS
from torusfabric.adapters.boards.hardware.system import link_port_name
from torusfabric.adapters.boards.pairs import pair_links
from torusfabric.toolchain import tools

MODEL = Path(__file__).parent / "dcua.v"


class Said(NamedTuple):
    """Output of the simulation of both boards.

    Parameters
    ----------
    came : dict of str to list of (float, int)
        For each board, each word that arrived: its delay in cycles, and its number.
    codes : list of (int, int)
        For each cycle, the units to send (two bytes with one more bit each), and the bits on the
        line.
    """

    came: dict[str, list[tuple[float, int]]]
    codes: list[tuple[int, int]]


class Platform:
    """Platform with the members that links on transceivers need."""

    default_clk_frequency, oscillator_mhz, transceivers = 25e6, 100.0, ((1, 0),)

    def __init__(self):
        self.oscillator, self.files, self.clocks = Signal(name="oscillator"), {}, {}
        names = {way: [f"{way}_{sign}" for sign in "pn"] for way in ("tx", "rx")}
        self.pins = {name: IOPort(1, name=name) for both in names.values() for name in both}
        pair = SimpleNamespace(p=SimpleNamespace(names=["x"]))
        self._resource = SimpleNamespace(
            ios=[SimpleNamespace(name=way, ios=[pair]) for way in names]
        )

    def lookup(self, name, number):
        return self._resource

    def request(self, name, number, dir):
        p = self.pins
        return SimpleNamespace(tx=SimpleNamespace(p=p["tx_p"], n=p["tx_n"]),
                               rx=SimpleNamespace(p=p["rx_p"], n=p["rx_n"]))  # fmt: skip

    def add_file(self, name, text):
        self.files[name] = text

    def add_clock_constraint(self, clock, frequency):
        self.clocks[clock.name] = frequency


class Board(Elaboratable):
    """A board that has nothing but link ports on transceivers."""

    def __init__(self, system, platform):
        self._links, width = pair_links(system, 0, platform), system.fabric.width
        bits = {"word": width, "frame": 2, "clk": 1}
        self.nets = {
            name: Signal(bits[name.rpartition("_")[2]], name=name)
            for link in range(len(system.boards.link_ports))
            for name in (link_port_name(link, each) for each in LINK_PORTS)
        }

    def signal_of_net(self, name):
        return self.nets[name]

    def elaborate(self, platform):
        m = Module()
        self._links.connect(m, self, platform)
        return m


@contextmanager
def short_resets():
    """Shorten the resets of transceivers to a few cycles."""
    from liteiclink.serdes import serdes_ecp5

    from torusfabric.adapters.boards.pairs import serdes, transceiver

    wait = serdes_ecp5.WaitTimer
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serdes_ecp5, "WaitTimer", lambda cycles: wait(8))
        patch.setattr(transceiver, "RESET_CYCLES", 8)
        patch.setattr(serdes, "RESET_CYCLES", 8)
        yield


def emit_board(board, platform, folder, **transceivers):
    """Write the Verilog of a board on transceivers, and models of these; return all file names."""
    ports = [*board.nets.values(), platform.oscillator, *platform.pins.values()]
    emit_verilog(board, platform, ports, folder)
    for name, content in platform.files.items():
        # The logic that sets polarities by a bus of the DCU stays in reset: it never settles in
        # Icarus.
        content = re.sub(r"(assign \w*sci_reconfig_reset) = .*;", r"\1 = 1;", content)
        (folder / name).write_text(content)
    model = _dcua(platform.files["transceiver_1_0.v"], **transceivers)
    (folder / "dcua.v").write_text(MODEL.read_text() + model)
    return ["dcua.v", "board.v", "transceiver_1_0.v"]


def emit_verilog(board, platform, ports, folder):
    """Write ``board.v``, the Verilog of a board that Amaranth elaborates."""
    text = rtlil.convert(board, name="board", platform=platform, ports=ports, emit_src=False)
    (folder / "board.il").write_text(text)
    script = "read_rtlil board.il; proc; memory_collect; write_verilog -noattr board.v"
    tools.run("yosys", ["-q", "-p", script], folder=folder, log="yosys.log")


def run_pair(system, folder, *, late=0.0, until=9_000.0, **transceivers):
    """Simulate two boards that count, and return the words that arrive.

    Parameters
    ----------
    system : BoardSystem
        System of two boards.
    folder : path
        Work folder.
    late : float
        Delay from board to board in nanoseconds.
    until : float
        Length of the simulation in nanoseconds.
    **transceivers
        Settings of the model: ``words``, number of words that a receiver holds, besides two that
        are under way; ``odd``, half of a pair of bytes that comes first; ``begin``, phase of the
        transmitter in nanoseconds; ``slip``, time in nanoseconds at which a bit is lost.
    """
    platform = Platform()
    files = emit_board(Board(system, platform), platform, folder, **transceivers)
    (folder / "bench.v").write_text(_BENCH.format(late=late, until=until))
    arguments = ["-g2012", "-o", "bench.vvp", "bench.v", *files]
    tools.run("iverilog", arguments, folder=folder, log="iverilog.log")
    said = tools.run("vvp", ["-n", "bench.vvp"], folder=folder, log="vvp.log")
    found = re.findall(r"bench\.(\w) (sent|got) (\d+) ([\d.]+)", said)
    sent = {(board, int(n)): float(t) for board, what, n, t in found if what == "sent"}
    got = [(board, int(n), float(t)) for board, what, n, t in found if what == "got"]
    codes = re.findall(r"bench\.a code (\w+) (\w+)", said)
    came = {
        board: [((t - sent[other, n]) / 40, n) for at, n, t in got if at == board]
        for board, other in ("ab", "ba")
    }
    return Said(came, [(int(units, 16), int(bits, 16)) for units, bits in codes if "x" not in bits])


def _dcua(text, *, words=15, odd=0, begin=0.0, slip=0.0):
    """Return the Verilog module DCUA, a wrapper of the model with the ports that `text` uses."""
    instance = text[text.index("DCUA #(") :]
    head, body = instance.split(") DCUA (")
    parameters = re.findall(r"\.(\w+)\(", head)
    nets = dict(re.findall(r"\.(\w+)\((.*)\),?\n", body.split(");\n")[0] + "\n"))
    outputs = [name for name in nets if re.search(r"RX_D_|PCLK|FFS_|HDOUT|RDATA", name)]
    inputs = [name for name in nets if name not in outputs]
    lines = [f"parameter {name} = 0" for name in parameters]
    given = [name for name in outputs if "RX_D" in name]
    wires = "".join(f"  assign {name} = came[{name.rpartition('_')[2]}];\n" for name in given)
    sent = ", ".join(f"CH0_FF_TX_D_{k}" for k in reversed(range(24)))
    io = [f"input {n}" for n in inputs] + [f"output {n}" for n in outputs]
    return f"""
module DCUA #({", ".join(lines)}) ({", ".join(io)});
  wire [23:0] came;
{wires}  assign CH0_HDOUTN = ~CH0_HDOUTP;
  assign #500 D_FFS_PLOL = D_FFC_TRST, CH0_FFS_RLOL = CH0_FFC_RRST;
  reg slip = 0;
  initial if ({slip} > 0) #{slip} slip = 1;
  transmitter #(.BEGIN({begin})) tx (.reference(D_REFCLKI), .data({{{sent}}}),
    .reset(CH0_FFC_LANE_TX_RST | D_FFC_TRST), .clk(CH0_FF_TXI_CLK), .pclk(CH0_FF_TX_PCLK),
    .line(CH0_HDOUTP));
  receiver #(.WORDS({words}), .ODD({odd})) rx (.reset(CH0_FFC_RRST), .line(CH0_HDINP),
    .align(CH0_FFC_SIGNAL_DETECT), .slip(slip), .pclk(CH0_FF_RX_PCLK), .data(came),
    .lost(CH0_FFS_RLOS));
endmodule
"""


_BENCH = """
`timescale 1ns/1fs
module side #(parameter real PERIOD = 10) (input rx, output tx);
  reg oscillator = 0, clk = 0;
  always #(PERIOD / 2) oscillator = ~oscillator;
  always #(PERIOD * 2) clk = ~clk;
  reg [17:0] count = 0;
  wire [31:0] low, high;
  wire [1:0] top;
  wire taken;
  wire [23:0] mixed = count * 24'h9e3779;
  wire [17:0] came = {{top, low[7:0], high[7:0]}};
  wire [23:0] expected = came * 24'h9e3779;
  board board (.clk(clk), .rst(1'b0), .oscillator(oscillator), .rx_p(rx), .rx_n(~rx), .tx_p(tx),
    .link_0_tx_word({{mixed, count[7:0]}}), .link_1_tx_word({{~mixed, count[15:8]}}),
    .link_0_tx_frame(count[17:16]), .link_1_tx_frame(count[17:16]), .link_0_rx_word(low),
    .link_1_rx_word(high), .link_0_rx_frame(top), .link_0_rx_clk(taken));
  always @(posedge clk) begin
    count <= count + 1;
    $display("%m sent %0d %0.3f", 18'(count + 1), $realtime);
  end
  // The first link of one board is the second one of the other.
  always @(negedge taken) if (high[31:8] == expected && low[31:8] == ~expected)
    $display("%m got %0d %0.3f", came, $realtime);
  wire [17:0] sent = board.bundle_0.transceiver.sent;
  always @(posedge board.bundle_0.transceiver.tx_clk)
    $display("%m code %h %h", sent, board.bundle_0.transceiver.DCUA.tx.bits);
endmodule

module bench;
  wire ab, ba;
  reg ab_late, ba_late;
  always @(ab) ab_late <= #({late}) ab;
  always @(ba) ba_late <= #({late}) ba;
  side #(.PERIOD(10.001)) a (.rx(ba_late), .tx(ab));
  side #(.PERIOD(9.999)) b (.rx(ab_late), .tx(ba));
  initial begin
    #{until} $finish;
  end
endmodule
"""
