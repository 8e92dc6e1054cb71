# amaranth: UnusedElaboratable=no
"""Simulated bridges of several boards, each with a clock of its own.

What a board sends on its links comes to another some time later.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from amaranth.hdl import Cat, ClockDomain, ClockSignal, DomainRenamer, Module, Signal, Value
from amaranth.sim import Simulator

from ....fpga.bridge.gateware import Bridge
from ....fpga.bridge.simulated import PERIOD, TIMEOUT, Bytes
from ....rtl.assembly import Assembly
from ..hardware import Block, BoardSystem
from ..hardware.system import link_port
from ..pairs import LAYERS, PairLinks
from ..pairs.links import Layer, bundle_ends

__all__ = ["Cables", "SimulatedPins", "linked_blocks", "pair_domain", "simulated_ports"]

#: How many units later than sent what goes on each pair comes, in turn: bits, and bytes, of which
#: transceivers and the code take two in each of 22 to 27 cycles.
LATE = {"lvds": (3, 8, 0, 5), "serdes": (45, 52)}

#: Edges of a board's clock, at least, for what is between boards to find where words begin.
SETTLE = 600


class Cables:
    """What all boards send to each other."""

    def __init__(self) -> None:
        self._wires: dict[tuple[int, int], Signal] = {}

    def wire(self, board: int, number: int, bits: int) -> Signal:
        """What a board sends on a link, or on a bundle of pairs, of a number."""
        name = f"wire_{board}_{number}"
        return self._wires.setdefault((board, number), Signal(bits, name=name))


class Wires:
    """Parallel links of a board, on wires of its own."""

    def __init__(self, system: BoardSystem, board: int, cables: Cables) -> None:
        self._system, self._board, self._cables = system, board, cables

    def connect(self, m: Module, design: Assembly, platform: object) -> None:
        """Connect the link ports."""
        for link, end in enumerate(self._system.boards.ends[self._board]):
            sent, came = (
                Cat(design.net(link_port(link, f"{way}_{name}")) for name in ("word", "frame"))
                for way in ("tx", "rx")
            )
            m.d.comb += [
                self._cables.wire(self._board, link, len(sent)).eq(sent),
                came.eq(self._cables.wire(end.board, end.link, len(came))),
                design.net(link_port(link, "rx_clk")).eq(ClockSignal(_domain(end.board))),
            ]


def _domain(board: int) -> str:
    return f"board_{board}"


def pair_domain(board: int) -> str:
    """The domain of what a board sends on pairs."""
    return f"pairs_{board}"


class SimulatedPins(Layer):
    """The wires of all pairs of a board, in place of the pins of a layer.

    Parameters
    ----------
    ends : sequence of (int, int)
        As of `bundle_ends`.
    late : sequence of int
        How many units later what is sent on each pair of a bundle comes.
    """

    def __init__(
        self,
        layer: Layer,
        board: int,
        ends: Sequence[tuple[int, int]],
        cables: Cables,
        late: Sequence[int],
    ) -> None:
        self.resource, self.units = layer.resource, layer.units
        self._board, self._ends = board, ends
        self._cables, self._late = cables, late

    def begin(self, m: Module, platform: Any) -> None:
        """Do nothing: whoever simulates boards makes their domains, and drives the clocks."""

    def sending(self, bundle: int) -> str:
        """Return the one domain of all bundles."""
        return pair_domain(self._board)

    def receiving(self, bundle: int) -> str:
        """Return the domain of the board that sends."""
        return pair_domain(self._ends[bundle][0])

    def attach(self, m: Module, bundle: int, sent: Signal, platform: Any) -> Value:
        """Delay what the other board sends."""
        m.d.comb += self._cables.wire(self._board, bundle, len(sent)).eq(sent)
        came = self._cables.wire(*self._ends[bundle], len(sent))
        gear = self.units.gear * self.units.unit
        lines = []
        for pair in range(len(sent) // gear):
            line = Signal((self._late[pair] + 2) * self.units.unit + gear, name=f"line_{pair}")
            m.d[self.receiving(bundle)] += line.eq(Cat(line, came.word_select(pair, gear))[gear:])
            lines.append(line[-gear - self._late[pair] * self.units.unit :][:gear])
        return Cat(lines)


def linked_blocks(
    system: BoardSystem, platform: object = None, pairs: int | None = None
) -> list[Block]:
    """The blocks of all boards, which are linked with each other where they are simulated.

    Links on pairs need the platform of the boards, and perhaps how many go to each, as `PairLinks`.
    """
    cables, blocks = Cables(), []
    for board in range(system.boards.number):
        if system.phy.name not in LAYERS:
            blocks.append(Block(system, board, links=Wires(system, board, cables)))
            continue
        layer, each = LAYERS[system.phy.name](platform), LATE[system.phy.name]
        late = [each[(board + k) % len(each)] for k in range(system.plan.links)]
        pins = SimulatedPins(layer, board, bundle_ends(system, board), cables, late)
        links = PairLinks(system, board, pins, platform, pairs)
        blocks.append(Block(system, board, links=links))
    return blocks


def simulated_ports(fabrics: Sequence[Block]) -> list[Bytes]:
    """The bytes of the bridges of some boards, whose clocks are off by as much as they may be."""
    m, system = Module(), fabrics[0].system
    bridges = [Bridge(block, TIMEOUT) for block in fabrics]
    for board, bridge in enumerate(bridges):
        m.domains += ClockDomain(_domain(board))
        m.domains += ClockDomain(pair_domain(board), reset_less=True)
        m.submodules[_domain(board)] = DomainRenamer(_domain(board))(bridge)
    simulator = Simulator(m)
    ports = []
    off = 1e-6 * system.ppm * np.linspace(1, -1, len(fabrics))
    for board, (bridge, block) in enumerate(zip(bridges, fabrics, strict=True)):
        period = PERIOD * (1 + off[board])
        # The phase is any.
        simulator.add_clock(period, phase=period * (0.3 + 0.17 * board), domain=_domain(board))
        if isinstance(block.links, PairLinks):
            faster = period / block.links.units.cycles
            simulator.add_clock(faster, phase=faster * 0.4, domain=pair_domain(board))
        ports.append(port := Bytes(simulator, f"sim:{board}"))
        simulator.add_testbench(partial(port.passed, bridge, _domain(board)), background=True)
    for _ in range(SETTLE * len(fabrics)):
        simulator.advance()
    return ports
