"""Whole boards with links on differential pairs of an ECP5, as Verilog for `resets_bench`.

Cables delay signals by some nanoseconds, by a different time in each direction.
"""

from pathlib import Path
from types import SimpleNamespace

import serdes_bench
from amaranth.hdl import Elaboratable, IOPort, Module
from amaranth.lib.io import DifferentialPort
from resets_bench import board_instance, serve_resets

from torusfabric.adapters.boards.files import system_manifest
from torusfabric.adapters.boards.hardware import Block
from torusfabric.adapters.boards.pairs import pair_links
from torusfabric.rtl.assembly import Assembly

PINS = Path(__file__).parent / "ecp5_pins.v"

#: Delay of each cable in nanoseconds, by the sending board.
WAYS = (1.5, 6.3)


class LvdsPlatform:
    """Platform with the members that links on pairs of an ECP5 need."""

    default_clk_frequency, speed = 25e6, "6"

    def __init__(self):
        names = ("tx", "tx_clk", "rx", "rx_clk")
        self.ports = {
            name: DifferentialPort(*(IOPort(1, name=f"{name}_{sign}") for sign in "pn"),
                                   direction="o" if name[0] == "t" else "i")
            for name in names
        }  # fmt: skip
        self.pins = {io.name: io for port in self.ports.values() for io in (port.p, port.n)}
        pair = SimpleNamespace(p=SimpleNamespace(names=["x"]))
        self._resource = SimpleNamespace(
            ios=[SimpleNamespace(name=name, ios=[pair]) for name in names]
        )

    def lookup(self, name, number):
        return self._resource

    def request(self, name, number, dir):
        return SimpleNamespace(**self.ports)

    def add_clock_constraint(self, clock, frequency):
        pass


class PairBoard(Elaboratable):
    """A board of a system, with its number as an input and its links on pairs."""

    def __init__(self, system, platform):
        self._links = pair_links(system, 0, platform)
        block = Block(system, 0, links=self._links)
        self._design = Assembly(block.netlist)
        self.nets = {
            name: getattr(self._design, name)
            for name in block.netlist.inputs | block.netlist.outputs
            if not name.startswith("link_")
        }

    def elaborate(self, platform):
        m = Module()
        m.submodules.fabric = self._design
        self._links.connect(m, self._design, platform)
        return m


def emit_lvds(system, folder):
    """Write the Verilog of a board with LVDS pairs; return the names of all files."""
    platform = LvdsPlatform()
    board = PairBoard(system, platform)
    ports = [*board.nets.values(), *platform.pins.values()]
    serdes_bench.emit_verilog(board, platform, ports, folder)
    (folder / PINS.name).write_text(PINS.read_text())
    return [PINS.name, "board.v"]


def emit_serdes(system, folder):
    """Write the Verilog of a board with transceivers; return the names of all files."""
    with serdes_bench.short_resets():
        platform = serdes_bench.Platform()
        return serdes_bench.emit_board(PairBoard(system, platform), platform, folder, begin=2.5)


#: For each physical layer: suffixes of the pairs of a cable, and the function that writes a board.
PHYS = {"lvds": (("", "_clk"), emit_lvds), "serdes": (("",), emit_serdes)}

#: A pair from one board to the other. One wire is enough, because models do not read the other.
CABLE = """
  wire sent_{k}{pair};
  reg late_{k}{pair} = 0;
  always @(sent_{k}{pair}) late_{k}{pair} <= #({late}) sent_{k}{pair};
  wire came_{there}{pair} = late_{k}{pair};"""

#: An oscillator of 100 MHz, four times the clock of the fabric.
OSCILLATOR = """
  reg oscillator_{k} = 0;
  always @(clk[{k}]) begin
    oscillator_{k} = ~oscillator_{k};
    repeat (3) #({quarter}) oscillator_{k} = ~oscillator_{k};
  end"""


class PairBoards:
    """Two boards of one node each, connected by pairs, as files in a folder."""

    def __init__(self, system, folder):
        self._folder = folder
        pairs, emit = PHYS[system.phy.name]
        self._sources = emit(system, folder)
        manifest = system_manifest(system, command="", files=[], modules=[])
        self._boards = []
        for k, quarter in enumerate((5.00025, 4.99975)):
            pins = {"withdraw": "1'b0"}
            for pair in pairs:
                named = {"k": k, "there": 1 - k, "pair": pair, "late": WAYS[k]}
                self._boards.append(CABLE.format(**named))
                pins |= {f"tx{pair}_p": f"sent_{k}{pair}", f"rx{pair}_p": f"came_{k}{pair}"}
            if system.phy.name == "serdes":
                self._boards.append(OSCILLATOR.format(k=k, quarter=quarter))
                pins["oscillator"] = f"oscillator_{k}"
            self._boards.append(board_instance(manifest, k, pins, module="board"))

    def served(self, which, **chosen):
        """Reset the boards again and again; see `serve_resets`."""
        return serve_resets(self._folder, self._boards, self._sources, which, **chosen)
