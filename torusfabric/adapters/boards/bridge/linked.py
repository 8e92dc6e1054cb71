# amaranth: UnusedElaboratable=no
"""Simulation of several boards with their bridges, each with its own clock, and of the cables.

`linked_blocks` returns blocks whose links end at simulated cables, of parallel wires or of pairs.
`simulated_ports` simulates all boards together, and returns the byte stream of each bridge.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from amaranth.hdl import Cat, ClockDomain, ClockSignal, DomainRenamer, Module, Signal, Value
from amaranth.sim import Simulator

from ....fpga.bridge.gateware import Bridge
from ....fpga.bridge.simulated import CYCLE_SECONDS, TIMEOUT_CYCLES, SimulatedBytePort
from ....rtl.assembly import Assembly
from ..hardware import Block, BoardSystem
from ..hardware.system import link_port_name
from ..pairs import LAYERS, PairLinks
from ..pairs.links import PhysicalLayer, bundle_ends

__all__ = ["CableSignals", "SimulatedPins", "linked_blocks", "pair_domain", "simulated_ports"]

#: Delays of pairs in units, used in turn: bits for lvds, bytes for serdes. Transceivers and the
#: code take 22 to 27 cycles of two bytes.
UNIT_DELAYS = {"lvds": (3, 8, 0, 5), "serdes": (45, 52)}

#: Simulated events per board before the first access, for the receivers of pairs to lock.
SETTLE_STEPS = 600


class CableSignals:
    """The signals that cables carry between all boards; each is created when it is first used."""

    def __init__(self) -> None:
        self._wires: dict[tuple[int, int], Signal] = {}

    def wire_signal(self, board: int, number: int, bits: int) -> Signal:
        """Return the signal on the cable that leaves link port `number` of a board.

        If links share pairs of wires, `number` is the number of a bundle (all pairs to a board).
        `bits` is the width of the signal, which is created at its first use.
        """
        name = f"wire_{board}_{number}"
        return self._wires.setdefault((board, number), Signal(bits, name=name))


class ParallelWires:
    """Link hardware that connects the link ports of a board to cables of parallel wires."""

    def __init__(self, system: BoardSystem, board: int, cables: CableSignals) -> None:
        self._system, self._board, self._cables = system, board, cables

    def connect(self, m: Module, design: Assembly, platform: object) -> None:
        """Connect the link ports of a board's design to the cables."""
        for link, end in enumerate(self._system.boards.far_ends[self._board]):
            sent, came = (
                Cat(
                    design.signal_of_net(link_port_name(link, f"{way}_{name}"))
                    for name in ("word", "frame")
                )
                for way in ("tx", "rx")
            )
            m.d.comb += [
                self._cables.wire_signal(self._board, link, len(sent)).eq(sent),
                came.eq(self._cables.wire_signal(end.board, end.link, len(came))),
                design.signal_of_net(link_port_name(link, "rx_clk")).eq(
                    ClockSignal(_board_domain(end.board))
                ),
            ]


def _board_domain(board: int) -> str:
    return f"board_{board}"


def pair_domain(board: int) -> str:
    """Return the name of the clock domain in which a board sends on pairs of wires."""
    return f"pairs_{board}"


class SimulatedPins(PhysicalLayer):
    """A physical layer in which simulated cables replace the pins of another layer.

    Parameters
    ----------
    layer : PhysicalLayer
        The layer whose units (the bit or byte that a pair carries at once) travel on the cables.
    board : int
        Number of the board in the system.
    ends : sequence of (int, int)
        Other end of each bundle (all pairs to one board): a board, and the number that the bundle
        has there; see `bundle_ends`.
    cables : CableSignals
        The signals between all boards.
    late : sequence of int
        Delay of each pair of a bundle, in units.
    """

    def __init__(
        self,
        layer: PhysicalLayer,
        board: int,
        ends: Sequence[tuple[int, int]],
        cables: CableSignals,
        late: Sequence[int],
    ) -> None:
        self.resource, self.units = layer.resource, layer.units
        self._board, self._ends = board, ends
        self._cables, self._late = cables, late

    def add_common_hardware(self, m: Module, platform: Any) -> None:
        """Do nothing: `simulated_ports` makes the clock domains and drives the clocks."""

    def sending_domain(self, bundle: int) -> str:
        """Return the clock domain in which the board sends, the same for every `bundle`."""
        return pair_domain(self._board)

    def receiving_domain(self, bundle: int) -> str:
        """Return the clock domain of a bundle's receivers: the sending domain of the other board.

        A bundle is all pairs of wires to one neighbour.
        """
        return pair_domain(self._ends[bundle][0])

    def attach_bundle(self, m: Module, bundle: int, sent: Signal, platform: Any) -> Value:
        """Connect a bundle to a simulated cable, and return the bits that arrive.

        A bundle is all pairs of wires to one neighbour. `sent` has the bits for all of its pairs in
        one cycle of the sending clock. The bits that arrive come from the neighbour, each pair with
        its own delay.
        """
        m.d.comb += self._cables.wire_signal(self._board, bundle, len(sent)).eq(sent)
        came = self._cables.wire_signal(*self._ends[bundle], len(sent))
        gear = self.units.gear * self.units.unit
        lines = []
        for pair in range(len(sent) // gear):
            line = Signal((self._late[pair] + 2) * self.units.unit + gear, name=f"line_{pair}")
            m.d[self.receiving_domain(bundle)] += line.eq(
                Cat(line, came.word_select(pair, gear))[gear:]
            )
            lines.append(line[-gear - self._late[pair] * self.units.unit :][:gear])
        return Cat(lines)


def linked_blocks(
    system: BoardSystem, platform: object = None, pairs: int | None = None
) -> list[Block]:
    """Return the blocks of all boards, with simulated links between them.

    Parameters
    ----------
    system : BoardSystem
        The fabric on all boards.
    platform : Platform, optional
        Platform of the boards; needed for links on pairs of wires.
    pairs : int, optional
        Data pairs to each neighbour; by default as many as are needed.
    """
    cables, blocks = CableSignals(), []
    for board in range(system.boards.n_boards):
        if system.phy.name not in LAYERS:
            blocks.append(Block(system, board, links=ParallelWires(system, board, cables)))
            continue
        layer, each = LAYERS[system.phy.name](platform), UNIT_DELAYS[system.phy.name]
        late = [each[(board + k) % len(each)] for k in range(system.link_plan.n_links)]
        pins = SimulatedPins(layer, board, bundle_ends(system, board), cables, late)
        links = PairLinks(system, board, pins, platform, pairs)
        blocks.append(Block(system, board, links=links))
    return blocks


def simulated_ports(fabrics: Sequence[Block]) -> list[SimulatedBytePort]:
    """Simulate all boards behind bridges, and return the port of each bridge.

    By such a port a computer sends bytes to the bridge and reads bytes from it, as by a serial
    port. The clocks of the boards have frequency errors from -ppm to +ppm: the first board is
    slowest.

    Parameters
    ----------
    fabrics : sequence of Block
        The blocks of all boards, from `linked_blocks`.
    """
    m, system = Module(), fabrics[0].system
    bridges = [Bridge(block, TIMEOUT_CYCLES) for block in fabrics]
    for board, bridge in enumerate(bridges):
        m.domains += ClockDomain(_board_domain(board))
        m.domains += ClockDomain(pair_domain(board), reset_less=True)
        m.submodules[_board_domain(board)] = DomainRenamer(_board_domain(board))(bridge)
    simulator = Simulator(m)
    ports = []
    off = 1e-6 * system.ppm * np.linspace(1, -1, len(fabrics))
    for board, (bridge, block) in enumerate(zip(bridges, fabrics, strict=True)):
        period = CYCLE_SECONDS * (1 + off[board])
        # An arbitrary phase, different for each board.
        simulator.add_clock(
            period, phase=period * (0.3 + 0.17 * board), domain=_board_domain(board)
        )
        if isinstance(block.links, PairLinks):
            faster = period / block.links.units.cycles
            simulator.add_clock(faster, phase=faster * 0.4, domain=pair_domain(board))
        ports.append(port := SimulatedBytePort(simulator, f"sim:{board}"))
        simulator.add_testbench(
            partial(port.pass_bytes, bridge, _board_domain(board)), background=True
        )
    for _ in range(SETTLE_STEPS * len(fabrics)):
        simulator.advance()
    return ports
