"""Several boards in Amaranth's simulator, each behind its bridge and with a clock of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from amaranth.hdl import Cat, ClockDomain, ClockSignal, DomainRenamer, Module, Signal
from amaranth.sim import Simulator

from ...rtl.assembly import Assembly
from ...rtl.boards import Block, BoardSystem
from ...rtl.boards.attach import link_port
from ..pairs import LINKS, PairLinks
from ..pairs.simulated import SimulatedPins, pair_domain
from .gateware import Bridge
from .simulated_port import PERIOD, TIMEOUT, Bytes

__all__ = ["linked_blocks", "simulated_ports"]

#: How many units later than sent what goes on each pair comes, in turn: bits, and bytes, of which
#: transceivers and the code take two in each of 22 to 27 cycles.
LATE = {"lvds": (3, 8, 0, 5), "serdes": (45, 52)}

#: Edges of a board's clock, at least, for what is between boards to find where words begin.
SETTLE = 600


class Wires:
    """Parallel links of a board, on wires that all boards share."""

    def __init__(
        self, system: BoardSystem, board: int, wires: dict[tuple[int, int], Signal]
    ) -> None:
        self._system, self._board, self._wires = system, board, wires

    def connect(self, m: Module, design: Assembly, platform: object) -> None:
        """Connect the link ports."""
        for link, end in enumerate(self._system.boards.ends[self._board]):
            sent, came = (
                Cat(design.net(link_port(link, f"{way}_{name}")) for name in ("word", "frame"))
                for way in ("tx", "rx")
            )
            m.d.comb += [
                self._wire(self._board, link, len(sent)).eq(sent),
                came.eq(self._wire(end.board, end.link, len(came))),
                design.net(link_port(link, "rx_clk")).eq(ClockSignal(_domain(end.board))),
            ]

    def _wire(self, board: int, link: int, bits: int) -> Signal:
        """What a board sends on a link."""
        return self._wires.setdefault((board, link), Signal(bits, name=f"wire_{board}_{link}"))


def _domain(board: int) -> str:
    return f"board_{board}"


def linked_blocks(
    system: BoardSystem, platform: object = None, pairs: int | None = None
) -> list[Block]:
    """The blocks of all boards, which are linked with each other where they are simulated.

    Parameters
    ----------
    platform : Platform, optional
        Of the boards, for links on pairs.
    pairs : int, optional
        For each other board, as of `PairLinks`.
    """
    wires: dict[tuple[int, int], Signal] = {}
    blocks = []
    for board in range(system.boards.number):
        if system.phy.name not in LINKS:
            blocks.append(Block(system, board, links=Wires(system, board, wires)))
            continue
        links = LINKS[system.phy.name](system, board, platform, pairs)
        each = LATE[system.phy.name]
        late = [each[(board + k) % len(each)] for k in range(system.plan.links)]
        SimulatedPins(links, board, wires, late)
        blocks.append(Block(system, board, links=links))
    return blocks


def simulated_ports(blocks: Sequence[Block]) -> list[Bytes]:
    """The bytes of the bridges of some boards, whose clocks are off by as much as they may be."""
    m, system = Module(), blocks[0].system
    bridges = [Bridge(block, TIMEOUT) for block in blocks]
    for board, bridge in enumerate(bridges):
        m.domains += ClockDomain(_domain(board))
        m.domains += ClockDomain(pair_domain(board), reset_less=True)
        m.submodules[_domain(board)] = DomainRenamer(_domain(board))(bridge)
    simulator = Simulator(m)
    ports = []
    off = 1e-6 * system.ppm * np.linspace(1, -1, len(blocks))
    for board, (bridge, block) in enumerate(zip(bridges, blocks, strict=True)):
        period = PERIOD * (1 + off[board])
        # The phase is any.
        simulator.add_clock(period, phase=period * (0.3 + 0.17 * board), domain=_domain(board))
        if isinstance(block.links, PairLinks):
            faster = period / block.links.units.cycles
            simulator.add_clock(faster, phase=faster * 0.4, domain=pair_domain(board))
        ports.append(port := Bytes(simulator, f"sim:{board}"))
        simulator.add_testbench(partial(port.passed, bridge, _domain(board)), background=True)
    for _ in range(SETTLE * len(blocks)):
        simulator.advance()
    return ports
